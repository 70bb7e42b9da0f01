//! Keys and instances in the model.

use super::Model;
use super::claim::until;
use super::read::page;
use super::state::{State, constraint_error};
use async_trait::async_trait;
use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, Timestamp, WorkspaceId};
use leasehold_store::instance::{Instance, InstanceHeartbeat, InstanceStore};
use leasehold_store::key::{Key, KeyCreated, KeyStore, NewKey};
use leasehold_store::{Error, ErrorKind, Page, Result};
use std::time::Duration;

impl State {
    pub(super) fn create_key(&mut self, new: &NewKey, now: Timestamp) -> Result<KeyCreated> {
        if let KeyScope::Workspace(workspace) = new.scope
            && !self.exists(workspace)
        {
            return Ok(KeyCreated::WorkspaceNotFound);
        }
        self.insert_key(new, now).map(KeyCreated::Created)
    }

    pub(super) fn create_first_key(&mut self, new: &NewKey, now: Timestamp) -> Result<Option<Key>> {
        if new.scope != KeyScope::Admin {
            let kind = ErrorKind::Value("the first key must be an administrator key".to_owned());
            return Err(Error::new("key_create_first", kind));
        }
        let mut valid = self.keys.values().filter(|key| key.revoked_at.is_none());
        if valid.any(|key| key.scope == KeyScope::Admin) {
            return Ok(None);
        }
        self.insert_key(new, now).map(Some)
    }

    fn insert_key(&mut self, new: &NewKey, now: Timestamp) -> Result<Key> {
        if !(1..=200).contains(&new.name.chars().count()) {
            return Err(constraint_error("api_key_name_length"));
        }
        if matches!(&new.scope, KeyScope::Worker { queues } if queues.is_empty()) {
            return Err(constraint_error("api_key_queues"));
        }
        if self.keys.contains_key(&new.id) {
            return Err(constraint_error("api_key_pkey"));
        }
        if self.keys.values().any(|key| key.hash == new.hash) {
            return Err(constraint_error("api_key_hash_once"));
        }
        let key = Key {
            id: new.id,
            name: new.name.clone(),
            scope: new.scope.clone(),
            hash: new.hash,
            created_at: now,
            revoked_at: None,
        };
        self.keys.insert(new.id, key.clone());
        Ok(key)
    }

    pub(super) fn list_keys(&self, workspace: Option<WorkspaceId>, at: Page<KeyId>) -> Vec<Key> {
        let wanted = |key: &&Key| workspace.is_none_or(|w| key.scope == KeyScope::Workspace(w));
        let keys = self.keys.values().filter(wanted);
        page(keys.cloned().collect(), at, |key| key.id)
    }

    pub(super) fn revoke_key(&mut self, id: KeyId, now: Timestamp) -> Option<Key> {
        let key = self.keys.get_mut(&id)?;
        key.revoked_at.get_or_insert(now);
        Some(key.clone())
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
    async fn key_create(&self, new: &NewKey) -> Result<KeyCreated> {
        self.state().create_key(new, self.now())
    }

    async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>> {
        self.state().create_first_key(new, self.now())
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        let state = self.state();
        Ok(state.keys.values().find(|key| key.hash == *hash).cloned())
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        Ok(self.state().keys.get(&id).cloned())
    }

    async fn key_list(&self, workspace: Option<WorkspaceId>, at: Page<KeyId>) -> Result<Vec<Key>> {
        Ok(self.state().list_keys(workspace, at))
    }

    async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>> {
        Ok(self.state().revoke_key(id, self.now()))
    }
}

#[async_trait]
impl InstanceStore for Model {
    async fn instance_heartbeat(
        &self,
        heartbeat: &InstanceHeartbeat,
        forget_after: Duration,
    ) -> Result<()> {
        self.state().heartbeat(heartbeat, forget_after, self.now());
        Ok(())
    }

    async fn instance_deregister(&self, id: &str) -> Result<()> {
        self.state().instances.remove(id);
        Ok(())
    }

    async fn instance_list(&self) -> Result<Vec<Instance>> {
        Ok(self.state().instances.values().cloned().collect())
    }
}
