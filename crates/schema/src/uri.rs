//! The small part of RFC 3986 that identifiers of schemas need: splitting a reference, and resolving it against a base.

/// The parts of a URI reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) scheme: Option<&'a str>,
    pub(crate) authority: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) fragment: Option<&'a str>,
}

/// Splits a reference as RFC 3986, appendix B does. Every text has parts.
pub(crate) fn split(reference: &str) -> Parts<'_> {
    let (rest, fragment) = split_at_first(reference, '#');
    let (rest, query) = split_at_first(rest, '?');
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, after)) if is_scheme(scheme) => (Some(scheme), after),
        _ => (None, rest),
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            (Some(&after[..end]), &after[end..])
        }
        None => (None, rest),
    };
    Parts {
        scheme,
        authority,
        path,
        query,
        fragment,
    }
}

fn split_at_first(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Resolves a reference against a base URI (RFC 3986, section 5.2) and drops its fragment.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    let (base, own) = (split(base), split(reference));
    if own.scheme.is_some() {
        return compose(own.scheme, own.authority, &normalized(own.path), own.query);
    }
    if own.authority.is_some() {
        return compose(base.scheme, own.authority, &normalized(own.path), own.query);
    }
    if own.path.is_empty() {
        let query = own.query.or(base.query);
        return compose(base.scheme, base.authority, base.path, query);
    }
    let path = if own.path.starts_with('/') {
        normalized(own.path)
    } else {
        normalized(&merge(&base, own.path))
    };
    compose(base.scheme, base.authority, &path, own.query)
}

/// Replaces the last segment of the base's path by the path of the reference.
fn merge(base: &Parts<'_>, path: &str) -> String {
    if base.authority.is_some() && base.path.is_empty() {
        return format!("/{path}");
    }
    match base.path.rfind('/') {
        Some(end) => format!("{}{path}", &base.path[..=end]),
        None => path.to_owned(),
    }
}

/// Removes the segments `.` and `..`.
fn normalized(path: &str) -> String {
    if !path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return path.to_owned();
    }
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.trim_start_matches('/').split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    let path = kept.join("/");
    if rooted { format!("/{path}") } else { path }
}

fn compose(
    scheme: Option<&str>,
    authority: Option<&str>,
    path: &str,
    query: Option<&str>,
) -> String {
    let mut uri = String::new();
    if let Some(scheme) = scheme {
        uri.push_str(scheme);
        uri.push(':');
    }
    if let Some(authority) = authority {
        uri.push_str("//");
        uri.push_str(authority);
    }
    uri.push_str(path);
    if let Some(query) = query {
        uri.push('?');
        uri.push_str(query);
    }
    uri
}

/// Decodes `%XX` in a fragment; `None` if the result is not UTF-8 or an escape is incomplete.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = after.get(..2)?;
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_in_rfc_3986() {
        let base = "http://a/b/c/d;p?q";
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g.", "http://a/b/c/g."),
            ("http:g", "http:g"),
        ];
        for (reference, expected) in cases {
            assert_eq!(resolve(base, reference), expected, "{reference}");
        }
    }

    #[test]
    fn urns_and_empty_authorities_are_bases_too() {
        assert_eq!(resolve("urn:uuid:1", "#/a"), "urn:uuid:1");
        assert_eq!(resolve("urn:uuid:1", "urn:x:2?+q#a"), "urn:x:2?+q");
        assert_eq!(resolve("schema:///", "foo/bar"), "schema:///foo/bar");
        assert_eq!(resolve("schema:///foo/bar", "baz"), "schema:///foo/baz");
        assert_eq!(
            resolve("file:///c:/a/b.json", "c.json"),
            "file:///c:/a/c.json"
        );
    }

    #[test]
    fn fragments_are_percent_decoded() {
        assert_eq!(percent_decode("a%25b").as_deref(), Some("a%b"));
        assert_eq!(percent_decode("%C3%A4").as_deref(), Some("ä"));
        assert_eq!(percent_decode("%zz"), None);
        assert_eq!(percent_decode("%2"), None);
        assert_eq!(percent_decode("%ff"), None);
    }
}
