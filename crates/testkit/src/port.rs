//! Finds free loopback ports. Binds none.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Below the ephemeral port range, so that a server can stop and bind its port again.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

/// Returns a port that is free now; another process may bind it before the caller does.
pub(crate) fn free_port() -> io::Result<u16> {
    let offset = RandomState::new().build_hasher().finish() % u64::from(PORTS);
    (0..PORTS)
        .map(|step| FIRST_PORT + (u16::try_from(offset).unwrap_or(0) + step) % PORTS)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| io::Error::other("no free loopback port"))
}
