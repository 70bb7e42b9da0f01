//! The real engine with injectable faults: calls panic, hang or lose their answer. Asserts nothing.

use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::{EngineIdentity, ExecutionId, JsonText, RequestId, Timestamp, VersionBody};
use leasehold_engine::{
    Description, EndedPage, Engine, Error, Result, Start, StartOutcome, StartPrevented, StopAck,
};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// The fault of one start.
#[derive(Clone)]
pub(crate) enum Fault {
    /// The start panics.
    Panics,
    /// The start never returns and never reaches the engine.
    Hangs,
    /// The engine starts the execution; its answer is lost.
    AnswerLost,
    /// The call is lost; the outcome is unknown.
    CallLost,
    /// The engine is unavailable, and the call certainly did not reach it.
    Unavailable,
    /// The engine is overloaded and answers so; an earlier call may have reached it.
    Overloaded,
    /// The engine rejects the start.
    Refused,
    /// Waits for a permit, then calls the engine.
    WaitsBefore(Arc<Semaphore>),
    /// Calls the engine; the answer waits for a permit.
    WaitsAfter(Arc<Semaphore>),
}

/// Creates a barrier with which a scenario holds and releases calls.
pub(crate) fn barrier() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

/// The calls the engine received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// Starts by execution, in the order of the calls.
    pub(crate) starts: Vec<ExecutionId>,
    /// How many starts were in flight when each began, itself included.
    pub(crate) in_flight: Vec<usize>,
    pub(crate) cancels: usize,
    pub(crate) terminations: usize,
}

/// The fault of describing one execution.
#[derive(Clone)]
pub(crate) enum DescribeFault {
    /// The engine does not answer.
    Unavailable,
    /// Calls the engine; the answer waits for a permit.
    WaitsAfter(Arc<Semaphore>),
}

#[derive(Default)]
struct State {
    describe_faults: HashMap<ExecutionId, DescribeFault>,
    descriptions: usize,
    listed_since: Option<Timestamp>,
    lists: usize,
    /// The first page of each list is followed by one that fails.
    second_pages_fail: bool,
    of_request: HashMap<RequestId, VecDeque<Fault>>,
    of_all: Option<Fault>,
    unhealthy: bool,
    hides_identity: bool,
    calls: Calls,
    in_flight: usize,
    last: HashMap<ExecutionId, Start>,
}

pub(crate) struct FaultyEngine {
    real: Arc<dyn Engine>,
    state: Mutex<State>,
}

impl FaultyEngine {
    pub(crate) fn wrap(real: Arc<dyn Engine>) -> Self {
        Self {
            real,
            state: Mutex::default(),
        }
    }

    /// Injects faults into the next starts of this request; later starts are real.
    pub(crate) fn inject(&self, request: RequestId, faults: &[Fault]) {
        let mut state = self.state.lock().unwrap();
        let planned = state.of_request.entry(request).or_default();
        planned.extend(faults.iter().cloned());
    }

    /// Injects a fault into all starts until it is cleared with none.
    pub(crate) fn inject_all(&self, fault: Option<Fault>) {
        self.state.lock().unwrap().of_all = fault;
    }

    /// Injects a fault into every describe of this execution.
    pub(crate) fn inject_describe(&self, execution: ExecutionId, fault: DescribeFault) {
        let mut state = self.state.lock().unwrap();
        state.describe_faults.insert(execution, fault);
    }

    /// Describes this execution without a fault from now on.
    pub(crate) fn clear_describe(&self, execution: ExecutionId) {
        let mut state = self.state.lock().unwrap();
        state.describe_faults.remove(&execution);
    }

    /// Returns how often an execution was described.
    pub(crate) fn descriptions(&self) -> usize {
        self.state.lock().unwrap().descriptions
    }

    /// Returns since when ended executions were last listed.
    pub(crate) fn listed_since(&self) -> Option<Timestamp> {
        self.state.lock().unwrap().listed_since
    }

    /// Returns how often ended executions were listed, from the first page on.
    pub(crate) fn lists(&self) -> usize {
        self.state.lock().unwrap().lists
    }

    /// Follows the first page of each list of ended executions with one that fails.
    pub(crate) fn fail_second_pages(&self) {
        self.state.lock().unwrap().second_pages_fail = true;
    }

    /// Sets whether the engine does not answer what it is.
    pub(crate) fn hide_identity(&self, hides: bool) {
        self.state.lock().unwrap().hides_identity = hides;
    }

    /// Sets what the health check reports.
    pub(crate) fn set_healthy(&self, healthy: bool) {
        self.state.lock().unwrap().unhealthy = !healthy;
    }

    pub(crate) fn calls(&self) -> Calls {
        self.state.lock().unwrap().calls.clone()
    }

    /// Returns how often this execution's start was called.
    pub(crate) fn starts_of(&self, execution: ExecutionId) -> usize {
        let state = self.state.lock().unwrap();
        let starts = state.calls.starts.iter();
        starts.filter(|start| **start == execution).count()
    }

    /// Returns the last start of this execution, to repeat it late.
    pub(crate) fn last_start(&self, execution: ExecutionId) -> Start {
        self.state.lock().unwrap().last[&execution].clone()
    }

    fn begin(&self, start: &Start) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        state.in_flight += 1;
        let in_flight = state.in_flight;
        state.calls.starts.push(start.execution);
        state.calls.in_flight.push(in_flight);
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
            Fault::Overloaded => StartOutcome::Unavailable {
                error,
                reached: true,
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

    async fn identity(&self) -> Result<EngineIdentity> {
        if self.state.lock().unwrap().hides_identity {
            return Err(Error::Unavailable("injected".to_owned()));
        }
        self.real.identity().await
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        let outcome = match self.begin(start) {
            None => self.real.start(start).await,
            Some(fault) => self.faulty(start, fault).await,
        };
        self.state.lock().unwrap().in_flight -= 1;
        outcome
    }

    async fn prevent_start(
        &self,
        execution: ExecutionId,
        request: RequestId,
        reason: &str,
    ) -> Result<StartPrevented> {
        self.real.prevent_start(execution, request, reason).await
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
        let fault = {
            let state = self.state.lock().unwrap();
            state.describe_faults.get(&execution).cloned()
        };
        if matches!(fault, Some(DescribeFault::Unavailable)) {
            return Err(Error::Unavailable("injected".to_owned()));
        }
        let answer = self.real.describe(execution).await;
        self.state.lock().unwrap().descriptions += 1;
        if let Some(DescribeFault::WaitsAfter(barrier)) = fault {
            pass(&barrier).await;
        }
        answer
    }

    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<StopAck> {
        self.state.lock().unwrap().calls.cancels += 1;
        self.real.cancel(execution, reason).await
    }

    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<StopAck> {
        self.state.lock().unwrap().calls.terminations += 1;
        self.real.terminate(execution, reason).await
    }

    async fn ended_since(&self, since: Timestamp, page: Option<Vec<u8>>) -> Result<EndedPage> {
        let fails = {
            let mut state = self.state.lock().unwrap();
            state.listed_since = Some(since);
            state.lists += usize::from(page.is_none());
            state.second_pages_fail
        };
        if fails && page.is_some() {
            return Err(Error::Unavailable("injected".to_owned()));
        }
        let mut ended = self.real.ended_since(since, page).await?;
        if fails {
            ended.next.get_or_insert_default();
        }
        Ok(ended)
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
