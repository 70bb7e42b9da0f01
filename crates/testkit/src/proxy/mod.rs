//! A TCP proxy that injects faults between a client and a server. Knows bytes and connections, no protocol.

mod connection;
mod listener;
mod traffic;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use crate::port::free_port;
use listener::{Command, PendingCommand};
pub use traffic::Traffic;

const WAIT_TIMEOUT: Duration = Duration::from_secs(180);
/// Another process can take a port before the proxy binds it.
const START_ATTEMPTS: u32 = 5;

/// How the proxy treats the bytes of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    /// Forwards them.
    #[default]
    Pass,
    /// Buffers them until the mode is `Pass` again.
    Hold,
    /// Resets the connection at the first byte.
    Drop,
}

#[derive(Debug, Clone, Copy, Default)]
struct Modes {
    requests: Mode,
    responses: Mode,
}

/// A proxy between clients and a server that forwards, holds or drops their bytes.
///
/// The proxy runs on its own thread, so a test may block. A change of mode is in force when the call returns, for open and
/// for new connections. Held bytes are delivered even if their sender has disconnected, as on a slow network.
///
/// "Requests" are all bytes from clients and "responses" all bytes from the server, also HTTP/2 settings and pings.
pub struct FaultProxy {
    address: SocketAddr,
    modes: watch::Sender<Modes>,
    traffic: Arc<watch::Sender<Traffic>>,
    commands: Option<tokio::sync::mpsc::UnboundedSender<PendingCommand>>,
    thread: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Starts a proxy to this address, such as `127.0.0.1:7233`, on a free loopback port.
    ///
    /// # Panics
    /// When the address is invalid or no port is free.
    pub async fn to(target: &str) -> Self {
        let target = tokio::net::lookup_host(target)
            .await
            .ok()
            .and_then(|mut found| found.next())
            .unwrap_or_else(|| panic!("failed to resolve {target}"));
        let mut attempt = 1;
        loop {
            match Self::start(target) {
                Ok(proxy) => return proxy,
                Err(error) if attempt == START_ATTEMPTS => {
                    panic!("failed to start the proxy: {error}")
                }
                Err(_) => attempt += 1,
            }
        }
    }

    fn start(target: SocketAddr) -> io::Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let modes = watch::Sender::new(Modes::default());
        let traffic = Arc::new(watch::Sender::new(Traffic::default()));
        let (commands, inbox) = tokio::sync::mpsc::unbounded_channel();
        let thread = listener::spawn(
            address,
            target,
            modes.subscribe(),
            Arc::clone(&traffic),
            inbox,
        );
        let proxy = Self {
            address,
            modes,
            traffic,
            commands: Some(commands),
            thread: Some(thread),
        };
        proxy.command(Command::Listen)?;
        Ok(proxy)
    }

    /// The proxy's `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The proxy's port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Forwards everything again, held bytes first.
    pub fn pass(&self) {
        self.modes.send_replace(Modes::default());
    }

    /// Holds the bytes from clients until [`pass`](Self::pass).
    pub fn hold_requests(&self) {
        self.modes.send_modify(|modes| modes.requests = Mode::Hold);
    }

    /// Holds the bytes from the server until [`pass`](Self::pass).
    pub fn hold_responses(&self) {
        self.modes.send_modify(|modes| modes.responses = Mode::Hold);
    }

    /// Resets a connection when its client sends something, and drops those bytes.
    pub fn drop_requests(&self) {
        self.modes.send_modify(|modes| modes.requests = Mode::Drop);
    }

    /// Resets a connection when the server sends something on it, and drops those bytes.
    pub fn drop_responses(&self) {
        self.modes.send_modify(|modes| modes.responses = Mode::Drop);
    }

    /// Resets all connections on both sides and drops held bytes. Accepts new connections.
    pub fn cut(&self) {
        self.expect_done(Command::Cut);
    }

    /// Closes the port, so that new connections fail. Open connections continue.
    pub fn refuse(&self) {
        self.expect_done(Command::Refuse);
    }

    /// Opens the same port again.
    ///
    /// # Panics
    /// When another process has taken the port.
    pub fn accept_again(&self) {
        self.expect_done(Command::Listen);
    }

    /// The counters of bytes and connections.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        *self.traffic.borrow()
    }

    /// Waits until at least `bytes` bytes from clients are held.
    ///
    /// # Panics
    /// When that takes longer than three minutes.
    pub async fn wait_for_held_requests(&self, bytes: u64) {
        self.wait_until(|traffic| traffic.request_bytes_held >= bytes)
            .await;
    }

    /// Waits until at least `bytes` bytes from the server are held.
    ///
    /// # Panics
    /// When that takes longer than three minutes.
    pub async fn wait_for_held_responses(&self, bytes: u64) {
        self.wait_until(|traffic| traffic.response_bytes_held >= bytes)
            .await;
    }

    /// Waits until the counters satisfy a condition.
    ///
    /// # Panics
    /// When that takes longer than three minutes.
    pub async fn wait_until(&self, mut condition: impl FnMut(&Traffic) -> bool) {
        let mut traffic = self.traffic.subscribe();
        let waited =
            tokio::time::timeout(WAIT_TIMEOUT, traffic.wait_for(|now| condition(now))).await;
        assert!(
            waited.is_ok(),
            "condition not met within {WAIT_TIMEOUT:?}: {:?}",
            self.traffic()
        );
    }

    fn expect_done(&self, command: Command) {
        self.command(command)
            .unwrap_or_else(|error| panic!("proxy command failed: {error}"));
    }

    /// Sends a command and blocks until it is done. The proxy's thread never waits for the caller.
    fn command(&self, command: Command) -> io::Result<()> {
        let gone = || io::Error::other("the proxy's thread has ended");
        let (done, result) = mpsc::channel();
        let commands = self.commands.as_ref().ok_or_else(gone)?;
        commands.send((command, done)).map_err(|_| gone())?;
        result.recv().map_err(|_| gone())?
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
