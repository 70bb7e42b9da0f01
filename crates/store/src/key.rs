//! API keys: parameters and outcomes. A store keeps only hashes and never sees a secret.

use crate::store_trait::store_trait;
use crate::{Actor, Page, Result};
use leasehold_core::key::{KeyRights, KeyScope};
use leasehold_core::{KeyId, Timestamp, WorkspaceId};
use std::time::Duration;

store_trait! {
    /// API keys. A key is valid unless it is revoked, it has expired by the store's clock, or its workspace is deleted.
    pub trait KeyStore, observed by KeyObserver {
        /// Creates a key.
        async fn key_create(&self, new: &NewKey, by: &Actor) -> Result<KeyCreated>;

        /// Creates an administrator's key unless a valid one with all rights exists; then returns none. Safe under concurrent calls.
        async fn key_create_first(&self, new: &NewKey, by: &Actor) -> Result<Option<Key>>;

        /// Creates a successor with the rights of a valid key that has no successor yet. The old key expires after the overlap, or earlier if it would
        /// anyway. Unless the rotation says otherwise, the successor of a key that expires is valid for as long as that key was from its
        /// creation. Refused if that would leave no administrator's key with all rights that is valid for as long as the old one was; safe under concurrent
        /// calls, like [`Self::key_revoke_unless_last`].
        async fn key_rotate(&self, rotation: &KeyRotation, by: &Actor) -> Result<KeyRotated>;

        /// Returns the key with this hash, revoked or expired or not. The key of a deleted workspace is not found.
        async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>>;

        /// Returns the key.
        async fn key_get(&self, id: KeyId) -> Result<Option<Key>>;

        /// Lists keys by id, including revoked and expired ones; of one workspace, or all.
        async fn key_list(&self, workspace: Option<WorkspaceId>, page: Page<KeyId>)
        -> Result<Vec<Key>>;

        /// Revokes a key permanently; none if it does not exist. Idempotent.
        async fn key_revoke(&self, id: KeyId, by: &Actor) -> Result<Option<Key>>;

        /// Revokes a key like `key_revoke`, unless it is a valid administrator's key with all rights and no other such key is valid for as long. Safe
        /// under concurrent calls: of the last two such keys one stays.
        async fn key_revoke_unless_last(&self, id: KeyId, by: &Actor) -> Result<KeyRevoked>;

        /// Records that these keys were used now. Skips keys whose row another transaction has locked.
        async fn key_used(&self, ids: &[KeyId]) -> Result<()>;
    }
}

/// A stored key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// Its name, for people.
    pub name: String,
    /// What it may do.
    pub rights: KeyRights,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was revoked; it is invalid from then on.
    pub revoked_at: Option<Timestamp>,
    /// When it expires; it is invalid from then on.
    pub expires_at: Option<Timestamp>,
    /// Whether it had expired when it was read, by the store's clock.
    pub is_expired: bool,
    /// When it was last used; may be a minute old.
    pub last_used_at: Option<Timestamp>,
    /// The key that replaces it, if it was rotated.
    pub successor: Option<KeyId>,
}

impl Key {
    /// Returns the holder of the key as the actor of a change.
    pub fn actor(&self) -> Actor {
        Actor::Key {
            id: self.id,
            name: self.name.clone(),
        }
    }

    /// Whether it is an administrator's key with all rights that is valid now: the kind of which one must stay.
    pub fn is_valid_admin(&self) -> bool {
        self.rights == KeyRights::full(KeyScope::Admin)
            && self.revoked_at.is_none()
            && !self.is_expired
    }

    /// Whether it is valid for at least as long as another key, as far as expiry is concerned.
    pub fn lasts_as_long_as(&self, other: &Self) -> bool {
        match (self.expires_at, other.expires_at) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own >= other,
        }
    }
}

/// A key to create.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its id.
    pub id: KeyId,
    /// Its name, for people.
    pub name: String,
    /// What it may do.
    pub rights: KeyRights,
    /// How long it is valid, by the store's clock; none: until it is revoked.
    pub expires_in: Option<Duration>,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
}

/// Outcome of creating a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one value per call, moved once")]
pub enum KeyCreated {
    /// The key was created.
    Created(Key),
    /// No such workspace exists, or it is deleted.
    WorkspaceNotFound,
}

/// A key to replace.
#[derive(Clone, Debug)]
pub struct KeyRotation {
    /// The key to replace.
    pub id: KeyId,
    /// The id of the successor.
    pub successor: KeyId,
    /// SHA-256 of the successor's secret.
    pub hash: [u8; 32],
    /// How long the old key stays valid.
    pub overlap: Duration,
    /// How long the successor is valid; none: as long as the old key was from its creation.
    pub expires_in: Option<Duration>,
}

/// The next step of a rotation.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one value per call, moved once")]
pub enum RotationStep {
    /// Create this successor.
    Create(NewKey),
    /// Change nothing and return this.
    Refuse(KeyRotated),
}

impl KeyRotation {
    /// Decides, from the state of the old key, whether it gets a successor, and which.
    pub fn check(&self, old: Option<Key>) -> RotationStep {
        let Some(old) = old else {
            return RotationStep::Refuse(KeyRotated::NotFound);
        };
        if old.revoked_at.is_some() || old.is_expired {
            return RotationStep::Refuse(KeyRotated::Invalid);
        }
        if let Some(successor) = old.successor {
            return RotationStep::Refuse(KeyRotated::AlreadyRotated(successor));
        }
        let lifetime = || {
            let lifetime = old.expires_at?.duration_since(old.created_at);
            Some(lifetime.unsigned_abs())
        };
        RotationStep::Create(NewKey {
            id: self.successor,
            expires_in: self.expires_in.or_else(lifetime),
            name: old.name,
            rights: old.rights,
            hash: self.hash,
        })
    }
}

/// Outcome of replacing a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one value per call, moved once")]
pub enum KeyRotated {
    /// The successor was created.
    Rotated {
        /// The old key, which expires after the overlap.
        old: Key,
        /// The successor.
        successor: Key,
    },
    /// The key is revoked, has expired, or its workspace is deleted.
    Invalid,
    /// The key has this successor already.
    AlreadyRotated(KeyId),
    /// It is a valid administrator's key with all rights, its successor would expire earlier, and no other such key is valid for as long.
    LastAdmin,
    /// No such key exists.
    NotFound,
}

/// Outcome of revoking a key that must not be the last administrator's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one value per call, moved once")]
pub enum KeyRevoked {
    /// The key is revoked, now or since an earlier call.
    Revoked(Key),
    /// It is the last valid administrator's key with all rights; nothing was changed.
    LastAdmin,
    /// No such key exists.
    NotFound,
}
