//! The greeting of `leasehold serve`: address, data directory, key file and first commands. Never prints a key.

use crate::address;
use crate::admin_key::AdminKey;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

/// The data directory that commands find without a flag.
const DEFAULT_DATA_DIR: &str = "leasehold-data";

/// The contents of the greeting.
pub(crate) struct Greeting<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) tls: bool,
    pub(crate) store: &'a str,
    pub(crate) data: &'a Path,
    pub(crate) engine: &'a str,
    pub(crate) key: &'a AdminKey,
}

impl Greeting<'_> {
    /// Renders the lines.
    pub(crate) fn text(&self) -> String {
        let url = self.url();
        let mut text = format!("Leasehold {}\n", env!("CARGO_PKG_VERSION"));
        let mut add = |what: &str, how: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {what:<8} {how}");
        };
        add("listens", &format!("{url}  (API console: {url}/docs)"));
        add("store", self.store);
        add("data", &self.data.display().to_string());
        add("engine", self.engine);
        match self.key {
            AdminKey::Created(file) | AdminKey::Existing(file) => {
                let state = if matches!(self.key, AdminKey::Created(_)) {
                    "created"
                } else {
                    "existing"
                };
                add(
                    "key",
                    &format!("{state} (administrator): {}", file.display()),
                );
                add("try it", &self.curl(file));
                let command = self.first_command();
                add("command", &format!("{command}  (in another terminal)"));
            }
            AdminKey::Invalid(file) => {
                let file = file.display();
                add(
                    "key",
                    &format!("invalid key in {file}; create a new one with `leasehold admin-key`"),
                );
            }
            AdminKey::Missing => add(
                "key",
                "not in this data directory; create a new one with `leasehold admin-key`",
            ),
        }
        if !self.tls && !self.address.ip().is_loopback() {
            add(
                "warning",
                "other machines can reach this address, and API keys travel without TLS: set server.tls_certificate_file and server.tls_key_file, or use a TLS proxy",
            );
        }
        text
    }

    fn url(&self) -> String {
        address::url(self.address, self.tls)
    }

    /// A first command that works in the current directory.
    fn first_command(&self) -> String {
        let mut command = "leasehold workspace list".to_owned();
        if self.data != Path::new(DEFAULT_DATA_DIR) {
            // Writing to a string cannot fail.
            let _ = write!(command, " --data-dir '{}'", self.data.display());
        }
        command
    }

    fn curl(&self, file: &Path) -> String {
        let (url, file) = (self.url(), file.display());
        format!("curl -H \"Authorization: Bearer $(cat '{file}')\" {url}/v1/me")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn text(address: &str, tls: bool) -> String {
        let key = AdminKey::Existing(PathBuf::from("data/admin.key"));
        let greeting = Greeting {
            address: address.parse().unwrap_or_else(|_| panic!("{address}")),
            tls,
            store: "sqlite:data/leasehold.db",
            data: Path::new("data"),
            engine: "embedded",
            key: &key,
        };
        greeting.text()
    }

    #[test]
    fn warns_about_non_loopback_addresses_without_tls() {
        for (address, tls, warned) in [
            ("127.0.0.1:1", false, false),
            ("[::1]:1", false, false),
            ("0.0.0.0:1", false, true),
            ("192.0.2.1:1", false, true),
            ("0.0.0.0:1", true, false),
        ] {
            let text = text(address, tls);
            assert_eq!(text.contains("warning"), warned, "{text}");
        }
        assert!(text("0.0.0.0:1", true).contains("https://127.0.0.1:1/v1/me"));
        // Commands do not find this data directory without the flag.
        let text = text("127.0.0.1:1", false);
        assert!(text.contains("workspace list --data-dir 'data'"), "{text}");
    }
}
