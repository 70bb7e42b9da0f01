//! Describes every open execution in the engine, slowly and over and over: the safety net behind the reconciler.

use crate::drift_checker::first_ids;
use crate::engine_identity::{LostScope, lost_scope};
use crate::error::{Error, Result};
use crate::execution_checker::{CheckOutcome, ExecutionChecker};
use crate::lock::{LockOptions, NamedLock};
use async_trait::async_trait;
use leasehold_core::{ExecutionEnd, ExecutionId, RequestId, RequestStatus, Timestamp};
use leasehold_engine::Engine;
use leasehold_service::{Next, Service};
use leasehold_store::drift::DriftKind;
use leasehold_store::execution::{ActiveKey, Execution, ExecutionFinish};
use leasehold_store::notification::Notification;
use leasehold_store::{EpochId, Page, Store};
use leasehold_telemetry::Telemetry;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const LOCK: &str = "sweepOpenExecutions";

/// How the full sweep works.
#[derive(Clone, Debug)]
pub struct FullSweepOptions {
    /// Time from the end of one pass to the next.
    pub interval: Duration,
    /// The most executions described a second.
    pub rate: u32,
    /// How many executions are described at once.
    pub concurrency: usize,
    /// How long the engine must not know a dispatched execution before the execution counts as lost.
    pub lost_after: Duration,
    /// The most executions to fail as lost after a pass in which the engine knew none, or none of those that an unrecorded engine may have started: more
    /// than that looks like the wrong engine or namespace.
    pub lost_at_most: usize,
    /// How late the end of an execution may be noticed before it counts as drift.
    pub ended_grace: Duration,
    /// The lock that lets one instance sweep at a time.
    pub lock: LockOptions,
    /// Metrics that count drift.
    pub telemetry: Telemetry,
}

impl Default for FullSweepOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            rate: 50,
            concurrency: 8,
            lost_after: Duration::from_secs(30),
            lost_at_most: 10,
            ended_grace: Duration::from_secs(10),
            lock: LockOptions::default(),
            telemetry: Telemetry::default(),
        }
    }
}

/// Describes every open execution in the engine.
pub struct FullSweep {
    checker: ExecutionChecker,
    lock: NamedLock,
    options: FullSweepOptions,
    state: Mutex<SweepState>,
}

#[derive(Default)]
struct SweepState {
    /// The epoch of the store; the state is not valid in another one.
    epoch: Option<EpochId>,
    after: Option<ActiveKey>,
    next_pass: Option<Instant>,
    /// How many passes are complete.
    pass: u64,
    /// When the first execution of this pass that the engine knew was admitted.
    known_from: Option<Timestamp>,
    /// Executions that are DISPATCHED in the store and unknown to the engine.
    missing: HashMap<ExecutionId, Missing>,
    /// How many missing executions were last logged.
    logged: usize,
}

struct Missing {
    /// When it was admitted.
    admitted_at: Timestamp,
    since: Instant,
    first_pass: u64,
    /// The last pass in which it was missing.
    pass: u64,
}

impl FullSweep {
    /// Creates a full sweep that writes as `owner`.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<dyn Engine>,
        owner: &str,
        options: FullSweepOptions,
    ) -> Self {
        Self {
            lock: NamedLock::new(store.clone(), LOCK, owner, options.lock),
            checker: ExecutionChecker {
                store,
                engine,
                owner: owner.to_owned(),
                concurrency: options.concurrency,
            },
            options,
            state: Mutex::new(SweepState::default()),
        }
    }

    /// Records executions that the engine does not know. Only DISPATCHED proves that the engine ever knew one, and the request must have been
    /// DISPATCHED before the engine was asked. So an execution counts from the first pass that found it DISPATCHED, and a later pass decides.
    async fn record_missing(&self, state: &mut SweepState, missing: Vec<Execution>) -> Result<()> {
        let now = Instant::now();
        for execution in missing {
            let request = self
                .checker
                .store
                .request_get(execution.workspace, execution.request)
                .await?;
            let is_dispatched = request.is_some_and(|request| {
                request.status == RequestStatus::Dispatched
                    && request.execution == Some(execution.id)
            });
            if !is_dispatched {
                state.missing.remove(&execution.id);
                continue;
            }
            let pass = state.pass;
            let seen = state.missing.entry(execution.id).or_insert(Missing {
                admitted_at: execution.started_at,
                since: now,
                first_pass: pass,
                pass,
            });
            seen.pass = pass;
        }
        Ok(())
    }

    /// Reports DISPATCHED executions that the engine did not know in two passes; in a single pass, the start may still have been in flight.
    fn report_missing(&self, state: &mut SweepState) {
        let twice = state.missing.iter();
        let twice = twice.filter(|(_, missing)| missing.first_pass != missing.pass);
        let twice: Vec<ExecutionId> = twice.map(|(id, _)| *id).collect();
        let metrics = &self.options.telemetry.metrics;
        metrics.set_drift(DriftKind::UnknownToEngine, twice.len());
        if std::mem::replace(&mut state.logged, twice.len()) != twice.len() && !twice.is_empty() {
            tracing::warn!(count = twice.len(), executions = %first_ids(&twice),
                "engine does not know dispatched executions");
        }
    }

    /// Reports executions whose end was noticed late. This sweep has finished them.
    async fn report_late_ends(&self, outcome: &CheckOutcome) -> Result<()> {
        if outcome.ended_at.is_empty() {
            return Ok(());
        }
        let now = self.checker.store.now().await?;
        let late: Vec<ExecutionId> = outcome
            .ended
            .iter()
            .filter(|id| {
                let at = outcome.ended_at.get(id);
                let ago = at.and_then(|at| Duration::try_from(now.duration_since(*at)).ok());
                ago.is_some_and(|ago| ago > self.options.ended_grace)
            })
            .copied()
            .collect();
        if late.is_empty() {
            return Ok(());
        }
        let kind = DriftKind::EndedInEngine;
        self.options
            .telemetry
            .metrics
            .drift_repaired(kind, late.len());
        tracing::warn!(kind = kind.as_str(), count = late.len(), executions = %first_ids(&late),
            "capacity drift repaired: executions had ended in the engine");
        Ok(())
    }

    /// Has the cancel requests of open executions delivered again: a workflow that continued as new may not have passed one on to its new run. The
    /// engine ignores a repetition within a run.
    async fn repeat_cancels(&self, open: &[RequestId]) -> Result<()> {
        let store = &self.checker.store;
        if !open.is_empty() && store.request_cancel_repeat(open).await? > 0 {
            store.notify(Notification::Cancel).await?;
        }
        Ok(())
    }

    /// Fails executions that were missing for long enough, at the end of a pass.
    async fn fail_lost(&self, state: &mut SweepState) -> Result<()> {
        let pass = state.pass;
        // An execution that was not missing in this pass has ended or reappeared. A pass may take long, so the pass decides, not a clock.
        state.missing.retain(|_, missing| missing.pass == pass);
        let is_due = |missing: &Missing| {
            missing.first_pass != pass && missing.since.elapsed() >= self.options.lost_after
        };
        if !state.missing.values().any(is_due) {
            return Ok(());
        }
        let scope = lost_scope(&*self.checker.store, &*self.checker.engine).await?;
        let certain_from = match scope {
            LostScope::From(certain_from) => certain_from,
            LostScope::Uncertain => Timestamp::MAX,
            LostScope::Nothing => {
                let missing = state.missing.len();
                tracing::error!(
                    missing,
                    "engine is not the recorded one; no execution failed as lost"
                );
                return Ok(());
            }
        };
        let due = state.missing.iter().filter(|(_, missing)| is_due(missing));
        let (certain, uncertain): (Vec<_>, Vec<_>) =
            due.partition(|(_, missing)| missing.admitted_at >= certain_from);
        // New starts prove nothing about executions that another engine may have started.
        let knew_uncertain = state.known_from.is_some_and(|from| from < certain_from);
        let mut lost = Vec::new();
        for (group, knew_any) in [
            (certain, state.known_from.is_some()),
            (uncertain, knew_uncertain),
        ] {
            if !knew_any && group.len() > self.options.lost_at_most {
                tracing::error!(
                    missing = group.len(),
                    "engine knows none of the open executions; wrong engine or namespace? \
                    none failed as lost (sweep.lost_at_most)"
                );
                continue;
            }
            lost.extend(group.into_iter().map(|(id, _)| *id));
        }
        let ends = lost.into_iter().map(|execution| ExecutionFinish {
            execution,
            end: ExecutionEnd::Lost,
            error: Some("the engine no longer knows the execution".to_owned()),
        });
        for id in self.checker.finish(ends.collect()).await?.ended {
            state.missing.remove(&id);
        }
        Ok(())
    }
}

#[async_trait]
impl Service for FullSweep {
    type Error = Error;

    fn name(&self) -> &'static str {
        "full sweep"
    }

    async fn run_once(&self) -> Result<Next> {
        let mut state = self.state.lock().await;
        let extend_interval = self.lock.options().extend_interval();
        if self.lock.acquire_or_extend().await?.is_none() {
            *state = SweepState::default();
            self.report_missing(&mut state);
            return Ok(Next::After(extend_interval));
        }
        let epoch = self.checker.store.epoch();
        if state.epoch != epoch {
            *state = SweepState {
                epoch,
                ..SweepState::default()
            };
        }
        if let Some(pass) = state.next_pass {
            let wait = pass.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                return Ok(Next::After(wait.min(extend_interval)));
            }
            state.next_pass = None;
        }
        let rate = self.options.rate.max(1);
        let page = self
            .checker
            .store
            .execution_list_active(Page {
                after: state.after,
                limit: rate,
            })
            .await?;
        let Some(last) = page.last() else {
            self.fail_lost(&mut state).await?;
            self.report_missing(&mut state);
            state.after = None;
            state.pass += 1;
            state.known_from = None;
            state.next_pass = Some(Instant::now() + self.options.interval);
            return Ok(Next::Now);
        };
        let next = ActiveKey {
            workspace: last.workspace,
            admission: last.admission,
        };
        // The next page is swept even if this one fails, so that one bad execution does not block the others.
        state.after = Some(next);
        let mut outcome = self.checker.check(page).await?;
        state.known_from = state.known_from.into_iter().chain(outcome.known_from).min();
        self.record_missing(&mut state, std::mem::take(&mut outcome.missing))
            .await?;
        self.report_late_ends(&outcome).await?;
        self.repeat_cancels(&outcome.open).await?;
        if let Some(error) = outcome.error {
            return Err(error.into());
        }
        Ok(Next::After(Duration::from_secs(1)))
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
