//! Keys that open the API: parameters and outcomes. A store keeps hashes and never sees a secret.

use crate::store_trait::store_trait;
use crate::{Page, Result};
use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, Timestamp, WorkspaceId};

store_trait! {
    /// Keys of the API.
    pub trait KeyStore, observed by KeyObserver {
        /// Makes a key.
        async fn key_create(&self, new: &NewKey) -> Result<KeyCreated>;

        /// Makes an administrator's key if none is there that is not revoked; none if there is one. Exact under races.
        async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>>;

        /// The key with this hash, revoked or not.
        async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>>;

        /// The key.
        async fn key_get(&self, id: KeyId) -> Result<Option<Key>>;

        /// Keys by id, revoked ones too; of one workspace, or all.
        async fn key_list(&self, workspace: Option<WorkspaceId>, page: Page<KeyId>)
        -> Result<Vec<Key>>;

        /// Revokes a key for good; none if there is none. A second time changes nothing.
        async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>>;
    }
}

/// A key as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// What it opens.
    pub scope: KeyScope,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked; it opens nothing from then on.
    pub revoked_at: Option<Timestamp>,
}

/// A key to make.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its id.
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// What it opens.
    pub scope: KeyScope,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
}

/// What became of making a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCreated {
    /// It was made.
    Created(Key),
    /// There is no such workspace, or it is deleted.
    WorkspaceNotFound,
}
