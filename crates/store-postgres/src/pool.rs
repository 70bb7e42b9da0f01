//! The connection pool: TLS, keepalives, the settings and the epoch of every connection, and a time limit for every use of one.

mod watch;

use crate::epoch::{Epoch, Epochs, Identity};
use crate::error;
use crate::options::{Pooler, PostgresOptions};
use crate::schema::Schema;
use crate::session::{KnownEpoch, Session, Settings};
use crate::tls;
use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode,
    RecyclingMethod, Timeouts,
};
use futures::join;
use leasehold_store::sql;
use leasehold_store::{EpochId, Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;
use watch::{Connector, Watch, Watches};

/// The operation that finds the epoch of a connection.
const EPOCH: &str = "epoch_open";
const IDENTITY: &str = sql!("session/identity");
const DISCARD_PLANS: &str = sql!("session/discard_plans");
/// A connection discards its cached plans after this many uses.
const DISCARD_PLANS_EVERY: usize = 1_000;

/// Where and how to connect.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
}

/// The pool of connections; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pool: Pool,
    schema: Schema,
    settings: Settings,
    watches: Arc<Watches>,
    epochs: Arc<Epochs>,
    call_timeout: Duration,
}

/// A connection in use. If it is in use for longer than its operation may take, it is closed, and what waits for it fails as unavailable.
pub(crate) struct Connection {
    object: Object,
    watch: Option<Arc<Watch>>,
    schema: Schema,
    settings: Settings,
    epochs: Arc<Epochs>,
    /// The operation that uses it.
    pub(crate) context: &'static str,
    /// The epoch of the server's history; none while the database has no schema.
    pub(crate) epoch: Option<Epoch>,
}

fn invalid(text: String) -> Error {
    Error::new("connecting", ErrorKind::Value(text))
}

pub(crate) fn address(options: &PostgresOptions) -> Result<Address> {
    let tls = tls::configure(options)?;
    let mut config: Config = tls
        .url
        .parse()
        .map_err(|error| invalid(format!("invalid database URL: {error}")))?;
    config.ssl_mode(tls.mode);
    config.connect_timeout(options.connect_timeout);
    // Detects a server that vanished within seconds instead of hours.
    config.keepalives_idle(Duration::from_secs(10));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(20));
    if config.get_application_name().is_none() {
        config.application_name("leasehold");
    }
    Ok(Address {
        config,
        tls: tls.connect,
    })
}

/// What the connections of a pool are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Any operation.
    Calls,
    /// Renewals of leases, named locks and heartbeats of instances: short statements, which must not wait for calls.
    Heartbeats,
}

impl Purpose {
    /// The most connections of the pool.
    fn max_size(self, options: &PostgresOptions) -> usize {
        match self {
            Self::Calls => options.max_connections,
            Self::Heartbeats => options.heartbeat_connections(),
        }
    }

    /// How long a statement waits for a lock. A renewal that takes longer is of no use, because the caller repeats it.
    fn lock_timeout(self) -> &'static str {
        match self {
            Self::Calls => "2s",
            Self::Heartbeats => "500ms",
        }
    }
}

impl Connections {
    fn new(
        options: &PostgresOptions,
        address: Address,
        schema: Schema,
        epochs: &Arc<Epochs>,
        purpose: Purpose,
    ) -> Result<Self> {
        let settings = Settings {
            pooler: options.pooler,
            lock_timeout: purpose.lock_timeout(),
        };
        let watches = Arc::new(Watches::default());
        let connector = Connector::new(address.tls, options.connect_timeout);
        let manager = Manager::from_connect(
            address.config,
            connector,
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        );
        let limit = options.connect_timeout;
        let created = Opened {
            settings,
            watches: Arc::clone(&watches),
            epochs: Arc::clone(epochs),
            schema: schema.clone(),
        };
        let created = Arc::new(created);
        let reused = Arc::clone(&created);
        let pool = Pool::builder(manager)
            .max_size(purpose.max_size(options))
            // The connection used last has its plans and catalog entries cached.
            .queue_mode(QueueMode::Lifo)
            .runtime(deadpool_postgres::Runtime::Tokio1)
            .wait_timeout(Some(options.connect_timeout))
            .create_timeout(Some(options.connect_timeout))
            .recycle_timeout(Some(options.connect_timeout))
            .post_create(Hook::async_fn(move |client, _| {
                created.watches.register(client);
                let created = Arc::clone(&created);
                Box::pin(async move { within(limit, created.configure(client)).await })
            }))
            .post_recycle(Hook::async_fn(move |client, metrics| {
                let (reused, uses) = (Arc::clone(&reused), metrics.recycle_count + 1);
                Box::pin(async move { within(limit, reused.reuse(client, uses)).await })
            }))
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        Ok(Self {
            pool,
            schema,
            settings,
            watches,
            epochs: Arc::clone(epochs),
            call_timeout: options.call_timeout,
        })
    }

    /// Returns the maximum number of connections.
    pub(crate) fn max_size(&self) -> usize {
        self.pool.status().max_size
    }

    /// Whether a pooler in transaction mode is expected.
    pub(crate) fn is_pooled(&self) -> bool {
        self.settings.pooler != Pooler::None
    }

    fn watched(&self, object: Object, context: &'static str) -> Connection {
        let watch = self.watches.of(&object);
        if let Some(watch) = &watch {
            watch.begin(context, self.call_timeout);
        }
        Connection {
            object,
            epoch: watch.as_ref().and_then(|watch| watch.epoch()),
            watch,
            schema: self.schema.clone(),
            settings: self.settings,
            epochs: Arc::clone(&self.epochs),
            context,
        }
    }
}

impl Connection {
    /// Returns the epoch of the server's history; none while the database has no schema.
    pub(crate) fn epoch_id(&self) -> Option<EpochId> {
        self.epoch.map(|epoch| epoch.id)
    }

    /// Returns what is added to transaction numbers in jobs.
    pub(crate) fn job_xid_offset(&self) -> i64 {
        self.epoch.map_or(0, |epoch| epoch.job_xid_offset)
    }

    /// Returns a session, each of whose statements is a transaction.
    pub(crate) fn session(&self) -> Session<'_> {
        let session = Session::new(&self.object, self.settings, &self.schema, self.context);
        let known = |epoch| KnownEpoch {
            epoch,
            epochs: &self.epochs,
        };
        session.of_epoch(self.epoch.map(known))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.end();
        }
    }
}

/// What the hooks of the pool do with a connection.
struct Opened {
    settings: Settings,
    watches: Arc<Watches>,
    epochs: Arc<Epochs>,
    schema: Schema,
}

impl Opened {
    /// Configures a new connection, and finds the epoch of its server.
    async fn configure(&self, client: &ClientWrapper) -> std::result::Result<(), HookError> {
        // Pipelined: one round trip.
        let configured = self.settings.configure_session(client);
        let (configured, answer) = join!(configured, client.query_typed(IDENTITY, &[]));
        configured.map_err(HookError::Backend)?;
        let epoch = self.epoch(client, answer).await?;
        self.watches.set_epoch(client, epoch);
        Ok(())
    }

    /// Returns the epoch of the server that answered with its identity.
    async fn epoch(
        &self,
        client: &ClientWrapper,
        answer: std::result::Result<Vec<Row>, tokio_postgres::Error>,
    ) -> std::result::Result<Option<Epoch>, HookError> {
        let identity = Identity::read(&answer.map_err(HookError::Backend)?);
        if identity.is_standby() && self.epochs.opens() {
            return Err(HookError::message(
                "the server is a standby, which accepts no writes; connect to the primary",
            ));
        }
        let session = Session::new(client, self.settings, &self.schema, EPOCH);
        let epoch = self.epochs.of(session, &identity).await;
        epoch.map_err(HookError::Backend)
    }

    /// Prepares an idle connection for its next use. Refuses one of another epoch than the process met last: the pool closes it and takes another.
    async fn reuse(
        &self,
        client: &ClientWrapper,
        uses: usize,
    ) -> std::result::Result<(), HookError> {
        match self.watches.of(client).and_then(|watch| watch.epoch()) {
            Some(own) if self.epochs.is_over(own) => {
                return Err(HookError::message("the connection is of an older epoch"));
            }
            // The database may have a schema by now.
            None if self.epochs.opens() => self.configure(client).await?,
            _ => {}
        }
        if self.settings.pooler == Pooler::None && plans_expired(uses) {
            let discarded = client.batch_execute(DISCARD_PLANS).await;
            discarded.map_err(HookError::Backend)?;
        }
        Ok(())
    }
}

/// Limits the time of a hook of the pool, which has no limit of its own.
async fn within(
    limit: Duration,
    hook: impl Future<Output = std::result::Result<(), HookError>>,
) -> std::result::Result<(), HookError> {
    match timeout(limit, hook).await {
        Ok(done) => done,
        Err(_) => Err(HookError::message("the database did not answer in time")),
    }
}

/// Builds a pool without connecting.
pub(crate) fn build(
    options: &PostgresOptions,
    address: Address,
    schema: Schema,
    epochs: &Arc<Epochs>,
    purpose: Purpose,
) -> Result<Connections> {
    Connections::new(options, address, schema, epochs, purpose)
}

/// Takes a connection for the operation `context`; waits for one if all are in use.
pub(crate) async fn take(connections: &Connections, context: &'static str) -> Result<Connection> {
    let object = connections.pool.get().await.map_err(error::pool(context))?;
    Ok(connections.watched(object, context))
}

/// Takes an idle connection; none if all are in use.
pub(crate) async fn take_if_free(
    connections: &Connections,
    context: &'static str,
) -> Option<Connection> {
    let timeouts = Timeouts {
        wait: Some(Duration::ZERO),
        ..connections.pool.timeouts()
    };
    let object = connections.pool.timeout_get(&timeouts).await.ok()?;
    Some(connections.watched(object, context))
}

/// Whether the cached plans of a connection should be discarded. A plan for a table of one or two pages scans all of it, and stays
/// cached while the table grows until autovacuum analyzes it, a minute later at best. So plans are discarded often at first.
fn plans_expired(uses: usize) -> bool {
    uses.is_power_of_two() || uses.is_multiple_of(DISCARD_PLANS_EVERY)
}
