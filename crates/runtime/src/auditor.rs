//! Compares slots, executions and requests with what is kept of them, over and over: mends what is safe to mend, and raises the alarm over the
//! rest. How the sweep compares them with the engine's word is the sweeper's.

use crate::error::{Error, Result};
use crate::lock::{Lock, LockOptions};
use async_trait::async_trait;
use leasehold_core::{ExecutionEnd, ExecutionId, WorkspaceId};
use leasehold_engine::{Description, Engine};
use leasehold_service::{Next, Service};
use leasehold_store::capacity::{CapacityRepair, Drift, DriftKind, Repaired};
use leasehold_store::{ErrorKind, Page, Store};
use leasehold_telemetry::Telemetry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const LOCK: &str = "auditCapacity";
/// Ids and sentences that a line of the log names.
const NAMED: usize = 5;
const REMIND_EVERY: Duration = Duration::from_secs(60);

/// How drift is looked for.
#[derive(Clone, Debug)]
pub struct AuditorOptions {
    /// How long from the end of one check to the next.
    pub interval: Duration,
    /// How many workspaces are looked at in one call.
    pub page: u32,
    /// How long the engine must not know an execution that its request has forgotten before it counts as lost.
    pub lost_after: Duration,
    /// The lock that keeps all but one instance from checking.
    pub lock: LockOptions,
    /// Where drift is counted.
    pub telemetry: Telemetry,
}

impl Default for AuditorOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            page: 1_000,
            // Nobody waits for a check: whoever takes over may take its time, and an idle instance asks seldom.
            lost_after: Duration::from_secs(30),
            lock: LockOptions {
                at_most_for: Duration::from_secs(60),
                ..LockOptions::default()
            },
            telemetry: Telemetry::default(),
        }
    }
}

/// Looks for drift.
pub struct Auditor {
    store: Arc<dyn Store>,
    engine: Option<Arc<dyn Engine>>,
    lock: Lock,
    options: AuditorOptions,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    after: Option<WorkspaceId>,
    next_check: Option<Instant>,
    left: BTreeMap<DriftKind, Vec<Drift>>,
    mended: BTreeMap<DriftKind, Vec<Drift>>,
    /// Executions whose request has forgotten them and that the engine did not know: now, and in the check before.
    unknown: HashMap<ExecutionId, Instant>,
    unknown_before: HashMap<ExecutionId, Instant>,
    /// The engine did not answer in this check: it is not asked again before the next.
    engine_away: bool,
    alarms: BTreeMap<DriftKind, Alarm>,
}

struct Alarm {
    since: Instant,
    said: Instant,
    count: usize,
}

impl Auditor {
    /// An auditor that signs as `owner`. Without an engine, what only the engine could decide is left.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Option<Arc<dyn Engine>>,
        owner: &str,
        options: AuditorOptions,
    ) -> Self {
        Self {
            lock: Lock::new(store.clone(), LOCK, owner, options.lock),
            store,
            engine,
            options,
            place: Mutex::default(),
        }
    }

    /// How an execution that its request has forgotten ended, if it certainly does not run. One that the engine does not know may be on
    /// its way there, so that it must be unknown in two checks, and for longer than a start can take.
    async fn end_of(&self, place: &mut Place, drift: &Drift) -> Result<Option<ExecutionEnd>> {
        let (DriftKind::SlotWithoutExecution, Some(execution)) = (drift.kind, drift.execution)
        else {
            return Ok(None);
        };
        let Some(engine) = self.engine.as_ref().filter(|_| !place.engine_away) else {
            return Ok(None);
        };
        Ok(match engine.describe(execution).await? {
            Description::Open => None,
            Description::Ended { end, .. } => Some(end),
            Description::NotFound => {
                let before = place.unknown_before.get(&execution).copied();
                place
                    .unknown
                    .insert(execution, before.unwrap_or_else(Instant::now));
                let lost = before.is_some_and(|since| since.elapsed() >= self.options.lost_after);
                lost.then_some(ExecutionEnd::Lost)
            }
        })
    }

    /// Mends one if that is safe, and says whether it is left.
    async fn mend(&self, place: &mut Place, drift: &Drift) -> Result<bool> {
        // An engine that does not answer keeps nobody from mending the rest.
        let ended = match self.end_of(place, drift).await {
            Ok(ended) => ended,
            Err(error) => {
                tracing::debug!(%error, "the engine was not there to be asked about drift");
                // One strange answer says nothing of the others.
                place.engine_away |= matches!(
                    error,
                    Error::Engine(leasehold_engine::Error::Unavailable(_))
                );
                None
            }
        };
        match self
            .store
            .capacity_repair(&CapacityRepair { drift, ended })
            .await
        {
            Ok(Repaired::Repaired) => {
                let mended = place.mended.entry(drift.kind).or_default();
                mended.push(drift.clone());
                Ok(false)
            }
            Ok(Repaired::Over) => Ok(false),
            Ok(Repaired::Left) => Ok(true),
            Err(error) if matches!(error.kind, ErrorKind::Unavailable(_)) => Err(error.into()),
            // Somebody holds what it needs, or it cannot be written: the others need not wait for it.
            Err(error) => {
                tracing::warn!(kind = drift.kind.as_str(), workspace = %drift.workspace, %error,
                    "capacity drift could not be repaired");
                Ok(true)
            }
        }
    }

    /// Counts and says what was mended.
    fn tell_mended(&self, place: &mut Place) {
        for (kind, mended) in std::mem::take(&mut place.mended) {
            let metrics = &self.options.telemetry.metrics;
            metrics.drift_repaired(kind, mended.len());
            tracing::warn!(kind = kind.as_str(), count = mended.len(), first = %shown(&mended),
                "capacity drift repaired");
        }
    }

    /// Shows and says what a check found.
    fn conclude(&self, place: &mut Place) {
        self.tell_mended(place);
        let metrics = &self.options.telemetry.metrics;
        for kind in kinds() {
            let left = place.left.remove(&kind).unwrap_or_default();
            metrics.drift_seen(kind, left.len());
            alarm(&mut place.alarms, kind, &left);
        }
        metrics.drift_checked();
        place.unknown_before = std::mem::take(&mut place.unknown);
        place.engine_away = false;
        place.after = None;
        place.next_check = Some(Instant::now() + self.options.interval);
    }
}

/// What is found by comparing what the store keeps; the others are the sweeper's.
fn kinds() -> impl Iterator<Item = DriftKind> {
    DriftKind::ALL
        .into_iter()
        .filter(|kind| !matches!(kind, DriftKind::EndedInEngine | DriftKind::UnknownToEngine))
}

/// Says what is left when it changes, once a minute while it stays, and when it is over.
fn alarm(alarms: &mut BTreeMap<DriftKind, Alarm>, kind: DriftKind, left: &[Drift]) {
    let now = Instant::now();
    if left.is_empty() {
        if let Some(over) = alarms.remove(&kind) {
            let seconds = (now - over.since).as_secs();
            tracing::info!(kind = kind.as_str(), seconds, "capacity drift is over");
        }
        return;
    }
    let known = alarms.get(&kind);
    let since = known.map_or(now, |alarm| alarm.since);
    let silent =
        known.is_some_and(|alarm| alarm.count == left.len() && now - alarm.said < REMIND_EVERY);
    let said = known.map_or(now, |alarm| alarm.said);
    let alarm = Alarm {
        since,
        said: if silent { said } else { now },
        count: left.len(),
    };
    alarms.insert(kind, alarm);
    if !silent {
        let seconds = (now - since).as_secs();
        tracing::error!(kind = kind.as_str(), count = left.len(), seconds, first = %shown(left), "capacity drift");
    }
}

fn shown(drifts: &[Drift]) -> String {
    let told: Vec<String> = drifts
        .iter()
        .map(|drift| {
            let about = match (drift.execution, drift.request) {
                (Some(id), _) => format!(", execution {id}"),
                (None, Some(id)) => format!(", request {id}"),
                (None, None) => String::new(),
            };
            format!("workspace {}{about}: {}", drift.workspace, drift.text)
        })
        .take(NAMED)
        .collect();
    told.join("; ")
}

/// The first few of a list, for a line of the log.
pub(crate) fn first_few(ids: &[impl Display]) -> String {
    let named: Vec<String> = ids.iter().take(NAMED).map(ToString::to_string).collect();
    named.join(", ")
}

#[async_trait]
impl Service for Auditor {
    type Error = Error;

    fn name(&self) -> &'static str {
        "auditor"
    }

    async fn run_once(&self) -> Result<Next> {
        let mut place = self.place.lock().await;
        let keep_alive = self.lock.options().keep_alive_every();
        if self.lock.keep().await?.is_none() {
            self.tell_mended(&mut place);
            *place = Place::default();
            let metrics = &self.options.telemetry.metrics;
            kinds().for_each(|kind| metrics.drift_seen(kind, 0));
            metrics.drift_unchecked();
            return Ok(Next::After(keep_alive));
        }
        if let Some(check) = place.next_check {
            let wait = check.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                return Ok(Next::After(wait.min(keep_alive)));
            }
            place.next_check = None;
        }
        let page = Page {
            after: place.after,
            limit: self.options.page,
        };
        let audit = self.store.capacity_audit(page).await?;
        let mut left = Vec::new();
        for drift in audit.drifts {
            if self.mend(&mut place, &drift).await? {
                left.push(drift);
            }
            // Mending much takes long, and whoever has the lock then goes on.
            if self.lock.keep().await?.is_none() {
                return Ok(Next::Again);
            }
        }
        // Only now: a page that could not be gone through is gone through again.
        for drift in left {
            place.left.entry(drift.kind).or_default().push(drift);
        }
        match audit.last {
            Some(last) => place.after = Some(last),
            None => self.conclude(&mut place),
        }
        Ok(Next::Again)
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
