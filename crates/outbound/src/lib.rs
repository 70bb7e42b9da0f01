//! The HTTP client of `http` nodes. Connects only to public addresses, unless the settings allow others or deny some (SSRF protection). Knows no graph, no job and no engine.

mod call;
mod guard;
mod public;
mod response;
mod target_rule;

pub use call::{CallError, Outbound, OutboundOptions};
pub use target_rule::{InvalidTargetRule, TargetRule};
