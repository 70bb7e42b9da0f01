//! Asks the engine about everything that is open here, slowly and without end: the net under the follower's hints.

use crate::auditor::first_few;
use crate::error::{Error, Result};
use crate::lock::{Lock, LockOptions};
use crate::proof::{Proof, Proven};
use async_trait::async_trait;
use leasehold_core::{ExecutionEnd, ExecutionId, RequestStatus};
use leasehold_engine::Engine;
use leasehold_service::{Next, Service};
use leasehold_store::capacity::DriftKind;
use leasehold_store::execution::{ActiveKey, Execution, ExecutionFinish};
use leasehold_store::{Page, Store};
use leasehold_telemetry::Telemetry;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const LOCK: &str = "sweepOpenExecutions";

/// How open executions are swept.
#[derive(Clone, Debug)]
pub struct SweeperOptions {
    /// How long from the end of one pass to the next.
    pub interval: Duration,
    /// How many executions are asked about a second, at most.
    pub rate: u32,
    /// How many at once.
    pub concurrency: usize,
    /// How long the engine must not know a dispatched execution before it counts as lost.
    pub lost_after: Duration,
    /// How many executions may be given up as lost after a pass in which the engine knew none at all: more look like the wrong
    /// engine or namespace.
    pub lost_at_most: usize,
    /// How long ago an execution may have ended in the engine before that nobody noticed it counts as drift.
    pub ended_grace: Duration,
    /// The lock that keeps all but one instance from sweeping.
    pub lock: LockOptions,
    /// Where drift is counted.
    pub telemetry: Telemetry,
}

impl Default for SweeperOptions {
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

/// Asks about everything that is open.
pub struct Sweeper {
    proof: Proof,
    lock: Lock,
    options: SweeperOptions,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    after: Option<ActiveKey>,
    next_pass: Option<Instant>,
    /// How many passes have ended.
    pass: u64,
    /// Whether the engine knew anything that was asked about in this pass.
    knew_any: bool,
    /// DISPATCHED here, unknown to the engine.
    missing: HashMap<ExecutionId, Missing>,
    /// How many were last said to be missing.
    said: usize,
}

struct Missing {
    since: Instant,
    first_pass: u64,
    /// The pass that saw it last.
    pass: u64,
}

impl Sweeper {
    /// A sweeper that signs as `owner`.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<dyn Engine>,
        owner: &str,
        options: SweeperOptions,
    ) -> Self {
        Self {
            lock: Lock::new(store.clone(), LOCK, owner, options.lock),
            proof: Proof {
                store,
                engine,
                owner: owner.to_owned(),
                concurrency: options.concurrency,
            },
            options,
            place: Mutex::new(Place::default()),
        }
    }

    /// Takes note of executions that the engine does not know. Only DISPATCHED proves that it ever did, and it must have been
    /// so before the engine was asked: so it counts from the first pass that found it DISPATCHED, and is decided by a later one.
    async fn miss(&self, place: &mut Place, missing: Vec<Execution>) -> Result<()> {
        let now = Instant::now();
        for execution in missing {
            let request = self
                .proof
                .store
                .request_get(execution.workspace, execution.request)
                .await?;
            let dispatched = request.is_some_and(|request| {
                request.status == RequestStatus::Dispatched
                    && request.execution == Some(execution.id)
            });
            if !dispatched {
                place.missing.remove(&execution.id);
                continue;
            }
            let pass = place.pass;
            let seen = place.missing.entry(execution.id).or_insert(Missing {
                since: now,
                first_pass: pass,
                pass,
            });
            seen.pass = pass;
        }
        Ok(())
    }

    /// Which executions that are DISPATCHED here the engine did not know in two passes: in one, a start may just have been on its way.
    fn show_missing(&self, place: &mut Place) {
        let twice = place.missing.iter();
        let twice = twice.filter(|(_, missing)| missing.first_pass != missing.pass);
        let twice: Vec<ExecutionId> = twice.map(|(id, _)| *id).collect();
        let metrics = &self.options.telemetry.metrics;
        metrics.drift_seen(DriftKind::UnknownToEngine, twice.len());
        if std::mem::replace(&mut place.said, twice.len()) != twice.len() && !twice.is_empty() {
            tracing::warn!(count = twice.len(), executions = %first_few(&twice),
                "the engine does not know what is DISPATCHED here");
        }
    }

    /// Tells of executions whose end nobody noticed before this sweep. They have ended here too now.
    async fn tell_late(&self, proven: &Proven) -> Result<()> {
        if proven.ended_at.is_empty() {
            return Ok(());
        }
        let now = self.proof.store.now().await?;
        let late: Vec<ExecutionId> = proven
            .ended
            .iter()
            .filter(|id| {
                let at = proven.ended_at.get(id);
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
        tracing::warn!(kind = kind.as_str(), count = late.len(), executions = %first_few(&late),
            "capacity drift repaired: the engine had ended what was open here");
        Ok(())
    }

    /// Ends what was missing for long enough, when a pass is over.
    async fn give_up_lost(&self, place: &mut Place) -> Result<()> {
        let pass = place.pass;
        // What was not missing in this pass has ended or come back. A pass may take long, so no clock decides this.
        place.missing.retain(|_, missing| missing.pass == pass);
        let lost: Vec<ExecutionId> = place
            .missing
            .iter()
            .filter(|(_, missing)| {
                missing.first_pass != pass && missing.since.elapsed() >= self.options.lost_after
            })
            .map(|(id, _)| *id)
            .collect();
        if !place.knew_any && lost.len() > self.options.lost_at_most {
            tracing::error!(
                missing = lost.len(),
                "the engine knows none of the open executions; is it the right one, with the right namespace? \
                nothing is given up as lost (sweep.lost_at_most)"
            );
            return Ok(());
        }
        let ends = lost.iter().map(|id| ExecutionFinish {
            execution: *id,
            end: ExecutionEnd::Lost,
            error: Some("the engine does not know the execution any more".to_owned()),
        });
        for id in self.proof.finish(ends.collect()).await? {
            place.missing.remove(&id);
        }
        Ok(())
    }
}

#[async_trait]
impl Service for Sweeper {
    type Error = Error;

    fn name(&self) -> &'static str {
        "sweeper"
    }

    async fn run_once(&self) -> Result<Next> {
        let mut place = self.place.lock().await;
        let keep_alive = self.lock.options().keep_alive_every();
        if self.lock.keep().await?.is_none() {
            *place = Place::default();
            self.show_missing(&mut place);
            return Ok(Next::After(keep_alive));
        }
        if let Some(pass) = place.next_pass {
            let wait = pass.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                return Ok(Next::After(wait.min(keep_alive)));
            }
            place.next_pass = None;
        }
        let rate = self.options.rate.max(1);
        let page = self
            .proof
            .store
            .execution_list_active(Page {
                after: place.after,
                limit: rate,
            })
            .await?;
        let Some(last) = page.last() else {
            self.give_up_lost(&mut place).await?;
            self.show_missing(&mut place);
            place.after = None;
            place.pass += 1;
            place.knew_any = false;
            place.next_pass = Some(Instant::now() + self.options.interval);
            return Ok(Next::Again);
        };
        let next = ActiveKey {
            workspace: last.workspace,
            admission: last.admission,
        };
        // Whatever comes of this page, the next one is swept too: one that cannot be asked about must not hold up the others.
        place.after = Some(next);
        let mut proven = self.proof.of(page).await?;
        place.knew_any |= proven.known > 0;
        self.miss(&mut place, std::mem::take(&mut proven.missing))
            .await?;
        self.tell_late(&proven).await?;
        if let Some(error) = proven.failed {
            return Err(error.into());
        }
        Ok(Next::After(Duration::from_secs(1)))
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
