//! The proxy's thread: opens and closes the port, executes commands and owns the open connections.

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

/// A command for the proxy's thread.
pub(super) enum Command {
    Listen,
    Refuse,
    Cut,
}

/// A command and the channel for its result.
pub(super) type PendingCommand = (Command, mpsc::Sender<io::Result<()>>);

struct Listener {
    address: SocketAddr,
    target: SocketAddr,
    modes: watch::Receiver<Modes>,
    traffic: Arc<watch::Sender<Traffic>>,
    /// None while the port is closed.
    socket: Option<TcpListener>,
    connections: JoinSet<()>,
    /// Changes when all connections must be reset.
    cuts: watch::Sender<()>,
}

/// Starts the thread. It runs until the sender of commands is dropped; then it resets every connection.
pub(super) fn spawn(
    address: SocketAddr,
    target: SocketAddr,
    modes: watch::Receiver<Modes>,
    traffic: Arc<watch::Sender<Traffic>>,
    commands: UnboundedReceiver<PendingCommand>,
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
        // Without a runtime the channel closes, and the first command fails.
        if let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            runtime.block_on(listener.run(commands));
        }
    })
}

impl Listener {
    async fn run(mut self, mut commands: UnboundedReceiver<PendingCommand>) {
        loop {
            tokio::select! {
                command = commands.recv() => {
                    let Some((command, done)) = command else { break };
                    // A sender that does not wait for the result does not need it.
                    let _ = done.send(self.execute(command).await);
                }
                Some(client) = accept(self.socket.as_ref()) => self.connect(client),
                Some(_) = self.connections.join_next() => {}
            }
        }
        self.cut().await;
    }

    async fn execute(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Listen => self.socket = Some(TcpListener::bind(self.address).await?),
            Command::Refuse => self.close()?,
            Command::Cut => self.cut().await,
        }
        Ok(())
    }

    /// Shuts the socket down before closing it: a child process that is being spawned may hold a copy of the socket, and
    /// with it the port.
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

/// Accepts the next client. Returns none if it disconnected first; never returns while the port is closed.
async fn accept(socket: Option<&TcpListener>) -> Option<TcpStream> {
    match socket {
        Some(socket) => socket.accept().await.ok().map(|(client, _)| client),
        None => pending().await,
    }
}
