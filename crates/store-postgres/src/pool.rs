//! Connections: made with TLS where the server speaks it, set up alike, and kept in a pool.

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

const SETTLE_IN: &str = sql!("session/settle_in");
const FORGET_PLANS: &str = sql!("session/forget_plans");
/// A connection that is used a lot plans anew after so many uses.
const PLANS_HOLD_FOR: usize = 1_000;

/// How every connection is made.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
}

fn broken(text: String) -> Error {
    Error::new("connecting", ErrorKind::Value(text))
}

pub(crate) fn address(options: &PostgresOptions) -> Result<Address> {
    // Certificates are checked whenever there are any, so these mean no more than `require` here.
    let url = options
        .url
        .replace("sslmode=verify-full", "sslmode=require");
    let url = url.replace("sslmode=verify-ca", "sslmode=require");
    let mut config: Config = url
        .parse()
        .map_err(|error| broken(format!("the database URL is not valid: {error}")))?;
    config.connect_timeout(options.connect_timeout);
    // A server that vanished without a word is noticed in seconds, not in hours.
    config.keepalives_idle(Duration::from_secs(10));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(20));
    if config.get_application_name().is_none() {
        config.application_name("leasehold");
    }
    if options.tls_ca.is_some() {
        if config.get_ssl_mode() == SslMode::Disable {
            return Err(broken(
                "an authority for TLS is given, and the database URL forbids TLS".to_owned(),
            ));
        }
        config.ssl_mode(SslMode::Require);
    }
    let tls = tls(roots(options)?);
    let tls = tls.map_err(|error| broken(format!("TLS cannot be set up: {error}")))?;
    Ok(Address { config, tls })
}

/// Whose signatures count.
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
            .map_err(|error| broken(format!("the authority for TLS is not valid: {error}")))?;
    }
    if roots.is_empty() {
        return Err(broken(
            "the authority for TLS has no certificate in PEM".to_owned(),
        ));
    }
    Ok(roots)
}

/// Makes the pool; connects to nothing yet.
pub(crate) fn build(options: &PostgresOptions, address: Address) -> Result<Pool> {
    let manager = Manager::from_config(
        address.config,
        address.tls,
        ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        },
    );
    Pool::builder(manager)
        .max_size(options.max_connections)
        // The connection used last is the one with its plans and catalogue at hand.
        .queue_mode(QueueMode::Lifo)
        .runtime(deadpool_postgres::Runtime::Tokio1)
        .wait_timeout(Some(options.connect_timeout))
        .create_timeout(Some(options.connect_timeout))
        .post_create(Hook::async_fn(|client, _| {
            Box::pin(async move {
                client
                    .batch_execute(SETTLE_IN)
                    .await
                    .map_err(HookError::Backend)
            })
        }))
        .post_recycle(Hook::async_fn(|client, metrics| {
            let uses = metrics.recycle_count + 1;
            Box::pin(async move {
                if !outgrown(uses) {
                    return Ok(());
                }
                client
                    .batch_execute(FORGET_PLANS)
                    .await
                    .map_err(HookError::Backend)
            })
        }))
        .build()
        .map_err(|error| broken(error.to_string()))
}

/// Whether plans may have been outgrown. A plan made for a table with a page or two reads all of it each time, and would be
/// kept while the table grows: until somebody analyzes it, and that is a minute at best. So plans are short-lived at first.
fn outgrown(uses: usize) -> bool {
    uses.is_power_of_two() || uses.is_multiple_of(PLANS_HOLD_FOR)
}

/// One connection, for as long as it is kept.
pub(crate) async fn take(pool: &Pool, context: &'static str) -> Result<Object> {
    pool.get().await.map_err(error::pool(context))
}

/// A connection that nobody uses or waits for; none if there is no such connection at once.
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
