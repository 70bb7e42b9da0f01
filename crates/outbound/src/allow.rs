//! An exception to the rule that only public addresses are called: an address, a network or a host's name.

use crate::public::contains;
use std::net::IpAddr;
use std::str::FromStr;
use thiserror::Error;

/// What may be called although it is not public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Network {
        address: IpAddr,
        prefix: u8,
    },
    Host(String),
    /// Every name that ends so, with a dot before it.
    Under(String),
}

/// A text that names neither an address, nor a network, nor a host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no address, no network like 10.0.0.0/8, and no host's name like api.internal or *.internal"
)]
pub struct InvalidAllow(pub String);

impl Allow {
    /// Whether it names this address.
    pub(crate) fn address(&self, address: IpAddr) -> bool {
        match &self.0 {
            Kind::Network {
                address: network,
                prefix,
            } => contains(*network, *prefix, address.to_canonical()),
            Kind::Host(_) | Kind::Under(_) => false,
        }
    }

    /// Whether it names this host, wherever its name leads.
    pub(crate) fn host(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        match &self.0 {
            Kind::Network { .. } => false,
            Kind::Host(host) => *host == name,
            Kind::Under(domain) => name
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
        }
    }
}

impl FromStr for Allow {
    type Err = InvalidAllow;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidAllow(text.to_owned());
        if let Some((address, prefix)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| invalid())?;
            let longest = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= longest);
            let prefix = prefix.ok_or_else(invalid)?;
            return Ok(Self(Kind::Network { address, prefix }));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            let prefix = if address.is_ipv4() { 32 } else { 128 };
            return Ok(Self(Kind::Network { address, prefix }));
        }
        let name = text.to_ascii_lowercase();
        match name.strip_prefix("*.") {
            Some(domain) if is_name(domain) => Ok(Self(Kind::Under(domain.to_owned()))),
            None if is_name(&name) => Ok(Self(Kind::Host(name))),
            _ => Err(invalid()),
        }
    }
}

fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // A last label of digits is an address in a strange form.
    let last_is_number = |text: &str| {
        let last = text.rsplit('.').next().unwrap_or_default();
        last.starts_with(|first: char| first.is_ascii_digit())
    };
    text.len() <= 253 && text.split('.').all(label) && !last_is_number(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str) -> Allow {
        text.parse().unwrap()
    }

    #[test]
    fn networks_and_addresses_allow_what_lies_in_them() {
        let address = |text: &str| text.parse().unwrap();
        assert!(allow("10.1.0.0/16").address(address("10.1.255.255")));
        assert!(!allow("10.1.0.0/16").address(address("10.2.0.0")));
        assert!(allow("127.0.0.1").address(address("::ffff:127.0.0.1")));
        assert!(allow("0.0.0.0/0").address(address("127.0.0.1")));
        assert!(!allow("0.0.0.0/0").address(address("::1")));
        assert!(allow("fd00::/8").address(address("fd12::1")));
        assert!(!allow("127.0.0.1").host("127.0.0.1"));
    }

    #[test]
    fn names_allow_themselves_or_what_is_under_them() {
        assert!(allow("API.internal").host("api.internal."));
        assert!(!allow("api.internal").host("x.api.internal"));
        assert!(allow("*.internal").host("x.y.internal"));
        assert!(!allow("*.internal").host("internal"));
        assert!(!allow("*.internal").host("evilinternal"));
        assert!(!allow("api.internal").address("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in [
            "",
            "*",
            "*.*.a",
            "a..b",
            "10.0.0.0/33",
            "fd00::/129",
            "10.0.0/8",
            "http://a",
            "a b",
            "a:80",
            "127.1",
            "0x7f.1",
        ] {
            assert!(text.parse::<Allow>().is_err(), "{text}");
        }
    }
}
