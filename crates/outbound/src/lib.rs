//! The HTTP client of `http` nodes. Connects only to public addresses, unless the settings allow others (SSRF protection). Knows no graph, no job and no engine.

mod allow;
mod call;
mod guard;
mod public;
mod response;

pub use allow::{AllowRule, InvalidAllowRule};
pub use call::{CallError, Outbound, OutboundOptions};
