//! API keys: stored by hash, tied to existing workspaces, revoked permanently, one bootstrap key.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::key::{KeyRights, KeyScope};
use leasehold_core::{KeyId, Plan, WorkspaceId};
use leasehold_store::key::{Key, KeyCreated, KeyRevoked, NewKey};
use leasehold_store::{ErrorKind, Page, fresh_id};

/// A key of this scope with a unique hash.
pub(crate) fn new_key(scope: KeyScope) -> NewKey {
    let id: KeyId = fresh_id();
    let mut hash = [7; 32];
    hash[..16].copy_from_slice(id.0.as_bytes());
    NewKey {
        id,
        name: format!("key {id}"),
        rights: KeyRights::full(scope),
        expires_in: None,
        hash,
    }
}

fn worker(queues: &[&str]) -> KeyScope {
    KeyScope::Worker {
        queues: queues.iter().map(|&queue| queue.to_owned()).collect(),
    }
}

impl Fixture {
    /// Creates a key.
    pub(crate) async fn key(&self, scope: KeyScope) -> Key {
        match ok(self
            .store
            .key_create(&new_key(scope), &leasehold_store::Actor::Local)
            .await)
        {
            KeyCreated::Created(key) => key,
            KeyCreated::WorkspaceNotFound => panic!("the workspace exists"),
        }
    }

    /// Returns every key, of one workspace or of all, read in pages of `limit`.
    pub(crate) async fn keys(&self, workspace: Option<WorkspaceId>, limit: u32) -> Vec<Key> {
        let mut all: Vec<Key> = Vec::new();
        let mut page = Page::first(limit);
        loop {
            let rows = ok(self.store.key_list(workspace, page).await);
            assert!(rows.len() <= limit as usize);
            let Some(last) = rows.last() else { return all };
            page = Page::after(last.id, limit);
            all.extend(rows);
        }
    }

    async fn rejection(&self, new: &NewKey) -> ErrorKind {
        let before = self.keys(None, 100).await;
        let error = self
            .store
            .key_create(new, &leasehold_store::Actor::Local)
            .await;
        assert_eq!(self.keys(None, 100).await, before);
        error.expect_err("the constraint rejects the key").kind
    }
}

/// A key of each kind is found by hash and by id, as created.
pub async fn is_read_back_as_created(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let strange = worker(&["b", "a", "it's, \"q\" {x} \\ NULL", "ü ", "b"]);
    for scope in [
        KeyScope::Admin,
        KeyScope::Workspace(workspace),
        strange,
        KeyScope::Metrics,
    ] {
        let new = new_key(scope);
        let made = Key {
            id: new.id,
            name: new.name.clone(),
            rights: new.rights.clone(),
            hash: new.hash,
            created_at: f.now(),
            revoked_at: None,
            expires_at: None,
            is_expired: false,
            last_used_at: None,
            successor: None,
        };
        let created = ok(f
            .store
            .key_create(&new, &leasehold_store::Actor::Local)
            .await);
        assert_eq!(created, KeyCreated::Created(made.clone()));
        f.advance(1);
        assert_eq!(ok(f.store.key_find(&new.hash).await).as_ref(), Some(&made));
        assert_eq!(ok(f.store.key_get(new.id).await), Some(made));
    }
}

/// An unknown hash or id finds nothing.
pub async fn unknown_key_is_none(f: Fixture) {
    f.key(KeyScope::Admin).await;
    assert_eq!(ok(f.store.key_find(&[0; 32]).await), None);
    assert_eq!(ok(f.store.key_get(fresh_id()).await), None);
    assert_eq!(
        ok(f.store
            .key_revoke(fresh_id(), &leasehold_store::Actor::Local)
            .await),
        None
    );
}

/// A key cannot be created for an unknown or deleted workspace.
pub async fn key_needs_an_existing_workspace(f: Fixture) {
    let gone = f.bare_workspace(Plan::Free, None).await.id;
    let kept = f.key(KeyScope::Workspace(gone)).await;
    assert!(ok(f
        .store
        .workspace_delete(gone, &leasehold_store::Actor::Local)
        .await));
    for workspace in [gone, fresh_id()] {
        let new = new_key(KeyScope::Workspace(workspace));
        let created = ok(f
            .store
            .key_create(&new, &leasehold_store::Actor::Local)
            .await);
        assert_eq!(created, KeyCreated::WorkspaceNotFound);
    }
    assert_eq!(f.keys(None, 10).await, [kept]);
}

/// A name of invalid length, a worker without queues, a duplicate hash or id are rejected by their constraint.
pub async fn invalid_key_is_rejected(f: Fixture) {
    let made = f.key(KeyScope::Admin).await;
    let admin = || new_key(KeyScope::Admin);
    let named = |name: String| NewKey { name, ..admin() };
    let hash_again = NewKey {
        hash: made.hash,
        ..admin()
    };
    let id_again = NewKey {
        id: made.id,
        ..admin()
    };
    for (new, constraint) in [
        (named(String::new()), "api_key_name_length"),
        (named("é".repeat(201)), "api_key_name_length"),
        (new_key(worker(&[])), "api_key_queues"),
        (hash_again, "api_key_hash_once"),
        (id_again, "api_key_pkey"),
    ] {
        let kind = f.rejection(&new).await;
        assert_eq!(kind, ErrorKind::Constraint(constraint.into()));
    }
    let longest = named("é".repeat(200));
    assert!(matches!(
        ok(f.store
            .key_create(&longest, &leasehold_store::Actor::Local)
            .await),
        KeyCreated::Created(_)
    ));
}

/// The list is ordered by id and includes revoked keys; the list of a workspace has only its own.
pub async fn list_is_ordered_by_id(f: Fixture) {
    let (one, two) = (
        f.bare_workspace(Plan::Free, None).await.id,
        f.bare_workspace(Plan::Free, None).await.id,
    );
    let mut all = Vec::new();
    for scope in [
        KeyScope::Workspace(one),
        KeyScope::Admin,
        KeyScope::Workspace(two),
        worker(&["emails"]),
        KeyScope::Workspace(one),
    ] {
        all.push(f.key(scope).await);
    }
    all[4] = ok(f
        .store
        .key_revoke(all[4].id, &leasehold_store::Actor::Local)
        .await)
    .expect("the key exists");
    all.sort_by_key(|key| key.id);
    for limit in [1, 2, 100] {
        assert_eq!(f.keys(None, limit).await, all);
        for workspace in [one, two, fresh_id()] {
            let own = |key: &&Key| key.rights.scope == KeyScope::Workspace(workspace);
            let own: Vec<Key> = all.iter().filter(own).cloned().collect();
            assert_eq!(f.keys(Some(workspace), limit).await, own);
        }
    }
}

/// A revoked key keeps the time of its first revocation and is still found.
pub async fn revocation_time_is_kept(f: Fixture) {
    let made = f.key(KeyScope::Admin).await;
    let other = f.key(KeyScope::Admin).await;
    f.advance(10);
    let revoked = Key {
        revoked_at: Some(f.now()),
        ..made.clone()
    };
    for _ in 0..2 {
        let answer = ok(f
            .store
            .key_revoke(made.id, &leasehold_store::Actor::Local)
            .await);
        assert_eq!(answer.as_ref(), Some(&revoked));
        f.advance(10);
        let found = ok(f.store.key_find(&made.hash).await);
        assert_eq!(found.as_ref(), Some(&revoked));
    }
    assert_eq!(ok(f.store.key_get(other.id).await), Some(other));
}

/// The key of a deleted workspace is not found by its hash; the others still are.
pub async fn key_of_a_deleted_workspace_is_not_found(f: Fixture) {
    let (gone, kept) = (
        f.bare_workspace(Plan::Free, None).await.id,
        f.bare_workspace(Plan::Free, None).await.id,
    );
    let of_gone = f.key(KeyScope::Workspace(gone)).await;
    let others = [
        f.key(KeyScope::Workspace(kept)).await,
        f.key(KeyScope::Admin).await,
        f.key(worker(&["emails"])).await,
    ];
    assert!(ok(f.store.key_find(&of_gone.hash).await).is_some());
    assert!(ok(f
        .store
        .workspace_delete(gone, &leasehold_store::Actor::Local)
        .await));
    assert_eq!(ok(f.store.key_find(&of_gone.hash).await), None);
    assert_eq!(ok(f.store.key_get(of_gone.id).await), Some(of_gone));
    for key in others {
        assert_eq!(ok(f.store.key_find(&key.hash).await), Some(key));
    }
}

/// The last administrator key is revoked only by `key_revoke`; other keys do not count.
pub async fn last_administrator_key_is_kept(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let other = f.key(KeyScope::Workspace(workspace)).await;
    f.key(worker(&["emails"])).await;
    let (first, last) = (f.key(KeyScope::Admin).await, f.key(KeyScope::Admin).await);
    let revoke = async |id| {
        ok(f.store
            .key_revoke_unless_last(id, &leasehold_store::Actor::Local)
            .await)
    };
    let gone = |key: &Key| {
        KeyRevoked::Revoked(Key {
            revoked_at: Some(f.now()),
            ..key.clone()
        })
    };
    assert_eq!(revoke(fresh_id()).await, KeyRevoked::NotFound);
    assert_eq!(revoke(first.id).await, gone(&first));
    assert_eq!(revoke(other.id).await, gone(&other));
    assert_eq!(revoke(last.id).await, KeyRevoked::LastAdmin);
    assert_eq!(ok(f.store.key_get(last.id).await), Some(last.clone()));
    // Revoked keys can be revoked again, as by `key_revoke`.
    assert_eq!(revoke(first.id).await, gone(&first));
    ok(f.store
        .key_revoke(last.id, &leasehold_store::Actor::Local)
        .await);
    assert_eq!(revoke(last.id).await, gone(&last));
}

/// Of concurrent revocations of all administrator keys, one fails.
pub async fn concurrent_revocations_keep_one_administrator_key(f: Fixture) {
    let mut keys = Vec::new();
    for _ in 0..8 {
        keys.push(f.key(KeyScope::Admin).await.id);
    }
    let tries = keys.into_iter().map(|id| {
        let store = f.store.clone();
        tokio::spawn(async move {
            ok(store
                .key_revoke_unless_last(id, &leasehold_store::Actor::Local)
                .await)
        })
    });
    let tries = futures::future::join_all(tries.collect::<Vec<_>>()).await;
    let outcomes = tries
        .into_iter()
        .map(|tried| tried.expect("the task did not panic"));
    let kept = outcomes.filter(|outcome| *outcome == KeyRevoked::LastAdmin);
    assert_eq!(kept.count(), 1);
}

/// The first key is created only if no administrator key is valid; other keys do not count.
pub async fn first_key_is_created_only_without_an_administrator_key(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    f.key(KeyScope::Workspace(workspace)).await;
    f.key(worker(&["emails"])).await;
    for _ in 0..2 {
        let new = new_key(KeyScope::Admin);
        let first = ok(f
            .store
            .key_create_first(&new, &leasehold_store::Actor::Local)
            .await)
        .expect("there is no key yet");
        assert_eq!((first.id, first.hash), (new.id, new.hash));
        assert_eq!(ok(f.store.key_find(&new.hash).await), Some(first));
        let second = new_key(KeyScope::Admin);
        assert_eq!(
            ok(f.store
                .key_create_first(&second, &leasehold_store::Actor::Local)
                .await),
            None
        );
        assert_eq!(ok(f.store.key_get(second.id).await), None);
        ok(f.store
            .key_revoke(new.id, &leasehold_store::Actor::Local)
            .await);
    }
}

/// The first key must be an administrator key.
pub async fn first_key_must_be_an_administrator_key(f: Fixture) {
    let new = new_key(worker(&["emails"]));
    let error = f
        .store
        .key_create_first(&new, &leasehold_store::Actor::Local)
        .await;
    let kind = error
        .expect_err("a worker key is no administrator key")
        .kind;
    assert!(matches!(kind, ErrorKind::Value(_)), "{kind}");
    assert_eq!(f.keys(None, 10).await, []);
}

/// Of concurrent creations of the first key, one succeeds.
pub async fn concurrent_first_keys_create_one(f: Fixture) {
    for _ in 0..3 {
        let tries = (0..24).map(|_| {
            let store = f.store.clone();
            tokio::spawn(async move {
                let new = new_key(KeyScope::Admin);
                ok(store
                    .key_create_first(&new, &leasehold_store::Actor::Local)
                    .await)
            })
        });
        let tries = futures::future::join_all(tries.collect::<Vec<_>>()).await;
        let made = tries
            .into_iter()
            .filter_map(|tried| tried.expect("the task did not panic"));
        let made: Vec<Key> = made.collect();
        assert_eq!(made.len(), 1);
        ok(f.store
            .key_revoke(made[0].id, &leasehold_store::Actor::Local)
            .await);
    }
    assert_eq!(f.keys(None, 10).await.len(), 3);
}
