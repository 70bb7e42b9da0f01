//! Counters of the proxy's bytes and connections. Sees no bytes.

use tokio::sync::watch;

/// Bytes and connections of a proxy at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that clients have sent, forwarded or not.
    pub request_bytes: u64,
    /// Bytes from clients that are held.
    pub request_bytes_held: u64,
    /// Bytes that the server has sent, forwarded or not.
    pub response_bytes: u64,
    /// Bytes from the server that are held.
    pub response_bytes_held: u64,
    /// Connections that clients have opened, closed ones included.
    pub connections: u64,
}

/// The two directions through the proxy.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    Requests,
    Responses,
}

/// Counts one direction of one connection. Dropping it subtracts its held bytes.
pub(super) struct Counter<'a> {
    traffic: &'a watch::Sender<Traffic>,
    direction: Direction,
    held: u64,
}

impl<'a> Counter<'a> {
    pub(super) fn new(traffic: &'a watch::Sender<Traffic>, direction: Direction) -> Self {
        Self {
            traffic,
            direction,
            held: 0,
        }
    }

    /// Adds received bytes.
    pub(super) fn received(&self, bytes: usize) {
        self.traffic.send_modify(|traffic| match self.direction {
            Direction::Requests => traffic.request_bytes += bytes as u64,
            Direction::Responses => traffic.response_bytes += bytes as u64,
        });
    }

    /// Sets the number of held bytes.
    pub(super) fn set_held(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.held, bytes as u64);
        if before != self.held {
            self.traffic.send_modify(|traffic| {
                let sum = match self.direction {
                    Direction::Requests => &mut traffic.request_bytes_held,
                    Direction::Responses => &mut traffic.response_bytes_held,
                };
                *sum = *sum + self.held - before;
            });
        }
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        self.set_held(0);
    }
}
