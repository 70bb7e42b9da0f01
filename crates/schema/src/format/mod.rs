//! The formats that drafts 4, 6 and 7 assert. Later drafts treat `format` as an annotation, so formats of theirs are not here.

mod mail;
mod pointer;
mod template;
mod time;
mod web;

use crate::dialect::Dialect;
use crate::pattern;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A format of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Date,
    DateTime,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Iri,
    IriReference,
    JsonPointer,
    Regex,
    RelativeJsonPointer,
    Time,
    Uri,
    UriReference,
    UriTemplate,
}

impl Format {
    /// Returns the format of this name, or `None` if the dialect does not assert it.
    pub(crate) fn from_name(name: &str, dialect: Dialect) -> Option<Self> {
        if !dialect.asserts_formats() {
            return None;
        }
        let (format, since) = match name {
            "date" => (Self::Date, Dialect::Draft4),
            "date-time" => (Self::DateTime, Dialect::Draft4),
            "email" => (Self::Email, Dialect::Draft4),
            "hostname" => (Self::Hostname, Dialect::Draft4),
            "ipv4" => (Self::Ipv4, Dialect::Draft4),
            "ipv6" => (Self::Ipv6, Dialect::Draft4),
            "regex" => (Self::Regex, Dialect::Draft4),
            "time" => (Self::Time, Dialect::Draft4),
            "uri" => (Self::Uri, Dialect::Draft4),
            "json-pointer" => (Self::JsonPointer, Dialect::Draft6),
            "uri-reference" => (Self::UriReference, Dialect::Draft6),
            "uri-template" => (Self::UriTemplate, Dialect::Draft6),
            "iri" => (Self::Iri, Dialect::Draft7),
            "iri-reference" => (Self::IriReference, Dialect::Draft7),
            "relative-json-pointer" => (Self::RelativeJsonPointer, Dialect::Draft7),
            _ => return None,
        };
        (since <= dialect).then_some(format)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Email => "email",
            Self::Hostname => "hostname",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Iri => "iri",
            Self::IriReference => "iri-reference",
            Self::JsonPointer => "json-pointer",
            Self::Regex => "regex",
            Self::RelativeJsonPointer => "relative-json-pointer",
            Self::Time => "time",
            Self::Uri => "uri",
            Self::UriReference => "uri-reference",
            Self::UriTemplate => "uri-template",
        }
    }

    /// Whether a text has this format. Takes time in proportion to its length.
    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Self::Date => time::is_date(text),
            Self::DateTime => time::is_date_time(text),
            Self::Email => mail::is_email(text),
            Self::Hostname => mail::is_hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Iri => web::is_iri(text),
            Self::IriReference => web::is_iri_reference(text),
            Self::JsonPointer => pointer::is_json_pointer(text),
            Self::Regex => pattern::is_valid(text),
            Self::RelativeJsonPointer => pointer::is_relative_json_pointer(text),
            Self::Time => time::is_time(text),
            Self::Uri => web::is_uri(text),
            Self::UriReference => web::is_uri_reference(text),
            Self::UriTemplate => template::is_uri_template(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_belong_to_their_drafts() {
        assert_eq!(Format::from_name("uri", Dialect::Draft4), Some(Format::Uri));
        assert_eq!(Format::from_name("iri", Dialect::Draft6), None);
        assert_eq!(Format::from_name("iri", Dialect::Draft7), Some(Format::Iri));
        assert_eq!(Format::from_name("date", Dialect::Draft2019), None);
        assert_eq!(Format::from_name("date", Dialect::Draft2020), None);
        assert_eq!(Format::from_name("colour", Dialect::Draft7), None);
    }

    #[test]
    fn addresses_and_patterns_are_checked() {
        assert!(Format::Ipv4.matches("127.0.0.1") && !Format::Ipv4.matches("127.0.0.01"));
        assert!(Format::Ipv6.matches("::1") && !Format::Ipv6.matches("::1%eth0"));
        assert!(Format::Regex.matches("(?=a)") && !Format::Regex.matches(r"^\Z"));
    }
}
