//! What the system tells the process to do.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What is to be done.
pub enum Order {
    /// Stop, because of this signal.
    Stop(&'static str),
    /// Read certificates again.
    Renew,
}

/// The signals that this process listens for.
pub enum Signals {
    /// Of the system.
    System {
        /// SIGTERM.
        terminate: Signal,
        /// SIGINT.
        interrupt: Signal,
        /// SIGHUP, where a certificate can be read again.
        hang_up: Option<Signal>,
    },
    /// Of somebody in this process, who listens to the system's.
    Token(Option<CancellationToken>),
}

impl Signals {
    /// Listens for them. Without a certificate a closed terminal ends the process, as it usually does.
    pub fn listen(has_certificate: bool) -> Result<Self> {
        let hang_up = || signal(SignalKind::hangup());
        Ok(Self::System {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: has_certificate.then(hang_up).transpose()?,
        })
    }

    /// Listens for nothing but this.
    pub fn of(token: CancellationToken) -> Self {
        Self::Token(Some(token))
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Order {
        match self {
            Self::System {
                terminate,
                interrupt,
                hang_up,
            } => tokio::select! {
                _ = terminate.recv() => Order::Stop("SIGTERM"),
                _ = interrupt.recv() => Order::Stop("SIGINT"),
                () = hung_up(hang_up.as_mut()) => Order::Renew,
            },
            Self::Token(token) => {
                let Some(waited_for) = token else {
                    return std::future::pending().await;
                };
                waited_for.cancelled().await;
                // Once said, it is not said again.
                *token = None;
                Order::Stop("the end")
            }
        }
    }

    /// Returns when it is time to stop.
    pub async fn stop(&mut self) -> &'static str {
        loop {
            if let Order::Stop(name) = self.next().await {
                return name;
            }
        }
    }
}

async fn hung_up(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
