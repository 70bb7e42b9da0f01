//! Why a request is not running now: a pure decision from collected facts. The caller collects the facts.

use crate::{ExecutionId, Named, RequestStatus, Timestamp};
use std::fmt;
use std::time::Duration;

/// The facts about a request and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The status of the request.
    pub status: Named<RequestStatus>,
    /// The time by the store's clock.
    pub now: Timestamp,
    /// The earliest time it may run.
    pub run_at: Timestamp,
    /// How often it was released or recovered.
    pub attempt_count: u32,
    /// The last error.
    pub last_error: Option<String>,
    /// Whether a cancellation was requested.
    pub cancel_requested: bool,
    /// Its execution, if it has one.
    pub execution: Option<ExecutionId>,
    /// Whether its workspace exists; nothing of a deleted workspace is admitted.
    pub workspace_exists: bool,
    /// Whether its definition exists; nothing of a deleted definition is admitted.
    pub definition_exists: bool,
    /// Whether its workspace is paused.
    pub paused: bool,
    /// The concurrency limit of its workspace.
    pub limit: u32,
    /// Executions that hold slots of the workspace, oldest first; the list may be truncated.
    pub holders: Vec<ExecutionId>,
    /// The number of slots in use.
    pub in_use: u32,
    /// How many requests of its workspace are ahead of it; none if it is not in a line.
    pub ahead: Option<Ahead>,
    /// The mean duration of the workspace's recent executions.
    pub typical_duration: Option<Duration>,
    /// The state of the engine.
    pub engine: EngineFacts,
    /// Workers that poll its task queue; none if unknown, or if the engine needs no pollers.
    pub pollers: Option<usize>,
}

/// How many requests are ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Exactly this many.
    Exactly(u32),
    /// More than this many; the rest were not counted.
    MoreThan(u32),
}

/// The state of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineFacts {
    /// It accepts starts.
    Healthy,
    /// It does not answer, or with errors.
    Down {
        /// The error.
        error: String,
    },
    /// No instance has an engine.
    Missing,
    /// This instance does not dispatch; others may.
    NotDispatchedHere,
}

/// Why a request is not running now.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It is running.
    Running,
    /// It is running, but no worker polls its task queue.
    NoPollers,
    /// It has ended.
    Finished,
    /// Only a newer program knows its status.
    UnknownStatus,
    /// The dispatcher is starting it.
    Starting,
    /// A cancellation was requested; it ends when the outcome of its start is known.
    Cancelling,
    /// Its workspace was deleted: it fails instead of being admitted.
    WorkspaceGone,
    /// Its definition was deleted: it fails instead of being admitted.
    DefinitionGone,
    /// Its workspace is paused.
    Paused,
    /// It is scheduled for later.
    NotDue {
        /// The scheduled time.
        until: Timestamp,
    },
    /// A start failed; it is retried later.
    BackingOff {
        /// The time of the next attempt.
        until: Timestamp,
        /// The error.
        error: Option<String>,
    },
    /// No instance has an engine.
    NoEngine,
    /// The engine is down.
    EngineDown {
        /// The error.
        error: String,
    },
    /// All slots of its workspace are in use.
    AtCapacity {
        /// The concurrency limit.
        limit: u32,
        /// The number of slots in use.
        in_use: u32,
        /// Executions that hold slots, oldest first; the list may be truncated.
        holders: Vec<ExecutionId>,
    },
    /// Slots are free, but other requests of its workspace are ahead.
    InLine,
    /// It is the next request of its workspace to be admitted.
    NextInLine,
}

/// The explanation.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The most important reason; the others are in `also`.
    pub reason: Reason,
    /// Further reasons, which would hold it back even without the first.
    pub also: Vec<Reason>,
    /// How many requests of its workspace are ahead of it.
    pub ahead: Option<Ahead>,
    /// The estimated start; none if it cannot be estimated.
    pub estimated_start: Option<Timestamp>,
}

/// Executions that the text names.
const NAMED_MAX: usize = 3;

/// Explains why a request is not running now: the first obstacle is the reason, the others are `also`.
pub fn explain(facts: &Facts) -> Why {
    use RequestStatus::{Claimed, Completed, Dispatched, Failed, Pending};
    let (reason, also) = match facts.status {
        Named::Unknown(_) => (Reason::UnknownStatus, Vec::new()),
        Named::Known(Completed | Failed) => (Reason::Finished, Vec::new()),
        Named::Known(Dispatched) if facts.pollers == Some(0) => {
            (Reason::NoPollers, cancel_reason(facts))
        }
        Named::Known(Dispatched) => (Reason::Running, cancel_reason(facts)),
        Named::Known(Claimed) if facts.cancel_requested => (Reason::Cancelling, Vec::new()),
        Named::Known(Claimed) => (Reason::Starting, Vec::new()),
        Named::Known(Pending) => {
            let mut obstacles = obstacles(facts).into_iter();
            let first = obstacles.next().unwrap_or(Reason::NextInLine);
            (first, obstacles.collect())
        }
    };
    let estimated_start = estimate(facts, &reason, &also);
    Why {
        reason,
        also,
        ahead: facts.ahead,
        estimated_start,
    }
}

fn cancel_reason(facts: &Facts) -> Vec<Reason> {
    let reason = facts.cancel_requested.then_some(Reason::Cancelling);
    reason.into_iter().collect()
}

/// Lists the obstacles of a PENDING request, those that do not pass by waiting first.
fn obstacles(facts: &Facts) -> Vec<Reason> {
    let mut found = cancel_reason(facts);
    found.extend(admission_obstacles(facts));
    if facts.run_at > facts.now {
        found.push(not_due(facts));
    }
    match &facts.engine {
        EngineFacts::Missing => found.push(Reason::NoEngine),
        EngineFacts::Down { error } => found.push(Reason::EngineDown {
            error: error.clone(),
        }),
        EngineFacts::Healthy | EngineFacts::NotDispatchedHere => {}
    }
    found.extend(line_obstacles(facts));
    found
}

/// Lists what keeps a request from being admitted. A request that kept its execution is admitted already: a claim takes it again without looking at
/// its workspace and its definition.
fn admission_obstacles(facts: &Facts) -> Vec<Reason> {
    if facts.execution.is_some() {
        return Vec::new();
    }
    let obstacles = [
        (!facts.workspace_exists, Reason::WorkspaceGone),
        (!facts.definition_exists, Reason::DefinitionGone),
        (facts.paused, Reason::Paused),
    ];
    let found = obstacles.into_iter().filter(|(applies, _)| *applies);
    found.map(|(_, reason)| reason).collect()
}

/// Lists what a request waits for in the line of its workspace. A request that kept its execution has a slot and is in no line.
fn line_obstacles(facts: &Facts) -> Vec<Reason> {
    let mut found = Vec::new();
    if facts.execution.is_some() {
        return found;
    }
    if facts.in_use >= facts.limit {
        found.push(Reason::AtCapacity {
            limit: facts.limit,
            in_use: facts.in_use,
            holders: facts.holders.clone(),
        });
    }
    match facts.ahead {
        None | Some(Ahead::Exactly(0)) => {}
        Some(Ahead::Exactly(_) | Ahead::MoreThan(_)) => found.push(Reason::InLine),
    }
    found
}

fn not_due(facts: &Facts) -> Reason {
    let until = facts.run_at;
    if facts.attempt_count == 0 {
        return Reason::NotDue { until };
    }
    Reason::BackingOff {
        until,
        error: facts.last_error.clone(),
    }
}

/// Estimates the start. On average a slot becomes free every `typical_duration / limit`, and the request takes the slot after those of the requests
/// ahead of it, but not before its `run_at`. Later requests with a higher priority are not considered. Returns none if an obstacle has no
/// predictable end, or if the duration of executions is unknown.
fn estimate(facts: &Facts, reason: &Reason, also: &[Reason]) -> Option<Timestamp> {
    if *reason == Reason::Starting {
        return Some(facts.now);
    }
    let is_predictable = |reason: &Reason| match reason {
        Reason::NotDue { .. }
        | Reason::BackingOff { .. }
        | Reason::AtCapacity { .. }
        | Reason::InLine
        | Reason::NextInLine => true,
        Reason::Running
        | Reason::NoPollers
        | Reason::Finished
        | Reason::UnknownStatus
        | Reason::Starting
        | Reason::Cancelling
        | Reason::WorkspaceGone
        | Reason::DefinitionGone
        | Reason::Paused
        | Reason::NoEngine
        | Reason::EngineDown { .. } => false,
    };
    if !is_predictable(reason) || !also.iter().all(is_predictable) {
        return None;
    }
    let wait = match slots_to_wait_for(facts)? {
        0 => Duration::ZERO,
        _ if facts.limit == 0 => return None,
        slots => facts.typical_duration?.checked_mul(slots)? / facts.limit,
    };
    let start = facts.now.checked_add(wait).ok()?;
    Some(start.max(facts.run_at))
}

/// Returns how many slots must become free before the request gets one; none if the requests ahead were not all counted.
fn slots_to_wait_for(facts: &Facts) -> Option<u32> {
    if facts.execution.is_some() {
        return Some(0);
    }
    let ahead = match facts.ahead {
        None => 0,
        Some(Ahead::Exactly(ahead)) => ahead,
        Some(Ahead::MoreThan(_)) => return None,
    };
    let needed = facts.in_use.saturating_add(ahead).saturating_add(1);
    Some(needed.saturating_sub(facts.limit))
}

/// The reason as a sentence.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Running => f.write_str("Running."),
            Reason::NoPollers => f.write_str(
                "Running, but no worker polls its task queue. Start a worker for that task queue.",
            ),
            Reason::Finished => f.write_str("Finished."),
            Reason::UnknownStatus => f.write_str(
                "Its status is unknown to this version of the server. Ask a server of the newest version.",
            ),
            Reason::Starting => f.write_str("Admitted; the dispatcher is starting its execution."),
            Reason::Cancelling => f.write_str(
                "Cancel requested; the request ends when the outcome of its start is known.",
            ),
            Reason::WorkspaceGone => {
                f.write_str("Its workspace is deleted; the request fails when its turn comes.")
            }
            Reason::DefinitionGone => {
                f.write_str("Its definition is deleted; the request fails when its turn comes.")
            }
            Reason::Paused => {
                f.write_str("Its workspace is paused; none of its requests is admitted.")
            }
            Reason::NotDue { until } => write!(f, "Not due yet; scheduled for {until}."),
            Reason::BackingOff { until, error } => {
                write!(f, "The last start failed; the next attempt is at {until}.")?;
                match error {
                    Some(error) => write!(f, " Last error: {error}"),
                    None => Ok(()),
                }
            }
            Reason::NoEngine => f.write_str("No instance has an engine to start it in."),
            Reason::EngineDown { error } => write!(f, "The engine is unavailable: {error}"),
            Reason::AtCapacity {
                limit,
                in_use,
                holders,
            } => {
                write!(f, "Waiting for a slot: {in_use} of {limit} in use")?;
                write_holders(f, *in_use, holders)?;
                f.write_str(".")?;
                self.write_ahead(f, " ")
            }
            Reason::InLine => self.write_ahead(f, ""),
            Reason::NextInLine => f.write_str("Next to be admitted in its workspace."),
        }
    }
}

impl Why {
    fn write_ahead(&self, f: &mut fmt::Formatter<'_>, before: &str) -> fmt::Result {
        match self.ahead {
            None | Some(Ahead::Exactly(0)) => Ok(()),
            Some(Ahead::Exactly(1)) => {
                write!(f, "{before}One request of this workspace is ahead of it.")
            }
            Some(Ahead::Exactly(n)) => {
                write!(f, "{before}{n} requests of this workspace are ahead of it.")
            }
            Some(Ahead::MoreThan(n)) => {
                write!(
                    f,
                    "{before}More than {n} requests of this workspace are ahead of it."
                )
            }
        }
    }
}

fn write_holders(f: &mut fmt::Formatter<'_>, in_use: u32, holders: &[ExecutionId]) -> fmt::Result {
    let named = &holders[..holders.len().min(NAMED_MAX)];
    if named.is_empty() {
        return Ok(());
    }
    for (index, execution) in named.iter().enumerate() {
        let separator = if index == 0 { " (" } else { ", " };
        write!(f, "{separator}{execution}")?;
    }
    match (in_use as usize).saturating_sub(named.len()) {
        0 => f.write_str(")"),
        more => write!(f, " and {more} more)"),
    }
}

#[cfg(test)]
mod tests;
