//! Free loopback ports. Knows nothing of who listens on them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Below the ports that systems hand out to outgoing connections, so that a server can stop and have its port back.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

/// A port that nobody listens on now; somebody else may take it before it is used.
pub(crate) fn free_port() -> io::Result<u16> {
    let offset = RandomState::new().build_hasher().finish() % u64::from(PORTS);
    (0..PORTS)
        .map(|step| FIRST_PORT + (u16::try_from(offset).unwrap_or(0) + step) % PORTS)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| io::Error::other("no free loopback port"))
}
