//! What the system tells the process to do.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What is to be done.
pub(crate) enum Order {
    /// Stop, because of this signal.
    Stop(&'static str),
    /// Read certificates again.
    Renew,
}

pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
}

impl Signals {
    /// Listens for them. Without a certificate a closed terminal ends the process, as it usually does.
    pub(crate) fn listen(has_certificate: bool) -> Result<Self> {
        let hang_up = || signal(SignalKind::hangup());
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: has_certificate.then(hang_up).transpose()?,
        })
    }

    pub(crate) async fn next(&mut self) -> Order {
        tokio::select! {
            _ = self.terminate.recv() => Order::Stop("SIGTERM"),
            _ = self.interrupt.recv() => Order::Stop("SIGINT"),
            () = hung_up(self.hang_up.as_mut()) => Order::Renew,
        }
    }

    /// Returns when it is time to stop.
    pub(crate) async fn stop(&mut self) -> &'static str {
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
