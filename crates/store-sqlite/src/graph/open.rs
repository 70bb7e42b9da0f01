//! Loads a graph for an operation, and the inputs of the nodes that start next. Writes nothing.

use crate::definition::cached_version;
use crate::error::Fault;
use crate::request::crash;
use crate::row::{Columns, NodeIndex, blob};
use crate::session::Session;
use leasehold_core::graph::{
    EndPreview, GraphChange, GraphOrigin, GraphState, Machine, NodeEnd, NodeSource,
};
use leasehold_core::limits::STEP_READ_MAX_BYTES;
use leasehold_core::{ExecutionEnd, ExecutionId, JobId, JsonText, VersionId, WorkspaceId};
use leasehold_crash_marker::{Computation, CrashMarkers, reach_claim_failpoint, reach_failpoint};
use leasehold_store::ErrorKind;
use leasehold_store::definition::{CachedVersion, VersionCache};
use leasehold_store::node_payload::{self, ClaimedNodes, Payloads};
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

const OPEN: &str = sql!("graph/open");
const PARAMS: &str = sql!("graph/params");
const OUTPUT: &str = sql!("node/output");
const JOB_NODE: &str = sql!("job/node");

/// Reads the state and the end of a graph.
pub(super) fn state(row: &Row<'_>) -> Result<GraphState, Fault> {
    let ended: Option<String> = row.get("ended")?;
    let letters: String = row.get("state")?;
    let end = ended.as_deref().map(str::parse::<ExecutionEnd>).transpose();
    let state = end.ok().and_then(|end| GraphState::read(&letters, end));
    let invalid =
        || ErrorKind::Broken("execution_graph.state in the database is invalid".to_owned());
    Ok(state.ok_or_else(invalid)?)
}

/// Returns the state of an execution's graph and its state machine; none if the graph was not started.
pub(super) fn find(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<(GraphState, Arc<Machine>)>, Fault> {
    let found = open(session, versions, execution)?;
    Ok(found.map(|(state, machine, _)| (state, machine)))
}

/// Returns the graph of an execution, ready for changes; none if it was not started or was deleted.
pub(super) fn graph(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<GraphChange>, Fault> {
    let found = open(session, versions, execution)?;
    Ok(found.map(|(state, machine, origin)| GraphChange::of(execution, origin, machine, state)))
}

/// Returns the state machine of a version; none if the version has no graph.
pub(super) fn machine(cached: &CachedVersion) -> Result<Option<Arc<Machine>>, Fault> {
    let id = cached.version().id;
    let invalid =
        |problem| ErrorKind::Broken(format!("the body of version {id} is invalid: {problem}"));
    Ok(cached.machine().map_err(invalid)?)
}

fn open(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<(GraphState, Arc<Machine>, GraphOrigin)>, Fault> {
    let found = session.optional(OPEN, [blob(execution)], |row| {
        let origin = GraphOrigin {
            workspace: row.id("workspace_id")?,
            priority: row.get("priority")?,
            trace_context: row.get("trace_context")?,
            crashed: row.get("crashed")?,
        };
        Ok((state(row)?, row.id::<VersionId>("version_id")?, origin))
    })?;
    let Some((state, version, origin)) = found else {
        return Ok(None);
    };
    let machine = version_machine(session, versions, origin.workspace, version)?;
    if !machine.fits(&state) {
        let text = format!("execution_graph.state does not fit the graph of version {version}");
        return Err(ErrorKind::Broken(text).into());
    }
    Ok(Some((state, machine, origin)))
}

fn version_machine(
    session: &Session<'_>,
    versions: &VersionCache,
    workspace: WorkspaceId,
    version: VersionId,
) -> Result<Arc<Machine>, Fault> {
    let missing = || ErrorKind::Broken(format!("version {version} has no graph"));
    let found = cached_version(session, versions, workspace, version)?;
    let machine = found.map(|cached| machine(&cached)).transpose()?;
    Ok(machine.flatten().ok_or_else(missing)?)
}

/// Applies the end of a node; false if it has no effect any more. Resets the crashes of a request whose inputs it computed.
pub(super) fn node_ended(
    session: &Session<'_>,
    markers: &CrashMarkers,
    graph: &mut GraphChange,
    end: NodeEnd,
) -> Result<bool, Fault> {
    let foresight = graph.preview_end(end.node, &end.outcome);
    let source = source(session, graph.execution(), &foresight)?;
    if !foresight.begins {
        return Ok(graph.node_ended(end, source));
    }
    let applied = markers.compute(computation(graph), || {
        reach_failpoint(&source.params);
        graph.node_ended(end, source)
    });
    if graph.origin().crashed {
        crash::reset(session, graph.execution())?;
    }
    Ok(applied)
}

/// Returns the computation of the inputs of nodes that start.
pub(super) fn computation(graph: &GraphChange) -> Computation {
    Computation {
        execution: graph.execution(),
        crashed: graph.origin().crashed,
    }
}

/// Reads what the payloads of these claimed jobs are built from, by execution. Omits jobs that run no node. The second list has jobs that cannot
/// be built.
pub(crate) fn claimed_nodes(
    session: &Session<'_>,
    versions: &VersionCache,
    jobs: &[JobId],
) -> Result<(Vec<ClaimedNodes>, Vec<JobId>), Fault> {
    let (mut groups, mut broken): (Vec<ClaimedNodes>, Vec<JobId>) = Default::default();
    let mut known: HashMap<ExecutionId, usize> = HashMap::new();
    for &job in jobs {
        match claimed_node(session, versions, job, &known) {
            Ok(None) => {}
            Ok(Some((node, NodeGroup::Known(at)))) => groups[at].jobs.push((job, node)),
            Ok(Some((node, NodeGroup::New(mut group)))) => {
                known.insert(group.execution, groups.len());
                group.jobs.push((job, node));
                groups.push(group);
            }
            Err(fault) => {
                // Withheld, because other jobs of the claim are not concerned.
                session.skip_broken(format_args!("job {job}"), fault)?;
                broken.push(job);
            }
        }
    }
    let mut read = Vec::with_capacity(groups.len());
    for mut group in groups {
        let nodes: Vec<usize> = group.jobs.iter().map(|(_, node)| *node).collect();
        let needs = group.machine.needs(&nodes);
        match outputs_of(session, group.execution, &needs) {
            Ok(outputs) => {
                group.outputs = outputs;
                read.push(group);
            }
            Err(fault) => {
                session.skip_broken(format_args!("execution {}", group.execution), fault)?;
                broken.extend(group.jobs.iter().map(|(job, _)| *job));
            }
        }
    }
    Ok((read, broken))
}

/// The claimed nodes of an execution: those read before, at this position, or its first one.
enum NodeGroup {
    Known(usize),
    New(ClaimedNodes),
}

/// Reads the node that a claimed job runs; none if it runs none.
fn claimed_node(
    session: &Session<'_>,
    versions: &VersionCache,
    job: JobId,
    known: &HashMap<ExecutionId, usize>,
) -> Result<Option<(usize, NodeGroup)>, Fault> {
    let found = session.optional(JOB_NODE, [job.0], |row| {
        let version = (row.id("workspace_id")?, row.id::<VersionId>("version_id")?);
        Ok((
            row.id("execution_id")?,
            row.get::<_, NodeIndex>("node")?.0,
            version,
            row.get::<_, bool>("crashed")?,
        ))
    })?;
    let Some((execution, node, (workspace, version), crashed)) = found else {
        return Ok(None);
    };
    if let Some(at) = known.get(&execution) {
        return Ok(Some((node, NodeGroup::Known(*at))));
    }
    let group = ClaimedNodes {
        execution,
        workspace,
        crashed,
        machine: version_machine(session, versions, workspace, version)?,
        params: params_of(session, execution)?,
        outputs: HashMap::new(),
        jobs: Vec::new(),
    };
    Ok(Some((node, NodeGroup::New(group))))
}

/// Builds the payloads of the jobs of one execution, with a crash marker.
pub(crate) fn payloads(markers: &CrashMarkers, nodes: &ClaimedNodes) -> Payloads {
    let computation = Computation {
        execution: nodes.execution,
        crashed: nodes.crashed,
    };
    markers.compute(computation, || {
        reach_claim_failpoint(&nodes.params);
        node_payload::payloads(nodes)
    })
}

/// Reads the inputs of the nodes that start next; reads nothing if none do.
fn source(
    session: &Session<'_>,
    execution: ExecutionId,
    foresight: &EndPreview,
) -> Result<NodeSource, Fault> {
    if !foresight.begins {
        return Ok(NodeSource::default());
    }
    Ok(NodeSource {
        params: params_of(session, execution)?,
        outputs: outputs_of(session, execution, &foresight.needs)?,
    })
}

fn params_of(session: &Session<'_>, execution: ExecutionId) -> Result<JsonText, Fault> {
    session.one(PARAMS, [blob(execution)], |row| {
        Ok(JsonText::trusted(row.get("params")?))
    })
}

/// Reads the outputs of these nodes. Stops at the first one with which they have more bytes than a step may read, which fails the step.
fn outputs_of(
    session: &Session<'_>,
    execution: ExecutionId,
    needs: &BTreeSet<usize>,
) -> Result<HashMap<usize, JsonText>, Fault> {
    let mut outputs = HashMap::with_capacity(needs.len());
    let mut bytes = 0;
    session.with_statement(OUTPUT, |statement| {
        for node in needs {
            let mut rows = statement.query(params![blob(execution), NodeIndex(*node)])?;
            if let Some(row) = rows.next()? {
                let output: String = row.get(0)?;
                bytes += output.len();
                outputs.insert(*node, JsonText::trusted(output));
            }
            if bytes > STEP_READ_MAX_BYTES {
                break;
            }
        }
        Ok(())
    })?;
    Ok(outputs)
}
