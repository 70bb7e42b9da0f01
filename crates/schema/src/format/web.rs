//! URIs (RFC 3986) and IRIs (RFC 3987), absolute or relative.

use super::template::has_valid_percents;
use crate::uri::{Parts, split};
use std::net::Ipv6Addr;

pub(super) fn is_uri(text: &str) -> bool {
    text.is_ascii() && is_iri(text)
}

pub(super) fn is_uri_reference(text: &str) -> bool {
    text.is_ascii() && is_iri_reference(text)
}

pub(super) fn is_iri(text: &str) -> bool {
    let parts = split(text);
    parts.scheme.is_some() && is_reference(&parts)
}

pub(super) fn is_iri_reference(text: &str) -> bool {
    let parts = split(text);
    // Without a scheme, a colon in the first segment would end one.
    let first = parts.path.split('/').next().unwrap_or_default();
    let is_ambiguous = parts.scheme.is_none() && parts.authority.is_none() && first.contains(':');
    !is_ambiguous && is_reference(&parts)
}

fn is_reference(parts: &Parts<'_>) -> bool {
    let mut tail = [parts.query, parts.fragment].into_iter().flatten();
    parts.authority.is_none_or(is_authority)
        && has_only(parts.path, ":@/")
        && tail.all(|text| has_only(&without_private(text), ":@/?"))
}

/// Unreserved characters, sub-delimiters, escapes, non-ASCII characters that an IRI may have, and `more`.
fn has_only(text: &str, more: &str) -> bool {
    let is_allowed = |c: char| {
        c.is_ascii_alphanumeric()
            || "-._~!$&'()*+,;=%".contains(c)
            || more.contains(c)
            || is_ucschar(c)
    };
    text.chars().all(is_allowed) && has_valid_percents(text)
}

/// Characters beyond ASCII that an IRI may have: no controls, private use, specials or non-characters.
fn is_ucschar(c: char) -> bool {
    match u32::from(c) {
        0xa0..=0xd7ff | 0xf900..=0xfdcf | 0xfdf0..=0xffef => true,
        code @ 0x10000..=0xeffff => code & 0xffff < 0xfffe && !(0xe0000..0xe1000).contains(&code),
        _ => false,
    }
}

/// Queries and fragments may have characters of private use.
fn without_private(text: &str) -> String {
    let is_private = |c: char| matches!(u32::from(c), 0xe000..=0xf8ff | 0xf0000..=0xffffd | 0x10_0000..=0x10_fffd);
    text.chars().filter(|c| !is_private(*c)).collect()
}

/// User information, a host and a port.
fn is_authority(text: &str) -> bool {
    let (user, host) = match text.split_once('@') {
        Some((user, host)) => (user, host),
        None => ("", text),
    };
    has_only(user, ":") && is_host_and_port(host)
}

fn is_host_and_port(text: &str) -> bool {
    let (host_is_valid, port) = match text.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((address, port)) => (is_ip_literal(address), port),
            None => return false,
        },
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (has_only(&text[..end], ""), &text[end..])
        }
    };
    let port_is_valid = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()),
        None => port.is_empty(),
    };
    host_is_valid && port_is_valid
}

/// An IPv6 address, or `v`, a version, `.` and an address of that version.
fn is_ip_literal(text: &str) -> bool {
    let Some(future) = text.strip_prefix(['v', 'V']) else {
        return text.parse::<Ipv6Addr>().is_ok();
    };
    future.split_once('.').is_some_and(|(version, address)| {
        !version.is_empty()
            && version.bytes().all(|b| b.is_ascii_hexdigit())
            && !address.is_empty()
            && !address.contains('%')
            && address.is_ascii()
            && has_only(address, ":")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_a_scheme_and_valid_characters() {
        for text in [
            "http://foo.bar/?baz=qux#quux",
            "http://foo.com/blah_(wikipedia)_blah#cite-1",
            "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com",
            "ldap://[2001:db8::7]/c=GB",
            "mailto:John.Doe@example.com",
            "urn:oasis:names:x:1.2",
            "tel:+1-816-555-1212",
            "http://[v1.fe80::a+en1]:80/",
            "file:///a",
            "a:",
            "http://a:/",
        ] {
            assert!(is_uri(text), "{text}");
        }
        for text in [
            "//foo.bar/?baz=qux#quux",
            "/abc",
            "\\\\WINDOWS",
            "abc",
            "http:// shouldfail.com",
            ":// should fail",
            "bar,baz:foo",
            "https://[@example.org/test.txt",
            "https://example.org/foobar\\.txt",
            "https://example.org/foobar<>.txt",
            "http://a/%zz",
            "http://ƒøø.ßår/",
            "http://[::1",
            "http://a:x/",
            "http://a@b@c/",
            "http://[1.2.3.4]/",
            "http://a/^",
            "",
        ] {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn references_may_be_relative_and_iris_may_have_unicode() {
        for text in [
            "",
            "/abc",
            "//a",
            "abc",
            "#fragment",
            "?q",
            "a/b:c",
            "./a:b",
        ] {
            assert!(is_uri_reference(text), "{text}");
        }
        for text in ["1a:b", "\\\\WINDOWS", "#frag\\ment", "a b", "ä"] {
            assert!(!is_uri_reference(text), "{text}");
        }
        assert!(is_iri("http://ƒøø.ßår/?∂éœ=πîx#πîüx") && is_iri_reference("âππ"));
        assert!(is_iri("http://a/?\u{e000}") && !is_iri("http://a/\u{e000}"));
        assert!(!is_iri("/âππ") && !is_iri("http://a/\u{fffe}") && !is_iri("http://2001:db8::7/"));
    }
}
