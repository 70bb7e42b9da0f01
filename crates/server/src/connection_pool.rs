//! The open TCP connections, counted by the network of their peer. The core decides who gets the next one. Knows no protocol.

use leasehold_core::fair_pool::FairPool;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The network that a connection counts for: an IPv4 address, or the /64 of an IPv6 address, which one host can use as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PeerNetwork(IpAddr);

impl From<IpAddr> for PeerNetwork {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }
}

/// A pool of connections that peers share fairly.
pub(crate) struct ConnectionPool(Mutex<FairPool<PeerNetwork>>);

/// An open connection of a [`ConnectionPool`], released on drop.
pub(crate) struct ConnectionPermit {
    pool: Arc<ConnectionPool>,
    peer: PeerNetwork,
}

impl ConnectionPool {
    /// Creates a pool of `max` connections.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(FairPool::new(max))))
    }

    /// Counts a connection of this peer; `None` if the pool has no room for it.
    pub(crate) fn try_acquire(self: &Arc<Self>, peer: PeerNetwork) -> Option<ConnectionPermit> {
        self.lock().acquire(peer).then(|| ConnectionPermit {
            pool: Arc::clone(self),
            peer,
        })
    }

    fn lock(&self) -> MutexGuard<'_, FairPool<PeerNetwork>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.pool.lock().release(self.peer);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn peer(address: &str) -> PeerNetwork {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn one_network_uses_three_quarters_at_most() {
        let pool = ConnectionPool::new(8);
        let open = |address: &str| pool.try_acquire(peer(address));
        let mut held: Vec<_> = (0..6).map(|_| open("192.0.2.1").unwrap()).collect();
        assert!(open("192.0.2.1").is_none());
        held.extend(["192.0.2.2", "2001:db8::1"].map(|address| open(address).unwrap()));
        assert!(open("192.0.2.3").is_none());
        held.clear();
        assert!(open("192.0.2.1").is_some());
    }

    #[test]
    fn addresses_of_one_ipv6_network_and_mapped_addresses_count_together() {
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
    }
}
