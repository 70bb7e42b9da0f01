//! What the system that started the process is told: that it is ready, that it stops (`NOTIFY_SOCKET`, as systemd has it). Silence if nobody asks.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

const VARIABLE: &str = "NOTIFY_SOCKET";

/// It listens and works.
pub(crate) fn ready() {
    tell("READY=1\n");
}

/// It was told to stop, and is about to.
pub(crate) fn stopping() {
    tell("STOPPING=1\n");
}

fn tell(state: &str) {
    let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&name, state) {
        tracing::warn!(%error, "the system cannot be told how it goes ({VARIABLE})");
    }
}

fn send(name: &OsStr, state: &str) -> io::Result<()> {
    let bytes = name.as_bytes();
    let address = match bytes.strip_prefix(b"@") {
        // A name that is no file.
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(OsStr::from_bytes(bytes))?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(state.as_bytes(), &address)
        .map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_socket_that_is_a_file_and_one_that_is_not_hear_it() {
        let folder = leasehold_testkit::temp_dir();
        let file = folder.path().join("notify");
        let hidden = format!("leasehold-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&hidden).unwrap();
        for (name, socket) in [
            (file.clone().into_os_string(), UnixDatagram::bind(&file)),
            (
                format!("@{hidden}").into(),
                UnixDatagram::bind_addr(&address),
            ),
        ] {
            let socket = socket.unwrap();
            send(&name, "READY=1\n").unwrap();
            let mut heard = [0; 64];
            let length = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], b"READY=1\n");
        }
        assert!(send(OsStr::new("/nowhere/at/all"), "READY=1\n").is_err());
    }
}
