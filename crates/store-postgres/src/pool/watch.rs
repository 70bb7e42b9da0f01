//! Closes a connection whose use takes longer than its operation may: a server that is frozen, not dead, acknowledges everything and answers
//! nothing. Knows no statement.

use crate::epoch::Epoch;
use deadpool_postgres::{ClientWrapper, Connect, StatementCache};
use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{CancelToken, Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How often each connection is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A heartbeat is repeated, so it gives up sooner.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// A read is for a caller who waits for the answer, so a late answer is of no use.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The limit of operations that may read a whole table, as long as the server answers another connection.
const LONG_TIMEOUT: Duration = Duration::from_secs(6 * 3600);

const HEARTBEATS: [&str; 7] = [
    "request_renew",
    "job_renew",
    "job_progress",
    "lock_acquire",
    "lock_extend",
    "lock_release",
    "instance_heartbeat",
];
/// How the operations end that only read.
const READS: [&str; 20] = [
    "_get",
    "_find",
    "_list",
    "_list_running",
    "_list_active",
    "_counts",
    "_overview",
    "_quota",
    "_slots",
    "_timeline",
    "_position",
    "_oldest",
    "_holders",
    "_nodes",
    "_output",
    "_ownership",
    "_refused",
    "_open_bytes",
    "job_limit",
    "diagnose",
];
/// Operations that may migrate, rebuild, recount or prune.
const LONG: [&str; 9] = [
    "migrating",
    "request_promote_due",
    "request_claim",
    "job_claim",
    "prune",
    "job_prune",
    "audit_prune",
    "drift_check",
    "drift_repair",
];

thread_local! {
    /// The watch of the connection that was just opened on this thread. The pool calls its hook right after the connector, without an await
    /// in between, so the hook finds the watch of its own connection here.
    static OPENED: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
}

/// The use of one connection, and its epoch.
#[derive(Debug, Default)]
pub(super) struct Watch {
    current: Mutex<Option<Use>>,
    epoch: OnceLock<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Use {
    context: &'static str,
    begun: Instant,
    /// When to check whether the server is alive.
    check_at: Instant,
    timeout: Duration,
}

impl Use {
    fn is_long(&self) -> bool {
        LONG.contains(&self.context) && self.begun.elapsed() < LONG_TIMEOUT
    }
}

impl Watch {
    /// Begins a use by this operation.
    pub(super) fn begin(&self, context: &'static str, call_timeout: Duration) {
        let timeout = call_timeout.min(limit(context));
        let begun = Instant::now();
        self.set(Some(Use {
            context,
            begun,
            check_at: begun + timeout,
            timeout,
        }));
    }

    /// Returns the epoch of the connection; none while the database has no schema.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.epoch.get().copied()
    }

    /// Ends the use.
    pub(super) fn end(&self) {
        self.set(None);
    }

    fn set(&self, to: Option<Use>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }

    fn overdue(&self) -> Option<Use> {
        let now = *self.current.lock().unwrap_or_else(PoisonError::into_inner);
        now.filter(|now| now.check_at <= Instant::now())
    }

    /// Gives the use more time, unless it has ended meanwhile.
    fn extend(&self, found: Use) {
        let mut now = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(now) = now.as_mut().filter(|now| now.begun == found.begun) {
            now.check_at = Instant::now() + found.timeout;
        }
    }
}

/// Returns how long this operation may use a connection at most; `call_timeout` may be shorter.
fn limit(context: &str) -> Duration {
    if HEARTBEATS.contains(&context) {
        HEARTBEAT_TIMEOUT
    } else if READS.iter().any(|end| context.ends_with(end)) {
        READ_TIMEOUT
    } else {
        Duration::MAX
    }
}

/// The watches of a pool's connections.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<HashMap<usize, Weak<Watch>>>);

impl Watches {
    /// Assigns the connection that was just opened its watch.
    pub(super) fn register(&self, client: &ClientWrapper) {
        let opened = OPENED.take();
        let mut watches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|_, watch| watch.strong_count() > 0);
        if let Some(opened) = opened {
            watches.insert(identity(client), Arc::downgrade(&opened));
        }
    }

    /// Records the epoch of a connection, which never changes.
    pub(super) fn set_epoch(&self, client: &ClientWrapper, epoch: Option<Epoch>) {
        if let (Some(watch), Some(epoch)) = (self.of(client), epoch) {
            watch.epoch.get_or_init(|| epoch);
        }
    }

    /// Returns the watch of a connection.
    pub(super) fn of(&self, client: &ClientWrapper) -> Option<Arc<Watch>> {
        let watches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watches.get(&identity(client)).and_then(Weak::upgrade)
    }
}

/// Identifies a connection while it is open: its statement cache has one address and lives as long.
fn identity(client: &ClientWrapper) -> usize {
    let cache: *const StatementCache = Arc::as_ptr(&client.statement_cache);
    cache.addr()
}

/// Opens connections and drives each in a task that also watches it.
pub(super) struct Connector {
    tls: MakeRustlsConnect,
    probe_timeout: Duration,
}

impl Connector {
    pub(super) fn new(tls: MakeRustlsConnect, probe_timeout: Duration) -> Self {
        Self { tls, probe_timeout }
    }
}

type Opened = Result<(Client, JoinHandle<()>), Error>;

impl Connect for Connector {
    fn connect(&self, config: &Config) -> Pin<Box<dyn Future<Output = Opened> + Send + '_>> {
        let driver = Driver {
            config: config.clone(),
            tls: self.tls.clone(),
            probe_timeout: self.probe_timeout,
        };
        Box::pin(async move {
            let (client, connection) = driver.config.connect(driver.tls.clone()).await?;
            let watch = Arc::new(Watch::default());
            let task =
                tokio::spawn(driver.drive(connection, client.cancel_token(), Arc::clone(&watch)));
            OPENED.set(Some(watch));
            Ok((client, task))
        })
    }
}

/// What the task of a connection needs besides it.
struct Driver {
    config: Config,
    tls: MakeRustlsConnect,
    probe_timeout: Duration,
}

type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

impl Driver {
    /// Drives a connection until it ends or a use of it takes too long.
    async fn drive(
        self,
        connection: Connection<Socket, Stream>,
        cancel: CancelToken,
        watch: Arc<Watch>,
    ) {
        let mut connection = pin!(connection);
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                outcome = &mut connection => return report(outcome),
                _ = ticks.tick() => {}
            }
            let Some(found) = watch.overdue() else {
                continue;
            };
            if found.is_long() {
                tokio::select! {
                    outcome = &mut connection => return report(outcome),
                    is_alive = self.probe() => if is_alive {
                        watch.extend(found);
                    }
                }
            }
            let Some(found) = watch.overdue() else {
                continue;
            };
            let seconds = found.begun.elapsed().as_secs();
            tracing::warn!(
                operation = found.context,
                seconds,
                "database did not answer in time; connection closed"
            );
            // If the server lives, the statement must not go on. The connection ends in any case.
            tokio::spawn(async move {
                let cancelled = timeout(self.probe_timeout, cancel.cancel_query(self.tls));
                drop(cancelled.await);
            });
            return;
        }
    }

    /// Whether the server accepts another connection.
    async fn probe(&self) -> bool {
        let connect = self.config.connect(self.tls.clone());
        matches!(timeout(self.probe_timeout, connect).await, Ok(Ok(_)))
    }
}

fn report(outcome: Result<(), Error>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "database connection failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_fits_the_kind_of_operation() {
        for heartbeat in HEARTBEATS {
            assert_eq!(limit(heartbeat), HEARTBEAT_TIMEOUT);
        }
        for read in [
            "request_get",
            "job_list",
            "request_counts",
            "workspace_quota",
            "graph_output",
            "job_limit",
        ] {
            assert_eq!(limit(read), READ_TIMEOUT);
        }
        for call in LONG
            .into_iter()
            .chain(["request_enqueue", "job_finish", "job_limit_set"])
        {
            assert_eq!(limit(call), Duration::MAX);
        }
    }

    #[test]
    fn use_is_overdue_after_the_limit_of_its_operation() {
        let watch = Watch::default();
        watch.begin("request_enqueue", Duration::ZERO);
        assert!(watch.overdue().is_some());
        watch.begin("request_enqueue", Duration::from_secs(60));
        assert!(watch.overdue().is_none());
        watch.end();
        assert!(watch.overdue().is_none());
    }
}
