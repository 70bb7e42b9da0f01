//! The calls of `http` nodes. Only public addresses are dialled, unless the settings allow more. Knows no graph, no job and no engine.

mod allow;
mod answer;
mod call;
mod guard;
mod public;

pub use allow::{Allow, InvalidAllow};
pub use call::{CallError, Outbound, OutboundOptions};
