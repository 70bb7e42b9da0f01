//! Keys that open the API: parameters and outcomes. A store keeps hashes and never sees a secret.

use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, Timestamp};

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
