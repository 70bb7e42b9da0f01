//! Connection options of the store.

use leasehold_store::Clock;
use std::fmt;
use std::time::Duration;

/// What is between the program and the database server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooler {
    /// Nothing, or a pooler in session mode: a connection has a session of its own.
    #[default]
    None,
    /// A pooler in transaction mode: clients share sessions, so statements need no settings, locks or notifications of a session.
    Transaction {
        /// Whether the pooler knows prepared statements. Otherwise every statement is parsed and planned again.
        prepared_statements: bool,
    },
}

/// How a [`crate::PostgresStore`] connects.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`. The parameters `sslmode` and `sslrootcert` mean the same as for libpq: for example
    /// `?sslmode=verify-full&sslrootcert=/etc/ca.pem` requires TLS and verifies certificate and host name.
    pub url: String,
    /// The schema that contains Leasehold's tables and functions; migrations create it. Locks and notifications are those of the database, so an
    /// installation needs a database of its own.
    pub schema: String,
    /// CA certificates in PEM that the server's certificate must be signed by. Requires TLS and verifies the host name, unless the URL has
    /// `sslmode=verify-ca`. None: as the URL says.
    pub tls_ca: Option<Vec<u8>>,
    /// The pool size: maximum number of connections in the pool. Heartbeats have connections of their own in addition: a fifth of this number, at
    /// least two.
    pub max_connections: usize,
    /// How long an operation waits for a connection before it fails as unavailable.
    pub connect_timeout: Duration,
    /// How long an operation may use a connection before it fails as unavailable and the connection is closed. Heartbeats may take ten seconds
    /// at most, reads thirty; migrations, rebuilds and pruning may take longer while the server answers other connections.
    pub call_timeout: Duration,
    /// What is between the program and the database server.
    pub pooler: Pooler,
    /// Whether to receive notifications of other processes, on a connection outside the pool. Has no effect behind a pooler in transaction mode.
    pub notify: bool,
    /// Whether the store records a new epoch of the database's history when it meets one. Off for programs that only look: without an epoch
    /// the store keeps nothing in memory.
    pub opens_epochs: bool,
    /// The clock that statements use.
    pub clock: Clock,
}

impl PostgresOptions {
    /// Default options for the database at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: "leasehold".to_owned(),
            tls_ca: None,
            max_connections: 10,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(60),
            pooler: Pooler::None,
            notify: true,
            opens_epochs: true,
            clock: Clock::Database,
        }
    }

    /// Whether to listen for notifications.
    pub(crate) fn listens(&self) -> bool {
        self.notify && self.pooler == Pooler::None
    }

    /// The connections for renewals of leases, named locks and heartbeats of instances.
    pub fn heartbeat_connections(&self) -> usize {
        (self.max_connections / 5).max(2)
    }
}

impl fmt::Debug for PostgresOptions {
    /// Prints only the scheme of the URL: the rest may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = ["postgres://", "postgresql://"]
            .into_iter()
            .find(|scheme| self.url.starts_with(scheme));
        f.debug_struct("PostgresOptions")
            .field("url", &format_args!("{}…", scheme.unwrap_or_default()))
            .field("schema", &self.schema)
            .field("tls_ca", &self.tls_ca.is_some())
            .field("max_connections", &self.max_connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .field("pooler", &self.pooler)
            .field("notify", &self.notify)
            .field("opens_epochs", &self.opens_epochs)
            .field("clock", &self.clock)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::PostgresOptions;

    #[test]
    fn debug_output_contains_no_password() {
        for url in [
            "postgres://me:hunter2@db/x",
            "postgresql://me:hunter2?x@db/x",
            "host=db password=hunter2",
        ] {
            let text = format!("{:?}", PostgresOptions::new(url));
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains("max_connections: 10"), "{text}");
        }
    }
}
