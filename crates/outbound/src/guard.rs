//! What may be dialled: the one place that decides it, asked by the resolver for names and before each hop for addresses.

use crate::allow::Allow;
use crate::public::is_public;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::Semaphore;

/// Why something is not dialled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refused {
    #[error(
        "`{0}` is not called: it is not a public address, and http_nodes.allow does not name it"
    )]
    Address(IpAddr),
    #[error(
        "`{0}` is not called: it leads to no public address, and http_nodes.allow does not name it"
    )]
    Name(String),
    #[error("only http and https are called, not {0}")]
    Scheme(String),
    #[error("the URL names no host")]
    NoHost,
}

/// Names and where they lead, of a test's own making.
#[cfg(test)]
type Names = Box<dyn Fn(&str) -> Vec<IpAddr> + Send + Sync>;

/// Looks names up.
#[cfg_attr(not(test), allow(dead_code, reason = "tests bring names of their own"))]
pub(crate) enum Lookup {
    System,
    #[cfg(test)]
    Fixed(Names),
}

/// Names looked up at once. Each takes a thread until the system answers, however long ago whoever asked has gone.
const LOOKUPS: usize = 32;

pub(crate) struct Guard {
    allow: Vec<Allow>,
    lookup: Lookup,
    lookups: Arc<Semaphore>,
}

impl Guard {
    pub(crate) fn new(allow: Vec<Allow>, lookup: Lookup) -> Self {
        Self {
            allow,
            lookup,
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        }
    }

    pub(crate) fn allowed(&self) -> &[Allow] {
        &self.allow
    }

    /// Whether a URL may be called as far as can be seen without looking its name up.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme(url.scheme().to_owned()));
        }
        let host = url.host_str().ok_or(Refused::NoHost)?;
        // Of an address in any of its forms the URL has made a plain one.
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        match literal.parse::<IpAddr>() {
            Ok(address) if !self.may_dial(address) => Err(Refused::Address(address)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn may_dial(&self, address: IpAddr) -> bool {
        is_public(address) || self.allow.iter().any(|allow| allow.address(address))
    }

    async fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        match &self.lookup {
            Lookup::System => {
                let turn = Arc::clone(&self.lookups).acquire_owned().await;
                let name = name.to_owned();
                let looking = tokio::spawn(async move {
                    let found = tokio::net::lookup_host((name, 0)).await;
                    let found = found.map(|found| found.map(|address| address.ip()).collect());
                    drop(turn);
                    found
                });
                looking.await.map_err(std::io::Error::other)?
            }
            #[cfg(test)]
            Lookup::Fixed(known) => Ok(known(name)),
        }
    }

    /// Where a name leads, as far as that may be dialled.
    async fn dialled(
        &self,
        name: &str,
    ) -> Result<Vec<IpAddr>, Box<dyn std::error::Error + Send + Sync>> {
        let mut found = self.addresses(name).await?;
        if !self.allow.iter().any(|allow| allow.host(name)) {
            found.retain(|address| self.may_dial(*address));
        }
        if found.is_empty() {
            return Err(Refused::Name(name.to_owned()).into());
        }
        Ok(found)
    }
}

/// The guard as reqwest asks it: what it answers is what is dialled, so a name cannot lead elsewhere a moment later.
pub(crate) struct Resolver(pub(crate) Arc<Guard>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            let found = guard.dialled(name.as_str()).await?;
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}
