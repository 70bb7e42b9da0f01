//! The audit log in the model.

use super::Model;
use super::state::State;
use async_trait::async_trait;
use leasehold_core::{AuditId, Timestamp};
use leasehold_store::audit::{AuditEntry, AuditFilter, AuditRecord, AuditStore};
use leasehold_store::{Actor, Page, Result, fresh_id};

impl State {
    pub(super) fn audit(&mut self, by: &Actor, record: AuditRecord, now: Timestamp) {
        let entry = AuditEntry {
            id: fresh_id(),
            at: now,
            actor: by.clone(),
            action: record.action.as_str().to_owned(),
            workspace: record.workspace,
            target: record.target,
            details: record.details,
        };
        self.audit.insert(entry.id, entry);
    }
}

#[async_trait]
impl AuditStore for Model {
    async fn audit_list(&self, filter: &AuditFilter, at: Page<AuditId>) -> Result<Vec<AuditEntry>> {
        let state = self.state();
        let newest = state.audit.values().rev();
        let wanted = newest
            .filter(|entry| at.after.is_none_or(|after| entry.id < after) && filter.selects(entry));
        let rows = usize::try_from(at.rows()).unwrap_or(0);
        Ok(wanted.take(rows).cloned().collect())
    }

    async fn audit_prune(&self, before: Timestamp, limit: u32) -> Result<u64> {
        let mut state = self.state();
        let mut old: Vec<(Timestamp, AuditId)> = state
            .audit
            .values()
            .filter(|entry| entry.at < before)
            .map(|entry| (entry.at, entry.id))
            .collect();
        old.sort_unstable();
        old.truncate(limit as usize);
        for (_, id) in &old {
            state.audit.remove(id);
        }
        Ok(u64::try_from(old.len()).unwrap_or_default())
    }
}
