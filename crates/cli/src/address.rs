//! The address file in the data directory, for people and scripts. Commands do not trust it: they use the socket beside it.

use crate::data_dir::AtomicFile;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

const FILE: &str = "address";

/// The URL of the server as seen from this machine.
pub(crate) fn url(mut address: SocketAddr, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    format!("{scheme}://{address}")
}

/// The address file; dropping it removes the file.
pub(crate) struct AddressFile {
    file: AtomicFile,
    line: String,
}

impl AddressFile {
    /// Writes the file. A failure is only logged.
    pub(crate) fn write(dir: &Path, url: &str) -> Option<Self> {
        let file = AtomicFile::new(dir, FILE);
        let line = format!("{url}\n");
        let written = file.write_draft(&line).and_then(|()| file.commit_draft());
        match written {
            Ok(()) => Some(Self { file, line }),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(error, "failed to write the address file");
                None
            }
        }
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // Another server with the same directory may have replaced it.
        let unchanged = self
            .file
            .read()
            .is_ok_and(|line| line.as_ref() == Some(&self.line));
        if unchanged && let Err(error) = std::fs::remove_file(self.file.path()) {
            tracing::warn!(%error, file = %self.file.path().display(), "failed to remove the address file");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn address_file_lives_as_long_as_its_server() {
        let dir = leasehold_testkit::temp_dir();
        let file = dir.path().join(FILE);
        let first = AddressFile::write(dir.path(), "http://127.0.0.1:1").unwrap();
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "http://127.0.0.1:1\n"
        );
        let second = AddressFile::write(dir.path(), "http://127.0.0.1:2").unwrap();
        drop(first);
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "http://127.0.0.1:2\n"
        );
        drop(second);
        assert!(!file.exists());
    }

    #[test]
    fn unspecified_address_becomes_loopback() {
        for (address, tls, expected) in [
            ("0.0.0.0:80", false, "http://127.0.0.1:80"),
            ("[::]:80", true, "https://[::1]:80"),
            ("192.0.2.1:80", false, "http://192.0.2.1:80"),
        ] {
            assert_eq!(url(address.parse().unwrap(), tls), expected);
        }
    }
}
