//! Why a request is not running now: a pure judgement over what was found out about it. Finding out is the caller's work.

use crate::{ExecutionId, RequestStatus, Timestamp};
use std::fmt;
use std::time::Duration;

/// What is known of a request and of what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Where the request is.
    pub status: RequestStatus,
    /// The time by the store's clock.
    pub now: Timestamp,
    /// Not before this.
    pub run_at: Timestamp,
    /// How often it was given back or taken back.
    pub attempt_count: u32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Whether someone wished to cancel it.
    pub cancel_requested: bool,
    /// Its execution, if it has one.
    pub execution: Option<ExecutionId>,
    /// Whether its workspace is there; a deleted one admits nothing.
    pub workspace_exists: bool,
    /// Whether its workspace is paused.
    pub paused: bool,
    /// How many may run at once in its workspace.
    pub limit: u32,
    /// The executions that hold the workspace's slots, oldest first; maybe not all of them.
    pub holders: Vec<ExecutionId>,
    /// How many hold one.
    pub in_use: u32,
    /// How many requests of its workspace go before it; none where it is in no line.
    pub ahead: Option<Ahead>,
    /// How long an execution of the workspace took of late.
    pub usual_time: Option<Duration>,
    /// What is known of the engine.
    pub engine: EngineFacts,
    /// Workers that ask for the work of its version; none where nobody was asked or the engine needs none.
    pub pollers: Option<usize>,
}

/// How many go before a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// So many.
    Exactly(u32),
    /// More than so many; the rest were not counted.
    MoreThan(u32),
}

/// What is known of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineFacts {
    /// It serves.
    Well,
    /// It does not answer, or not well.
    Down {
        /// What it said.
        error: String,
    },
    /// No instance that could be asked has an engine.
    Missing,
    /// This instance does not dispatch; others may.
    NotDispatchedHere,
}

/// Why a request is not running now.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It runs.
    Running,
    /// It runs, but nobody works on it: its task queue has no pollers.
    NoPollers,
    /// It has ended.
    Finished,
    /// It is being started right now.
    Starting,
    /// Somebody cancelled it; it ends when its start is resolved.
    Cancelling,
    /// Its workspace was deleted: it fails when its turn comes.
    WorkspaceGone,
    /// Its workspace is paused.
    Paused,
    /// Its time has not come.
    NotDue {
        /// When it does.
        until: Timestamp,
    },
    /// A start did not succeed; it is tried again later.
    BackingOff {
        /// When.
        until: Timestamp,
        /// What went wrong.
        error: Option<String>,
    },
    /// There is no engine to start it in.
    NoEngine,
    /// The engine is down.
    EngineDown {
        /// What it said.
        error: String,
    },
    /// All slots of its workspace are taken.
    AtCapacity {
        /// How many there are.
        limit: u32,
        /// How many are taken.
        in_use: u32,
        /// By which executions, oldest first; maybe not all.
        holders: Vec<ExecutionId>,
    },
    /// Others of its workspace go first, and there is room.
    InLine,
    /// It is the next of its workspace to be admitted.
    NextInLine,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The reason that holds it longest or hardest; what else holds it is in `also`.
    pub reason: Reason,
    /// Whatever else would hold it, were the reason gone.
    pub also: Vec<Reason>,
    /// How many of its workspace go before it.
    pub ahead: Option<Ahead>,
    /// When it may begin, if that can be guessed.
    pub estimated_start: Option<Timestamp>,
}

/// Executions that a sentence names; the list has them all.
const NAMED_MAX: usize = 3;

/// Why a request is not running now: the first thing in the way is the reason, whatever else is in the way is `also`.
pub fn explain(facts: &Facts) -> Why {
    let (reason, also) = match facts.status {
        RequestStatus::Completed | RequestStatus::Failed => (Reason::Finished, Vec::new()),
        RequestStatus::Dispatched if facts.pollers == Some(0) => (Reason::NoPollers, wished(facts)),
        RequestStatus::Dispatched => (Reason::Running, wished(facts)),
        RequestStatus::Claimed if facts.cancel_requested => (Reason::Cancelling, Vec::new()),
        RequestStatus::Claimed => (Reason::Starting, Vec::new()),
        RequestStatus::Pending => {
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

fn wished(facts: &Facts) -> Vec<Reason> {
    let wished = facts.cancel_requested.then_some(Reason::Cancelling);
    wished.into_iter().collect()
}

/// All that is in the way of a PENDING request, what no waiting helps against first.
fn obstacles(facts: &Facts) -> Vec<Reason> {
    let mut found = wished(facts);
    if !facts.workspace_exists {
        found.push(Reason::WorkspaceGone);
    }
    if facts.paused {
        found.push(Reason::Paused);
    }
    if facts.run_at > facts.now {
        found.push(not_due(facts));
    }
    match &facts.engine {
        EngineFacts::Missing => found.push(Reason::NoEngine),
        EngineFacts::Down { error } => found.push(Reason::EngineDown {
            error: error.clone(),
        }),
        EngineFacts::Well | EngineFacts::NotDispatchedHere => {}
    }
    // One that kept its execution has its slot already.
    if facts.execution.is_none() && facts.in_use >= facts.limit {
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

/// When it may begin. Slots become free one after another, on average one in the usual time of an execution divided by the limit; the
/// request gets the one after those of the requests before it. Not before its own time, and whoever comes later and goes first is not
/// counted. None where something is in the way whose end nobody knows, or where it is not known how long executions take.
fn estimate(facts: &Facts, reason: &Reason, also: &[Reason]) -> Option<Timestamp> {
    if *reason == Reason::Starting {
        return Some(facts.now);
    }
    let guessable = |reason: &Reason| match reason {
        Reason::NotDue { .. }
        | Reason::BackingOff { .. }
        | Reason::AtCapacity { .. }
        | Reason::InLine
        | Reason::NextInLine => true,
        Reason::Running
        | Reason::NoPollers
        | Reason::Finished
        | Reason::Starting
        | Reason::Cancelling
        | Reason::WorkspaceGone
        | Reason::Paused
        | Reason::NoEngine
        | Reason::EngineDown { .. } => false,
    };
    if !guessable(reason) || !also.iter().all(guessable) {
        return None;
    }
    let wait = match slots_to_wait_for(facts)? {
        0 => Duration::ZERO,
        _ if facts.limit == 0 => return None,
        slots => facts.usual_time?.checked_mul(slots)? / facts.limit,
    };
    let begin = facts.now.checked_add(wait).ok()?;
    Some(begin.max(facts.run_at))
}

/// How many slots must become free before one is for this request; none if those before it were not all counted.
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

/// The reason in a sentence, for people.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Running => f.write_str("It runs."),
            Reason::NoPollers => f.write_str(
                "It runs, but nobody works on it: no worker asks for the work of its task queue.",
            ),
            Reason::Finished => f.write_str("It has ended."),
            Reason::Starting => f.write_str("It is admitted and being started right now."),
            Reason::Cancelling => f.write_str(
                "It is cancelled, and ends as soon as it is known what became of its start.",
            ),
            Reason::WorkspaceGone => {
                f.write_str("Its workspace is deleted: it fails when its turn comes.")
            }
            Reason::Paused => f.write_str("Its workspace is paused: nothing of it is admitted."),
            Reason::NotDue { until } => write!(f, "It is not to begin before {until}."),
            Reason::BackingOff { until, error } => {
                write!(
                    f,
                    "Its last start did not succeed; it is tried again at {until}."
                )?;
                match error {
                    Some(error) => write!(f, " What went wrong: {error}"),
                    None => Ok(()),
                }
            }
            Reason::NoEngine => f.write_str("There is no engine to start it in."),
            Reason::EngineDown { error } => write!(f, "The engine is down: {error}"),
            Reason::AtCapacity {
                limit,
                in_use,
                holders,
            } => {
                write!(f, "It waits for a slot: {in_use} of {limit} are taken")?;
                by(f, *in_use, holders)?;
                f.write_str(".")?;
                self.others_first(f, " ")
            }
            Reason::InLine => self.others_first(f, ""),
            Reason::NextInLine => f.write_str("It is the next of its workspace to be admitted."),
        }
    }
}

impl Why {
    fn others_first(&self, f: &mut fmt::Formatter<'_>, before: &str) -> fmt::Result {
        match self.ahead {
            None | Some(Ahead::Exactly(0)) => Ok(()),
            Some(Ahead::Exactly(1)) => {
                write!(f, "{before}One request of its workspace goes first.")
            }
            Some(Ahead::Exactly(n)) => write!(f, "{before}{n} requests of its workspace go first."),
            Some(Ahead::MoreThan(n)) => {
                write!(
                    f,
                    "{before}More than {n} requests of its workspace go first."
                )
            }
        }
    }
}

fn by(f: &mut fmt::Formatter<'_>, in_use: u32, holders: &[ExecutionId]) -> fmt::Result {
    let named = &holders[..holders.len().min(NAMED_MAX)];
    for (index, execution) in named.iter().enumerate() {
        let joint = if index == 0 { ", by" } else { "," };
        write!(f, "{joint} {execution}")?;
    }
    let more = (in_use as usize).saturating_sub(named.len());
    match more {
        0 => Ok(()),
        _ if named.is_empty() => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

#[cfg(test)]
mod tests;
