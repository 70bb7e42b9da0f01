//! Creating and revoking API keys. Only this module generates secrets; a secret is returned once, and only its hash is stored.

use crate::checks::{self, InvalidField};
use leasehold_core::KeyId;
use leasehold_core::key::{KeyScope, Secret};
use leasehold_core::limits::{KEY_MAX_QUEUES, NAME_MAX_CHARS, PAGE_MAX};
use leasehold_core::queue::check_user_queue;
use leasehold_store::key::{Key, KeyCreated, NewKey};
use leasehold_store::{Page, Store, fresh_id};
use thiserror::Error;

/// Why a key was not created or revoked.
#[derive(Debug, Error)]
pub enum KeyError {
    /// A field is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// Its workspace does not exist.
    #[error("workspace not found")]
    WorkspaceNotFound,
    /// No such key exists.
    #[error("key not found")]
    NotFound,
    /// The operating system provided no random numbers.
    #[error("failed to generate a key: no random numbers from the operating system: {0}")]
    Random(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Validates and creates a key.
pub async fn create(
    store: &dyn Store,
    name: &str,
    scope: KeyScope,
) -> Result<(Key, Secret), KeyError> {
    check(name, &scope)?;
    let (new, secret) = prepare(name, scope)?;
    match store.key_create(&new).await? {
        KeyCreated::Created(key) => {
            tracing::info!(key = %key.id, kind = key.scope.kind(), "key created");
            Ok((key, secret))
        }
        KeyCreated::WorkspaceNotFound => Err(KeyError::WorkspaceNotFound),
    }
}

/// Revokes a key permanently. Idempotent.
pub async fn revoke(store: &dyn Store, id: KeyId) -> Result<Key, KeyError> {
    let key = store.key_revoke(id).await?.ok_or(KeyError::NotFound)?;
    tracing::info!(key = %key.id, kind = key.scope.kind(), "key revoked");
    Ok(key)
}

/// Creates an administrator's key unless an unrevoked one exists.
pub async fn create_first(store: &dyn Store, name: &str) -> Result<Option<Secret>, KeyError> {
    let draft = AdminDraft::new(name)?;
    Ok(draft.create_first(store).await?.then_some(draft.secret))
}

/// Returns whether an unrevoked administrator's key exists.
pub async fn has_admin(store: &dyn Store) -> Result<bool, KeyError> {
    let mut after = None;
    loop {
        let limit = PAGE_MAX;
        let keys = store.key_list(None, Page { after, limit }).await?;
        if keys
            .iter()
            .any(|key| key.scope == KeyScope::Admin && key.revoked_at.is_none())
        {
            return Ok(true);
        }
        after = keys.last().map(|key| key.id);
        if after.is_none() {
            return Ok(false);
        }
    }
}

/// An administrator's key that is not stored yet, so that its secret can be saved first.
pub struct AdminDraft {
    new: NewKey,
    secret: Secret,
}

impl AdminDraft {
    /// Generates a key.
    pub fn new(name: &str) -> Result<Self, KeyError> {
        check(name, &KeyScope::Admin)?;
        let (new, secret) = prepare(name, KeyScope::Admin)?;
        Ok(Self { new, secret })
    }

    /// Returns the secret.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Stores the key, whether or not other keys exist.
    pub async fn create(&self, store: &dyn Store) -> Result<(), KeyError> {
        match store.key_create(&self.new).await? {
            KeyCreated::Created(_) => Ok(()),
            KeyCreated::WorkspaceNotFound => Err(KeyError::WorkspaceNotFound),
        }
    }

    /// Stores the key unless an unrevoked administrator's key exists; returns whether it was stored.
    pub async fn create_first(&self, store: &dyn Store) -> Result<bool, KeyError> {
        Ok(store.key_create_first(&self.new).await?.is_some())
    }
}

fn check(name: &str, scope: &KeyScope) -> Result<(), InvalidField> {
    checks::text("name", name, NAME_MAX_CHARS)?;
    let KeyScope::Worker { queues } = scope else {
        return Ok(());
    };
    checks::number(
        "scope.queues",
        queues.len() as u64,
        1,
        KEY_MAX_QUEUES as u64,
    )?;
    for (index, queue) in queues.iter().enumerate() {
        check_user_queue(queue).map_err(|problem| InvalidField::Text {
            field: format!("scope.queues[{index}]"),
            problem,
        })?;
    }
    Ok(())
}

fn prepare(name: &str, scope: KeyScope) -> Result<(NewKey, Secret), KeyError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| KeyError::Random(error.to_string()))?;
    let secret = Secret::new(&scope, &random);
    let id: KeyId = fresh_id();
    let new = NewKey {
        id,
        name: name.to_owned(),
        scope,
        hash: secret.hash(),
    };
    Ok((new, secret))
}
