//! Redacts the password in the URL of a store. Opens nothing.

/// The URL without password and query. Only the scheme if the password cannot be located reliably.
pub(crate) fn redacted_url(url: &str) -> String {
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| is_word(scheme)) else {
        return "…".to_owned();
    };
    without_password(rest).map_or_else(
        || format!("{scheme}://…"),
        |rest| format!("{scheme}://{rest}"),
    )
}

fn without_password(rest: &str) -> Option<String> {
    let (host, query) = rest.split_once('?').unwrap_or((rest, ""));
    // The `?` may be part of the password.
    if query.contains('@') {
        return None;
    }
    let (user, host) = match host.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, host),
    };
    let hosts = host.split('/').next().unwrap_or_default();
    // Without a host, user and password look like host and port.
    if !hosts.split(',').all(is_host) {
        return None;
    }
    Some(match user.map(|user| user.split_once(':').ok_or(user)) {
        Some(Ok((name, _password))) => format!("{name}:***@{host}"),
        Some(Err(name)) => format!("{name}@{host}"),
        None => host.to_owned(),
    })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// A host name or address with an optional port.
fn is_host(text: &str) -> bool {
    // An IPv6 address has colons inside brackets.
    let after_brackets = text.rsplit(']').next().unwrap_or(text);
    match after_brackets.split_once(':') {
        Some((_, port)) => port.bytes().all(|byte| byte.is_ascii_digit()),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::redacted_url;

    #[test]
    fn redacted_url_has_no_password() {
        let cases = [
            (
                "postgres://me:secret@db:5432/x",
                "postgres://me:***@db:5432/x",
            ),
            ("postgres://me:se@cret@db/x", "postgres://me:***@db/x"),
            ("postgres://me:se/cret@db/x", "postgres://me:***@db/x"),
            ("postgres://me:se:cret@db/x", "postgres://me:***@db/x"),
            (
                "postgres://me@home:secret@db/x",
                "postgres://me@home:***@db/x",
            ),
            ("postgres://me@db/x?password=secret", "postgres://me@db/x"),
            ("postgres://me:secret@db/x?a=b", "postgres://me:***@db/x"),
            (
                "postgres://me:s@[::1]:5432/x",
                "postgres://me:***@[::1]:5432/x",
            ),
            ("postgres://a:1,b:2/x", "postgres://a:1,b:2/x"),
            ("postgres:///x?host=/run", "postgres:///x"),
            ("postgres://db/x", "postgres://db/x"),
            ("sqlite:some/file.db", "sqlite:some/file.db"),
            ("sqlite://some/f?le@1.db", "sqlite://some/f?le@1.db"),
        ];
        for (url, expected) in cases {
            assert_eq!(redacted_url(url), expected);
        }
    }

    #[test]
    fn ambiguous_url_shows_only_its_scheme() {
        let cases = [
            ("postgres://me:hunter2?x@db/y", "postgres://…"),
            ("postgres://me:hunter2?x?y@db/y", "postgres://…"),
            ("postgres://me:hun@ter2?x@db/y", "postgres://…"),
            ("postgres://me@home:hunter2?x@db/y", "postgres://…"),
            ("postgres://me@db/y?password=hun@ter2", "postgres://…"),
            ("postgres://me:hunter2", "postgres://…"),
            ("postgres://me:hunter2?x", "postgres://…"),
            ("postgres://me:hun/ter2", "postgres://…"),
            ("postgres://me:hun@ter:2x", "postgres://…"),
            ("mysql://me:hunter2?x@db/y", "mysql://…"),
            ("postgres:me:hunter2@db/y", "…"),
            ("me:hunter2://db/y", "…"),
            ("host=db password=hunter2", "…"),
        ];
        for (url, expected) in cases {
            assert_eq!(redacted_url(url), expected, "{url}");
        }
    }
}
