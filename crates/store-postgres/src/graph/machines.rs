//! The machines of the versions that ran lately, each made once: a version never changes.

use crate::error::{postgres, unreadable};
use crate::row;
use crate::store::sql;
use deadpool_postgres::GenericClient;
use leasehold_core::graph::Machine;
use leasehold_core::{VersionBody, VersionId, WorkspaceId};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Nodes of all machines that are kept. A node may have kilobytes.
const MOST_NODES: usize = 32_000;

/// Machines by version.
#[derive(Debug, Default)]
pub(crate) struct Machines(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    machines: HashMap<VersionId, Arc<Machine>>,
    nodes: usize,
}

impl Machines {
    /// The machine of a version; none if it has no graph. What is not known is read by the connection given: one that holds a connection must
    /// not wait for another.
    pub(super) async fn of(
        &self,
        client: &impl GenericClient,
        context: &'static str,
        workspace: WorkspaceId,
        version: VersionId,
    ) -> Result<Option<Arc<Machine>>> {
        if let Some(known) = self.known(version) {
            return Ok(Some(known));
        }
        let row = client
            .query_one(sql!("version/get"), &[&workspace.0, &version.0])
            .await
            .map_err(postgres(context))?;
        let VersionBody::Graph(graph) = row::version(&row)?.body else {
            return Ok(None);
        };
        let machine = Machine::new(graph).map_err(|problem| unreadable(context, problem))?;
        let machine = Arc::new(machine);
        self.keep(version, &machine);
        Ok(Some(machine))
    }

    /// As [`Machines::of`], for a version whose graph was started.
    pub(super) async fn of_started(
        &self,
        client: &impl GenericClient,
        context: &'static str,
        workspace: WorkspaceId,
        version: VersionId,
    ) -> Result<Arc<Machine>> {
        let found = self.of(client, context, workspace, version).await?;
        let none = || ErrorKind::Broken(format!("the version {version} has no graph"));
        found.ok_or_else(|| Error::new(context, none()))
    }

    fn known(&self, version: VersionId) -> Option<Arc<Machine>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.machines.get(&version).cloned()
    }

    fn keep(&self, version: VersionId, machine: &Arc<Machine>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes = machine.graph().nodes.len();
        if known.nodes + nodes > MOST_NODES {
            known.machines.clear();
            known.nodes = 0;
        }
        if known
            .machines
            .insert(version, Arc::clone(machine))
            .is_none()
        {
            known.nodes += nodes;
        }
    }
}
