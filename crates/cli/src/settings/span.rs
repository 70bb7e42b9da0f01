//! A length of time as people write it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// A length of time, written as `5s`, `250ms` or `2m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|span| Duration::try_from(span).ok())
            .map(Span)
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "`{text}` is no length of time; write it as 5s, 250ms or 2m"
                ))
            })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let span = jiff::SignedDuration::try_from(self.0).unwrap_or_default();
        to.serialize_str(&format!("{span:#}"))
    }
}
