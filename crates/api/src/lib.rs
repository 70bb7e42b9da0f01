//! The JSON of the HTTP API: one type a document, the same for server and client. Knows no HTTP, no store and no rule: only shapes and bounds.
//!
//! Lengths of time are whole milliseconds in fields that end in `_ms`; moments are RFC 3339 texts; ids are UUIDs, those of jobs numbers.
//! What is sent to the server refuses fields it does not know; what comes from it may gain fields.

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

/// Tells a field that is absent (`None`) from one that is `null` (`Some(None)`).
fn present<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}
