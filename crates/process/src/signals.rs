//! Signal handling: SIGTERM, SIGINT and SIGHUP.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What the process must do.
pub enum SignalAction {
    /// Stop, because of this signal.
    Stop(&'static str),
    /// Reload the TLS certificate.
    ReloadCertificate,
}

/// The source of signals.
pub enum Signals {
    /// Signals of the operating system.
    System {
        /// SIGTERM.
        terminate: Signal,
        /// SIGINT.
        interrupt: Signal,
        /// SIGHUP, if there is a certificate to reload.
        hang_up: Option<Signal>,
    },
    /// A token, for a caller in this process that handles the system's signals.
    Token(Option<CancellationToken>),
}

impl Signals {
    /// Listens for signals. Without a certificate SIGHUP keeps its default action: it terminates the process.
    pub fn listen(has_certificate: bool) -> Result<Self> {
        let hang_up = || signal(SignalKind::hangup());
        Ok(Self::System {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: has_certificate.then(hang_up).transpose()?,
        })
    }

    /// Listens only to this token.
    pub fn of(token: CancellationToken) -> Self {
        Self::Token(Some(token))
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> SignalAction {
        match self {
            Self::System {
                terminate,
                interrupt,
                hang_up,
            } => tokio::select! {
                _ = terminate.recv() => SignalAction::Stop("SIGTERM"),
                _ = interrupt.recv() => SignalAction::Stop("SIGINT"),
                () = hangup(hang_up.as_mut()) => SignalAction::ReloadCertificate,
            },
            Self::Token(token) => {
                let Some(current) = token else {
                    return std::future::pending().await;
                };
                current.cancelled().await;
                // Reports the token once.
                *token = None;
                SignalAction::Stop("the end")
            }
        }
    }

    /// Waits for a stop signal and returns its name.
    pub async fn stop(&mut self) -> &'static str {
        loop {
            if let SignalAction::Stop(name) = self.next().await {
                return name;
            }
        }
    }
}

async fn hangup(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
