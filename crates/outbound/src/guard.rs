//! Decides which addresses may be connected to: for names in the DNS resolver, for literal addresses before each request.

use crate::public::is_public;
use crate::target_rule::TargetRule;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::Semaphore;

/// Why a target is blocked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum BlockedTarget {
    #[error("call to `{0}` blocked: not a public address, and not in http_nodes.allow")]
    Address(IpAddr),
    #[error(
        "call to `{0}` blocked: it resolves to no public address, and is not in http_nodes.allow"
    )]
    Name(String),
    #[error("call to `{0}` blocked: the address is in http_nodes.deny")]
    DeniedAddress(IpAddr),
    #[error(
        "call to `{0}` blocked: the name, or every address it resolves to, is in http_nodes.deny"
    )]
    DeniedName(String),
    #[error("unsupported URL scheme {0}: only http and https are allowed")]
    Scheme(String),
    #[error("the URL has no host")]
    NoHost,
}

/// A name table for tests.
#[cfg(test)]
type Names = Box<dyn Fn(&str) -> Vec<IpAddr> + Send + Sync>;

/// How names are resolved.
#[cfg_attr(not(test), allow(dead_code, reason = "tests use a fixed table"))]
pub(crate) enum DnsLookup {
    System,
    #[cfg(test)]
    Fixed(Names),
}

/// Maximum number of concurrent DNS lookups. Each blocks a thread until the system answers, even if its caller is gone.
const MAX_CONCURRENT_LOOKUPS: usize = 32;

/// The SSRF guard. A deny rule blocks its targets, whatever else is true of them. Of the others, an address must be public (see `public.rs`)
/// or allowed by a rule.
pub(crate) struct AddressGuard {
    allow: Vec<TargetRule>,
    deny: Vec<TargetRule>,
    lookup: DnsLookup,
    lookups: Arc<Semaphore>,
}

impl AddressGuard {
    pub(crate) fn new(allow: Vec<TargetRule>, deny: Vec<TargetRule>, lookup: DnsLookup) -> Self {
        Self {
            allow,
            deny,
            lookup,
            lookups: Arc::new(Semaphore::new(MAX_CONCURRENT_LOOKUPS)),
        }
    }

    pub(crate) fn allowed(&self) -> &[TargetRule] {
        &self.allow
    }

    pub(crate) fn denied(&self) -> &[TargetRule] {
        &self.deny
    }

    /// Checks the scheme and a literal address of a URL. The resolver checks names.
    pub(crate) fn check(&self, url: &Url) -> Result<(), BlockedTarget> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BlockedTarget::Scheme(url.scheme().to_owned()));
        }
        let host = url.host_str().ok_or(BlockedTarget::NoHost)?;
        // The URL parser has normalized every form of an IPv4 address.
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        match literal.parse::<IpAddr>() {
            Ok(address) if self.is_denied(address) => Err(BlockedTarget::DeniedAddress(address)),
            Ok(address) if !self.is_allowed(address) => Err(BlockedTarget::Address(address)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        let allowed = |rule: &TargetRule| rule.matches_address(address);
        is_public(address) || self.allow.iter().any(allowed)
    }

    fn is_denied(&self, address: IpAddr) -> bool {
        let denied = |rule: &TargetRule| rule.matches_any_form(address);
        self.deny.iter().any(denied)
    }

    async fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        match &self.lookup {
            DnsLookup::System => {
                let permit = Arc::clone(&self.lookups).acquire_owned().await;
                let name = name.to_owned();
                let lookup = tokio::spawn(async move {
                    let found = tokio::net::lookup_host((name, 0)).await;
                    let found = found.map(|found| found.map(|address| address.ip()).collect());
                    drop(permit);
                    found
                });
                lookup.await.map_err(std::io::Error::other)?
            }
            #[cfg(test)]
            DnsLookup::Fixed(known) => Ok(known(name)),
        }
    }

    /// Resolves a name to the addresses that may be connected to.
    async fn resolve(
        &self,
        name: &str,
    ) -> Result<Vec<IpAddr>, Box<dyn std::error::Error + Send + Sync>> {
        if self.deny.iter().any(|rule| rule.matches_host(name)) {
            return Err(BlockedTarget::DeniedName(name.to_owned()).into());
        }
        let mut found = self.addresses(name).await?;
        let has_answer = !found.is_empty();
        found.retain(|address| !self.is_denied(*address));
        if has_answer && found.is_empty() {
            return Err(BlockedTarget::DeniedName(name.to_owned()).into());
        }
        if !self.allow.iter().any(|rule| rule.matches_host(name)) {
            found.retain(|address| self.is_allowed(*address));
        }
        if found.is_empty() {
            return Err(BlockedTarget::Name(name.to_owned()).into());
        }
        Ok(found)
    }
}

/// The guard as reqwest's DNS resolver. reqwest connects to the returned addresses without a second lookup, which prevents DNS rebinding.
pub(crate) struct GuardedResolver(pub(crate) Arc<AddressGuard>);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            let found = guard.resolve(name.as_str()).await?;
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_testkit::Fuzzer;

    /// A host that the C library would read as an address does not reach the resolver as a name.
    #[test]
    fn fuzzed_urls_with_an_address_are_checked() {
        let guard = AddressGuard::new(Vec::new(), Vec::new(), DnsLookup::System);
        let examples = [
            "http://127.0.0.1/",
            "https://[::ffff:10.0.0.1]:80/x",
            "http://0x7f.1/?a#b",
            "http://me:pw@2130706433/",
            "http://a.test/",
        ];
        let tokens = [
            "0x", "0177", ".", ":", "[", "]", "@", "%31", "::", "\\", "\u{3002}", "\u{ff11}", "#",
            "?", "/",
        ];
        Fuzzer::new(&examples).tokens(&tokens).run(|input| {
            let text = String::from_utf8_lossy(input);
            let url = Url::parse(&text).ok()?;
            guard.check(&url).ok()?;
            let host = url.host_str().unwrap_or_default();
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            if let Ok(address) = bare.parse::<IpAddr>() {
                assert!(is_public(address), "{url}");
                return Some(0);
            }
            let last = bare.strip_suffix('.').unwrap_or(bare).rsplit('.').next();
            let is_number = |label: &str| {
                let hex = label.strip_prefix("0x").or(label.strip_prefix("0X"));
                let digits = |digit: char| digit.is_ascii_digit();
                let hex_digits = |digit: char| digit.is_ascii_hexdigit();
                match hex {
                    Some(hex) => hex.chars().all(hex_digits),
                    None => !label.is_empty() && label.chars().all(digits),
                }
            };
            assert!(!last.is_some_and(is_number), "{url}");
            Some(bare.len().min(4))
        });
    }
}
