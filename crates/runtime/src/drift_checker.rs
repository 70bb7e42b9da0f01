//! Compares slots, executions, requests and the records derived from them, over and over. Repairs what is safe to repair and logs the rest as
//! errors. The comparison with the engine is the full sweep's.

use crate::engine_identity::{LostScope, lost_scope};
use crate::error::{Error, Result};
use crate::lock::{LockOptions, NamedLock};
use async_trait::async_trait;
use leasehold_core::{ExecutionEnd, ExecutionId, WorkspaceId};
use leasehold_engine::{Description, Engine};
use leasehold_service::{Next, Service};
use leasehold_store::drift::{Drift, DriftKind, DriftRepair, Repaired};
use leasehold_store::{EpochId, ErrorKind, Page, Store};
use leasehold_telemetry::Telemetry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const LOCK: &str = "auditCapacity";
/// How many ids or descriptions one log event names.
const MAX_NAMED: usize = 5;
const REMIND_EVERY: Duration = Duration::from_secs(60);

/// How the drift checker works.
#[derive(Clone, Debug)]
pub struct DriftCheckerOptions {
    /// Time from the end of one check to the next.
    pub interval: Duration,
    /// How many workspaces one call checks.
    pub page: u32,
    /// How long the engine must not know an execution without a request before the execution counts as lost.
    pub lost_after: Duration,
    /// The lock that lets one instance check at a time.
    pub lock: LockOptions,
    /// Metrics that count drift.
    pub telemetry: Telemetry,
}

impl Default for DriftCheckerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            page: 1_000,
            lost_after: Duration::from_secs(30),
            // A check is not urgent: a late takeover does no harm, and an idle instance rarely tries the lock.
            lock: LockOptions {
                at_most_for: Duration::from_secs(60),
                ..LockOptions::default()
            },
            telemetry: Telemetry::default(),
        }
    }
}

/// Finds and repairs drift.
pub struct DriftChecker {
    store: Arc<dyn Store>,
    engine: Option<Arc<dyn Engine>>,
    lock: NamedLock,
    options: DriftCheckerOptions,
    state: Mutex<CheckState>,
}

#[derive(Default)]
struct CheckState {
    /// The epoch of the store; the state is not valid in another one.
    epoch: Option<EpochId>,
    after: Option<WorkspaceId>,
    next_check: Option<Instant>,
    unrepaired: BTreeMap<DriftKind, Vec<Drift>>,
    repaired: BTreeMap<DriftKind, Vec<Drift>>,
    /// Executions without a request that the engine did not know, in this check.
    unknown: HashMap<ExecutionId, Instant>,
    /// The same, in the check before.
    unknown_before: HashMap<ExecutionId, Instant>,
    /// The engine did not answer in this check, so it is not asked again before the next.
    engine_unavailable: bool,
    reported: BTreeMap<DriftKind, ReportedDrift>,
}

struct ReportedDrift {
    since: Instant,
    logged: Instant,
    count: usize,
}

impl DriftChecker {
    /// Creates a drift checker whose lock belongs to `owner`. Without an engine, drift that only the engine can decide is not repaired.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Option<Arc<dyn Engine>>,
        owner: &str,
        options: DriftCheckerOptions,
    ) -> Self {
        Self {
            lock: NamedLock::new(store.clone(), LOCK, owner, options.lock),
            store,
            engine,
            options,
            state: Mutex::default(),
        }
    }

    /// Returns how an execution without a request ended, if it certainly does not run. The start of one that the engine does not know may still
    /// be in flight, so it must be unknown in two checks and for longer than a start can take.
    async fn end_of(&self, state: &mut CheckState, drift: &Drift) -> Result<Option<ExecutionEnd>> {
        let (DriftKind::SlotWithoutExecution, Some(execution)) = (drift.kind, drift.execution)
        else {
            return Ok(None);
        };
        let Some(engine) = self.engine.as_ref().filter(|_| !state.engine_unavailable) else {
            return Ok(None);
        };
        Ok(match engine.describe(execution).await? {
            Description::Open => None,
            Description::Ended { end, .. } => Some(end),
            Description::NotFound => {
                let before = state.unknown_before.get(&execution).copied();
                state
                    .unknown
                    .insert(execution, before.unwrap_or_else(Instant::now));
                let lost = before.is_some_and(|since| since.elapsed() >= self.options.lost_after);
                // Another engine says nothing about it.
                let is_lost = lost
                    && !matches!(
                        lost_scope(&*self.store, &**engine).await?,
                        LostScope::Nothing
                    );
                is_lost.then_some(ExecutionEnd::Lost)
            }
        })
    }

    /// Repairs one drift if that is safe. Returns whether it remains.
    async fn repair(&self, state: &mut CheckState, drift: &Drift) -> Result<bool> {
        // An engine that does not answer must not block the other repairs.
        let ended = match self.end_of(state, drift).await {
            Ok(ended) => ended,
            Err(error) => {
                tracing::debug!(%error, "engine unavailable for the drift check");
                // One unusable answer says nothing about the others.
                state.engine_unavailable |= matches!(
                    error,
                    Error::Engine(leasehold_engine::Error::Unavailable(_))
                );
                None
            }
        };
        match self.store.drift_repair(&DriftRepair { drift, ended }).await {
            Ok(Repaired::Repaired) => {
                let repaired = state.repaired.entry(drift.kind).or_default();
                repaired.push(drift.clone());
                Ok(false)
            }
            Ok(Repaired::AlreadyConsistent) => Ok(false),
            Ok(Repaired::Skipped) => Ok(true),
            Err(error) if matches!(error.kind, ErrorKind::Unavailable(_)) => Err(error.into()),
            // A row is locked or cannot be written: continue with the others.
            Err(error) => {
                tracing::warn!(kind = drift.kind.as_str(), workspace = %drift.workspace, %error,
                    "failed to repair capacity drift");
                Ok(true)
            }
        }
    }

    /// Counts and logs the repairs.
    fn report_repaired(&self, state: &mut CheckState) {
        for (kind, repaired) in std::mem::take(&mut state.repaired) {
            let metrics = &self.options.telemetry.metrics;
            metrics.drift_repaired(kind, repaired.len());
            tracing::warn!(kind = kind.as_str(), count = repaired.len(), first = %describe(&repaired),
                "capacity drift repaired");
        }
    }

    /// Reports the result of a complete check.
    fn finish_check(&self, state: &mut CheckState) {
        self.report_repaired(state);
        let metrics = &self.options.telemetry.metrics;
        for kind in kinds() {
            let unrepaired = state.unrepaired.remove(&kind).unwrap_or_default();
            metrics.set_drift(kind, unrepaired.len());
            log_unrepaired(&mut state.reported, kind, &unrepaired);
        }
        metrics.drift_checked();
        state.unknown_before = std::mem::take(&mut state.unknown);
        state.engine_unavailable = false;
        state.after = None;
        state.next_check = Some(Instant::now() + self.options.interval);
    }
}

/// Returns the kinds of drift within the store; the full sweep finds the others.
fn kinds() -> impl Iterator<Item = DriftKind> {
    DriftKind::ALL
        .into_iter()
        .filter(|kind| !matches!(kind, DriftKind::EndedInEngine | DriftKind::UnknownToEngine))
}

/// Logs unrepaired drift when it changes, once a minute while it remains, and when it is resolved.
fn log_unrepaired(
    reported: &mut BTreeMap<DriftKind, ReportedDrift>,
    kind: DriftKind,
    unrepaired: &[Drift],
) {
    let now = Instant::now();
    if unrepaired.is_empty() {
        if let Some(resolved) = reported.remove(&kind) {
            let seconds = (now - resolved.since).as_secs();
            tracing::info!(kind = kind.as_str(), seconds, "capacity drift resolved");
        }
        return;
    }
    let known = reported.get(&kind);
    let since = known.map_or(now, |known| known.since);
    let is_silent = known
        .is_some_and(|known| known.count == unrepaired.len() && now - known.logged < REMIND_EVERY);
    let logged = known.map_or(now, |known| known.logged);
    let current = ReportedDrift {
        since,
        logged: if is_silent { logged } else { now },
        count: unrepaired.len(),
    };
    reported.insert(kind, current);
    if !is_silent {
        let seconds = (now - since).as_secs();
        tracing::error!(kind = kind.as_str(), count = unrepaired.len(), seconds, first = %describe(unrepaired), "capacity drift");
    }
}

/// Describes the first few drifts for a log event.
fn describe(drifts: &[Drift]) -> String {
    let texts: Vec<String> = drifts
        .iter()
        .map(|drift| {
            let about = match (drift.execution, drift.request) {
                (Some(id), _) => format!(", execution {id}"),
                (None, Some(id)) => format!(", request {id}"),
                (None, None) => String::new(),
            };
            format!("workspace {}{about}: {}", drift.workspace, drift.text)
        })
        .take(MAX_NAMED)
        .collect();
    texts.join("; ")
}

/// Joins the first few ids for a log event.
pub(crate) fn first_ids(ids: &[impl Display]) -> String {
    let named: Vec<String> = ids
        .iter()
        .take(MAX_NAMED)
        .map(ToString::to_string)
        .collect();
    named.join(", ")
}

#[async_trait]
impl Service for DriftChecker {
    type Error = Error;

    fn name(&self) -> &'static str {
        "drift checker"
    }

    async fn run_once(&self) -> Result<Next> {
        let mut state = self.state.lock().await;
        let extend_interval = self.lock.options().extend_interval();
        if self.lock.acquire_or_extend().await?.is_none() {
            self.report_repaired(&mut state);
            *state = CheckState::default();
            let metrics = &self.options.telemetry.metrics;
            kinds().for_each(|kind| metrics.set_drift(kind, 0));
            metrics.clear_drift_checked();
            return Ok(Next::After(extend_interval));
        }
        let epoch = self.store.epoch();
        if state.epoch != epoch {
            *state = CheckState {
                epoch,
                ..CheckState::default()
            };
        }
        if let Some(check) = state.next_check {
            let wait = check.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                return Ok(Next::After(wait.min(extend_interval)));
            }
            state.next_check = None;
        }
        let page = Page {
            after: state.after,
            limit: self.options.page,
        };
        let report = self.store.drift_check(page).await?;
        let mut unrepaired = Vec::new();
        for drift in report.drifts {
            if self.repair(&mut state, &drift).await? {
                unrepaired.push(drift);
            }
            // Many repairs take long; if the lock was lost, its new holder continues.
            if self.lock.acquire_or_extend().await?.is_none() {
                return Ok(Next::Now);
            }
        }
        // Recorded only after the whole page: a page that failed is checked again.
        for drift in unrepaired {
            state.unrepaired.entry(drift.kind).or_default().push(drift);
        }
        match report.last {
            Some(last) => state.after = Some(last),
            None => self.finish_check(&mut state),
        }
        Ok(Next::Now)
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
