//! Which workspaces may use a queue: what publishing a graph creates and shares, and the sharing that an administrator sets.

use crate::audit;
use crate::job::queue_cache;
use crate::row;
use crate::session::Session;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::{OpenTransaction, connection};
use leasehold_core::WorkspaceId;
use leasehold_core::queue_access::{
    Publisher, QueueAccess, QueueGrants, QueueRefusal, plan_publish,
};
use leasehold_store::audit::AuditRecord;
use leasehold_store::definition::NewVersion;
use leasehold_store::queue::{QueueOwnership, QueueShared, SharedWith};
use leasehold_store::{Actor, Error, ErrorKind, Result};
use std::collections::{HashMap, HashSet};
use tokio_postgres::Row;
use uuid::Uuid;

/// How often publishing retries when others create the same queues at the same time.
const MAX_TRIES: usize = 3;

/// What the queues of a graph mean for its publish.
pub(crate) enum QueuesPrepared {
    /// They exist, and the workspace may use them.
    Ready(QueueGrants),
    /// The definition does not exist, or it or its workspace is deleted.
    DefinitionNotFound,
    /// The graph is refused; nothing was written.
    Refused(QueueRefusal),
}

/// Creates and shares the queues of a version that is about to be published. Holds the lock of the workspace's queues until the transaction ends, so that
/// concurrent publishes count each other's queues.
pub(crate) async fn prepare(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    new: &NewVersion,
) -> Result<QueuesPrepared> {
    let workspace = new.workspace.0;
    transaction
        .one(sql!("queue/owner_lock"), &[&workspace])
        .await?;
    let found = transaction
        .one(sql!("queue/to_publish"), &[&workspace, &new.definition.0])
        .await?;
    if !found.get::<_, bool>("is_open") {
        return Ok(QueuesPrepared::DefinitionNotFound);
    }
    let owned = row::count::<u64>(&found, "owned")?;
    let owned = usize::try_from(owned).unwrap_or(usize::MAX);
    let queues = new.body.task_queues();
    let owner = match new.publisher {
        Publisher::Workspace => Some(workspace),
        Publisher::Administrator => None,
    };
    let mut created = Vec::new();
    for _ in 0..MAX_TRIES {
        let found = access(transaction.session(), new.workspace, &queues).await?;
        let access = |queue: &str| *found.get(queue).unwrap_or(&QueueAccess::Unknown);
        let plan = match plan_publish(new.publisher, &queues, access, owned) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(QueuesPrepared::Refused(refusal)),
        };
        if !plan.create.is_empty() {
            // Reads again: others may have created some, and an administrator's are to be shared.
            let row: &Params<'_> = &[&plan.create, &owner, &store.given_now()];
            let rows = transaction.many(sql!("queue/create"), row).await?;
            created.extend(rows.iter().map(|row| row.get::<_, String>("name")));
            continue;
        }
        if !plan.share.is_empty() {
            transaction
                .execute(sql!("queue/share_add"), &[&workspace, &plan.share])
                .await?;
        }
        let shared = plan.share.iter().map(|queue| (*queue).to_owned());
        return Ok(QueuesPrepared::Ready(QueueGrants::new(created, shared)));
    }
    let text = "queues were created repeatedly by concurrent calls".to_owned();
    Err(Error::new(transaction.context, ErrorKind::Contended(text)))
}

/// Returns the access of a workspace to these queues; unknown queues are left out.
async fn access(
    session: Session<'_>,
    workspace: WorkspaceId,
    queues: &[&str],
) -> Result<HashMap<String, QueueAccess>> {
    let rows = session
        .many(sql!("queue/access"), &[&workspace.0, &queues])
        .await?;
    let access = |row: &Row| {
        let owner = row.get::<_, Option<Uuid>>("owner_id").map(WorkspaceId);
        let access = QueueAccess::of(workspace, owner, row.get("is_shared"));
        (row.get("name"), access)
    };
    Ok(rows.iter().map(access).collect())
}

/// Returns those of the queues that a workspace may not use.
pub(crate) async fn refused(
    session: Session<'_>,
    workspace: WorkspaceId,
    queues: &HashSet<String>,
) -> Result<HashSet<String>> {
    let names: Vec<&str> = queues.iter().map(String::as_str).collect();
    let found = access(session, workspace, &names).await?;
    let is_refused = |queue: &&String| {
        let access = found.get(*queue).unwrap_or(&QueueAccess::Unknown);
        !access.is_permitted()
    };
    Ok(queues.iter().filter(is_refused).cloned().collect())
}

/// Replaces the sharing of a queue and records that.
pub(crate) async fn share(
    store: &PostgresStore,
    name: &str,
    with: &SharedWith,
    by: &Actor,
) -> Result<QueueShared> {
    let context = "queue_share";
    let workspaces = match with {
        SharedWith::All => Vec::new(),
        SharedWith::Workspaces(names) => match find_workspaces(store, context, names).await? {
            Ok(ids) => ids,
            Err(unknown) => return Ok(QueueShared::WorkspaceNotFound(unknown)),
        },
    };
    let mut client = connection(store, context).await?;
    let transaction = OpenTransaction::begin(&mut client).await?;
    let id = queue_cache::ensure_in(store, &transaction, name).await?;
    let is_all = *with == SharedWith::All;
    transaction
        .execute(sql!("queue/share"), &[&id, &is_all])
        .await?;
    transaction
        .execute(sql!("queue/share_remove"), &[&id, &workspaces])
        .await?;
    transaction
        .execute(sql!("queue/share_with"), &[&id, &workspaces])
        .await?;
    let shared = transaction
        .one(sql!("queue/ownership"), &[&[name].as_slice()])
        .await?;
    let shared = ownership(&shared);
    let change = AuditRecord::queue_share(&shared);
    audit::record(&transaction, store.given_now(), by, &change).await?;
    transaction.commit().await?;
    Ok(QueueShared::Shared(shared))
}

/// Returns the ids of the workspaces with these names, or the first name that is unknown.
async fn find_workspaces(
    store: &PostgresStore,
    context: &'static str,
    names: &[String],
) -> Result<std::result::Result<Vec<Uuid>, String>> {
    let rows = store
        .many(context, sql!("workspace/ids"), &[&names])
        .await?;
    let id = |row: &Row| (row.get("name"), row.get("id"));
    let found: HashMap<String, Uuid> = rows.iter().map(id).collect();
    let id = |name: &String| found.get(name).copied().ok_or_else(|| name.clone());
    Ok(names.iter().map(id).collect())
}

pub(crate) fn ownership(row: &Row) -> QueueOwnership {
    QueueOwnership {
        queue: row.get("name"),
        owner: row.get("owner"),
        shared_with: match row.get("shared_with_all") {
            true => SharedWith::All,
            false => SharedWith::Workspaces(row.get("workspaces")),
        },
    }
}
