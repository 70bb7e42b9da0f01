//! The real engine with faults put in front of it: it panics, hangs, loses answers or tells lies as a scenario asks. Judges nothing.

use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::{ExecutionId, JsonText, RequestId, Timestamp, VersionBody};
use leasehold_engine::{Description, EndedPage, Engine, Error, Result, Start, StartOutcome, Told};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// What happens to one start.
#[derive(Clone)]
pub(crate) enum Fault {
    /// The code that starts it panics.
    Panics,
    /// It never answers, and the engine never hears of it.
    Hangs,
    /// The engine starts it; its answer is lost.
    AnswerLost,
    /// The call is lost on the way; nobody knows.
    CallLost,
    /// The engine is known not to have heard of it.
    Unavailable,
    /// The engine says no without looking.
    Refused,
    /// It waits for a permit, then the engine is asked.
    WaitsBefore(Arc<Semaphore>),
    /// The engine is asked; its answer waits for a permit.
    WaitsAfter(Arc<Semaphore>),
}

/// A way for a scenario to hold starts and let them go.
pub(crate) fn barrier() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

/// What has been asked of the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// Starts by execution, in the order of the calls.
    pub(crate) starts: Vec<ExecutionId>,
    /// How many starts were under way when each began, itself included.
    pub(crate) under_way: Vec<usize>,
    pub(crate) cancels: usize,
    pub(crate) terminations: usize,
}

/// What happens when it is asked about one execution.
#[derive(Clone)]
pub(crate) enum Blur {
    /// The engine does not answer.
    Unavailable,
    /// The engine is asked; its answer waits for a permit.
    WaitsAfter(Arc<Semaphore>),
}

#[derive(Default)]
struct State {
    blurred: HashMap<ExecutionId, Blur>,
    descriptions: usize,
    of_request: HashMap<RequestId, VecDeque<Fault>>,
    of_all: Option<Fault>,
    unhealthy: bool,
    calls: Calls,
    now: usize,
    last: HashMap<ExecutionId, Start>,
}

pub(crate) struct FaultyEngine {
    real: Arc<dyn Engine>,
    state: Mutex<State>,
}

impl FaultyEngine {
    pub(crate) fn before(real: Arc<dyn Engine>) -> Self {
        Self {
            real,
            state: Mutex::default(),
        }
    }

    /// The next starts of this request go so; those after them are real.
    pub(crate) fn inject(&self, request: RequestId, faults: &[Fault]) {
        let mut state = self.state.lock().unwrap();
        let planned = state.of_request.entry(request).or_default();
        planned.extend(faults.iter().cloned());
    }

    /// All starts go so until told otherwise.
    pub(crate) fn inject_all(&self, fault: Option<Fault>) {
        self.state.lock().unwrap().of_all = fault;
    }

    /// Whether it says that it is well.
    /// From now on it is so when it is asked about this execution.
    pub(crate) fn blur(&self, execution: ExecutionId, blur: Blur) {
        self.state.lock().unwrap().blurred.insert(execution, blur);
    }

    /// How often it has answered about an execution.
    pub(crate) fn descriptions(&self) -> usize {
        self.state.lock().unwrap().descriptions
    }

    pub(crate) fn set_healthy(&self, healthy: bool) {
        self.state.lock().unwrap().unhealthy = !healthy;
    }

    pub(crate) fn calls(&self) -> Calls {
        self.state.lock().unwrap().calls.clone()
    }

    /// How often this execution's start was asked for.
    pub(crate) fn starts_of(&self, execution: ExecutionId) -> usize {
        let state = self.state.lock().unwrap();
        let starts = state.calls.starts.iter();
        starts.filter(|asked| **asked == execution).count()
    }

    /// The start as it was asked for last, for whoever comes late with the same one.
    pub(crate) fn last_start(&self, execution: ExecutionId) -> Start {
        self.state.lock().unwrap().last[&execution].clone()
    }

    fn begin(&self, start: &Start) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        state.now += 1;
        let now = state.now;
        state.calls.starts.push(start.execution);
        state.calls.under_way.push(now);
        state.last.insert(start.execution, start.clone());
        let planned = state.of_request.get_mut(&start.request);
        let next = planned.and_then(VecDeque::pop_front);
        next.or_else(|| state.of_all.clone())
    }

    async fn faulty(&self, start: &Start, fault: Fault) -> StartOutcome {
        let error = "injected".to_owned();
        match fault {
            Fault::Panics => panic!("injected"),
            Fault::Hangs => std::future::pending().await,
            Fault::AnswerLost => {
                self.real.start(start).await;
                StartOutcome::Unknown { error }
            }
            Fault::CallLost => StartOutcome::Unknown { error },
            Fault::Unavailable => StartOutcome::Unavailable {
                error,
                reached: false,
            },
            Fault::Refused => StartOutcome::Refused { error },
            Fault::WaitsBefore(barrier) => {
                pass(&barrier).await;
                self.real.start(start).await
            }
            Fault::WaitsAfter(barrier) => {
                let outcome = self.real.start(start).await;
                pass(&barrier).await;
                outcome
            }
        }
    }
}

async fn pass(barrier: &Semaphore) {
    barrier.acquire().await.unwrap().forget();
}

#[async_trait]
impl Engine for FaultyEngine {
    fn name(&self) -> &'static str {
        self.real.name()
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        let outcome = match self.begin(start) {
            None => self.real.start(start).await,
            Some(fault) => self.faulty(start, fault).await,
        };
        self.state.lock().unwrap().now -= 1;
        outcome
    }

    async fn output(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
        node: usize,
    ) -> Result<Option<JsonText>> {
        self.real.output(execution, body, node).await
    }

    async fn nodes(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>> {
        self.real.nodes(execution, body).await
    }

    async fn describe(&self, execution: ExecutionId) -> Result<Description> {
        let blur = self.state.lock().unwrap().blurred.get(&execution).cloned();
        if matches!(blur, Some(Blur::Unavailable)) {
            return Err(Error::Unavailable("injected".to_owned()));
        }
        let answer = self.real.describe(execution).await;
        self.state.lock().unwrap().descriptions += 1;
        if let Some(Blur::WaitsAfter(barrier)) = blur {
            pass(&barrier).await;
        }
        answer
    }

    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<Told> {
        self.state.lock().unwrap().calls.cancels += 1;
        self.real.cancel(execution, reason).await
    }

    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<Told> {
        self.state.lock().unwrap().calls.terminations += 1;
        self.real.terminate(execution, reason).await
    }

    async fn ended_since(&self, since: Timestamp, page: Option<Vec<u8>>) -> Result<EndedPage> {
        self.real.ended_since(since, page).await
    }

    async fn pollers(&self, body: &VersionBody) -> Result<Option<usize>> {
        self.real.pollers(body).await
    }

    async fn health(&self) -> Result<()> {
        if self.state.lock().unwrap().unhealthy {
            return Err(Error::Unavailable("injected".to_owned()));
        }
        self.real.health().await
    }
}
