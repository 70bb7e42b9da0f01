//! What an engine knows of executions: the proof about one, and hints about many.

use leasehold_core::{ExecutionEnd, ExecutionId, Timestamp};

/// What an engine knows of one execution; its latest run counts where an engine retries or continues it as a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Description {
    /// It has not ended.
    Open,
    /// It has ended.
    Ended {
        /// How.
        end: ExecutionEnd,
        /// What went wrong, if anything.
        error: Option<String>,
        /// When, by the engine's clock, if it says so.
        at: Option<Timestamp>,
    },
    /// The engine does not know it: never started, or forgotten.
    NotFound,
}

/// Executions that seem to have ended: a hint where to look, never a proof.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedPage {
    /// Which; other people's workflows are left out as far as their ids tell.
    pub executions: Vec<ExecutionId>,
    /// The latest end on this page, by the engine's clock.
    pub newest: Option<Timestamp>,
    /// Where the next page begins, none after the last.
    pub next: Option<Vec<u8>>,
}
