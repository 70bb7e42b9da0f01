//! Which workspaces may use a queue: what publishing a graph creates and shares, the check when nodes start, and the sharing that an administrator sets.

use crate::error::Fault;
use crate::queue;
use crate::row::{Columns, Text, blob};
use crate::session::Session;
use crate::workspace;
use leasehold_core::WorkspaceId;
use leasehold_core::graph::GraphChange;
use leasehold_core::queue_access::{
    Publisher, QueueAccess, QueueGrants, QueueRefusal, is_internal, plan_publish,
};
use leasehold_store::ErrorKind;
use leasehold_store::definition::NewVersion;
use leasehold_store::queue::{QueueOwnership, QueueShared, SharedWith};
use leasehold_store::sql;
use rusqlite::params;
use std::collections::{HashMap, HashSet};

const ACCESS: &str = sql!("queue/access");
const IS_SHARED: &str = sql!("queue/is_shared");
const COUNT_OWNED: &str = sql!("queue/count_owned");
const OWNERSHIP: &str = sql!("queue/ownership");
const SHARED_WITH: &str = sql!("queue/shared_with");
const SHARE_ALL: &str = sql!("queue/share_all");
const SHARE_ADD: &str = sql!("queue/share_add");
const SHARE_REMOVE: &str = sql!("queue/share_remove");
const KEEP_FOR_DELETED: &str = sql!("queue/keep_for_deleted");
const RELEASE: &str = sql!("queue/release");

/// The queues of the nodes that start in one operation, by name.
pub(crate) type NodeQueues = HashMap<String, i64>;

/// Creates and shares the queues of a version that is about to be published. Writes nothing if the graph is refused.
pub(crate) fn prepare(
    session: &Session<'_>,
    new: &NewVersion,
) -> Result<Result<QueueGrants, QueueRefusal>, Fault> {
    let queues = new.body.task_queues();
    let mut found = HashMap::with_capacity(queues.len());
    for queue in &queues {
        found.insert(*queue, access(session, new.workspace, queue)?.1);
    }
    let owned = session.one(COUNT_OWNED, [blob(new.workspace)], |row| row.count("owned"))?;
    let owned = usize::try_from(owned).unwrap_or(usize::MAX);
    let plan = plan_publish(new.publisher, &queues, |queue| found[queue], owned);
    let plan = match plan {
        Ok(plan) => plan,
        Err(refusal) => return Ok(Err(refusal)),
    };
    for queue in &plan.create {
        match new.publisher {
            Publisher::Workspace => {
                queue::create(session, queue, Some(new.workspace))?;
            }
            Publisher::Administrator => {
                let id = queue::create(session, queue, None)?.id;
                session.run(SHARE_ADD, params![id, blob(new.workspace)])?;
            }
        }
    }
    for queue in &plan.share {
        let id = queue::get_or_create(session, queue)?.id;
        session.run(SHARE_ADD, params![id, blob(new.workspace)])?;
    }
    let names = |queues: Vec<&str>| queues.into_iter().map(str::to_owned).collect::<Vec<_>>();
    Ok(Ok(QueueGrants::new(names(plan.create), names(plan.share))))
}

/// Returns the id of a queue and the access of a workspace to it.
fn access(
    session: &Session<'_>,
    workspace: WorkspaceId,
    name: &str,
) -> Result<(Option<i64>, QueueAccess), Fault> {
    let found = session.optional(ACCESS, [Text(name)], |row| {
        let owner: Option<WorkspaceId> = row.id_or_none("owner_id")?;
        let is_shared: bool = row.get("shared_with_all")?;
        Ok((row.get::<_, i64>("id")?, owner, is_shared))
    })?;
    let Some((id, owner, mut is_shared)) = found else {
        return Ok((None, QueueAccess::Unknown));
    };
    if !is_shared && owner != Some(workspace) {
        is_shared = session.one(IS_SHARED, params![id, blob(workspace)], |row| {
            Ok(row.get(0)?)
        })?;
    }
    Ok((Some(id), QueueAccess::of(workspace, owner, is_shared)))
}

/// Finds the queues of the nodes that a graph starts. Fails the graph if its workspace may not use one of them.
pub(crate) fn node_queues(
    session: &Session<'_>,
    graph: &mut GraphChange,
) -> Result<NodeQueues, Fault> {
    let workspace = graph.origin().workspace;
    let (mut queues, mut refused) = (NodeQueues::new(), HashSet::new());
    for name in graph.begun_queues() {
        if queues.contains_key(name) || refused.contains(name) {
            continue;
        }
        let (id, access) = access(session, workspace, name)?;
        let id = match id {
            Some(id) if access.is_permitted() || is_internal(name) => id,
            None if is_internal(name) => queue::get_or_create(session, name)?.id,
            Some(_) | None => {
                refused.insert(name.to_owned());
                continue;
            }
        };
        queues.insert(name.to_owned(), id);
    }
    if !refused.is_empty() {
        graph.refuse_queues(|queue| refused.contains(queue));
    }
    Ok(queues)
}

/// Returns the first of these workspaces that may not use the queue.
pub(crate) fn refused(
    session: &Session<'_>,
    name: &str,
    workspaces: &[WorkspaceId],
) -> Result<Option<WorkspaceId>, Fault> {
    for &workspace in workspaces {
        if !access(session, workspace, name)?.1.is_permitted() {
            return Ok(Some(workspace));
        }
    }
    Ok(None)
}

/// Replaces the sharing of a queue, which is created if it does not exist.
pub(crate) fn share(
    session: &Session<'_>,
    name: &str,
    with: &SharedWith,
) -> Result<QueueShared, Fault> {
    let mut workspaces = Vec::new();
    if let SharedWith::Workspaces(names) = with {
        for name in names {
            match workspace::find(session, name)? {
                Some(found) => workspaces.push(found.id),
                None => return Ok(QueueShared::WorkspaceNotFound(name.clone())),
            }
        }
    }
    let id = queue::get_or_create(session, name)?.id;
    session.run(SHARE_ALL, params![id, *with == SharedWith::All])?;
    session.run(SHARE_REMOVE, [id])?;
    for workspace in workspaces {
        session.run(SHARE_ADD, params![id, blob(workspace)])?;
    }
    let missing = || ErrorKind::Broken(format!("queue {id} is missing in the database"));
    let shared = ownership(session, name)?.ok_or_else(missing)?;
    Ok(QueueShared::Shared(shared))
}

/// Returns the owner and the sharing of a queue.
pub(crate) fn ownership(
    session: &Session<'_>,
    name: &str,
) -> Result<Option<QueueOwnership>, Fault> {
    let found = session.optional(OWNERSHIP, [Text(name)], |row| {
        let is_all: bool = row.get("shared_with_all")?;
        let owner: Option<String> = row.get("owner")?;
        Ok((row.get::<_, i64>("id")?, is_all, owner))
    })?;
    let Some((id, is_all, owner)) = found else {
        return Ok(None);
    };
    let shared_with = if is_all {
        SharedWith::All
    } else {
        let mut names: Vec<String> = session.all(SHARED_WITH, [id], |row| Ok(row.get(0)?))?;
        names.sort_unstable();
        SharedWith::Workspaces(names)
    };
    Ok(Some(QueueOwnership {
        queue: name.to_owned(),
        owner,
        shared_with,
    }))
}

/// Makes the queues of a deleted workspace the installation's. Its running executions may still use them.
pub(crate) fn release(session: &Session<'_>, workspace: WorkspaceId) -> Result<(), Fault> {
    session.run(KEEP_FOR_DELETED, [blob(workspace)])?;
    session.run(RELEASE, [blob(workspace)])?;
    Ok(())
}
