//! The proxy's own thread: opens and closes the port, carries out orders, knows which connections are open.

use std::future::pending;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::{Modes, Traffic};

/// What the proxy is told to do; it answers when it is done.
pub(super) enum Order {
    Listen,
    Refuse,
    Cut,
}

/// An order, and where its outcome goes.
pub(super) type Answering = (Order, mpsc::Sender<io::Result<()>>);

struct Listener {
    address: SocketAddr,
    target: SocketAddr,
    modes: watch::Receiver<Modes>,
    traffic: Arc<watch::Sender<Traffic>>,
    /// None while refusing.
    socket: Option<TcpListener>,
    connections: JoinSet<()>,
    /// Changes when all connections are to be reset.
    cuts: watch::Sender<()>,
}

/// Runs until the sender of orders is dropped; then every connection is reset.
pub(super) fn spawn(
    address: SocketAddr,
    target: SocketAddr,
    modes: watch::Receiver<Modes>,
    traffic: Arc<watch::Sender<Traffic>>,
    orders: UnboundedReceiver<Answering>,
) -> JoinHandle<()> {
    let listener = Listener {
        address,
        target,
        modes,
        traffic,
        socket: None,
        connections: JoinSet::new(),
        cuts: watch::Sender::new(()),
    };
    thread::spawn(move || {
        // Without a runtime nobody takes the orders, which fails the first of them.
        if let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            runtime.block_on(listener.run(orders));
        }
    })
}

impl Listener {
    async fn run(mut self, mut orders: UnboundedReceiver<Answering>) {
        loop {
            tokio::select! {
                order = orders.recv() => {
                    let Some((order, done)) = order else { break };
                    // Who does not wait for the answer does not need it.
                    let _ = done.send(self.carry_out(order).await);
                }
                Some(client) = accept(self.socket.as_ref()) => self.connect(client),
                Some(_) = self.connections.join_next() => {}
            }
        }
        self.cut().await;
    }

    async fn carry_out(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Listen => self.socket = Some(TcpListener::bind(self.address).await?),
            Order::Refuse => self.close()?,
            Order::Cut => self.cut().await,
        }
        Ok(())
    }

    /// Closing alone is not enough: a program that is being started at this moment holds a copy of the socket for as long
    /// as that takes, and the port with it.
    fn close(&mut self) -> io::Result<()> {
        if let Some(socket) = self.socket.take() {
            let socket = std::net::TcpStream::from(OwnedFd::from(socket.into_std()?));
            socket.shutdown(Shutdown::Both)?;
        }
        Ok(())
    }

    async fn cut(&mut self) {
        self.cuts.send_replace(());
        while self.connections.join_next().await.is_some() {}
    }

    fn connect(&mut self, client: TcpStream) {
        self.traffic.send_modify(|traffic| traffic.connections += 1);
        let connection = Connection {
            modes: self.modes.clone(),
            traffic: Arc::clone(&self.traffic),
            cuts: self.cuts.subscribe(),
        };
        self.connections.spawn(connection.run(client, self.target));
    }
}

/// The next client; none while refusing, or when it was gone before it was here.
async fn accept(socket: Option<&TcpListener>) -> Option<TcpStream> {
    match socket {
        Some(socket) => socket.accept().await.ok().map(|(client, _)| client),
        None => pending().await,
    }
}
