//! Allow rules for non-public targets: an address, a network or a host name.

use crate::public::contains;
use std::net::IpAddr;
use std::str::FromStr;
use thiserror::Error;

/// A non-public target that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowRule(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Network {
        address: IpAddr,
        prefix: u8,
    },
    Host(String),
    /// Every subdomain of this domain.
    Subdomains(String),
}

/// The text is not an address, a network or a host name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "invalid allow rule `{0}`: must be an IP address, a network like 10.0.0.0/8, or a host name like api.internal or *.internal"
)]
pub struct InvalidAllowRule(pub String);

impl AllowRule {
    /// Whether the rule allows this address.
    pub(crate) fn allows_address(&self, address: IpAddr) -> bool {
        match &self.0 {
            Kind::Network {
                address: network,
                prefix,
            } => contains(*network, *prefix, address.to_canonical()),
            Kind::Host(_) | Kind::Subdomains(_) => false,
        }
    }

    /// Whether the rule allows this host name, whatever it resolves to.
    pub(crate) fn allows_host(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        match &self.0 {
            Kind::Network { .. } => false,
            Kind::Host(host) => *host == name,
            Kind::Subdomains(domain) => name
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
        }
    }
}

impl FromStr for AllowRule {
    type Err = InvalidAllowRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidAllowRule(text.to_owned());
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
            Some(domain) if is_name(domain) => Ok(Self(Kind::Subdomains(domain.to_owned()))),
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
    // A name whose last label starts with a digit is an IPv4 address in an unusual form.
    let last_is_number = |text: &str| {
        let last = text.rsplit('.').next().unwrap_or_default();
        last.starts_with(|first: char| first.is_ascii_digit())
    };
    text.len() <= 253 && text.split('.').all(label) && !last_is_number(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str) -> AllowRule {
        text.parse().unwrap()
    }

    #[test]
    fn networks_and_addresses_allow_contained_addresses() {
        let address = |text: &str| text.parse().unwrap();
        assert!(allow("10.1.0.0/16").allows_address(address("10.1.255.255")));
        assert!(!allow("10.1.0.0/16").allows_address(address("10.2.0.0")));
        assert!(allow("127.0.0.1").allows_address(address("::ffff:127.0.0.1")));
        assert!(allow("0.0.0.0/0").allows_address(address("127.0.0.1")));
        assert!(!allow("0.0.0.0/0").allows_address(address("::1")));
        assert!(allow("fd00::/8").allows_address(address("fd12::1")));
        assert!(!allow("127.0.0.1").allows_host("127.0.0.1"));
    }

    #[test]
    fn names_allow_themselves_or_their_subdomains() {
        assert!(allow("API.internal").allows_host("api.internal."));
        assert!(!allow("api.internal").allows_host("x.api.internal"));
        assert!(allow("*.internal").allows_host("x.y.internal"));
        assert!(!allow("*.internal").allows_host("internal"));
        assert!(!allow("*.internal").allows_host("evilinternal"));
        assert!(!allow("api.internal").allows_address("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn invalid_rules_are_rejected() {
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
            assert!(text.parse::<AllowRule>().is_err(), "{text}");
        }
    }
}
