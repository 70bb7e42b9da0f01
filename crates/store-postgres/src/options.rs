//! How to reach a database and how much of it to use.

use leasehold_store::Clock;
use std::fmt;
use std::time::Duration;

/// How a [`crate::PostgresStore`] connects.
#[derive(Clone)]
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

impl fmt::Debug for PostgresOptions {
    /// Of the URL only its scheme: the rest may hold a password anywhere.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = ["postgres://", "postgresql://"]
            .into_iter()
            .find(|scheme| self.url.starts_with(scheme));
        f.debug_struct("PostgresOptions")
            .field("url", &format_args!("{}…", scheme.unwrap_or_default()))
            .field("tls_ca", &self.tls_ca.is_some())
            .field("max_connections", &self.max_connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("notify", &self.notify)
            .field("clock", &self.clock)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::PostgresOptions;

    #[test]
    fn options_that_are_logged_say_no_password() {
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
