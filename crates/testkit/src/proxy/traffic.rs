//! What goes through the proxy, counted. Sees no bytes.

use tokio::sync::watch;

/// Bytes and connections of a proxy, as of one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that clients have sent, whatever became of them.
    pub requests_seen: u64,
    /// Bytes of clients that wait to be passed on.
    pub requests_held: u64,
    /// Bytes that the server has sent, whatever became of them.
    pub answers_seen: u64,
    /// Bytes of the server that wait to be passed on.
    pub answers_held: u64,
    /// Connections that clients have made, also those that have ended.
    pub connections: u64,
}

/// The two ways through the proxy.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    Requests,
    Answers,
}

/// Counts one way of one connection; what it holds leaves the count with it.
pub(super) struct Count<'a> {
    traffic: &'a watch::Sender<Traffic>,
    direction: Direction,
    held: u64,
}

impl<'a> Count<'a> {
    pub(super) fn new(traffic: &'a watch::Sender<Traffic>, direction: Direction) -> Self {
        Self {
            traffic,
            direction,
            held: 0,
        }
    }

    /// So many bytes have come.
    pub(super) fn seen(&self, bytes: usize) {
        self.traffic.send_modify(|traffic| match self.direction {
            Direction::Requests => traffic.requests_seen += bytes as u64,
            Direction::Answers => traffic.answers_seen += bytes as u64,
        });
    }

    /// So many bytes are held now.
    pub(super) fn held(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.held, bytes as u64);
        if before != self.held {
            self.traffic.send_modify(|traffic| {
                let sum = match self.direction {
                    Direction::Requests => &mut traffic.requests_held,
                    Direction::Answers => &mut traffic.answers_held,
                };
                *sum = *sum + self.held - before;
            });
        }
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.held(0);
    }
}
