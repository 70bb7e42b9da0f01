//! Rights, expiry, last use and rotation of API keys.

use crate::Fixture;
use crate::factory::ok;
use crate::key::new_key;
use leasehold_core::key::{KeyAccess, KeyRights, KeyScope, Payloads};
use leasehold_core::{KeyId, Plan};
use leasehold_store::key::{Key, KeyCreated, KeyRevoked, KeyRotated, KeyRotation, NewKey};
use leasehold_store::{Actor, fresh_id};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const BY: &Actor = &Actor::Local;

impl Fixture {
    /// Creates a key with these rights and lifetime.
    pub(crate) async fn key_as(&self, rights: KeyRights, expires_in: Option<Duration>) -> Key {
        let new = NewKey {
            expires_in,
            ..new_key(KeyScope::Admin)
        };
        match ok(self.store.key_create(&NewKey { rights, ..new }, BY).await) {
            KeyCreated::Created(key) => key,
            KeyCreated::WorkspaceNotFound => panic!("the workspace exists"),
        }
    }

    async fn found(&self, key: &Key) -> Key {
        let found = ok(self.store.key_find(&key.hash).await);
        found.expect("the key is stored")
    }

    async fn rotate(&self, key: &Key, overlap: Duration) -> KeyRotated {
        ok(self.store.key_rotate(&rotation(key.id, overlap), BY).await)
    }

    async fn rotated(&self, key: &Key, overlap: Duration) -> (Key, Key) {
        match self.rotate(key, overlap).await {
            KeyRotated::Rotated { old, successor } => (old, successor),
            other => panic!("the key is valid: {other:?}"),
        }
    }
}

fn rotation(id: KeyId, overlap: Duration) -> KeyRotation {
    let new = new_key(KeyScope::Admin);
    KeyRotation {
        id,
        successor: new.id,
        hash: new.hash,
        overlap,
        expires_in: None,
    }
}

fn admin() -> KeyRights {
    KeyRights::full(KeyScope::Admin)
}

/// Access and payloads are read back as created.
pub async fn rights_are_read_back_as_created(f: Fixture) {
    for access in [KeyAccess::Full, KeyAccess::Read] {
        for payloads in [Payloads::Shown, Payloads::Hidden] {
            let rights = KeyRights {
                access,
                payloads,
                ..admin()
            };
            let key = f.key_as(rights.clone(), None).await;
            assert_eq!(key.rights, rights);
            assert_eq!(f.found(&key).await, key);
        }
    }
}

/// A key expires by the store's clock, at its time and not before.
pub async fn key_expires_by_the_clock_of_the_store(f: Fixture) {
    let key = f.key_as(admin(), Some(Duration::from_secs(10))).await;
    assert!(!key.is_expired);
    assert_eq!(key.expires_at, Some(f.now() + Duration::from_secs(10)));
    f.advance(9);
    assert!(!f.found(&key).await.is_expired);
    f.advance(1);
    let expired = Key {
        is_expired: true,
        ..key.clone()
    };
    assert_eq!(f.found(&key).await, expired);
    assert_eq!(ok(f.store.key_get(key.id).await), Some(expired.clone()));
    assert_eq!(f.keys(None, 10).await, [expired]);
}

/// The last use is recorded, for unknown keys ignored, and never moves back.
pub async fn last_use_is_recorded(f: Fixture) {
    let (used, unused) = (f.key_as(admin(), None).await, f.key_as(admin(), None).await);
    for _ in 0..2 {
        f.advance(60);
        ok(f.store.key_used(&[used.id, fresh_id()]).await);
        assert_eq!(f.found(&used).await.last_used_at, Some(f.now()));
    }
    assert_eq!(f.found(&unused).await.last_used_at, None);
    ok(f.store.key_used(&[]).await);
}

/// A successor has the name and the rights of the old key, which stays valid for the overlap.
pub async fn old_key_stays_valid_for_the_overlap(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let rights = KeyRights {
        scope: KeyScope::Workspace(workspace),
        access: KeyAccess::Read,
        payloads: Payloads::Hidden,
    };
    let key = f.key_as(rights.clone(), None).await;
    let (old, successor) = f.rotated(&key, HOUR).await;
    assert_eq!(old.expires_at, Some(f.now() + HOUR));
    assert_eq!(old.successor, Some(successor.id));
    assert_eq!((&successor.name, &successor.rights), (&key.name, &rights));
    assert_eq!((successor.expires_at, successor.successor), (None, None));
    assert_eq!(f.found(&old).await, old);
    assert_eq!(f.found(&successor).await, successor);
    f.advance(3_600);
    assert!(f.found(&old).await.is_expired);
    assert!(!f.found(&successor).await.is_expired);
}

/// The successor of a key that expires lives as long as that key was meant to; an overlap does not prolong the old key.
pub async fn rotation_keeps_the_lifetime(f: Fixture) {
    // The one that must stay.
    f.key_as(admin(), None).await;
    let key = f.key_as(admin(), Some(2 * HOUR)).await;
    f.advance(3_600);
    let (old, successor) = f.rotated(&key, 24 * HOUR).await;
    assert_eq!(old.expires_at, key.expires_at);
    assert_eq!(successor.expires_at, Some(f.now() + 2 * HOUR));
    let mut shorter = rotation(successor.id, HOUR);
    shorter.expires_in = Some(Duration::from_secs(5));
    match ok(f.store.key_rotate(&shorter, BY).await) {
        KeyRotated::Rotated { successor, .. } => {
            assert_eq!(successor.expires_at, Some(f.now() + Duration::from_secs(5)));
        }
        other => panic!("the key is valid: {other:?}"),
    }
}

/// A key that is revoked, expired, rotated, unknown or of a deleted workspace gets no successor, and nothing changes.
pub async fn invalid_key_is_not_rotated(f: Fixture) {
    let workspace = f.bare_workspace(Plan::Free, None).await.id;
    let expired = f.key_as(admin(), Some(Duration::from_secs(1))).await;
    let revoked = f.key_as(admin(), None).await;
    let of_deleted = KeyRights::full(KeyScope::Workspace(workspace));
    let of_deleted = f.key_as(of_deleted, None).await;
    let (rotated, successor) = f.rotated(&f.key_as(admin(), None).await, HOUR).await;
    ok(f.store.key_revoke(revoked.id, BY).await);
    assert!(ok(f.store.workspace_delete(workspace, BY).await));
    f.advance(1);
    let before = f.keys(None, 10).await;
    for key in [&expired, &revoked, &of_deleted] {
        assert_eq!(f.rotate(key, HOUR).await, KeyRotated::Invalid);
    }
    let again = f.rotate(&rotated, HOUR).await;
    assert_eq!(again, KeyRotated::AlreadyRotated(successor.id));
    let unknown = rotation(fresh_id(), HOUR);
    let unknown = ok(f.store.key_rotate(&unknown, BY).await);
    assert_eq!(unknown, KeyRotated::NotFound);
    assert_eq!(f.keys(None, 10).await, before);
}

/// Of concurrent rotations of a key, one creates a successor.
pub async fn concurrent_rotations_create_one_successor(f: Fixture) {
    let key = f.key_as(admin(), None).await;
    let tries = (0..8).map(|_| {
        let store = f.store.clone();
        tokio::spawn(async move { ok(store.key_rotate(&rotation(key.id, HOUR), BY).await) })
    });
    let tries = futures::future::join_all(tries.collect::<Vec<_>>()).await;
    let rotated = tries
        .into_iter()
        .map(|tried| tried.expect("the task did not panic"))
        .filter(|outcome| matches!(outcome, KeyRotated::Rotated { .. }));
    assert_eq!(rotated.count(), 1);
    assert_eq!(f.keys(None, 100).await.len(), 2);
}

/// Only another administrator key with all rights that lasts as long makes an administrator key revocable.
pub async fn restricted_or_expiring_keys_do_not_replace_the_last_administrator_key(f: Fixture) {
    let last = f.key_as(admin(), None).await;
    let read = KeyRights {
        access: KeyAccess::Read,
        ..admin()
    };
    let hidden = KeyRights {
        payloads: Payloads::Hidden,
        ..admin()
    };
    let restricted = [f.key_as(read, None).await, f.key_as(hidden, None).await];
    let passing = f.key_as(admin(), Some(10 * HOUR)).await;
    let longer = f.key_as(admin(), Some(20 * HOUR)).await;
    let revoke = async |key: &Key| ok(f.store.key_revoke_unless_last(key.id, BY).await);
    assert_eq!(revoke(&last).await, KeyRevoked::LastAdmin);
    for key in [&restricted[0], &restricted[1], &passing] {
        assert!(matches!(revoke(key).await, KeyRevoked::Revoked(_)));
    }
    // The successor lasts as long as the key that it replaces.
    f.rotated(&last, HOUR).await;
    assert!(matches!(revoke(&last).await, KeyRevoked::Revoked(_)));
    assert!(matches!(revoke(&longer).await, KeyRevoked::Revoked(_)));
}

/// A first key is created if the only administrator keys are expired or restricted.
pub async fn expired_or_restricted_administrator_keys_do_not_prevent_the_first_key(f: Fixture) {
    let read = KeyRights {
        access: KeyAccess::Read,
        ..admin()
    };
    f.key_as(read, None).await;
    f.key_as(admin(), Some(Duration::from_secs(5))).await;
    let first = new_key(KeyScope::Admin);
    assert_eq!(ok(f.store.key_create_first(&first, BY).await), None);
    f.advance(5);
    let created = ok(f.store.key_create_first(&first, BY).await);
    assert_eq!(created.map(|key| key.id), Some(first.id));
}

/// The last administrator key with all rights gets no successor that expires before it. Nothing is changed then.
pub async fn last_administrator_key_gets_no_successor_that_expires_earlier(f: Fixture) {
    let last = f.key_as(admin(), None).await;
    f.key_as(admin(), Some(2 * HOUR)).await;
    let short = || KeyRotation {
        expires_in: Some(HOUR),
        ..rotation(last.id, Duration::ZERO)
    };
    let refused = short();
    let outcome = ok(f.store.key_rotate(&refused, BY).await);
    assert_eq!(outcome, KeyRotated::LastAdmin);
    assert_eq!(ok(f.store.key_get(refused.successor).await), None);
    assert_eq!(f.found(&last).await, last);
    // Another key that lasts as long stays.
    f.key_as(admin(), None).await;
    let outcome = ok(f.store.key_rotate(&short(), BY).await);
    assert!(matches!(outcome, KeyRotated::Rotated { .. }), "{outcome:?}");
}
