//! Host names (RFC 1123) and e-mail addresses (RFC 5321).

use std::net::{Ipv4Addr, Ipv6Addr};

/// The longest host name.
const HOSTNAME_MAX: usize = 253;
/// The longest label of a host name, and the longest part of an address before the `@`.
const LABEL_MAX: usize = 63;
const LOCAL_PART_MAX: usize = 64;

/// Labels of letters, digits and inner hyphens. Labels that encode Unicode (`xn--…`) are not decoded.
pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= HOSTNAME_MAX && text.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_MAX).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// A local part, `@`, and a host name or an address in brackets.
pub(super) fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_local = match local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(quoted) => is_quoted(quoted),
        None => local.split('.').all(is_atom),
    };
    is_local && local.len() <= LOCAL_PART_MAX && is_domain(domain)
}

fn is_atom(text: &str) -> bool {
    let is_atom_char = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b);
    !text.is_empty() && text.bytes().all(is_atom_char)
}

/// Printable characters, with a backslash before `"` and itself.
fn is_quoted(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let printable = match byte {
            b'\\' => bytes.next(),
            b'"' => None,
            other => Some(other),
        };
        if !printable.is_some_and(|b| (b' '..=b'~').contains(&b)) {
            return false;
        }
    }
    true
}

fn is_domain(text: &str) -> bool {
    match text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(literal) => match literal.split_at_checked(5) {
            Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => {
                address.parse::<Ipv6Addr>().is_ok()
            }
            _ => literal.parse::<Ipv4Addr>().is_ok(),
        },
        None => is_hostname(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostnames_have_valid_labels() {
        for text in [
            "www.example.com",
            "xn--4gbwdl.xn--wgbh1c",
            "a",
            "1host",
            &"a".repeat(63),
        ] {
            assert!(is_hostname(text), "{text}");
        }
        for text in [
            "",
            ".",
            "-a",
            "a-",
            "a..b",
            "a.",
            ".a",
            "a_b",
            "ä",
            &"a".repeat(64),
            &format!("{0}.{0}.{0}.{0}", "a".repeat(63)),
        ] {
            assert!(!is_hostname(text), "{text}");
        }
    }

    #[test]
    fn emails_have_a_local_part_and_a_domain() {
        for text in [
            "joe.bloggs@example.com",
            "te~st@example.com",
            "\"joe bloggs\"@example.com",
            "\"joe..\\\"x@\"@example.com",
            "joe@[127.0.0.1]",
            "joe@[IPv6:::1]",
            "\"\"@a.b",
        ] {
            assert!(is_email(text), "{text}");
        }
        for text in [
            "2962",
            "@example.com",
            "joe@",
            ".joe@example.com",
            "joe.@example.com",
            "te..st@example.com",
            "joe@-a.com",
            "joe@[127.0.0.300]",
            "joe@[IPv6:x]",
            "joe bloggs@example.com",
            "\"a\"b\"@example.com",
            "é@example.com",
            "joe@example.com, other@example.com",
        ] {
            assert!(!is_email(text), "{text}");
        }
    }
}
