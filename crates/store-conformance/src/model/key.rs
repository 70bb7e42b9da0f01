//! Keys and instances in the model.

use super::Model;
use super::claim::until;
use super::read::page;
use super::state::{State, constraint_error};
use async_trait::async_trait;
use leasehold_core::key::{KeyRights, KeyScope};
use leasehold_core::{KeyId, Timestamp, WorkspaceId};
use leasehold_store::audit::AuditRecord;
use leasehold_store::instance::{HeartbeatRecorded, Instance, InstanceHeartbeat, InstanceStore};
use leasehold_store::key::{
    Key, KeyCreated, KeyRevoked, KeyRotated, KeyRotation, KeyStore, NewKey, RotationStep,
};
use leasehold_store::{Actor, Error, ErrorKind, Page, Result};
use std::time::Duration;

impl State {
    /// The key as read at a time.
    fn read_key(key: &Key, now: Timestamp) -> Key {
        Key {
            is_expired: key.expires_at.is_some_and(|at| at <= now),
            ..key.clone()
        }
    }

    fn key(&self, id: KeyId, now: Timestamp) -> Option<Key> {
        self.keys.get(&id).map(|key| Self::read_key(key, now))
    }

    fn create_key(&mut self, new: &NewKey, by: &Actor, now: Timestamp) -> Result<KeyCreated> {
        let Some(created) = self.insert_key(new, now)? else {
            return Ok(KeyCreated::WorkspaceNotFound);
        };
        self.audit(by, AuditRecord::key_create(&created), now);
        Ok(KeyCreated::Created(created))
    }

    fn create_first_key(
        &mut self,
        new: &NewKey,
        by: &Actor,
        now: Timestamp,
    ) -> Result<Option<Key>> {
        if new.rights != KeyRights::full(KeyScope::Admin) {
            let text = "the first key must be an administrator key with all rights";
            let kind = ErrorKind::Value(text.to_owned());
            return Err(Error::new("key_create_first", kind));
        }
        let mut keys = self.keys.values().map(|key| Self::read_key(key, now));
        if keys.any(|key| key.is_valid_admin()) {
            return Ok(None);
        }
        match self.create_key(new, by, now)? {
            KeyCreated::Created(key) => Ok(Some(key)),
            KeyCreated::WorkspaceNotFound => Ok(None),
        }
    }

    fn insert_key(&mut self, new: &NewKey, now: Timestamp) -> Result<Option<Key>> {
        let scope = &new.rights.scope;
        if scope.workspace().is_some_and(|id| !self.exists(id)) {
            return Ok(None);
        }
        if !(1..=200).contains(&new.name.chars().count()) {
            return Err(constraint_error("api_key_name_length"));
        }
        if matches!(scope, KeyScope::Worker { queues } if queues.is_empty()) {
            return Err(constraint_error("api_key_queues"));
        }
        if self.keys.contains_key(&new.id) {
            return Err(constraint_error("api_key_pkey"));
        }
        if self.keys.values().any(|key| key.hash == new.hash) {
            return Err(constraint_error("api_key_hash_once"));
        }
        let expires_at = new.expires_in.and_then(|wait| now.checked_add(wait).ok());
        let key = Key {
            id: new.id,
            name: new.name.clone(),
            rights: new.rights.clone(),
            hash: new.hash,
            created_at: now,
            revoked_at: None,
            expires_at,
            is_expired: expires_at.is_some_and(|at| at <= now),
            last_used_at: None,
            successor: None,
        };
        self.keys.insert(new.id, key.clone());
        Ok(Some(key))
    }

    fn rotate_key(
        &mut self,
        rotation: &KeyRotation,
        by: &Actor,
        now: Timestamp,
    ) -> Result<KeyRotated> {
        let old = self.key(rotation.id, now);
        let new = match rotation.check(old.clone()) {
            RotationStep::Create(new) => new,
            RotationStep::Refuse(refused) => return Ok(refused),
        };
        let Some(successor) = self.insert_key(&new, now)? else {
            return Ok(KeyRotated::Invalid);
        };
        if let Some(old) = old.filter(Key::is_valid_admin)
            && !self.has_other_admin(&old, now)
        {
            self.keys.remove(&successor.id);
            return Ok(KeyRotated::LastAdmin);
        }
        let end = now.checked_add(rotation.overlap).unwrap_or(Timestamp::MAX);
        let Some(old) = self.keys.get_mut(&rotation.id) else {
            return Ok(KeyRotated::NotFound);
        };
        old.successor = Some(successor.id);
        old.expires_at = Some(old.expires_at.map_or(end, |at| at.min(end)));
        let old = Self::read_key(old, now);
        self.audit(by, AuditRecord::key_rotate(&old, &successor), now);
        Ok(KeyRotated::Rotated { old, successor })
    }

    fn list_keys(
        &self,
        workspace: Option<WorkspaceId>,
        at: Page<KeyId>,
        now: Timestamp,
    ) -> Vec<Key> {
        let wanted = |key: &&Key| workspace.is_none() || key.rights.scope.workspace() == workspace;
        let keys = self.keys.values().filter(wanted);
        let keys = keys.map(|key| Self::read_key(key, now));
        page(keys.collect(), at, |key| key.id)
    }

    fn revoke_key(&mut self, id: KeyId, by: &Actor, now: Timestamp) -> Option<Key> {
        let key = self.keys.get_mut(&id)?;
        let before = key.revoked_at.replace(key.revoked_at.unwrap_or(now));
        let revoked = Self::read_key(key, now);
        if before.is_none() {
            self.audit(by, AuditRecord::key_revoke(&revoked), now);
        }
        Some(revoked)
    }

    /// The key with this hash, unless its workspace is deleted.
    fn find_key(&self, hash: &[u8; 32], now: Timestamp) -> Option<Key> {
        let key = self.keys.values().find(|key| key.hash == *hash)?;
        let workspace = key.rights.scope.workspace();
        let exists = workspace.is_none_or(|workspace| self.exists(workspace));
        exists.then(|| Self::read_key(key, now))
    }

    /// Whether another administrator's key with all rights is valid for at least as long.
    fn has_other_admin(&self, key: &Key, now: Timestamp) -> bool {
        let mut others = self.keys.values().map(|key| Self::read_key(key, now));
        others.any(|other| {
            other.id != key.id && other.is_valid_admin() && other.lasts_as_long_as(key)
        })
    }

    fn revoke_key_unless_last(&mut self, id: KeyId, by: &Actor, now: Timestamp) -> KeyRevoked {
        let Some(key) = self.key(id, now) else {
            return KeyRevoked::NotFound;
        };
        if key.is_valid_admin() && !self.has_other_admin(&key, now) {
            return KeyRevoked::LastAdmin;
        }
        let revoked = self.revoke_key(id, by, now);
        revoked.map_or(KeyRevoked::NotFound, KeyRevoked::Revoked)
    }

    pub(super) fn heartbeat(
        &mut self,
        heartbeat: &InstanceHeartbeat,
        forget_after: Duration,
        now: Timestamp,
    ) {
        let before = self.instances.get(&heartbeat.id);
        let instance = Instance {
            id: heartbeat.id.clone(),
            version: heartbeat.version.clone(),
            dispatches: heartbeat.dispatches,
            listens: heartbeat.listens.clone(),
            started_at: before.map_or(now, |instance| instance.started_at),
            seen_at: now,
        };
        self.instances.insert(heartbeat.id.clone(), instance);
        self.instances.retain(|id, instance| {
            *id == heartbeat.id || until(instance.seen_at, now) <= forget_after
        });
    }
}

#[async_trait]
impl KeyStore for Model {
    async fn key_create(&self, new: &NewKey, by: &Actor) -> Result<KeyCreated> {
        self.state().create_key(new, by, self.now())
    }

    async fn key_create_first(&self, new: &NewKey, by: &Actor) -> Result<Option<Key>> {
        self.state().create_first_key(new, by, self.now())
    }

    async fn key_rotate(&self, rotation: &KeyRotation, by: &Actor) -> Result<KeyRotated> {
        self.state().rotate_key(rotation, by, self.now())
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        Ok(self.state().find_key(hash, self.now()))
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        Ok(self.state().key(id, self.now()))
    }

    async fn key_list(&self, workspace: Option<WorkspaceId>, at: Page<KeyId>) -> Result<Vec<Key>> {
        Ok(self.state().list_keys(workspace, at, self.now()))
    }

    async fn key_revoke(&self, id: KeyId, by: &Actor) -> Result<Option<Key>> {
        Ok(self.state().revoke_key(id, by, self.now()))
    }

    async fn key_revoke_unless_last(&self, id: KeyId, by: &Actor) -> Result<KeyRevoked> {
        Ok(self.state().revoke_key_unless_last(id, by, self.now()))
    }

    async fn key_used(&self, ids: &[KeyId]) -> Result<()> {
        let (mut state, now) = (self.state(), self.now());
        for id in ids {
            if let Some(key) = state.keys.get_mut(id) {
                key.last_used_at = Some(key.last_used_at.map_or(now, |at| at.max(now)));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl InstanceStore for Model {
    async fn instance_heartbeat(
        &self,
        heartbeat: &InstanceHeartbeat,
        forget_after: Duration,
    ) -> Result<HeartbeatRecorded> {
        self.state().heartbeat(heartbeat, forget_after, self.now());
        Ok(HeartbeatRecorded::Compatible)
    }

    async fn instance_deregister(&self, id: &str) -> Result<()> {
        self.state().instances.remove(id);
        Ok(())
    }

    async fn instance_list(&self) -> Result<Vec<Instance>> {
        Ok(self.state().instances.values().cloned().collect())
    }
}
