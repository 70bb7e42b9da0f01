//! What `leasehold serve` says to whoever started it: where it listens, where its data is, how to get in. Never a key.

use crate::address;
use crate::admin_key::AdminKey;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

/// The data folder that commands find by themselves.
const FOUND: &str = "leasehold-data";

/// What there is to say.
pub(crate) struct Greeting<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) tls: bool,
    pub(crate) store: &'a str,
    pub(crate) data: &'a Path,
    pub(crate) engine: &'a str,
    pub(crate) key: &'a AdminKey,
}

impl Greeting<'_> {
    /// The lines.
    pub(crate) fn text(&self) -> String {
        let url = self.url();
        let mut text = format!("Leasehold {}\n", env!("CARGO_PKG_VERSION"));
        let mut say = |what: &str, how: &str| {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "  {what:<8} {how}");
        };
        say("listens", &format!("{url}  (a page to try it: {url}/docs)"));
        say("store", self.store);
        say("data", &self.data.display().to_string());
        say("engine", self.engine);
        match self.key {
            AdminKey::Made(file) | AdminKey::Kept(file) => {
                let new = if matches!(self.key, AdminKey::Made(_)) {
                    "made now, "
                } else {
                    ""
                };
                say(
                    "key",
                    &format!("{new}for administrators, in {}", file.display()),
                );
                say("get in", &self.curl(file));
                let command = self.first_command();
                say("try", &format!("{command}  (in another terminal)"));
            }
            AdminKey::Stale(file) => {
                let file = file.display();
                say(
                    "key",
                    &format!(
                        "what is in {file} opens nothing; `leasehold admin-key` makes another"
                    ),
                );
            }
            AdminKey::Elsewhere => say(
                "key",
                "made before and not in this data folder; `leasehold admin-key` makes another",
            ),
        }
        if !self.tls && !self.address.ip().is_loopback() {
            say(
                "warning",
                "others can reach this address and read keys on the way: set server.tls_certificate_file and server.tls_key_file, or put a proxy with TLS before it",
            );
        }
        text
    }

    fn url(&self) -> String {
        address::url(self.address, self.tls)
    }

    /// A first command that works where the greeting is read.
    fn first_command(&self) -> String {
        let mut command = "leasehold workspace list".to_owned();
        if self.data != Path::new(FOUND) {
            // Writing to a text cannot fail.
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
        let key = AdminKey::Kept(PathBuf::from("data/admin.key"));
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
    fn only_an_address_that_others_can_reach_in_the_clear_is_warned_of() {
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
        // Commands would not find this data folder by themselves.
        let text = text("127.0.0.1:1", false);
        assert!(text.contains("workspace list --data-dir 'data'"), "{text}");
    }
}
