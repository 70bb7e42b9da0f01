//! Follows executions to their end by the engine's own list of what ended lately. The list is a hint; what it names is proven one by one.

use crate::error::{Error, Result};
use crate::lock::{Lock, LockOptions};
use crate::proof::Proof;
use async_trait::async_trait;
use leasehold_core::{ExecutionId, Timestamp};
use leasehold_engine::Engine;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::wake::Wake;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const LOCK: &str = "followEndedExecutions";
/// Pages read in one round; the sweep finds what lies beyond.
const PAGES: usize = 200;

/// How ended executions are found.
#[derive(Clone, Debug)]
pub struct FollowerOptions {
    /// How often to look.
    pub interval: Duration,
    /// How far each look reaches back behind the last end it saw, since ends are listed a little late.
    pub overlap: Duration,
    /// How far every `wide_interval` a look reaches back, for what was listed very late.
    pub wide_overlap: Duration,
    /// How often such a wide look is taken.
    pub wide_interval: Duration,
    /// How far the first look reaches back; the sweep finds what ended before.
    pub catch_up: Duration,
    /// How many executions are proven at once.
    pub concurrency: usize,
    /// The lock that keeps all but one instance from looking.
    pub lock: LockOptions,
}

impl Default for FollowerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            overlap: Duration::from_secs(2),
            wide_overlap: Duration::from_secs(120),
            wide_interval: Duration::from_secs(30),
            catch_up: Duration::from_secs(600),
            concurrency: 16,
            lock: LockOptions::default(),
        }
    }
}

/// Finds executions that ended.
pub struct Follower {
    proof: Proof,
    lock: Lock,
    options: FollowerOptions,
    place: Mutex<Option<Place>>,
}

/// Where following stands; all times are the engine's.
struct Place {
    newest: Timestamp,
    wide_at: Instant,
    /// Ends that need no second look, so that overlap costs a list and nothing more.
    done: HashMap<ExecutionId, Instant>,
}

impl Follower {
    /// A follower that signs as `owner`.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<dyn Engine>,
        owner: &str,
        options: FollowerOptions,
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
            place: Mutex::new(None),
        }
    }

    /// Where to begin: the last end the engine knows, by its own clock, since ours may be wrong.
    async fn begin(&self) -> Result<Place> {
        let latest = self
            .proof
            .engine
            .ended_since(Timestamp::UNIX_EPOCH, None)
            .await?;
        let newest = latest.newest.unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(Place {
            newest: back(newest, self.options.catch_up),
            wide_at: Instant::now(),
            done: HashMap::new(),
        })
    }

    async fn look(&self, place: &mut Place) -> Result<()> {
        let wide = place.wide_at.elapsed() >= self.options.wide_interval;
        let overlap = if wide {
            self.options.wide_overlap
        } else {
            self.options.overlap
        };
        let since = back(place.newest, overlap);
        let mut newest = place.newest;
        let mut page = None;
        let mut failed = None;
        for _ in 0..PAGES {
            let ended = self.proof.engine.ended_since(since, page).await?;
            newest = newest.max(ended.newest.unwrap_or(newest));
            failed = self
                .prove(ended.executions, &mut place.done)
                .await?
                .or(failed);
            page = ended.next;
            if page.is_none() {
                break;
            }
            // A long look must not lose the lock; whoever has it then looks.
            if self.lock.keep().await?.is_none() {
                return Ok(());
            }
        }
        if let Some(error) = failed {
            // Where it stood, the next round looks again.
            return Err(error.into());
        }
        place.newest = newest;
        if wide {
            place.wide_at = Instant::now();
            let keep = self.options.wide_overlap * 2;
            place.done.retain(|_, at| at.elapsed() < keep);
        }
        Ok(())
    }

    async fn prove(
        &self,
        mut ids: Vec<ExecutionId>,
        done: &mut HashMap<ExecutionId, Instant>,
    ) -> Result<Option<leasehold_engine::Error>> {
        ids.retain(|id| !done.contains_key(id));
        if ids.is_empty() {
            return Ok(None);
        }
        let running = self.proof.store.execution_list_running(&ids).await?;
        let now = Instant::now();
        done.extend(ids.into_iter().map(|id| (id, now)));
        let asked: Vec<ExecutionId> = running.iter().map(|execution| execution.id).collect();
        for id in &asked {
            done.remove(id);
        }
        let proven = self.proof.of(running).await?;
        done.extend(proven.ended.into_iter().map(|id| (id, now)));
        Ok(proven.failed)
    }
}

fn back(from: Timestamp, by: Duration) -> Timestamp {
    from.checked_sub(by).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[async_trait]
impl Service for Follower {
    type Error = Error;

    fn name(&self) -> &'static str {
        "follower"
    }

    async fn run_once(&self) -> Result<Next> {
        let mut place = self.place.lock().await;
        if self.lock.keep().await?.is_none() {
            *place = None;
            return Ok(Next::After(self.lock.options().keep_alive_every()));
        }
        let place = match place.as_mut() {
            Some(place) => place,
            None => place.insert(self.begin().await?),
        };
        self.look(place).await?;
        Ok(Next::After(self.options.interval))
    }

    async fn woken(&self) {
        self.proof.store.wake_wait(Wake::Ended).await;
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
