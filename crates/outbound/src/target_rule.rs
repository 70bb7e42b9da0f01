//! Rules that name targets of calls: an address, a network or a host name.

use crate::public::{contains, embedded_v4};
use std::net::IpAddr;
use std::str::FromStr;
use thiserror::Error;

/// Targets that the settings allow or deny.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRule(Kind);

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
    "invalid rule `{0}`: must be an IP address, a network like 10.0.0.0/8, or a host name like api.internal or *.internal"
)]
pub struct InvalidTargetRule(pub String);

impl TargetRule {
    /// Whether the rule names this address. An IPv4-mapped address counts as its IPv4 address.
    pub(crate) fn matches_address(&self, address: IpAddr) -> bool {
        match &self.0 {
            Kind::Network {
                address: network,
                prefix,
            } => contains(*network, *prefix, address.to_canonical()),
            Kind::Host(_) | Kind::Subdomains(_) => false,
        }
    }

    /// Whether the rule names this address, or the IPv4 address that it embeds in any form.
    pub(crate) fn matches_any_form(&self, address: IpAddr) -> bool {
        let embedded = match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => embedded_v4(address).map(IpAddr::V4),
        };
        self.matches_address(address)
            || embedded.is_some_and(|embedded| self.matches_address(embedded))
    }

    /// Whether the rule names this host, whatever it resolves to.
    pub(crate) fn matches_host(&self, name: &str) -> bool {
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

impl FromStr for TargetRule {
    type Err = InvalidTargetRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidTargetRule(text.to_owned());
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

    fn rule(text: &str) -> TargetRule {
        text.parse().unwrap()
    }

    #[test]
    fn networks_and_addresses_match_contained_addresses() {
        let address = |text: &str| text.parse().unwrap();
        assert!(rule("10.1.0.0/16").matches_address(address("10.1.255.255")));
        assert!(!rule("10.1.0.0/16").matches_address(address("10.2.0.0")));
        assert!(rule("127.0.0.1").matches_address(address("::ffff:127.0.0.1")));
        assert!(rule("0.0.0.0/0").matches_address(address("127.0.0.1")));
        assert!(!rule("0.0.0.0/0").matches_address(address("::1")));
        assert!(rule("fd00::/8").matches_address(address("fd12::1")));
        assert!(!rule("127.0.0.1").matches_host("127.0.0.1"));
    }

    #[test]
    fn embedded_addresses_match_in_any_form() {
        let network = rule("198.41.0.0/16");
        for text in [
            "198.41.0.4",
            "::ffff:198.41.0.4",
            "64:ff9b::198.41.0.4",
            "2002:c629:4::1",
            "2001:470:1:2:0:5efe:198.41.0.4",
            "2001:470:1:2:200:5efe:198.41.0.4",
        ] {
            assert!(network.matches_any_form(text.parse().unwrap()), "{text}");
        }
        assert!(!network.matches_any_form("64:ff9b::198.42.0.4".parse().unwrap()));
        assert!(!network.matches_address("64:ff9b::198.41.0.4".parse().unwrap()));
    }

    #[test]
    fn names_match_themselves_or_their_subdomains() {
        assert!(rule("API.internal").matches_host("api.internal."));
        assert!(!rule("api.internal").matches_host("x.api.internal"));
        assert!(rule("*.internal").matches_host("x.y.internal"));
        assert!(!rule("*.internal").matches_host("internal"));
        assert!(!rule("*.internal").matches_host("evilinternal"));
        assert!(!rule("api.internal").matches_address("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn fuzzed_rules_are_rejected_or_match_themselves() {
        let examples = ["10.1.0.0/16", "fd00::/8", "api.internal", "*.internal"];
        let tokens = [".", "/", ":", "*.", "0x7f", "::ffff:", "255", "-", "_", "%"];
        leasehold_testkit::Fuzzer::new(&examples)
            .tokens(&tokens)
            .run(|input| {
                let text = String::from_utf8_lossy(input);
                match &rule_of(&text)?.0 {
                    Kind::Network { address, .. } => {
                        let itself = rule_of(&text)?.matches_address(*address);
                        assert!(itself || address.to_canonical() != *address, "{text}");
                        Some(0)
                    }
                    Kind::Host(name) => {
                        assert!(rule_of(&text)?.matches_host(name), "{text}");
                        assert!(name.parse::<IpAddr>().is_err(), "{text}");
                        Some(1)
                    }
                    Kind::Subdomains(domain) => {
                        let rule = rule_of(&text)?;
                        assert!(rule.matches_host(&format!("a.{domain}")), "{text}");
                        assert!(!rule.matches_host(domain), "{text}");
                        Some(2)
                    }
                }
            });
    }

    fn rule_of(text: &str) -> Option<TargetRule> {
        text.parse().ok()
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
            assert!(text.parse::<TargetRule>().is_err(), "{text}");
        }
    }
}
