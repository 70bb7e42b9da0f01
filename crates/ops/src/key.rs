//! Creating, rotating and revoking API keys. Only this module generates secrets; a secret is returned once, and only its hash is stored.

use crate::checks::{self, InvalidField};
use leasehold_core::KeyId;
use leasehold_core::duration::millis;
use leasehold_core::key::{KeyRights, KeyScope, Secret};
use leasehold_core::limits::{
    KEY_LIFETIME_MAX_DAYS, KEY_LIFETIME_MIN_MS, KEY_MAX_QUEUES, KEY_OVERLAP_MAX_DAYS,
    NAME_MAX_CHARS, PAGE_MAX,
};
use leasehold_core::queue::check_user_queue;
use leasehold_store::key::{Key, KeyCreated, KeyRevoked, KeyRotated, KeyRotation, NewKey};
use leasehold_store::{Actor, Page, Store, fresh_id};
use std::time::Duration;
use thiserror::Error;

/// Why a key was not created, rotated or revoked.
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
    /// It is the last administrator key.
    #[error(
        "this is the last administrator key with all rights that is valid for so long; create another one first, or revoke it with `force=true`"
    )]
    LastAdmin,
    /// The key has, or would have, more rights than the caller's.
    #[error("cannot create, rotate or revoke a key with more rights than the key of this call")]
    ExceedsRights,
    /// The key to rotate is not valid any more.
    #[error("cannot rotate: the key is revoked or has expired; create a new key instead")]
    RotationOfInvalidKey,
    /// The key to rotate has a successor.
    #[error("cannot rotate: the key was rotated already; rotate its successor {0} instead")]
    AlreadyRotated(KeyId),
    /// The successor of the last administrator key would expire earlier.
    #[error(
        "cannot rotate: this is the last administrator key with all rights that is valid for so long, and its successor would expire earlier; let the successor be valid for longer, or create another administrator key first"
    )]
    LastAdminExpires,
    /// The operating system provided no random numbers.
    #[error("failed to generate a key: no random numbers from the operating system: {0}")]
    Random(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// A key to create.
#[derive(Clone, Debug)]
pub struct KeySpec {
    /// Its name, for people.
    pub name: String,
    /// What it may do.
    pub rights: KeyRights,
    /// How long it is valid; none: until it is revoked.
    pub expires_in: Option<Duration>,
}

impl KeySpec {
    /// Describes a key with all rights of a scope that does not expire.
    pub fn full(name: &str, scope: KeyScope) -> Self {
        Self {
            name: name.to_owned(),
            rights: KeyRights::full(scope),
            expires_in: None,
        }
    }
}

/// Validates and creates a key.
pub async fn create(
    store: &dyn Store,
    spec: &KeySpec,
    by: &Actor,
) -> Result<(Key, Secret), KeyError> {
    check(spec)?;
    let (new, secret) = prepare(spec)?;
    match store.key_create(&new, by).await? {
        KeyCreated::Created(key) => {
            tracing::info!(key = %key.id, kind = key.rights.scope.kind(), "key created");
            Ok((key, secret))
        }
        KeyCreated::WorkspaceNotFound => Err(KeyError::WorkspaceNotFound),
    }
}

/// Creates a key on behalf of another one, which must have all rights of the new one.
pub async fn create_by(
    store: &dyn Store,
    spec: &KeySpec,
    caller: &Key,
) -> Result<(Key, Secret), KeyError> {
    check(spec)?;
    if !caller.rights.include(&spec.rights) {
        return Err(KeyError::ExceedsRights);
    }
    create(store, spec, &caller.actor()).await
}

/// A key to replace.
#[derive(Clone, Copy, Debug)]
pub struct RotationSpec {
    /// The key.
    pub id: KeyId,
    /// How long it stays valid.
    pub overlap: Duration,
    /// How long its successor is valid; none: as long as the key was from its creation.
    pub expires_in: Option<Duration>,
}

/// A replaced key.
pub struct Rotated {
    /// The old key, which expires after the overlap.
    pub old: Key,
    /// Its successor.
    pub successor: Key,
    /// The successor's secret.
    pub secret: Secret,
}

/// Creates a successor of a key on behalf of another one, which must have all rights of the key.
pub async fn rotate(
    store: &dyn Store,
    spec: RotationSpec,
    caller: &Key,
) -> Result<Rotated, KeyError> {
    let longest = u64::from(KEY_OVERLAP_MAX_DAYS) * 86_400_000;
    checks::number("overlap_ms", millis(spec.overlap), 0, longest)?;
    check_lifetime(spec.expires_in)?;
    let old = store.key_get(spec.id).await?.ok_or(KeyError::NotFound)?;
    if !caller.rights.include(&old.rights) {
        return Err(KeyError::ExceedsRights);
    }
    let secret = generate(&old.rights.scope)?;
    let rotation = KeyRotation {
        id: spec.id,
        successor: fresh_id(),
        hash: secret.hash(),
        overlap: spec.overlap,
        expires_in: spec.expires_in,
    };
    match store.key_rotate(&rotation, &caller.actor()).await? {
        KeyRotated::Rotated { old, successor } => {
            tracing::info!(key = %old.id, successor = %successor.id, "key rotated");
            Ok(Rotated {
                old,
                successor,
                secret,
            })
        }
        KeyRotated::Invalid => Err(KeyError::RotationOfInvalidKey),
        KeyRotated::AlreadyRotated(successor) => Err(KeyError::AlreadyRotated(successor)),
        KeyRotated::LastAdmin => Err(KeyError::LastAdminExpires),
        KeyRotated::NotFound => Err(KeyError::NotFound),
    }
}

/// Revokes a key like [`revoke`] on behalf of another one, which must have all rights of the key.
pub async fn revoke_by(
    store: &dyn Store,
    id: KeyId,
    force: bool,
    caller: &Key,
) -> Result<Key, KeyError> {
    let key = store.key_get(id).await?.ok_or(KeyError::NotFound)?;
    if !caller.rights.include(&key.rights) {
        return Err(KeyError::ExceedsRights);
    }
    revoke(store, id, force, &caller.actor()).await
}

/// Revokes a key permanently; the last administrator key only if `force` is set. Idempotent.
pub async fn revoke(
    store: &dyn Store,
    id: KeyId,
    force: bool,
    by: &Actor,
) -> Result<Key, KeyError> {
    let key = match force {
        true => store.key_revoke(id, by).await?.ok_or(KeyError::NotFound)?,
        false => match store.key_revoke_unless_last(id, by).await? {
            KeyRevoked::Revoked(key) => key,
            KeyRevoked::LastAdmin => return Err(KeyError::LastAdmin),
            KeyRevoked::NotFound => return Err(KeyError::NotFound),
        },
    };
    tracing::info!(key = %key.id, kind = key.rights.scope.kind(), "key revoked");
    Ok(key)
}

/// Creates an administrator's key unless a valid one with all rights exists.
pub async fn create_first(store: &dyn Store, name: &str) -> Result<Option<Secret>, KeyError> {
    let draft = AdminDraft::new(name)?;
    Ok(draft.create_first(store).await?.then_some(draft.secret))
}

/// Returns whether a valid administrator's key with all rights exists.
pub async fn has_admin(store: &dyn Store) -> Result<bool, KeyError> {
    let mut after = None;
    loop {
        let limit = PAGE_MAX;
        let keys = store.key_list(None, Page { after, limit }).await?;
        if keys.iter().any(Key::is_valid_admin) {
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
        let spec = KeySpec::full(name, KeyScope::Admin);
        check(&spec)?;
        let (new, secret) = prepare(&spec)?;
        Ok(Self { new, secret })
    }

    /// Returns the secret.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Stores the key, whether or not other keys exist.
    pub async fn create(&self, store: &dyn Store) -> Result<(), KeyError> {
        match store.key_create(&self.new, &Actor::Local).await? {
            KeyCreated::Created(_) => Ok(()),
            KeyCreated::WorkspaceNotFound => Err(KeyError::WorkspaceNotFound),
        }
    }

    /// Stores the key unless a valid administrator's key with all rights exists; returns whether it was stored.
    pub async fn create_first(&self, store: &dyn Store) -> Result<bool, KeyError> {
        let created = store.key_create_first(&self.new, &Actor::Local).await?;
        Ok(created.is_some())
    }
}

fn check(spec: &KeySpec) -> Result<(), InvalidField> {
    checks::text("name", &spec.name, NAME_MAX_CHARS)?;
    check_lifetime(spec.expires_in)?;
    let KeyScope::Worker { queues } = &spec.rights.scope else {
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

fn check_lifetime(expires_in: Option<Duration>) -> Result<(), InvalidField> {
    let Some(lifetime) = expires_in else {
        return Ok(());
    };
    let longest = u64::from(KEY_LIFETIME_MAX_DAYS) * 86_400_000;
    let given = millis(lifetime);
    checks::number("expires_in_ms", given, KEY_LIFETIME_MIN_MS, longest)
}

fn prepare(spec: &KeySpec) -> Result<(NewKey, Secret), KeyError> {
    let secret = generate(&spec.rights.scope)?;
    let new = NewKey {
        id: fresh_id(),
        name: spec.name.clone(),
        rights: spec.rights.clone(),
        expires_in: spec.expires_in,
        hash: secret.hash(),
    };
    Ok((new, secret))
}

fn generate(scope: &KeyScope) -> Result<Secret, KeyError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| KeyError::Random(error.to_string()))?;
    Ok(Secret::new(scope, &random))
}
