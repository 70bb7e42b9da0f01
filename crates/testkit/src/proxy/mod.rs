//! A TCP proxy that injects faults between a client and a server. Knows bytes and connections, not protocols.

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
use listener::{Answering, Order};
pub use traffic::Traffic;

const WAIT_LIMIT: Duration = Duration::from_secs(60);
/// A port can be taken between the choice and the start.
const START_ATTEMPTS: u32 = 5;

/// What happens to the bytes of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    /// They go through as they come.
    #[default]
    Pass,
    /// They are kept, and go through when passing again.
    Hold,
    /// The first of them resets its connection.
    Drop,
}

#[derive(Debug, Clone, Copy, Default)]
struct Modes {
    requests: Mode,
    answers: Mode,
}

/// Stands between a client and a server, and passes, holds or drops what they say.
///
/// It runs on a thread of its own: a test may block its own thread while the proxy is at work. What a call says holds when
/// the call returns, for connections that are open and for those to come. Held bytes are delivered even if their sender has
/// gone away meanwhile, as bytes on a slow network are.
///
/// A protocol says more than its requests and answers: an HTTP/2 server, for one, answers pings and greets at once.
pub struct FaultProxy {
    address: SocketAddr,
    modes: watch::Sender<Modes>,
    traffic: Arc<watch::Sender<Traffic>>,
    orders: Option<tokio::sync::mpsc::UnboundedSender<Answering>>,
    thread: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Starts a proxy to that address, such as `127.0.0.1:7233`, on a free loopback port.
    ///
    /// # Panics
    /// When the address is none, or no port is free.
    pub async fn to(target: &str) -> Self {
        let target = tokio::net::lookup_host(target)
            .await
            .ok()
            .and_then(|mut found| found.next())
            .unwrap_or_else(|| panic!("not an address: {target}"));
        let mut attempt = 1;
        loop {
            match Self::start(target) {
                Ok(proxy) => return proxy,
                Err(error) if attempt == START_ATTEMPTS => panic!("no proxy: {error}"),
                Err(_) => attempt += 1,
            }
        }
    }

    fn start(target: SocketAddr) -> io::Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let modes = watch::Sender::new(Modes::default());
        let traffic = Arc::new(watch::Sender::new(Traffic::default()));
        let (orders, inbox) = tokio::sync::mpsc::unbounded_channel();
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
            orders: Some(orders),
            thread: Some(thread),
        };
        proxy.order(Order::Listen)?;
        Ok(proxy)
    }

    /// `host:port` to connect to instead of the server's.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The port to connect to instead of the server's.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Lets everything through again, first of all what was held.
    pub fn pass(&self) {
        self.modes.send_replace(Modes::default());
    }

    /// Keeps what clients send until [`pass`](Self::pass).
    pub fn hold_requests(&self) {
        self.modes.send_modify(|modes| modes.requests = Mode::Hold);
    }

    /// Keeps what the server sends until [`pass`](Self::pass).
    pub fn hold_answers(&self) {
        self.modes.send_modify(|modes| modes.answers = Mode::Hold);
    }

    /// Resets every connection whose client sends something, which never arrives.
    pub fn drop_requests(&self) {
        self.modes.send_modify(|modes| modes.requests = Mode::Drop);
    }

    /// Resets every connection whose server sends something, which never arrives.
    pub fn drop_answers(&self) {
        self.modes.send_modify(|modes| modes.answers = Mode::Drop);
    }

    /// Resets all connections on both sides; what was held is lost. New connections are welcome.
    pub fn cut(&self) {
        self.must(Order::Cut);
    }

    /// Closes the port: nobody can connect. Connections that are open go on.
    pub fn refuse(&self) {
        self.must(Order::Refuse);
    }

    /// Opens the same port again.
    ///
    /// # Panics
    /// When somebody else has taken it.
    pub fn accept_again(&self) {
        self.must(Order::Listen);
    }

    /// What has gone through and what is held now.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        *self.traffic.borrow()
    }

    /// Waits until at least so many bytes from clients are held.
    ///
    /// # Panics
    /// When that takes longer than a minute.
    pub async fn held_requests(&self, bytes: u64) {
        self.until(|traffic| traffic.requests_held >= bytes).await;
    }

    /// Waits until at least so many bytes from the server are held.
    ///
    /// # Panics
    /// When that takes longer than a minute.
    pub async fn held_answers(&self, bytes: u64) {
        self.until(|traffic| traffic.answers_held >= bytes).await;
    }

    /// Waits until the traffic is so.
    ///
    /// # Panics
    /// When that takes longer than a minute.
    pub async fn until(&self, mut is_so: impl FnMut(&Traffic) -> bool) {
        let mut traffic = self.traffic.subscribe();
        let waited = tokio::time::timeout(WAIT_LIMIT, traffic.wait_for(|now| is_so(now))).await;
        assert!(
            waited.is_ok(),
            "the proxy waited in vain: {:?}",
            self.traffic()
        );
    }

    fn must(&self, order: Order) {
        self.order(order)
            .unwrap_or_else(|error| panic!("the proxy could not do it: {error}"));
    }

    /// Blocks until it is done: the proxy's thread never waits for anything of ours.
    fn order(&self, order: Order) -> io::Result<()> {
        let gone = || io::Error::other("the proxy has ended");
        let (done, answer) = mpsc::channel();
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send((order, done)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
