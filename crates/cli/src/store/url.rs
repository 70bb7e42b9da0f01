//! The URL of a store as it may be shown. Opens nothing.

/// The URL without its password and its query. Where the password cannot be told from the rest for sure, only the scheme.
pub(crate) fn shown(url: &str) -> String {
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
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    // The `?` may be a password's, not the one that begins the query.
    if query.contains('@') {
        return None;
    }
    let (user, place) = match place.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, place),
    };
    let hosts = place.split('/').next().unwrap_or_default();
    // A user and a password look like a host and a port where the host was forgotten.
    if !hosts.split(',').all(is_host) {
        return None;
    }
    Some(match user.map(|user| user.split_once(':').ok_or(user)) {
        Some(Ok((name, _password))) => format!("{name}:***@{place}"),
        Some(Err(name)) => format!("{name}@{place}"),
        None => place.to_owned(),
    })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// A name or an address, and a port if there is any.
fn is_host(text: &str) -> bool {
    // An address of IPv6 has colons of its own, in brackets.
    let after_brackets = text.rsplit(']').next().unwrap_or(text);
    match after_brackets.split_once(':') {
        Some((_, port)) => port.bytes().all(|byte| byte.is_ascii_digit()),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_shown_url_has_no_password() {
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
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn a_url_whose_password_is_anywhere_shows_its_scheme_at_most() {
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
            assert_eq!(shown(url), expected, "{url}");
        }
    }
}
