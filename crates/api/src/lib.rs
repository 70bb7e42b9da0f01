//! The JSON types of the HTTP API, shared by server and client. Knows no HTTP, no store and no business rule: only fields and bounds.
//!
//! Durations are whole milliseconds in fields that end in `_ms`; timestamps are RFC 3339 strings; ids are UUIDs, except job ids, which are integers.
//! Types sent to the server reject unknown fields; types returned by it may gain fields.

pub mod audit;
pub mod change;
pub mod definition;
pub mod doctor;
pub mod execution;
pub mod instance;
pub mod job;
pub mod key;
mod names;
pub mod overview;
pub mod page;
pub mod problem;
pub mod queue;
pub mod request;
pub mod why;
pub mod workspace;

pub use page::Page;
pub use problem::{Code, Problem};

use serde::{Deserialize, Deserializer};

/// Distinguishes an absent field (`None`) from `null` (`Some(None)`).
fn present<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}
