//! One connection through the proxy: two ways, each on its own. Knows nothing of the other connections.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;

use super::traffic::{Count, Direction, Traffic};
use super::{Mode, Modes};

const CHUNK: usize = 64 * 1024;

pub(super) struct Connection {
    pub(super) modes: watch::Receiver<Modes>,
    pub(super) traffic: Arc<watch::Sender<Traffic>>,
    /// Changes when the connection is to be reset.
    pub(super) cuts: watch::Receiver<()>,
}

/// The connection is to be reset.
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
        // A proxy that waits to fill packets would be a fault nobody asked for.
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let end = {
            let requests = way(
                Direction::Requests,
                (&mut from_client, &mut to_server),
                self.modes.clone(),
                &self.traffic,
            );
            let answers = way(
                Direction::Answers,
                (&mut from_server, &mut to_client),
                self.modes.clone(),
                &self.traffic,
            );
            // Ends when both ways have: who has no more to say may still listen.
            tokio::select! {
                end = async { tokio::try_join!(requests, answers) } => end.map(|_| ()),
                _ = self.cuts.changed() => Err(Reset),
            }
        };
        if end.is_err() {
            for half in [to_client, to_server] {
                reset(half.as_ref());
                // Dropping it would send an orderly end first.
                half.forget();
            }
        }
    }
}

/// Carries the bytes of one way, and its end, as the mode of that way says at the time.
async fn way(
    direction: Direction,
    (from, to): (&mut OwnedReadHalf, &mut OwnedWriteHalf),
    mut modes: watch::Receiver<Modes>,
    traffic: &watch::Sender<Traffic>,
) -> Result<(), Reset> {
    let mut count = Count::new(traffic, direction);
    let mut kept = Vec::with_capacity(CHUNK);
    let mut open = true;
    loop {
        match mode(&mut modes, direction) {
            Mode::Pass => {
                count.held(0);
                if to.write_all(&kept).await.is_err() {
                    // The receiver is gone; what it said before is the other way's affair.
                    return Ok(());
                }
                kept.clear();
            }
            Mode::Drop if !kept.is_empty() => return Err(Reset),
            Mode::Drop => {}
            Mode::Hold => count.held(kept.len()),
        }
        if !open && kept.is_empty() {
            let _ = to.shutdown().await;
            return Ok(());
        }
        kept.reserve(CHUNK);
        tokio::select! {
            read = from.read_buf(&mut kept), if open => match read {
                Ok(bytes) if bytes > 0 => count.seen(bytes),
                // A reset is passed on as an end: what came before it shall still arrive.
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
        Direction::Answers => modes.answers,
    }
}

/// The next close sends a reset instead of an orderly end.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}
