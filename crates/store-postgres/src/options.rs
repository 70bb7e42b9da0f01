//! How to reach a database and how much of it to use.

use leasehold_store::Clock;
use std::time::Duration;

/// How a [`crate::PostgresStore`] connects.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`, with `?sslmode=require` where TLS is a must. Whenever TLS is spoken, the server's
    /// certificate and name are checked.
    pub url: String,
    /// The authority, in PEM, that signed the server's certificate; none for those that browsers trust. With it TLS is a must.
    pub tls_ca: Option<Vec<u8>>,
    /// Connections at most.
    pub max_connections: usize,
    /// How long to wait for a connection before the store counts as unavailable.
    pub connect_timeout: Duration,
    /// Whether to listen for what other processes do, on a connection of its own. Without it only this process wakes those
    /// who wait here. It must be off behind a pooler that gives each transaction another connection.
    pub notify: bool,
    /// Whose clock judges.
    pub clock: Clock,
}

impl PostgresOptions {
    /// Ordinary settings for a database.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            tls_ca: None,
            max_connections: 10,
            connect_timeout: Duration::from_secs(5),
            notify: true,
            clock: Clock::Database,
        }
    }
}
