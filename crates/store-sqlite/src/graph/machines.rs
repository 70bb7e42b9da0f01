//! The machines of the versions that ran lately, each made once: a version never changes.

use crate::error::Fault;
use crate::row::{Columns, blob};
use crate::session::Session;
use leasehold_core::graph::Machine;
use leasehold_core::{VersionBody, VersionId};
use leasehold_store::ErrorKind;
use leasehold_store::sql;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

const BODY: &str = sql!("version/body");

/// As many are kept. A graph may have megabytes, so they are few.
const MOST: usize = 32;

/// Machines by version.
#[derive(Debug, Default)]
pub(crate) struct Machines(Mutex<HashMap<VersionId, Arc<Machine>>>);

impl Machines {
    /// The machine of a version; none if it has no graph.
    pub(super) fn of(
        &self,
        session: &Session<'_>,
        version: VersionId,
    ) -> Result<Option<Arc<Machine>>, Fault> {
        if let Some(known) = self.known(version) {
            return Ok(Some(known));
        }
        let body = session.one(BODY, [blob(version)], |row| row.json("body"))?;
        let broken = |error: &dyn std::fmt::Display| {
            ErrorKind::Broken(format!("the body of the version {version}: {error}"))
        };
        let graph = match serde_json::from_value(body).map_err(|error| broken(&error))? {
            VersionBody::Graph(graph) => graph,
            VersionBody::Binding { .. } => return Ok(None),
        };
        let machine = Arc::new(Machine::new(graph).map_err(|problem| broken(&problem))?);
        self.keep(version, &machine);
        Ok(Some(machine))
    }

    fn known(&self, version: VersionId) -> Option<Arc<Machine>> {
        let machines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        machines.get(&version).cloned()
    }

    fn keep(&self, version: VersionId, machine: &Arc<Machine>) {
        let mut machines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if machines.len() >= MOST {
            machines.clear();
        }
        machines.insert(version, Arc::clone(machine));
    }
}
