//! Reads in the model: lists, positions, the overview and the stream of changes.

use super::Model;
use super::state::State;
use crate::factory::known;
use async_trait::async_trait;
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{
    ExecutionId, ExecutionStatus, RequestId, RequestStatus, Timestamp, WorkspaceId,
};
use leasehold_store::change::{Change, ChangeCursor, ChangePage, ChangeStart, ChangeStore, Event};
use leasehold_store::execution::{ActiveKey, Execution, ExecutionFilter};
use leasehold_store::request::{Counts, Request, RequestFilter};
use leasehold_store::workspace::{WorkspaceOverview, WorkspaceUse};
use leasehold_store::{Error, ErrorKind, Page, Result};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Returns the rows after the page's key, ordered by `key`.
pub(super) fn page<T, K: Ord + Copy>(
    mut rows: Vec<T>,
    page: Page<K>,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    rows.retain(|row| page.after.is_none_or(|after| key(row) > after));
    rows.sort_by_key(&key);
    rows.truncate(usize::try_from(page.rows()).unwrap_or(0));
    rows
}

impl State {
    pub(super) fn list_requests(
        &self,
        filter: &RequestFilter,
        at: Page<RequestId>,
    ) -> Vec<Request> {
        let newest = self.requests.values().rev().map(|row| &row.request);
        let passing = newest.filter(|r| {
            at.after.is_none_or(|after| r.id < after)
                && filter.workspace.is_none_or(|w| w == r.workspace)
                && filter.status.is_none_or(|s| s == known(&r.status))
                && filter.definition.is_none_or(|d| d == r.definition)
                && filter
                    .reason
                    .is_none_or(|x| r.failure_reason == Some(x.into()))
        });
        let rows = usize::try_from(at.rows()).unwrap_or(0);
        passing.take(rows).cloned().collect()
    }

    pub(super) fn list_executions(
        &self,
        filter: &ExecutionFilter,
        at: Page<i64>,
    ) -> Vec<Execution> {
        let passing = self.executions.values().filter(|e| {
            at.after.is_none_or(|after| e.admission < after)
                && e.workspace == filter.workspace
                && filter.status.is_none_or(|s| s == known(&e.status))
                && filter.definition.is_none_or(|d| d == e.definition)
        });
        let mut passing: Vec<Execution> = passing.cloned().collect();
        passing.sort_by_key(|e| std::cmp::Reverse(e.admission));
        passing.truncate(usize::try_from(at.rows()).unwrap_or(0));
        passing
    }

    pub(super) fn list_active(&self, at: Page<ActiveKey>) -> Vec<Execution> {
        let all = self.executions.values();
        let running = all.filter(|e| e.status == ExecutionStatus::Running);
        let at = Page {
            after: at.after.map(|key| (key.workspace, key.admission)),
            limit: at.limit,
        };
        page(running.cloned().collect(), at, |e| {
            (e.workspace, e.admission)
        })
    }

    pub(super) fn list_running(&self, ids: &[ExecutionId]) -> Vec<Execution> {
        let ids: BTreeSet<&ExecutionId> = ids.iter().collect();
        let known = ids.into_iter().filter_map(|id| self.executions.get(id));
        let running = known.filter(|e| e.status == ExecutionStatus::Running);
        running.cloned().collect()
    }

    pub(super) fn timeline(&self, workspace: WorkspaceId, id: RequestId) -> Vec<Event> {
        let all = self.events.values();
        let own = all.filter(|e| e.workspace == workspace && e.request == id);
        own.cloned().collect()
    }

    pub(super) fn workspace_overview(&self, limit: u32, now: Timestamp) -> WorkspaceOverview {
        let existing = self.existing().map(|workspace| WorkspaceUse {
            workspace: workspace.clone(),
            slots: self.slots(workspace.id).expect("the row exists"),
            requests: self.counts(workspace.id),
        });
        let mut busiest: Vec<WorkspaceUse> = existing.collect();
        let mut requests = Counts::default();
        for of in busiest.iter().map(|one| one.requests) {
            requests.pending += of.pending;
            requests.claimed += of.claimed;
            requests.dispatched += of.dispatched;
            requests.completed += of.completed;
            requests.failed += of.failed;
        }
        let workspaces = busiest.len() as u64;
        let business = |one: &WorkspaceUse| {
            let running = one.requests.claimed + one.requests.dispatched;
            Reverse((running, one.requests.pending))
        };
        busiest.sort_by_key(|one| (business(one), one.workspace.id));
        busiest.truncate(limit.min(PAGE_MAX) as usize);
        busiest.sort_by_key(|one| (business(one), one.workspace.name.clone()));
        WorkspaceOverview {
            at: now,
            workspaces,
            requests,
            busiest,
        }
    }

    /// The number of requests of the workspace ahead of a request in line.
    pub(super) fn request_position(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        now: Timestamp,
    ) -> Option<usize> {
        let all = self.requests.values().map(|row| &row.request);
        let line = all.filter(|r| {
            r.workspace == workspace
                && r.status == RequestStatus::Pending
                && r.run_at <= now
                && r.execution.is_none()
        });
        let mut line: Vec<_> = line.map(|r| (-r.priority, r.created_at, r.id)).collect();
        line.sort();
        line.iter().position(|(_, _, other)| *other == id)
    }

    /// Reads changes. A cursor is the number of the next event.
    pub(super) fn changes(
        &self,
        start: &ChangeStart,
        workspace: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<ChangePage> {
        let from = match start {
            ChangeStart::Oldest => 0,
            ChangeStart::Now => self.next_event,
            ChangeStart::After(cursor) => {
                match cursor.0.as_slice().try_into().map(u64::from_be_bytes) {
                    Ok(number) if number <= self.next_event => number,
                    _ => {
                        let kind = ErrorKind::Value("invalid cursor".to_owned());
                        return Err(Error::new("change_list", kind));
                    }
                }
            }
        };
        let limit = limit.clamp(1, PAGE_MAX) as usize;
        let wanted = |workspace_of| workspace.is_none_or(|own| own == workspace_of);
        let found = self
            .events
            .range(from..)
            .filter(|(_, e)| wanted(e.workspace));
        let changes: Vec<Change> = found
            .take(limit)
            .map(|(number, event)| Change {
                event: event.clone(),
                cursor: ChangeCursor((number + 1).to_be_bytes().to_vec()),
            })
            .collect();
        let end = ChangeCursor(self.next_event.to_be_bytes().to_vec());
        let cursor = match changes.last() {
            Some(last) if changes.len() == limit => last.cursor.clone(),
            _ => end.clone(),
        };
        let more = cursor != end;
        Ok(ChangePage {
            changes,
            cursor,
            more,
        })
    }
}

#[async_trait]
impl ChangeStore for Model {
    async fn change_list(
        &self,
        start: &ChangeStart,
        workspace: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<ChangePage> {
        self.state().changes(start, workspace, limit)
    }
}
