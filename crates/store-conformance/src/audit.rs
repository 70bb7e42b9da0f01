//! The audit log: every change to keys, workspaces, limits, queues and definitions is recorded with its actor, in the transaction of the change.

use crate::Fixture;
use crate::factory::ok;
use crate::graph_factory::{graph_of, task_in};
use crate::key::new_key;
use leasehold_core::duration::millis;
use leasehold_core::job::JobRetry;
use leasehold_core::key::KeyScope;
use leasehold_core::retry::Backoff;
use leasehold_core::{AuditId, Plan, VersionBody};
use leasehold_store::audit::{AuditAction, AuditEntry, AuditFilter};
use leasehold_store::definition::{NewDefinition, NewVersion, Publisher};
use leasehold_store::key::KeyRotation;
use leasehold_store::queue::{QueueChange, SharedWith};
use leasehold_store::workspace::{NewWorkspace, WorkspaceChange};
use leasehold_store::{Actor, Page, fresh_id};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

impl Fixture {
    /// Returns the entries that a filter selects, newest first, read in pages of `limit`.
    async fn audit(&self, filter: &AuditFilter, limit: u32) -> Vec<AuditEntry> {
        let mut all: Vec<AuditEntry> = Vec::new();
        let mut page = Page::first(limit);
        loop {
            let rows = ok(self.store.audit_list(filter, page).await);
            assert!(rows.len() <= limit as usize);
            let Some(last) = rows.last() else { return all };
            page = Page::after(last.id, limit);
            all.extend(rows);
        }
    }

    async fn entries(&self) -> Vec<AuditEntry> {
        self.audit(&AuditFilter::default(), 100).await
    }
}

fn key_actor(name: &str) -> Actor {
    Actor::Key {
        id: fresh_id(),
        name: name.to_owned(),
    }
}

fn workspace(name: &str) -> NewWorkspace {
    NewWorkspace {
        id: fresh_id(),
        name: name.to_owned(),
        plan: Plan::Free,
        limit_override: Some(3),
    }
}

/// Makes one change of every kind as this actor.
async fn change_everything(f: &Fixture, by: &Actor) {
    let new = workspace("audited");
    ok(f.store.workspace_create(&new, by).await);
    let change = WorkspaceChange {
        plan: Some(Plan::Pro),
        limit_override: Some(None),
        max_pending_override: Some(Some(5)),
        max_open_bytes_override: Some(Some(1 << 20)),
        paused: Some(true),
    };
    ok(f.store.workspace_update(new.id, &change, by).await);
    let definition = NewDefinition {
        id: fresh_id(),
        workspace: new.id,
        name: "order".to_owned(),
    };
    ok(f.store.definition_create(&definition, by).await);
    let version = NewVersion {
        id: fresh_id(),
        workspace: new.id,
        definition: definition.id,
        body: delay_graph(),
        params_schema: None,
        execution_timeout: None,
        publisher: Publisher::Workspace,
    };
    ok(f.store.version_publish(&version, by).await);
    ok(f.store.definition_delete(new.id, definition.id, by).await);
    let queue = QueueChange {
        limit: Some(Some(7)),
        paused: Some(true),
        keep_completed: Some(false),
        lease: Some(Duration::from_secs(30)),
        retry: Some(JobRetry::default()),
        timeout: Some(None),
    };
    ok(f.store.queue_update("audited", &queue, by).await);
    let with = SharedWith::Workspaces(vec!["audited".to_owned()]);
    ok(f.store.queue_share("audited", &with, by).await);
    ok(f.store.job_limit_set(Some(9), by).await);
    let key = new_key(KeyScope::Workspace(new.id));
    ok(f.store.key_create(&key, by).await);
    let successor = new_key(KeyScope::Admin);
    let rotation = KeyRotation {
        id: key.id,
        successor: successor.id,
        hash: successor.hash,
        overlap: Duration::from_secs(60),
        expires_in: Some(Duration::from_secs(90)),
    };
    ok(f.store.key_rotate(&rotation, by).await);
    ok(f.store.key_revoke(key.id, by).await);
    ok(f.store
        .key_create_first(&new_key(KeyScope::Admin), by)
        .await);
    ok(f.store.workspace_delete(new.id, by).await);
}

fn delay_graph() -> leasehold_core::VersionBody {
    serde_json::from_value(json!({
        "graph": {"nodes": [{"id": "a", "type": "delay", "milliseconds": 1}]}
    }))
    .expect("the body is valid")
}

/// A change of every kind leaves an entry with its actor, its time and the new values, and nothing of a secret.
pub async fn every_change_is_recorded_with_its_actor(f: Fixture) {
    let by = key_actor("operator");
    change_everything(&f, &by).await;
    let entries = f.entries().await;
    let actions: Vec<&str> = entries.iter().map(|e| e.action.as_str()).collect();
    let expected = [
        "workspace_delete",
        "key_create",
        "key_revoke",
        "key_rotate",
        "key_create",
        "job_limit_set",
        "queue_share",
        "queue_update",
        "definition_delete",
        "version_publish",
        "definition_create",
        "workspace_update",
        "workspace_create",
    ];
    assert_eq!(actions, expected);
    let all: BTreeSet<&str> = AuditAction::ALL.iter().map(|a| a.as_str()).collect();
    assert_eq!(actions.iter().copied().collect::<BTreeSet<_>>(), all);
    let hash = format!("{:?}", [7_u8; 16]);
    for entry in &entries {
        assert_eq!((&entry.actor, entry.at), (&by, f.now()));
        assert!(!format!("{entry:?}").contains(&hash[1..30]), "{entry:?}");
    }
    let of = |action: &str| entries.iter().find(|entry| entry.action == action);
    let update = of("workspace_update").expect("it is recorded");
    let details = json!({
        "name": "audited", "plan": "PRO", "max_concurrent_executions": null, "max_pending": 5, "max_open_bytes": 1 << 20, "paused": true,
    });
    assert_eq!(update.details, details);
    assert_eq!(
        update.workspace.map(|id| id.to_string()),
        Some(update.target.clone())
    );
    let queue = of("queue_update").expect("it is recorded");
    assert_eq!((queue.target.as_str(), queue.workspace), ("audited", None));
    let backoff = Backoff::default();
    let details = json!({
        "limit": 7, "paused": true, "keep_completed": false, "lease_ms": 30_000, "timeout_ms": null,
        "max_attempts": JobRetry::default().max_attempts,
        "backoff": {
            "base_ms": millis(backoff.base), "factor": backoff.factor, "max_ms": millis(backoff.max), "jitter": backoff.jitter,
        },
    });
    assert_eq!(queue.details, details);
    let rotate = of("key_rotate").expect("it is recorded");
    let in_seconds = |seconds| json!((f.now() + Duration::from_secs(seconds)).to_string());
    assert_eq!(rotate.details["expires_at"], in_seconds(60));
    assert_eq!(rotate.details["successor_expires_at"], in_seconds(90));
    let share = of("queue_share").expect("it is recorded");
    assert_eq!((share.target.as_str(), share.workspace), ("audited", None));
    assert_eq!(share.details, json!({"workspaces": ["audited"]}));
}

/// A call that changes nothing is not recorded.
pub async fn refused_changes_are_not_recorded(f: Fixture) {
    let by = key_actor("operator");
    ok(f.store.workspace_create(&workspace("one"), &by).await);
    let key = f.key(KeyScope::Admin).await;
    ok(f.store.key_revoke(key.id, &by).await);
    let before = f.entries().await;
    ok(f.store.workspace_create(&workspace("one"), &by).await);
    let unknown = fresh_id();
    let change = WorkspaceChange::default();
    ok(f.store.workspace_update(unknown, &change, &by).await);
    ok(f.store.workspace_delete(unknown, &by).await);
    ok(f.store.definition_delete(unknown, fresh_id(), &by).await);
    let with = SharedWith::Workspaces(vec!["unknown".to_owned()]);
    ok(f.store.queue_share("shared", &with, &by).await);
    let orphan = new_key(KeyScope::Workspace(unknown));
    ok(f.store.key_create(&orphan, &by).await);
    ok(f.store.key_revoke(fresh_id(), &by).await);
    // Revoked before.
    ok(f.store.key_revoke(key.id, &by).await);
    let mut invalid = new_key(KeyScope::Admin);
    invalid.name.clear();
    assert!(f.store.key_create(&invalid, &by).await.is_err());
    assert_eq!(f.entries().await, before);
}

/// A local command is recorded without a key.
pub async fn local_command_is_recorded_as_local(f: Fixture) {
    let first = new_key(KeyScope::Admin);
    ok(f.store.key_create_first(&first, &Actor::Local).await);
    let entries = f.entries().await;
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0].actor, entries[0].actor.name()),
        (&Actor::Local, "local")
    );
    assert_eq!(entries[0].target, first.id.to_string());
}

/// Every combination of filters selects exactly its entries, newest first, with pages of any size.
pub async fn filters_select_their_entries(f: Fixture) {
    let actors = [key_actor("one"), key_actor("two"), Actor::Local];
    let mut workspaces = vec![None, Some(fresh_id())];
    for (number, by) in actors.iter().enumerate() {
        let new = workspace(&format!("workspace {number}"));
        ok(f.store.workspace_create(&new, by).await);
        workspaces.push(Some(new.id));
        for by in &actors {
            let change = WorkspaceChange {
                paused: Some(true),
                ..WorkspaceChange::default()
            };
            ok(f.store.workspace_update(new.id, &change, by).await);
            ok(f.store.job_limit_set(None, by).await);
        }
    }
    let all = f.entries().await;
    assert_eq!(all.len(), 21);
    assert!(all.is_sorted_by(|a, b| a.id > b.id));
    for workspace in workspaces {
        for key in [None, actors[0].key(), Some(fresh_id())] {
            for action in [None, Some("workspace_update"), Some("nothing")] {
                let filter = AuditFilter {
                    workspace,
                    key,
                    action: action.map(str::to_owned),
                };
                let selected = all.iter().filter(|entry| filter.selects(entry));
                let selected: Vec<AuditEntry> = selected.cloned().collect();
                for limit in [2, 100] {
                    assert_eq!(f.audit(&filter, limit).await, selected, "{filter:?}");
                }
            }
        }
    }
}

/// Entries are deleted by age, oldest first, a limited number at a time.
pub async fn old_entries_are_pruned_in_batches(f: Fixture) {
    for _ in 0..5 {
        ok(f.store.job_limit_set(None, &Actor::Local).await);
        f.advance(10);
    }
    let ids = async || -> Vec<AuditId> { f.entries().await.iter().map(|e| e.id).collect() };
    let all = ids().await;
    let before = f.now() - Duration::from_secs(20);
    assert_eq!(ok(f.store.audit_prune(before, 2).await), 2);
    assert_eq!(ids().await, all[..3]);
    assert_eq!(ok(f.store.audit_prune(before, 2).await), 1);
    assert_eq!(ok(f.store.audit_prune(before, 2).await), 0);
    assert_eq!(ids().await, all[..2]);
}

/// Publishing records the queues that it creates and those of the installation that it shares with the workspace, and nothing of others.
pub async fn publish_records_the_queues_it_creates_and_shares(f: Fixture) {
    let by = key_actor("operator");
    let own = f.bare_workspace(Plan::Free, None).await;
    let change = QueueChange::default();
    ok(f.store.queue_update("existing", &change, &by).await);
    let definition = f.create_draft(own.id).await;
    for (publisher, queues, recorded) in [
        (
            Publisher::Workspace,
            ["b", "a"],
            json!({"queues_created": ["a", "b"]}),
        ),
        (Publisher::Workspace, ["a", "b"], json!({})),
        (
            Publisher::Administrator,
            ["new", "existing"],
            json!({"queues_created": ["new"], "queues_shared": ["existing"]}),
        ),
        (Publisher::Administrator, ["new", "existing"], json!({})),
    ] {
        let nodes = queues.map(|queue| task_in(queue, queue)).to_vec();
        let version = NewVersion {
            id: fresh_id(),
            workspace: own.id,
            definition,
            body: VersionBody::Graph(graph_of(nodes, &[])),
            params_schema: None,
            execution_timeout: None,
            publisher,
        };
        let published = ok(f.store.version_publish(&version, &by).await);
        let published = published.version().expect("the graph is accepted");
        let mut expected = json!({"version": version.id.to_string(), "number": published.number});
        let fields = expected.as_object_mut().expect("an object");
        fields.extend(recorded.as_object().expect("an object").clone());
        assert_eq!(f.entries().await[0].details, expected);
    }
}
