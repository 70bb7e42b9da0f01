//! Checks that a request names its host once, as HTTP requires: proxies choose a server by it. Knows no route.

use crate::api_error::ApiError;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{Request, Version};

/// Rejects a request that names no host, several, or an invalid one. HTTP/1.0 requests need not name one.
pub(crate) fn check<B>(request: &Request<B>) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(invalid("the request has more than one Host header"));
    }
    // In HTTP/1 the authority is that of an absolute URL.
    let authority = match request.version() {
        Version::HTTP_2 => request.uri().authority().map(Authority::as_str),
        _ => None,
    };
    match (host.map(|host| host.as_bytes()), authority) {
        (None, Some(_)) => Ok(()),
        (None, None) if request.version() <= Version::HTTP_10 => Ok(()),
        (None, None) => Err(invalid("the request has no Host header")),
        (Some(host), _) if !is_valid(host) => Err(invalid("the Host header is invalid")),
        (Some(host), Some(authority)) if !host.eq_ignore_ascii_case(authority.as_bytes()) => Err(
            invalid("the Host header differs from the :authority of the request"),
        ),
        (Some(_), _) => Ok(()),
    }
}

/// Whether the value is empty, as for a target without a host, or a host with an optional port.
fn is_valid(host: &[u8]) -> bool {
    host.is_empty() || (!host.contains(&b'@') && Authority::try_from(host).is_ok())
}

fn invalid(detail: &str) -> ApiError {
    ApiError::parameter("host", detail)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn request(version: Version, uri: &str, hosts: &[&str]) -> Request<()> {
        let mut request = Request::builder().version(version).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn request_must_name_one_valid_host() {
        let (one, two) = (Version::HTTP_11, Version::HTTP_2);
        for (version, uri, hosts, valid) in [
            (one, "/", &["a"][..], true),
            (one, "/", &["a_b:7777"], true),
            (one, "/", &["[::1]:7777"], true),
            (one, "/", &["1.2.3.4"], true),
            (one, "/", &[""], true),
            (one, "/", &[], false),
            (one, "http://a/", &[], false),
            (one, "/", &["a", "a"], false),
            (one, "/", &["me@a"], false),
            (one, "/", &["a b"], false),
            (one, "/", &["a/b"], false),
            (one, "/", &["a:b:c"], false),
            (Version::HTTP_10, "/", &[], true),
            (Version::HTTP_10, "/", &["a", "b"], false),
            (two, "http://a/", &[], true),
            (two, "http://a/", &["A"], true),
            (two, "http://a/", &["b"], false),
            (two, "/", &["a"], true),
            (two, "/", &[], false),
        ] {
            let checked = check(&request(version, uri, hosts));
            assert_eq!(checked.is_ok(), valid, "{version:?} {uri} {hosts:?}");
        }
    }
}
