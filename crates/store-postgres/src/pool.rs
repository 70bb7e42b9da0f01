//! The connection pool: TLS, keepalives and the settings of every connection.

use crate::error;
use crate::options::PostgresOptions;
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Timeouts,
};
use leasehold_store::sql;
use leasehold_store::{Error, ErrorKind, Result};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

const CONFIGURE: &str = sql!("session/configure");
const LIMIT_HEARTBEATS: &str = sql!("session/limit_heartbeats");
const DISCARD_PLANS: &str = sql!("session/discard_plans");
/// A connection discards its cached plans after this many uses.
const DISCARD_PLANS_EVERY: usize = 1_000;

/// Where and how to connect.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
}

fn invalid(text: String) -> Error {
    Error::new("connecting", ErrorKind::Value(text))
}

pub(crate) fn address(options: &PostgresOptions) -> Result<Address> {
    // The driver does not know these modes. Certificates are always verified, so `require` means the same here.
    let url = options
        .url
        .replace("sslmode=verify-full", "sslmode=require");
    let url = url.replace("sslmode=verify-ca", "sslmode=require");
    let mut config: Config = url
        .parse()
        .map_err(|error| invalid(format!("invalid database URL: {error}")))?;
    config.connect_timeout(options.connect_timeout);
    // Detects a server that vanished within seconds instead of hours.
    config.keepalives_idle(Duration::from_secs(10));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(20));
    if config.get_application_name().is_none() {
        config.application_name("leasehold");
    }
    if options.tls_ca.is_some() {
        if config.get_ssl_mode() == SslMode::Disable {
            return Err(invalid(
                "a CA certificate is set, but the database URL has sslmode=disable; remove one of them".to_owned(),
            ));
        }
        config.ssl_mode(SslMode::Require);
    }
    let tls = tls(roots(options)?);
    let tls = tls.map_err(|error| invalid(format!("failed to set up TLS: {error}")))?;
    Ok(Address { config, tls })
}

/// Returns the trusted root certificates.
fn roots(options: &PostgresOptions) -> Result<RootCertStore> {
    let Some(pem) = &options.tls_ca else {
        return Ok(RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        });
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()))
            .map_err(|error| invalid(format!("invalid CA certificate: {error}")))?;
    }
    if roots.is_empty() {
        return Err(invalid(
            "the CA certificate file contains no PEM certificate".to_owned(),
        ));
    }
    Ok(roots)
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

    /// The statements that configure a connection.
    fn configure(self) -> String {
        match self {
            Self::Calls => CONFIGURE.to_owned(),
            Self::Heartbeats => format!("{CONFIGURE};\n{LIMIT_HEARTBEATS}"),
        }
    }
}

/// Builds a pool without connecting.
pub(crate) fn build(options: &PostgresOptions, address: Address, purpose: Purpose) -> Result<Pool> {
    let configure: Arc<str> = purpose.configure().into();
    let manager = Manager::from_config(
        address.config,
        address.tls,
        ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        },
    );
    Pool::builder(manager)
        .max_size(purpose.max_size(options))
        // The connection used last has its plans and catalog entries cached.
        .queue_mode(QueueMode::Lifo)
        .runtime(deadpool_postgres::Runtime::Tokio1)
        .wait_timeout(Some(options.connect_timeout))
        .create_timeout(Some(options.connect_timeout))
        .post_create(Hook::async_fn(move |client, _| {
            let configure = Arc::clone(&configure);
            Box::pin(async move {
                client
                    .batch_execute(&configure)
                    .await
                    .map_err(HookError::Backend)
            })
        }))
        .post_recycle(Hook::async_fn(|client, metrics| {
            let uses = metrics.recycle_count + 1;
            Box::pin(async move {
                if !plans_expired(uses) {
                    return Ok(());
                }
                client
                    .batch_execute(DISCARD_PLANS)
                    .await
                    .map_err(HookError::Backend)
            })
        }))
        .build()
        .map_err(|error| invalid(error.to_string()))
}

/// Whether the cached plans of a connection should be discarded. A plan for a table of one or two pages scans all of it, and stays
/// cached while the table grows until autovacuum analyzes it, a minute later at best. So plans are discarded often at first.
fn plans_expired(uses: usize) -> bool {
    uses.is_power_of_two() || uses.is_multiple_of(DISCARD_PLANS_EVERY)
}

/// Takes a connection from the pool; waits for one if all are in use.
pub(crate) async fn take(pool: &Pool, context: &'static str) -> Result<Object> {
    pool.get().await.map_err(error::pool(context))
}

/// Takes an idle connection; none if all are in use.
pub(crate) async fn take_if_free(pool: &Pool) -> Option<Object> {
    let timeouts = Timeouts {
        wait: Some(Duration::ZERO),
        ..pool.timeouts()
    };
    pool.timeout_get(&timeouts).await.ok()
}

fn tls(roots: RootCertStore) -> std::result::Result<MakeRustlsConnect, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
