//! Decides which addresses may be connected to: for names in the DNS resolver, for literal addresses before each request.

use crate::allow::AllowRule;
use crate::public::is_public;
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

/// The SSRF guard: blocks every address that is neither public (see `public.rs`) nor allowed by a rule.
pub(crate) struct AddressGuard {
    allow: Vec<AllowRule>,
    lookup: DnsLookup,
    lookups: Arc<Semaphore>,
}

impl AddressGuard {
    pub(crate) fn new(allow: Vec<AllowRule>, lookup: DnsLookup) -> Self {
        Self {
            allow,
            lookup,
            lookups: Arc::new(Semaphore::new(MAX_CONCURRENT_LOOKUPS)),
        }
    }

    pub(crate) fn allowed(&self) -> &[AllowRule] {
        &self.allow
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
            Ok(address) if !self.is_allowed(address) => Err(BlockedTarget::Address(address)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        is_public(address) || self.allow.iter().any(|rule| rule.allows_address(address))
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
        let mut found = self.addresses(name).await?;
        if !self.allow.iter().any(|rule| rule.allows_host(name)) {
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
