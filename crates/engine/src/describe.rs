//! What an engine reports about executions: the state of one, and a list of recently closed ones.

use leasehold_core::{ExecutionEnd, ExecutionId, Timestamp};

/// The state of one execution in the engine. If the engine retries it or continues it as new, the latest run counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Description {
    /// It is running.
    Open,
    /// It has ended.
    Ended {
        /// How it ended.
        end: ExecutionEnd,
        /// The error, if any.
        error: Option<String>,
        /// When it ended by the engine's clock, if known.
        at: Option<Timestamp>,
    },
    /// The engine does not know it: it was never started, or its history was deleted.
    NotFound,
}

/// A page of recently closed executions. A hint only: describe each one before acting on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedPage {
    /// The executions; workflows with other ids are filtered out.
    pub executions: Vec<ExecutionId>,
    /// The latest end on this page, by the engine's clock.
    pub newest: Option<Timestamp>,
    /// The token of the next page; none after the last.
    pub next: Option<Vec<u8>>,
}
