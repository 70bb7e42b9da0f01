//! Definitions and their immutable versions.

use crate::Fixture;
use crate::factory::{binding, ids, new_request, ok};
use crate::graph_factory::{graph_of, task_in};
use futures::future::join_all;
use leasehold_core::graph::{Edge, Graph, Node, NodeKind};
use leasehold_core::limits::CATALOG_ROW_BYTES;
use leasehold_core::{DefinitionId, FailureReason, Plan, RequestStatus, VersionBody, WorkspaceId};
use leasehold_store::definition::{
    Definition, DefinitionCreated, NewDefinition, NewVersion, Publisher, Version, VersionPublished,
};
use leasehold_store::request::{Enqueued, Rejected};
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store::{Page, fresh_id};
use serde_json::json;
use std::time::Duration;

fn named(workspace: WorkspaceId, name: &str) -> NewDefinition {
    NewDefinition {
        id: fresh_id(),
        workspace,
        name: name.into(),
    }
}

/// A definition has no version until one is published.
pub async fn new_definition_has_no_version(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let new = named(workspace, "orders");
    let expected = Definition {
        id: new.id,
        workspace,
        name: "orders".into(),
        current_version: None,
        created_at: f.now(),
    };
    let created = ok(f
        .store
        .definition_create(&new, &leasehold_store::Actor::Local)
        .await);
    assert_eq!(created, DefinitionCreated::Created(expected.clone()));
    let read = ok(f.store.definition_get(workspace, new.id).await);
    assert_eq!(read, Some(expected));
    let versions = f.store.version_list(workspace, new.id, Page::first(10));
    assert_eq!(ok(versions.await), []);
}

/// A name is unique among the definitions of one workspace that are not deleted.
pub async fn name_is_unique_in_its_workspace_until_deleted(f: Fixture) {
    let one = f.bare_workspace(Plan::Free, None).await.id;
    let two = f.bare_workspace(Plan::Free, None).await.id;
    let first = named(one, "orders");
    for new in [&first, &named(two, "orders")] {
        let created = ok(f
            .store
            .definition_create(new, &leasehold_store::Actor::Local)
            .await);
        assert!(matches!(created, DefinitionCreated::Created(_)));
    }
    let again = named(one, "orders");
    let taken = ok(f
        .store
        .definition_create(&again, &leasehold_store::Actor::Local)
        .await);
    assert_eq!(taken, DefinitionCreated::NameTaken);
    assert!(ok(f
        .store
        .definition_delete(one, first.id, &leasehold_store::Actor::Local)
        .await));
    let created = ok(f
        .store
        .definition_create(&again, &leasehold_store::Actor::Local)
        .await);
    assert!(matches!(created, DefinitionCreated::Created(_)));
}

/// A definition cannot be created in an unknown or deleted workspace.
pub async fn creation_needs_an_existing_workspace(f: Fixture) {
    let unknown = ok(f
        .store
        .definition_create(&named(fresh_id(), "a"), &leasehold_store::Actor::Local)
        .await);
    assert_eq!(unknown, DefinitionCreated::WorkspaceNotFound);
    let gone = f.bare_workspace(Plan::Free, None).await.id;
    assert!(ok(f
        .store
        .workspace_delete(gone, &leasehold_store::Actor::Local)
        .await));
    let deleted = ok(f
        .store
        .definition_create(&named(gone, "a"), &leasehold_store::Actor::Local)
        .await);
    assert_eq!(deleted, DefinitionCreated::WorkspaceNotFound);
}

/// The list has the workspace's definitions, ordered by id, in pages, without deleted ones.
pub async fn list_is_ordered_by_id_without_deleted_ones(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let other = f.bare_workspace(Plan::Free, None).await.id;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(f.create_draft(workspace).await);
        f.create_draft(other).await;
    }
    assert!(ok(f
        .store
        .definition_delete(workspace, made.remove(1), &leasehold_store::Actor::Local)
        .await));
    let mut listed = Vec::new();
    let mut page = Page::first(3);
    loop {
        let rows = ok(f.store.definition_list(workspace, page).await);
        assert!(rows.len() <= 3);
        let Some(last) = rows.last() else { break };
        page = Page::after(last.id, 3);
        listed.extend(rows.iter().map(|d| d.id));
    }
    assert_eq!(listed, made);
}

/// A definition is found by its exact name in its own workspace; a deleted one is not found.
pub async fn is_found_by_exact_name_in_its_workspace(f: Fixture) {
    let one = f.bare_workspace(Plan::Free, None).await.id;
    let two = f.bare_workspace(Plan::Free, None).await.id;
    let (own, other) = (named(one, "orders"), named(two, "orders"));
    for new in [&own, &other, &named(two, "parcels")] {
        ok(f.store
            .definition_create(new, &leasehold_store::Actor::Local)
            .await);
    }
    let version = f.publish(one, own.id).await.id;
    let find = async |workspace, name| ok(f.store.definition_find(workspace, name).await);
    let found = find(one, "orders").await;
    assert_eq!(found, ok(f.store.definition_get(one, own.id).await));
    assert_eq!(found.and_then(|d| d.current_version), Some(version));
    assert_eq!(find(two, "orders").await.map(|d| d.id), Some(other.id));
    for name in ["", "order", "Orders", "orders ", "parcels", "%"] {
        assert_eq!(find(one, name).await, None, "{name}");
    }
    assert_eq!(find(fresh_id(), "orders").await, None);
    assert!(ok(f
        .store
        .definition_delete(one, own.id, &leasehold_store::Actor::Local)
        .await));
    assert_eq!(find(one, "orders").await, None);
    assert!(find(two, "orders").await.is_some());
}

/// Versions are numbered from 1 and the newest is the current one.
pub async fn versions_are_numbered_and_the_newest_is_current(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let definition = f.create_draft(workspace).await;
    let mut published = Vec::new();
    for number in 1..=4 {
        f.advance(1);
        let version = f.publish(workspace, definition).await;
        assert_eq!((version.number, version.created_at), (number, f.now()));
        let read = ok(f.store.definition_get(workspace, definition).await);
        let current = read.and_then(|d| d.current_version);
        assert_eq!(current, Some(version.id));
        published.push(version);
    }
    let all = f.versions(workspace, definition, Page::first(10)).await;
    assert_eq!(all, published);
    let rest = f.versions(workspace, definition, Page::after(2, 1)).await;
    assert_eq!(rest, published[2..3]);
}

/// A version is read back with all its fields, graph or binding.
pub async fn version_is_read_back_as_published(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let definition = f.create_draft(workspace).await;
    let task = |id: &str| {
        let kind = NodeKind::Task {
            queue: "mail".into(),
            kind: None,
        };
        Node::new(id, kind)
    };
    let graph = VersionBody::Graph(Graph {
        nodes: vec![task("a"), task("b")],
        edges: vec![Edge {
            from: "a".into(),
            to: "b".into(),
        }],
    });
    for (number, body) in [(1, graph), (2, binding())] {
        let new = NewVersion {
            id: fresh_id(),
            workspace,
            definition,
            body: body.clone(),
            params_schema: Some(json!({"type": "object", "required": ["ä", "b"]})),
            execution_timeout: Some(Duration::from_millis(90_001)),
            publisher: Publisher::Administrator,
        };
        let expected = Version {
            id: new.id,
            workspace,
            definition,
            number,
            body,
            params_schema: new.params_schema.clone(),
            execution_timeout: new.execution_timeout,
            created_at: f.now(),
        };
        let published = ok(f
            .store
            .version_publish(&new, &leasehold_store::Actor::Local)
            .await);
        assert_eq!(published.version(), Some(expected.clone()));
        let read = ok(f.store.version_get(workspace, new.id).await);
        assert_eq!(read.as_deref(), Some(&expected));
        let again = ok(f.store.version_get(workspace, new.id).await);
        assert_eq!(again, read);
    }
}

/// Publishing fails for an unknown or deleted definition.
pub async fn unknown_or_deleted_definition_cannot_publish(f: Fixture) {
    let workspace = f.workspace(1).await;
    assert!(ok(f
        .store
        .definition_delete(
            workspace.workspace,
            workspace.definition,
            &leasehold_store::Actor::Local
        )
        .await));
    let unknown: DefinitionId = fresh_id();
    for definition in [unknown, workspace.definition] {
        let new = NewVersion {
            id: fresh_id(),
            workspace: workspace.workspace,
            definition,
            body: binding(),
            params_schema: None,
            execution_timeout: None,
            publisher: Publisher::Administrator,
        };
        let published = ok(f
            .store
            .version_publish(&new, &leasehold_store::Actor::Local)
            .await);
        assert_eq!(published, VersionPublished::DefinitionNotFound);
        assert_eq!(
            ok(f.store.version_get(workspace.workspace, new.id).await),
            None
        );
    }
}

/// Concurrent publishes get distinct numbers without gaps.
pub async fn concurrent_publishes_get_distinct_numbers(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let definition = f.create_draft(workspace).await;
    let published = futures::future::join_all((0..12).map(|_| f.publish(workspace, definition)));
    let mut numbers: Vec<u32> = published.await.iter().map(|v| v.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=12).collect::<Vec<u32>>());
}

/// A deleted definition is not found, its versions stay readable, and a second deletion returns false.
pub async fn deleted_definition_keeps_its_versions(f: Fixture) {
    let t = f.workspace(1).await;
    assert!(ok(f
        .store
        .definition_delete(t.workspace, t.definition, &leasehold_store::Actor::Local)
        .await));
    assert!(!ok(f
        .store
        .definition_delete(t.workspace, t.definition, &leasehold_store::Actor::Local)
        .await));
    let read = ok(f.store.definition_get(t.workspace, t.definition).await);
    assert_eq!(read, None);
    let version = ok(f.store.version_get(t.workspace, t.version).await);
    assert_eq!(version.map(|v| v.id), Some(t.version));
    let enqueued = f.try_enqueue(t.workspace, vec![new_request(&t)]).await;
    assert_eq!(enqueued, Enqueued::DefinitionNotFound(t.definition));
}

/// Pending requests of a deleted definition fail when their turn comes, take no slot and do not block the next request.
pub async fn pending_requests_of_a_deleted_definition_fail_at_the_claim(f: Fixture) {
    let t = f.workspace(1).await;
    let doomed = f.enqueue(&t, 2).await;
    assert!(ok(f
        .store
        .definition_delete(t.workspace, t.definition, &leasehold_store::Actor::Local)
        .await));
    let living = f.create_draft(t.workspace).await;
    f.publish(t.workspace, living).await;
    let other = crate::TestWorkspace {
        definition: living,
        ..t
    };
    let good = f.enqueue(&other, 2).await;
    let claimed = f.drain(10).await;
    let expected: Vec<_> = doomed
        .iter()
        .map(|request| Rejected {
            request: *request,
            workspace: t.workspace,
            reason: FailureReason::DefinitionNotFound,
        })
        .collect();
    assert_eq!(claimed.rejected, expected);
    assert_eq!(ids(&claimed), good[..1]);
    let failed = f.request(t.workspace, doomed[0]).await;
    assert_eq!(failed.status, RequestStatus::Failed);
    assert_eq!(
        failed.failure_reason,
        Some(FailureReason::DefinitionNotFound.into())
    );
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
}

impl Fixture {
    /// Sets the quota of a workspace to this many bytes.
    async fn set_quota(&self, workspace: WorkspaceId, bytes: u64) {
        let change = WorkspaceChange {
            max_open_bytes_override: Some(Some(bytes)),
            ..WorkspaceChange::default()
        };
        self.change(workspace, change).await;
    }
}

fn version_of(workspace: WorkspaceId, definition: DefinitionId, queue: &str) -> NewVersion {
    NewVersion {
        id: fresh_id(),
        workspace,
        definition,
        body: VersionBody::Graph(graph_of(vec![task_in(queue, "a")], &[])),
        params_schema: Some(json!({"type": "object"})),
        execution_timeout: None,
        publisher: Publisher::Workspace,
    }
}

/// Definitions and versions count towards the workspace's quota, also when they are deleted. What exceeds it is refused and leaves nothing, and
/// another workspace is not affected.
pub async fn definitions_and_versions_count_towards_the_quota(f: Fixture) {
    let by = leasehold_store::Actor::Local;
    let own = f.bare_workspace(Plan::Free, None).await.id;
    let definition = f.create_draft(own).await;
    let version = version_of(own, definition, "one");
    assert!(version.bytes() > CATALOG_ROW_BYTES);
    let used = CATALOG_ROW_BYTES + version.bytes();
    f.set_quota(own, used - 1).await;
    let refused = ok(f.store.version_publish(&version, &by).await);
    assert_eq!(refused, VersionPublished::QuotaExceeded);
    assert_eq!(ok(f.store.version_get(own, version.id).await), None);
    assert_eq!(ok(f.store.queue_get("one").await), None);
    f.set_quota(own, used).await;
    let published = ok(f.store.version_publish(&version, &by).await);
    assert_eq!(published.version().map(|version| version.number), Some(1));
    assert!(ok(f.store.definition_delete(own, definition, &by).await));
    // A deleted definition stays in the store.
    let again = named(own, "again");
    f.set_quota(own, used + CATALOG_ROW_BYTES - 1).await;
    let refused = ok(f.store.definition_create(&again, &by).await);
    assert_eq!(refused, DefinitionCreated::QuotaExceeded);
    assert_eq!(ok(f.store.definition_get(own, again.id).await), None);
    f.set_quota(own, used + CATALOG_ROW_BYTES).await;
    let created = ok(f.store.definition_create(&again, &by).await);
    assert!(matches!(created, DefinitionCreated::Created(_)));
    // A refusal for another reason counts nothing.
    for _ in 0..3 {
        let taken = ok(f.store.definition_create(&named(own, "again"), &by).await);
        assert_eq!(taken, DefinitionCreated::NameTaken);
    }
    let last = version_of(own, again.id, "one");
    f.set_quota(own, used + CATALOG_ROW_BYTES + last.bytes())
        .await;
    let published = ok(f.store.version_publish(&last, &by).await);
    assert_eq!(published.version().map(|version| version.number), Some(1));
    let other = f.bare_workspace(Plan::Free, None).await.id;
    f.create_draft(other).await;
}

/// Concurrent publishes do not exceed the quota together.
pub async fn concurrent_publishes_do_not_exceed_the_quota(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, None).await.id;
    let definition = f.create_draft(own).await;
    let versions: Vec<NewVersion> = (0..8).map(|_| version_of(own, definition, "one")).collect();
    let each = versions[0].bytes();
    f.set_quota(own, CATALOG_ROW_BYTES + 3 * each).await;
    let by = leasehold_store::Actor::Local;
    let publishes = versions
        .iter()
        .map(|version| f.store.version_publish(version, &by));
    let outcomes = join_all(publishes).await.into_iter().map(ok);
    let published = outcomes.filter(|outcome| matches!(outcome, VersionPublished::Published(_)));
    assert_eq!(published.count(), 3);
    let listed = f.store.version_list(own, definition, Page::first(10));
    assert_eq!(ok(listed.await).len(), 3);
}
