//! One connection through the proxy, with independent directions. Knows nothing of the other connections.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;

use super::traffic::{Counter, Direction, Traffic};
use super::{Mode, Modes};

const CHUNK: usize = 64 * 1024;

pub(super) struct Connection {
    pub(super) modes: watch::Receiver<Modes>,
    pub(super) traffic: Arc<watch::Sender<Traffic>>,
    /// Changes when the connection must be reset.
    pub(super) cuts: watch::Receiver<()>,
}

/// The connection must be reset.
struct Reset;

impl Connection {
    pub(super) async fn run(mut self, client: TcpStream, target: SocketAddr) {
        let connected = tokio::select! {
            connected = TcpStream::connect(target) => connected,
            _ = self.cuts.changed() => return reset(&client),
        };
        let Ok(server) = connected else {
            return reset(&client);
        };
        // Nagle's algorithm would add delays that no test requested.
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let end = {
            let requests = copy(
                Direction::Requests,
                (&mut from_client, &mut to_server),
                self.modes.clone(),
                &self.traffic,
            );
            let responses = copy(
                Direction::Responses,
                (&mut from_server, &mut to_client),
                self.modes.clone(),
                &self.traffic,
            );
            // Ends when both directions have ended: a half-closed side may still read.
            tokio::select! {
                end = async { tokio::try_join!(requests, responses) } => end.map(|_| ()),
                _ = self.cuts.changed() => Err(Reset),
            }
        };
        if end.is_err() {
            for half in [to_client, to_server] {
                reset(half.as_ref());
                // Dropping the half would send FIN before the reset.
                half.forget();
            }
        }
    }
}

/// Copies the bytes of one direction, and its end-of-file, according to the current mode of that direction.
async fn copy(
    direction: Direction,
    (from, to): (&mut OwnedReadHalf, &mut OwnedWriteHalf),
    mut modes: watch::Receiver<Modes>,
    traffic: &watch::Sender<Traffic>,
) -> Result<(), Reset> {
    let mut counter = Counter::new(traffic, direction);
    let mut pending = Vec::with_capacity(CHUNK);
    let mut open = true;
    loop {
        match mode(&mut modes, direction) {
            Mode::Pass => {
                counter.set_held(0);
                if to.write_all(&pending).await.is_err() {
                    // The receiver has closed; the other direction handles what it sent before.
                    return Ok(());
                }
                pending.clear();
            }
            Mode::Drop if !pending.is_empty() => return Err(Reset),
            Mode::Drop => {}
            Mode::Hold => counter.set_held(pending.len()),
        }
        if !open && pending.is_empty() {
            let _ = to.shutdown().await;
            return Ok(());
        }
        pending.reserve(CHUNK);
        tokio::select! {
            read = from.read_buf(&mut pending), if open => match read {
                Ok(bytes) if bytes > 0 => counter.received(bytes),
                // Forwards a reset as end-of-file, so that earlier bytes still arrive.
                _ => open = false,
            },
            changed = modes.changed() => changed.map_err(|_| Reset)?,
        }
    }
}

fn mode(modes: &mut watch::Receiver<Modes>, direction: Direction) -> Mode {
    let modes = modes.borrow_and_update();
    match direction {
        Direction::Requests => modes.requests,
        Direction::Responses => modes.responses,
    }
}

/// Makes the next close send a reset instead of FIN.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}
