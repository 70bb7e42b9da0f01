//! Notifies systemd through `NOTIFY_SOCKET` that the process is ready or stopping. Does nothing if the variable is not set.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

const VARIABLE: &str = "NOTIFY_SOCKET";

/// Reports that the server is ready.
pub(crate) fn ready() {
    send_state("READY=1\n");
}

/// Reports that the server is stopping.
pub(crate) fn stopping() {
    send_state("STOPPING=1\n");
}

fn send_state(state: &str) {
    let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&name, state) {
        tracing::warn!(%error, "failed to notify systemd ({VARIABLE})");
    }
}

fn send(name: &OsStr, state: &str) -> io::Result<()> {
    let bytes = name.as_bytes();
    let address = match bytes.strip_prefix(b"@") {
        // An abstract socket name.
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
    fn notifies_file_and_abstract_sockets() {
        let dir = leasehold_testkit::temp_dir();
        let file = dir.path().join("notify");
        let abstract_name = format!("leasehold-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        for (name, socket) in [
            (file.clone().into_os_string(), UnixDatagram::bind(&file)),
            (
                format!("@{abstract_name}").into(),
                UnixDatagram::bind_addr(&address),
            ),
        ] {
            let socket = socket.unwrap();
            send(&name, "READY=1\n").unwrap();
            let mut received = [0; 64];
            let length = socket.recv(&mut received).unwrap();
            assert_eq!(&received[..length], b"READY=1\n");
        }
        assert!(send(OsStr::new("/nowhere/at/all"), "READY=1\n").is_err());
    }
}
