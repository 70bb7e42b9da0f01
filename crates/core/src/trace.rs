//! The `traceparent` header of W3C Trace Context: parsing and formatting. Creates no spans.

use std::fmt;
use std::str::FromStr;

/// The trace and span that a caller belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace's id; never 0.
    pub trace: u128,
    /// The span's id; never 0.
    pub span: u64,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

/// The text is not a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTraceContext;

impl fmt::Display for InvalidTraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid traceparent; expected a value like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    }
}

impl std::error::Error for InvalidTraceContext {}

impl TraceContext {
    /// Returns the trace id as 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// Returns the trace id of a caller's header, if the header is a valid `traceparent`.
    pub fn trace_id_of(traceparent: Option<&str>) -> Option<String> {
        Some(traceparent?.parse::<Self>().ok()?.trace_id())
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span)
    }
}

impl FromStr for TraceContext {
    type Err = InvalidTraceContext;

    /// Ignores additional fields of later versions of the format; version 00 must have none.
    fn from_str(text: &str) -> Result<Self, InvalidTraceContext> {
        let mut parts = text.splitn(5, '-');
        let mut digits = |length: usize| {
            let part = parts.next().ok_or(InvalidTraceContext)?;
            let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if part.len() != length || !part.bytes().all(lower_hex) {
                return Err(InvalidTraceContext);
            }
            u128::from_str_radix(part, 16).map_err(|_| InvalidTraceContext)
        };
        let (version, trace, span, flags) = (digits(2)?, digits(32)?, digits(16)?, digits(2)?);
        if version == 0xff || (version == 0 && parts.next().is_some()) || trace == 0 || span == 0 {
            return Err(InvalidTraceContext);
        }
        Ok(Self {
            trace,
            span: u64::try_from(span).map_err(|_| InvalidTraceContext)?,
            sampled: flags & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn traceparent_parses_and_formats_back() {
        for (text, sampled) in [
            (SAMPLED.to_owned(), true),
            (SAMPLED.replace("-01", "-00"), false),
        ] {
            let read: TraceContext = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            assert_eq!((read.sampled, read.span), (sampled, 0x00f0_67aa_0ba9_02b7));
            assert_eq!(read.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        }
    }

    #[test]
    fn additional_fields_of_later_versions_are_ignored() {
        for later in [
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03",
        ] {
            assert_eq!(later.parse::<TraceContext>().unwrap().to_string(), SAMPLED);
        }
    }

    #[test]
    fn invalid_traceparent_is_rejected() {
        for bad in [
            "",
            "00",
            "00-abc-def-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-+bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7a-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
        ] {
            assert_eq!(
                bad.parse::<TraceContext>(),
                Err(InvalidTraceContext),
                "{bad}"
            );
            assert_eq!(TraceContext::trace_id_of(Some(bad)), None);
        }
    }
}
