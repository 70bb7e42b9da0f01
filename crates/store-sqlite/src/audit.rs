//! The audit log: records a change in the transaction that makes it, lists and prunes entries.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, Text, before_id, blob, json_text};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::{AuditId, Timestamp};
use leasehold_store::audit::{AuditEntry, AuditFilter, AuditRecord, AuditStore};
use leasehold_store::sql;
use leasehold_store::{Actor, Page, Result, fresh_id};
use rusqlite::{Row, params};

/// Maximum number of entries in one transaction, because claims wait for it.
const MAX_BATCH: u32 = 500;

const RECORD: &str = sql!("audit/record");
const LIST: &str = sql!("audit/list");
const LIST_OF_ACTION: &str = sql!("audit/list_of_action");
const LIST_OF_KEY: &str = sql!("audit/list_of_key");
const LIST_OF_WORKSPACE: &str = sql!("audit/list_of_workspace");
const PRUNE: &str = sql!("audit/prune");

#[async_trait]
impl AuditStore for SqliteStore {
    async fn audit_list(
        &self,
        filter: &AuditFilter,
        page: Page<AuditId>,
    ) -> Result<Vec<AuditEntry>> {
        let filter = filter.clone();
        self.read("audit_list", move |s| list(s, &filter, page))
            .await
    }

    async fn audit_prune(&self, before: Timestamp, limit: u32) -> Result<u64> {
        self.write("audit_prune", move |s| {
            let row = params![before.as_microsecond(), limit.min(MAX_BATCH)];
            Ok(u64::try_from(s.run(PRUNE, row)?).unwrap_or_default())
        })
        .await
    }
}

/// Adds an entry in the transaction of the change.
pub(crate) fn record(session: &Session<'_>, by: &Actor, record: &AuditRecord) -> Result<(), Fault> {
    let id: AuditId = fresh_id();
    let row = params![
        blob(id),
        session.now,
        by.key().map(blob),
        Text(by.name()),
        record.action.as_str(),
        record.workspace.map(blob),
        Text(&record.target),
        json_text(&record.details)?
    ];
    session.run(RECORD, row).map(drop)
}

fn list(
    session: &Session<'_>,
    filter: &AuditFilter,
    page: Page<AuditId>,
) -> Result<Vec<AuditEntry>, Fault> {
    let (before, rows) = (before_id(page.after), page.rows());
    let key = filter.key.map(blob);
    let action = filter.action.as_deref().map(Text);
    match (filter.workspace, key, &action) {
        (Some(workspace), ..) => {
            let row = params![before, rows, blob(workspace), key, action];
            session.all(LIST_OF_WORKSPACE, row, entry)
        }
        (None, Some(_), _) => session.all(LIST_OF_KEY, params![before, rows, key, action], entry),
        (None, None, Some(_)) => session.all(LIST_OF_ACTION, params![before, rows, action], entry),
        (None, None, None) => session.all(LIST, params![before, rows], entry),
    }
}

fn entry(row: &Row<'_>) -> Result<AuditEntry, Fault> {
    Ok(AuditEntry {
        id: row.id("id")?,
        at: row.time("at")?,
        actor: Actor::stored(row.id_or_none("key_id")?, row.get("actor")?),
        action: row.get("action")?,
        workspace: row.id_or_none("workspace_id")?,
        target: row.get("target")?,
        details: row.json("details")?,
    })
}
