//! The groups of a queue in the model: an ordered list of those that have a job due and are not at their limit.

use super::Jobs;
use leasehold_core::job::JobEvent;
use leasehold_core::{JobId, JobStatus, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The group of jobs without one.
const NONE: &str = "";

/// The groups of a queue that has had a job with a group or a `group_limit`.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Groups {
    /// Whose turn it is, first to last.
    round: Vec<String>,
    /// The groups that may have a job due.
    has_jobs: BTreeSet<String>,
}

/// What a call changed; the order in which groups join depends on all of it.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct GroupCall {
    due: BTreeSet<JobId>,
    ended: BTreeMap<JobId, (String, String)>,
}

impl Jobs {
    /// Records that a job was inserted.
    pub(super) fn note_inserted(&mut self, id: JobId) {
        let new = &self.rows[&id].new;
        if new.group.is_some() {
            self.groups.entry(new.queue.clone()).or_default();
        }
        self.group_call.due.insert(id);
    }

    /// Records a transition of a job.
    pub(super) fn note_step(&mut self, id: JobId, event: JobEvent) {
        let row = &self.rows[&id];
        if event.requires_lease() || matches!(event, JobEvent::Expire | JobEvent::Exhaust) {
            let group = row.new.group.clone().unwrap_or_default();
            let of = (row.new.queue.clone(), group);
            self.group_call.ended.insert(id, of);
        }
        if row.status == JobStatus::Queued {
            self.group_call.due.insert(id);
        }
    }

    /// Lets groups join that the call gave a job, then those that it brought below their limit.
    pub(in crate::model) fn end_group_call(&mut self, now: Timestamp) {
        let call = std::mem::take(&mut self.group_call);
        for id in &call.due {
            let Some(row) = self.rows.get(id) else {
                continue;
            };
            if row.status != JobStatus::Queued || row.run_at > now {
                continue;
            }
            let of = (row.new.queue.clone(), row.new.group.clone());
            if let (queue, Some(group)) = of {
                let ended = call.ended.values();
                let ended = ended.filter(|of| of.0 == queue && of.1 == group).count();
                self.groups
                    .entry(queue.clone())
                    .or_default()
                    .has_jobs
                    .insert(group.clone());
                self.join(&queue, &group, ended);
            }
        }
        for (queue, group) in call.ended.values() {
            self.join(queue, group, 0);
        }
    }

    /// Adds a group to the round unless it is in it, is at its limit or has no job. `more`: how many more than recorded count as running.
    fn join(&mut self, queue: &str, group: &str, more: usize) {
        let is_blocked = self.room(queue, group) <= more;
        let Some(groups) = self.groups.get_mut(queue) else {
            return;
        };
        let is_in = groups.round.iter().any(|one| one == group);
        if !is_blocked && !is_in && groups.has_jobs.contains(group) {
            groups.round.push(group.to_owned());
        }
    }

    /// How many more jobs of a group its limit allows.
    fn room(&self, queue: &str, group: &str) -> usize {
        let Some(limit) = self.settings(queue).group_limit else {
            return usize::MAX;
        };
        let rows = self.rows.values();
        let running = rows
            .filter(|row| row.status == JobStatus::Running && row.new.queue == queue)
            .filter(|row| row.new.group.as_deref().unwrap_or(NONE) == group)
            .count();
        (limit as usize).saturating_sub(running)
    }

    /// Applies a new `group_limit` to the round.
    pub(in crate::model) fn apply_group_limit(&mut self, queue: &str) {
        if self.settings(queue).group_limit.is_some() {
            self.groups.entry(queue.to_owned()).or_default();
        }
        let Some(groups) = self.groups.get(queue) else {
            return;
        };
        let (round, has_jobs) = (groups.round.clone(), groups.has_jobs.clone());
        let kept = round
            .into_iter()
            .filter(|group| self.room(queue, group) > 0);
        let kept: Vec<String> = kept.collect();
        if let Some(groups) = self.groups.get_mut(queue) {
            groups.round = kept;
        }
        for group in has_jobs {
            self.join(queue, &group, 0);
        }
    }

    /// Takes the group of a cancelled job out of the round if it has no other job due.
    pub(super) fn leave_if_empty(&mut self, id: JobId, now: Timestamp) {
        let new = &self.rows[&id].new;
        let (queue, Some(group)) = (new.queue.clone(), new.group.clone()) else {
            return;
        };
        if self.due_of(&queue, &group, now).is_empty()
            && let Some(groups) = self.groups.get_mut(&queue)
        {
            groups.has_jobs.remove(&group);
            groups.round.retain(|one| *one != group);
        }
    }

    /// Due jobs of a group in claim order.
    fn due_of(&self, queue: &str, group: &str, now: Timestamp) -> Vec<JobId> {
        let of = |id: &JobId| self.rows[id].new.group.as_deref().unwrap_or(NONE) == group;
        self.due(queue, now).into_iter().filter(of).collect()
    }

    /// Makes due jobs of a queue ready: their groups join, and that of jobs without group joins or leaves.
    pub(super) fn make_ready(&mut self, queue: &str, now: Timestamp) {
        let due = self.due(queue, now);
        self.group_call.due.extend(due);
        self.end_group_call(now);
        let has_jobs = !self.due_of(queue, NONE, now).is_empty();
        if let Some(groups) = self.groups.get_mut(queue) {
            if has_jobs {
                groups.has_jobs.insert(NONE.to_owned());
            } else {
                groups.has_jobs.remove(NONE);
                groups.round.retain(|one| one != NONE);
            }
        }
        self.join(queue, NONE, 0);
    }

    /// Returns the first `most` jobs of a queue in claim order: by turns if it has groups.
    pub(super) fn in_turn(&self, queue: &str, most: usize, now: Timestamp) -> Vec<JobId> {
        let Some(groups) = self.groups.get(queue) else {
            let mut due = self.due(queue, now);
            due.truncate(most);
            return due;
        };
        let mut waiting: Vec<Vec<JobId>> = Vec::new();
        for group in &groups.round {
            let mut due = self.due_of(queue, group, now);
            due.truncate(self.room(queue, group));
            due.reverse();
            waiting.push(due);
        }
        let mut taken = Vec::new();
        while taken.len() < most && waiting.iter().any(|due| !due.is_empty()) {
            for due in &mut waiting {
                if taken.len() < most {
                    taken.extend(due.pop());
                }
            }
        }
        taken
    }

    /// Moves the groups of claimed jobs to the end of the round, in the order of their last jobs.
    pub(super) fn move_groups(&mut self, queue: &str, claimed: &[JobId], now: Timestamp) {
        for id in claimed {
            let group = self.rows[id].new.group.clone().unwrap_or_default();
            let has_jobs = group == NONE || !self.due_of(queue, &group, now).is_empty();
            if let Some(groups) = self.groups.get_mut(queue) {
                groups.round.retain(|one| *one != group);
                if !has_jobs {
                    groups.has_jobs.remove(&group);
                }
            }
            self.join(queue, &group, 0);
        }
    }
}
