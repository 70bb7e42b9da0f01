//! A graph while an operation works on it: where it is, what happened to it, and what is to be written of that. Writes nothing.

use crate::error::Fault;
use crate::graph::machines::Machines;
use crate::row::{Columns, Place, blob};
use crate::session::Session;
use leasehold_core::graph::{Given, GraphEvent, GraphState, GraphStop, Machine, Step, Work};
use leasehold_core::{ExecutionEnd, ExecutionId, JsonText, VersionId, WorkspaceId};
use leasehold_store::ErrorKind;
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

const OF: &str = sql!("graph/of");
const GIVEN: &str = sql!("graph/given");
const OUTPUT: &str = sql!("node/output");

/// A graph, and what is new of it.
pub(super) struct Open {
    pub(super) execution: ExecutionId,
    pub(super) machine: Arc<Machine>,
    pub(super) state: GraphState,
    /// What went wrong, if it has ended now.
    pub(super) error: Option<String>,
    /// Nodes that have ended.
    pub(super) ended: Vec<NodeEnd>,
    /// Nodes to put into their queues.
    pub(super) begin: Vec<(usize, Work)>,
    /// Nodes that were begun and are no longer wanted.
    pub(super) abandon: Vec<usize>,
    /// Of what nodes are made, read when the first is.
    pub(super) source: Option<Source>,
}

/// How a node ended.
pub(super) struct NodeEnd {
    pub(super) place: usize,
    pub(super) attempts: u32,
    pub(super) outcome: Result<JsonText, String>,
}

/// What nodes are made of, but for outputs.
pub(super) struct Source {
    workspace: WorkspaceId,
    params: JsonText,
    pub(super) priority: i16,
    pub(super) trace_context: Option<String>,
}

/// The state and the end of a graph, as they are kept.
pub(super) fn state(row: &Row<'_>) -> Result<GraphState, Fault> {
    let ended: Option<String> = row.get("ended")?;
    let letters: String = row.get("state")?;
    let end = ended.as_deref().map(str::parse::<ExecutionEnd>).transpose();
    let state = end.ok().and_then(|end| GraphState::read(&letters, end));
    let broken = || ErrorKind::Broken("the state of a graph makes no sense".to_owned());
    Ok(state.ok_or_else(broken)?)
}

/// Where an execution's graph is, and its machine; none if it was never started.
pub(super) fn find(
    session: &Session<'_>,
    machines: &Machines,
    execution: ExecutionId,
) -> Result<Option<(GraphState, Arc<Machine>)>, Fault> {
    let found = session.maybe(OF, [blob(execution)], |row| {
        Ok((state(row)?, row.id::<VersionId>("version_id")?))
    })?;
    let Some((state, version)) = found else {
        return Ok(None);
    };
    let gone = || ErrorKind::Broken(format!("the version {version} has no graph"));
    let machine = machines.of(session, version)?.ok_or_else(gone)?;
    Ok(Some((state, machine)))
}

impl Open {
    pub(super) fn new(execution: ExecutionId, machine: Arc<Machine>, state: GraphState) -> Self {
        Self {
            execution,
            machine,
            state,
            error: None,
            ended: Vec::new(),
            begin: Vec::new(),
            abandon: Vec::new(),
            source: None,
        }
    }

    /// The graph of an execution; none if it was never started, or its record is gone.
    pub(super) fn find(
        session: &Session<'_>,
        machines: &Machines,
        execution: ExecutionId,
    ) -> Result<Option<Self>, Fault> {
        let found = find(session, machines, execution)?;
        Ok(found.map(|(state, machine)| Self::new(execution, machine, state)))
    }

    /// Whether it has ended, now or before.
    pub(super) fn has_ended(&self) -> bool {
        self.state.end().is_some()
    }

    /// A node has ended; false if that no longer means anything.
    pub(super) fn node_ended(
        &mut self,
        session: &Session<'_>,
        end: NodeEnd,
    ) -> Result<bool, Fault> {
        let event = match &end.outcome {
            Ok(_) => GraphEvent::Completed(end.place),
            Err(_) => GraphEvent::Failed(end.place),
        };
        let machine = Arc::clone(&self.machine);
        let Some(step) = machine.apply(&mut self.state, event) else {
            return Ok(false);
        };
        self.note(end);
        self.follow(session, step)?;
        Ok(true)
    }

    /// It is stopped; false if it had ended.
    pub(super) fn stop(&mut self, stop: GraphStop, reason: &str) -> bool {
        let event = GraphEvent::Stopped(stop);
        let Some(step) = self.machine.apply(&mut self.state, event) else {
            return false;
        };
        self.abandon.extend(step.abandon);
        self.error = Some(reason.to_owned());
        true
    }

    /// Prepares what a step says.
    pub(super) fn follow(&mut self, session: &Session<'_>, step: Step) -> Result<(), Fault> {
        if step.begin.is_empty() {
            self.abandon.extend(step.abandon);
            return Ok(());
        }
        let outputs = self.outputs(session, &self.machine.needs(&step.begin))?;
        let source = match self.source.take() {
            Some(source) => source,
            None => session.one(GIVEN, [blob(self.execution)], source)?,
        };
        let given = Given {
            execution: self.execution,
            workspace: source.workspace,
            params: &source.params,
            outputs: &outputs,
        };
        let machine = Arc::clone(&self.machine);
        let prepared = machine.prepare(&mut self.state, step, &given);
        self.source = Some(source);
        self.begin.extend(prepared.begin);
        self.abandon.extend(prepared.abandon);
        if let Some((place, problem)) = prepared.failed {
            self.note(NodeEnd {
                place,
                attempts: 0,
                outcome: Err(problem),
            });
        }
        Ok(())
    }

    fn note(&mut self, end: NodeEnd) {
        if let Err(error) = &end.outcome {
            self.error = Some(self.machine.failure(end.place, error));
        }
        self.ended.push(end);
    }

    /// What these nodes came to, before and now.
    fn outputs(
        &self,
        session: &Session<'_>,
        places: &BTreeSet<usize>,
    ) -> Result<HashMap<usize, JsonText>, Fault> {
        let mut outputs = HashMap::with_capacity(places.len());
        for end in &self.ended {
            if let (true, Ok(output)) = (places.contains(&end.place), &end.outcome) {
                outputs.insert(end.place, output.clone());
            }
        }
        session.often(OUTPUT, |statement| {
            for place in places {
                if outputs.contains_key(place) {
                    continue;
                }
                let mut rows = statement.query(params![blob(self.execution), Place(*place)])?;
                if let Some(row) = rows.next()? {
                    outputs.insert(*place, JsonText::trusted(row.get(0)?));
                }
            }
            Ok(outputs)
        })
    }
}

fn source(row: &Row<'_>) -> Result<Source, Fault> {
    Ok(Source {
        workspace: row.id("workspace_id")?,
        params: JsonText::trusted(row.get("params")?),
        priority: row.get("priority")?,
        trace_context: row.get("trace_context")?,
    })
}
