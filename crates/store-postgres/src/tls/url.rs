//! Takes `sslmode` and `sslrootcert` out of a database URL: the driver knows only some values of the first and not the second. Reads no file.

use super::invalid;
use leasehold_store::Result;

/// A value of `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// A database URL and the TLS parameters that were in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UrlTls {
    pub(super) url: String,
    pub(super) mode: Option<Mode>,
    pub(super) root: Option<String>,
}

/// Splits a URL, or a list of `key=value` pairs.
pub(super) fn split(given: &str) -> Result<UrlTls> {
    let is_url = given.starts_with("postgres://") || given.starts_with("postgresql://");
    // A password may contain a question mark; the parameters come after the last one.
    let (start, pairs, separator) = match given.rsplit_once('?') {
        Some((start, query)) if is_url => (start, query.split('&').collect(), "&"),
        _ if is_url => (given, Vec::new(), "&"),
        _ => ("", given.split_ascii_whitespace().collect::<Vec<_>>(), " "),
    };
    let (mut mode, mut root, mut rest) = (None, None, Vec::new());
    for pair in pairs {
        let value = |value: &str| match is_url {
            true => decoded(value),
            false => value.trim_matches('\'').to_owned(),
        };
        match pair.split_once('=') {
            Some(("sslmode", text)) => mode = Some(parsed(&value(text))?),
            Some(("sslrootcert", text)) => root = Some(value(text)).filter(|it| !it.is_empty()),
            _ => rest.push(pair),
        }
    }
    let rest = rest.join(separator);
    let url = match (is_url, rest.is_empty()) {
        (true, true) => start.to_owned(),
        (true, false) => format!("{start}?{rest}"),
        (false, _) => rest,
    };
    Ok(UrlTls { url, mode, root })
}

fn parsed(text: &str) -> Result<Mode> {
    Ok(match text {
        "disable" => Mode::Disable,
        "allow" => Mode::Allow,
        "prefer" => Mode::Prefer,
        "require" => Mode::Require,
        "verify-ca" => Mode::VerifyCa,
        "verify-full" => Mode::VerifyFull,
        _ => {
            return Err(invalid(
                "sslmode",
                "sslmode must be disable, allow, prefer, require, verify-ca or verify-full",
            ));
        }
    })
}

/// Decodes `%2F` and the like; anything else stays as it is.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use leasehold_testkit::Fuzzer;

    #[test]
    fn parameters_are_taken_out_and_the_rest_stays() {
        let cases = [
            ("postgres://me@db/x", "postgres://me@db/x", None, None),
            (
                "postgres://me@db/x?sslmode=verify-full",
                "postgres://me@db/x",
                Some(Mode::VerifyFull),
                None,
            ),
            (
                "postgresql://me:p?w@db/x?connect_timeout=5&sslrootcert=%2Fetc%2Fmy%20ca.pem&sslmode=require&application_name=a",
                "postgresql://me:p?w@db/x?connect_timeout=5&application_name=a",
                Some(Mode::Require),
                Some("/etc/my ca.pem"),
            ),
            (
                "host=db sslmode=verify-ca sslrootcert='/ca.pem' user=me",
                "host=db user=me",
                Some(Mode::VerifyCa),
                Some("/ca.pem"),
            ),
            (
                "postgres://me:sslmode=x@db/x",
                "postgres://me:sslmode=x@db/x",
                None,
                None,
            ),
        ];
        for (given, url, mode, root) in cases {
            let split = split(given).unwrap();
            let root = root.map(str::to_owned);
            let url = url.to_owned();
            assert_eq!(split, UrlTls { url, mode, root }, "{given}");
        }
        let error = split("postgres://db/x?sslmode=yes").unwrap_err();
        assert_eq!(error.context, "sslmode");
    }

    #[test]
    fn fuzzed_urls_lose_only_the_tls_parameters() {
        let example = "postgres://me:p@db/x?sslmode=require&sslrootcert=%2Fca&a=b";
        let tokens = ["sslmode=", "sslrootcert=", "disable", "&", "?", "%2", "@"];
        Fuzzer::new(&[example]).tokens(&tokens).run(|input| {
            let text = String::from_utf8_lossy(input);
            match split(&text) {
                Ok(split) => {
                    assert!(split.url.len() <= text.len());
                    (split.mode.is_some(), split.root.is_some(), "")
                }
                Err(error) => (false, false, error.context),
            }
        });
    }
}
