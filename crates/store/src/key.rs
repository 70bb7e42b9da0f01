//! API keys: parameters and outcomes. A store keeps only hashes and never sees a secret.

use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, Timestamp, WorkspaceId};

store_trait! {
    /// API keys.
    pub trait KeyStore, observed by KeyObserver {
        /// Creates a key.
        async fn key_create(&self, new: &NewKey) -> Result<KeyCreated>;

        /// Creates an administrator's key unless an unrevoked one exists; then returns none. Safe under concurrent calls.
        async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>>;

        /// Returns the key with this hash, revoked or not.
        async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>>;

        /// Returns the key.
        async fn key_get(&self, id: KeyId) -> Result<Option<Key>>;

        /// Lists keys by id, including revoked ones; of one workspace, or all.
        async fn key_list(&self, workspace: Option<WorkspaceId>, page: Page<KeyId>)
        -> Result<Vec<Key>>;

        /// Revokes a key permanently; none if it does not exist. Idempotent.
        async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>>;
    }
}

/// A stored key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// Its name, for people.
    pub name: String,
    /// What it gives access to.
    pub scope: KeyScope,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was revoked; it is invalid from then on.
    pub revoked_at: Option<Timestamp>,
}

/// A key to create.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its id.
    pub id: KeyId,
    /// Its name, for people.
    pub name: String,
    /// What it gives access to.
    pub scope: KeyScope,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
}

/// Outcome of creating a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCreated {
    /// The key was created.
    Created(Key),
    /// No such workspace exists, or it is deleted.
    WorkspaceNotFound,
}
