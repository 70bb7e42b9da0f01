//! Reads everything that a store exposes through its trait, for comparisons. Checks nothing.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::Page;
use leasehold_store::change::Event;
use leasehold_store::definition::{Definition, Version};
use leasehold_store::execution::Execution;
use leasehold_store::lock::LockState;
use leasehold_store::request::{Counts, Request, RequestFilter};
use leasehold_store::workspace::{SlotUse, Workspace};
use std::collections::{BTreeMap, BTreeSet};

/// Page size: small enough that dumps also test paging.
const PAGE: u32 = 100;

/// The full content of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    /// Workspaces, including tombstones that own requests.
    pub workspaces: BTreeMap<WorkspaceId, Workspace>,
    /// Definitions that are not deleted.
    pub definitions: Vec<Definition>,
    /// Their versions.
    pub versions: Vec<Version>,
    /// Requests by id.
    pub requests: BTreeMap<RequestId, Request>,
    /// Their timelines.
    pub timelines: BTreeMap<RequestId, Vec<Event>>,
    /// Their executions.
    pub executions: BTreeMap<RequestId, Execution>,
    /// Counts by workspace.
    pub counts: BTreeMap<WorkspaceId, Counts>,
    /// Slot use by workspace.
    pub slots: BTreeMap<WorkspaceId, Option<SlotUse>>,
    /// Named locks.
    pub locks: Vec<LockState>,
}

impl Fixture {
    /// Reads everything.
    pub async fn dump(&self) -> Dump {
        let requests: BTreeMap<_, _> = self
            .list_all(&RequestFilter::default(), PAGE)
            .await
            .into_iter()
            .map(|request| (request.id, request))
            .collect();
        let mut dump = Dump {
            workspaces: self.all_workspaces(&requests).await,
            definitions: Vec::new(),
            versions: Vec::new(),
            timelines: BTreeMap::new(),
            executions: BTreeMap::new(),
            counts: BTreeMap::new(),
            slots: BTreeMap::new(),
            locks: ok(self.store.lock_list().await),
            requests,
        };
        let ids: Vec<WorkspaceId> = dump.workspaces.keys().copied().collect();
        for id in ids {
            self.dump_workspace(id, &mut dump).await;
        }
        for request in dump.requests.values() {
            let timeline = self.timeline(request.workspace, request.id).await;
            dump.timelines.insert(request.id, timeline);
            if let Some(id) = request.execution
                && let Some(execution) = self.execution(request.workspace, id).await
            {
                dump.executions.insert(request.id, execution);
            }
        }
        dump
    }

    async fn dump_workspace(&self, id: WorkspaceId, dump: &mut Dump) {
        dump.counts.insert(id, self.counts(id).await);
        let slots = ok(self.store.workspace_slots(id).await);
        dump.slots.insert(id, slots);
        let page = Page::first(1_000);
        let definitions = ok(self.store.definition_list(id, page).await);
        for definition in definitions {
            let page = Page::first(1_000);
            let versions = self.versions(id, definition.id, page).await;
            dump.versions.extend(versions);
            dump.definitions.push(definition);
        }
    }

    async fn all_workspaces(
        &self,
        requests: &BTreeMap<RequestId, Request>,
    ) -> BTreeMap<WorkspaceId, Workspace> {
        let mut found = BTreeMap::new();
        let mut page = Page::first(PAGE);
        loop {
            let rows = ok(self.store.workspace_list(page).await);
            let Some(last) = rows.last().map(|w| w.id) else {
                break;
            };
            page = Page::after(last, PAGE);
            found.extend(rows.into_iter().map(|w| (w.id, w)));
        }
        let owners: BTreeSet<WorkspaceId> = requests.values().map(|r| r.workspace).collect();
        for id in owners {
            if let Some(workspace) = ok(self.store.workspace_get(id).await) {
                found.insert(id, workspace);
            }
        }
        found
    }

    /// Returns every request that matches the filter, newest first, read in pages of `limit`.
    pub async fn list_all(&self, filter: &RequestFilter, limit: u32) -> Vec<Request> {
        let mut all: Vec<Request> = Vec::new();
        let mut page = Page::first(limit);
        loop {
            let rows = ok(self.store.request_list(filter, page).await);
            assert!(rows.len() <= limit as usize, "the page exceeds its limit");
            let Some(last) = rows.last().map(|r| r.id) else {
                return all;
            };
            page = Page::after(last, limit);
            all.extend(rows);
        }
    }
}
