//! The audit log in PostgreSQL: records a change in the transaction that makes it, lists and prunes entries.

use crate::error::unreadable;
use crate::row;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::{self, OpenTransaction};
use async_trait::async_trait;
use leasehold_core::{AuditId, Timestamp};
use leasehold_store::audit::{AuditEntry, AuditFilter, AuditRecord, AuditStore};
use leasehold_store::{Actor, Page, Result, fresh_id};
use tokio_postgres::Row;
use uuid::Uuid;

/// Entries deleted in one transaction.
const MAX_BATCH: u32 = 10_000;

#[async_trait]
impl AuditStore for PostgresStore {
    async fn audit_list(
        &self,
        filter: &AuditFilter,
        page: Page<AuditId>,
    ) -> Result<Vec<AuditEntry>> {
        let context = "audit_list";
        let (before, rows) = (page.after.map(Uuid::from), page.rows());
        let key = filter.key.map(Uuid::from);
        let AuditFilter { action, .. } = filter;
        let found = match (filter.workspace, key, action) {
            (Some(workspace), ..) => {
                let sql = sql!("audit/list_of_workspace");
                let params: &Params<'_> = &[&before, &rows, &workspace.0, &key, action];
                self.many(context, sql, params).await?
            }
            (None, Some(_), _) => {
                let sql = sql!("audit/list_of_key");
                self.many(context, sql, &[&before, &rows, &key, action])
                    .await?
            }
            (None, None, Some(action)) => {
                let sql = sql!("audit/list_of_action");
                self.many(context, sql, &[&before, &rows, action]).await?
            }
            (None, None, None) => {
                self.many(context, sql!("audit/list"), &[&before, &rows])
                    .await?
            }
        };
        found.iter().map(entry).collect()
    }

    async fn audit_prune(&self, before: Timestamp, limit: u32) -> Result<u64> {
        let limit = i64::from(limit.min(MAX_BATCH));
        self.execute("audit_prune", sql!("audit/prune"), &[&before, &limit])
            .await
    }
}

/// Adds an entry in the transaction of the change.
pub(crate) async fn record(
    transaction: &OpenTransaction<'_>,
    now: Option<Timestamp>,
    by: &Actor,
    record: &AuditRecord,
) -> Result<()> {
    let id: AuditId = fresh_id();
    let key = by.key().map(Uuid::from);
    let workspace = record.workspace.map(Uuid::from);
    let params: &Params<'_> = &[
        &now,
        &id.0,
        &key,
        &by.name(),
        &record.action.as_str(),
        &workspace,
        &record.target,
        &record.details,
    ];
    transaction
        .execute(sql!("audit/record"), params)
        .await
        .map(drop)
}

impl PostgresStore {
    /// Runs a statement that makes one change, and adds an entry in the same transaction if `read` returns one.
    pub(crate) async fn audited<T>(
        &self,
        context: &'static str,
        by: &Actor,
        sql: &'static str,
        params: &Params<'_>,
        read: impl FnOnce(Option<&Row>) -> Result<(T, Option<AuditRecord>)>,
    ) -> Result<T> {
        let mut client = transaction::connection(self, context).await?;
        let open = OpenTransaction::begin(&mut client).await?;
        let rows = open.many(sql, params).await?;
        let (answer, change) = read(rows.first())?;
        if let Some(change) = change {
            record(&open, self.given_now(), by, &change).await?;
        }
        open.commit().await?;
        Ok(answer)
    }
}

fn entry(row: &Row) -> Result<AuditEntry> {
    Ok(AuditEntry {
        id: row::id(row, "id"),
        at: row::time(row, "at")?,
        actor: Actor::stored(row::maybe_id(row, "key_id"), row.get("actor")),
        action: row.get("action"),
        workspace: row::maybe_id(row, "workspace_id"),
        target: row.get("target"),
        details: row
            .try_get("details")
            .map_err(|error| unreadable("reading JSON", error))?,
    })
}
