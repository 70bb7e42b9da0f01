//! The file in the data folder that says where the server listens, so that commands on the same machine find it by themselves.

use crate::data_folder::SafeFile;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

const FILE: &str = "address";

/// A way to it from this machine.
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

/// The address while it is true: dropping it takes it away.
pub(crate) struct AddressFile {
    file: SafeFile,
    line: String,
}

impl AddressFile {
    /// Says it. A folder that cannot be written to is no reason not to serve: then commands need `--server`.
    pub(crate) fn write(folder: &Path, url: &str) -> Option<Self> {
        let file = SafeFile::new(folder, FILE);
        let line = format!("{url}\n");
        let written = file.write_draft(&line).and_then(|()| file.keep_draft());
        match written {
            Ok(()) => Some(Self { file, line }),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(
                    error,
                    "commands on this machine need --server to find this server"
                );
                None
            }
        }
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // Another server with the same folder may have put its own there.
        let ours = self
            .file
            .read()
            .is_ok_and(|line| line.as_ref() == Some(&self.line));
        if ours && let Err(error) = std::fs::remove_file(self.file.path()) {
            tracing::warn!(%error, file = %self.file.path().display(), "the address cannot be taken away");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_address_is_there_until_its_server_ends_and_another_s_stays() {
        let folder = leasehold_testkit::temp_dir();
        let file = folder.path().join(FILE);
        let first = AddressFile::write(folder.path(), "http://127.0.0.1:1").unwrap();
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "http://127.0.0.1:1\n"
        );
        let second = AddressFile::write(folder.path(), "http://127.0.0.1:2").unwrap();
        drop(first);
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "http://127.0.0.1:2\n"
        );
        drop(second);
        assert!(!file.exists());
    }

    #[test]
    fn an_address_that_means_everywhere_is_reached_on_this_machine() {
        for (address, tls, expected) in [
            ("0.0.0.0:80", false, "http://127.0.0.1:80"),
            ("[::]:80", true, "https://[::1]:80"),
            ("192.0.2.1:80", false, "http://192.0.2.1:80"),
        ] {
            assert_eq!(url(address.parse().unwrap(), tls), expected);
        }
    }
}
