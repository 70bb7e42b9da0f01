//! Claims jobs of a queue with groups: one job of each group of the round in turn.

use crate::error::Fault;
use crate::job::claim::{
    Candidate, ClaimOrder, MAX_REMOVALS, Selection, WAITING, remaining_capacity, size,
};
use crate::job::group::{self, GroupChanges, ReadyGroup};
use crate::job::unusable::{self, UnusableJob};
use crate::job::{expire, wait};
use crate::notification::NotifyTarget;
use crate::queue::{self, QueueRow};
use crate::row::Text;
use crate::session::Session;
use leasehold_core::job::{JobClaim, JobsClaimed, Turns};
use leasehold_core::lease::bounded;
use leasehold_core::limits::CLAIM_MAX_BYTES;
use rusqlite::params;
use std::collections::VecDeque;

pub(super) fn claim(
    session: &Session<'_>,
    claim: &JobClaim,
    queue: &QueueRow,
    requested: u32,
) -> Result<JobsClaimed, Fault> {
    let mut groups = GroupChanges::default();
    let everywhere = queue::limit(session)?.is_some();
    let expired_of = (!everywhere).then_some(queue.id);
    expire::requeue_expired_with_groups(session, expired_of, &mut groups)?;
    wait::promote_with_groups(session, queue.id, &mut groups)?;
    groups.write(session)?;
    let order = ClaimOrder {
        session,
        queue,
        lease: claim.lease.map_or(queue.settings().lease, bounded),
    };
    if order.has_ungrouped()? {
        group::join(session, queue.id, group::NONE)?;
    } else {
        group::leave(session, queue.id, group::NONE)?;
    }
    let capacity = size(remaining_capacity(session, queue)?.min());
    // Select one job more than the limit allows, to know whether the limit was reached.
    let most = size(requested).min(capacity.saturating_add(1));
    let mut selected = order.select_in_turns(most)?;
    let at_limit = selected.givers.len() > capacity;
    selected.truncate(capacity);
    if selected.is_cut {
        // Other claims take the jobs that did not fit.
        session.notify(NotifyTarget::Workers);
    }
    order.move_groups(&mut selected)?;
    let jobs = order.lease_selected(selected.into_selection(), &claim.worker)?;
    let next_due_in = if jobs.len() < size(requested) {
        wait::next_due_in(session, queue.id)?
    } else {
        None
    };
    Ok(JobsClaimed {
        jobs,
        at_limit,
        next_due_in,
    })
}

/// Jobs in claim order with the groups that gave them, not leased yet.
#[derive(Default)]
struct TurnSelection {
    jobs: Vec<Candidate>,
    /// The index of the source of each job.
    givers: Vec<usize>,
    sources: Vec<Source>,
    /// The lines of the jobs without group.
    ungrouped: Selection,
    /// Whether the next job did not fit into [`CLAIM_MAX_BYTES`].
    is_cut: bool,
}

/// A group and the first of its jobs that are not selected.
struct Source {
    group: ReadyGroup,
    rows: VecDeque<Candidate>,
    /// How many rows were read.
    read: usize,
    /// Whether no job follows the rows.
    ended: bool,
    /// How many of its jobs were selected.
    gave: usize,
}

impl Source {
    fn new(group: ReadyGroup) -> Self {
        Self {
            group,
            rows: VecDeque::new(),
            read: 0,
            ended: false,
            gave: 0,
        }
    }

    fn has_room(&self) -> bool {
        self.group.room.is_none_or(|room| self.gave < size(room))
    }
}

impl TurnSelection {
    fn truncate(&mut self, most: usize) {
        self.jobs.truncate(most);
        self.givers.truncate(most);
    }

    fn into_selection(self) -> Selection {
        Selection {
            jobs: self.jobs,
            parts: self.ungrouped.parts,
            is_cut: self.is_cut,
        }
    }
}

impl ClaimOrder<'_> {
    /// Returns the first jobs in turn, up to `most`. Removes jobs that nothing can run, and groups without jobs.
    fn select_in_turns(&self, most: usize) -> Result<TurnSelection, Fault> {
        for _ in 0..MAX_REMOVALS {
            let mut unusable = Vec::new();
            let selection = self.select_usable_in_turns(most, &mut unusable)?;
            let idle = selection.sources.iter().filter(|source| {
                source.gave == 0
                    && source.ended
                    && source.rows.is_empty()
                    && source.group.name != group::NONE
            });
            let mut left = false;
            for source in idle {
                group::leave(self.session, self.queue.id, &source.group.name)?;
                left = true;
            }
            // Groups that left may have kept others out of the selection.
            let is_short = left && selection.jobs.len() < most && selection.sources.len() == most;
            if unusable.is_empty() && !is_short {
                return Ok(selection);
            }
            unusable::remove(self.session, self.queue.id, unusable)?;
        }
        // The next claim goes on.
        self.session.notify(NotifyTarget::Workers);
        Ok(TurnSelection::default())
    }

    /// Returns the first jobs in turn. If some of them are unusable, the selection must not be leased.
    fn select_usable_in_turns(
        &self,
        most: usize,
        unusable: &mut Vec<UnusableJob>,
    ) -> Result<TurnSelection, Fault> {
        let limit = u32::try_from(most).unwrap_or(u32::MAX);
        let groups = group::round(self.session, self.queue.id, limit)?;
        let mut turns = Turns::new(groups.iter().map(|_| 0), None);
        let mut selection = TurnSelection {
            sources: groups.into_iter().map(Source::new).collect(),
            ..TurnSelection::default()
        };
        let mut bytes = 0_usize;
        while selection.jobs.len() < most
            && let Some(turn) = turns.next_turn()
        {
            let at = turn.group();
            self.fill(&mut selection, at, most, unusable)?;
            let is_ungrouped = selection.sources[at].group.name == group::NONE;
            let Some(candidate) = selection.sources[at].rows.pop_front() else {
                if is_ungrouped && selection.ungrouped.is_cut {
                    selection.is_cut = true;
                    break;
                }
                continue;
            };
            bytes = bytes.saturating_add(candidate.bytes());
            if bytes > CLAIM_MAX_BYTES && !selection.jobs.is_empty() {
                selection.sources[at].rows.push_front(candidate);
                selection.is_cut = true;
                break;
            }
            selection.jobs.push(candidate);
            selection.givers.push(at);
            selection.sources[at].gave += 1;
            turns.gave(turn, selection.sources[at].has_room());
        }
        Ok(selection)
    }

    /// Reads further jobs of a source that has none left.
    fn fill(
        &self,
        selection: &mut TurnSelection,
        at: usize,
        most: usize,
        unusable: &mut Vec<UnusableJob>,
    ) -> Result<(), Fault> {
        let groups = selection.sources.len().max(1);
        let source = &mut selection.sources[at];
        if !source.rows.is_empty() || source.ended {
            return Ok(());
        }
        if source.group.name == group::NONE {
            let limit = u32::try_from(most).unwrap_or(u32::MAX);
            let mut found = self.select_usable(limit, unusable)?;
            source.rows = std::mem::take(&mut found.jobs).into();
            source.ended = true;
            selection.ungrouped = found;
            return Ok(());
        }
        // One more than its share, to know whether it has more.
        let wanted = most.div_ceil(groups) + 1;
        let mut bytes = 0_usize;
        let mut found = 0;
        self.session.with_statement(WAITING, |statement| {
            let row = params![self.queue.id, wanted, Text(&source.group.name), source.read];
            let mut rows = statement.query(row)?;
            while let Some(row) = rows.next()? {
                // What is read ahead must not need much memory.
                let size = row.get_ref(4)?.as_bytes_or_null().ok().flatten();
                bytes = bytes.saturating_add(size.map_or(0, <[u8]>::len));
                if found > 0 && bytes > CLAIM_MAX_BYTES / groups {
                    return Ok(());
                }
                found += 1;
                let is_orphan: bool = row.get(17)?;
                match self.waiting(row) {
                    _ if is_orphan => unusable.push(UnusableJob::deleted(row.get(0)?)),
                    Ok(candidate) => source.rows.push_back(candidate),
                    Err(fault) => unusable.push(UnusableJob::unreadable(row.get(0)?, None, fault)),
                }
            }
            source.ended = found < wanted;
            Ok(())
        })?;
        source.read += found;
        Ok(())
    }

    /// Moves the groups that gave jobs to the end of the round, in the order of their last jobs.
    fn move_groups(&self, selection: &mut TurnSelection) -> Result<(), Fault> {
        let mut taken = vec![0_u32; selection.sources.len()];
        for &giver in &selection.givers {
            taken[giver] += 1;
        }
        let mut last_first = Vec::new();
        let mut seen = vec![false; taken.len()];
        for &giver in selection.givers.iter().rev() {
            if !std::mem::replace(&mut seen[giver], true) {
                last_first.push(giver);
            }
        }
        for &at in last_first.iter().rev() {
            let is_taken = size(taken[at]) == selection.sources[at].gave;
            if is_taken {
                // A job that cannot be read counts as one: the next claim removes it.
                self.fill(selection, at, 1, &mut Vec::new())?;
            }
            let source = &selection.sources[at];
            let more = source.group.name == group::NONE
                || !is_taken
                || !source.rows.is_empty()
                || !source.ended;
            group::take(
                self.session,
                self.queue.id,
                &source.group.name,
                taken[at],
                more,
            )?;
        }
        Ok(())
    }

    /// Returns whether a job without group is due.
    fn has_ungrouped(&self) -> Result<bool, Fault> {
        if !crate::job::line::first(self.session, self.queue.id, 1)?.is_empty() {
            return Ok(true);
        }
        let row = params![self.queue.id, 1, group::NONE, 0];
        Ok(self.session.optional(WAITING, row, |_| Ok(()))?.is_some())
    }
}
