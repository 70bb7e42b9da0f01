//! Graphs in the model: the core's state machine over one row per execution, with its steps applied to jobs and requests at once.

use super::Model;
use super::job::Jobs;
use super::state::State;
use async_trait::async_trait;
use leasehold_core::graph::{
    GraphEvent, GraphState, GraphStop, Machine, NodeContext, NodeRun, NodeState, Step,
};
use leasehold_core::job::{JobEnd, JobFinish, JobFinished};
use leasehold_core::limits::{
    ERROR_MAX_CHARS, NODE_ROW_BYTES, STEP_UNCHARGED_BYTES, SWEEP_MAX_BATCH,
};
use leasehold_core::text::clip;
use leasehold_core::{ExecutionId, ExecutionStatus, JobId, JsonText, Timestamp, VersionBody};
use leasehold_store::Result;
use leasehold_store::execution::{Execution, ExecutionFinish};
use leasehold_store::graph::{
    EndedExecution, GraphRun, GraphStart, GraphStarted, GraphStopped, GraphStore, TIMED_OUT, job_of,
};
use leasehold_store::job::JobsFinished;
use std::collections::{BTreeMap, HashMap};

/// A started graph.
#[derive(Clone, Debug)]
pub(super) struct GraphRow {
    machine: Machine,
    state: GraphState,
    error: Option<String>,
    deadline: Option<Timestamp>,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
    /// The started nodes, by index.
    nodes: BTreeMap<usize, NodeRow>,
}

/// A started node.
#[derive(Clone, Debug)]
struct NodeRow {
    job: Option<JobId>,
    attempts: u32,
    output: Option<JsonText>,
    error: Option<String>,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
}

impl NodeRow {
    fn new(job: Option<JobId>, now: Timestamp) -> Self {
        Self {
            job,
            attempts: 0,
            output: None,
            error: None,
            started_at: now,
            finished_at: None,
        }
    }
}

/// One transaction over everything that the end of a node can change.
struct GraphTransaction<'a> {
    state: &'a mut State,
    jobs: &'a mut Jobs,
    now: Timestamp,
    by: &'a str,
    /// The executions that ended in this transaction.
    ended: Vec<EndedExecution>,
}

impl Model {
    /// Runs `act` on graphs, jobs and requests, and notifies if a slot became free.
    fn graphs<T>(&self, by: &str, act: impl FnOnce(&mut GraphTransaction<'_>) -> T) -> T {
        let mut state = self.state();
        let running = |state: &State| {
            let all = state.executions.values();
            all.filter(|e| e.status == ExecutionStatus::Running).count()
        };
        let before = running(&state);
        let answer = self.jobs(|jobs, now| {
            act(&mut GraphTransaction {
                state: &mut state,
                jobs,
                now,
                by,
                ended: Vec::new(),
            })
        });
        self.notifiers.notify_work(running(&state) < before);
        answer
    }
}

#[async_trait]
impl GraphStore for Model {
    async fn graph_start(&self, start: &GraphStart) -> Result<GraphStarted> {
        Ok(self.graphs("graph", |tx| tx.start(start)))
    }

    async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>> {
        let state = self.state();
        let row = state.graphs.get(&execution);
        Ok(row.map(|row| GraphRun {
            execution,
            state: row.state.clone(),
            error: row.error.clone(),
            started_at: row.started_at,
            finished_at: row.finished_at,
        }))
    }

    async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>> {
        Ok(self.graphs("graph", |tx| {
            let row = tx.state.graphs.get(&execution)?;
            let places = 0..row.machine.graph().nodes.len();
            let mut nodes: Vec<NodeRun> = places.map(|at| row.node(at, tx.jobs)).collect();
            NodeRun::end_cancelled(&mut nodes, row.finished_at);
            NodeRun::omit_large_outputs(&mut nodes);
            Some(nodes)
        }))
    }

    async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>> {
        let state = self.state();
        let graph = state.graphs.get(&execution);
        let node = graph.and_then(|graph| graph.nodes.get(&node));
        Ok(node.and_then(|node| node.output.clone()))
    }

    async fn graph_stop(
        &self,
        execution: ExecutionId,
        stop: GraphStop,
        by: &str,
        reason: &str,
    ) -> Result<GraphStopped> {
        Ok(self.graphs(by, |tx| {
            if !tx.state.graphs.contains_key(&execution) {
                return GraphStopped::NotFound;
            }
            match tx.event(execution, GraphEvent::Stopped(stop), Some(reason)) {
                true => tx
                    .ended
                    .pop()
                    .map_or(GraphStopped::AlreadyEnded, GraphStopped::Stopped),
                false => GraphStopped::AlreadyEnded,
            }
        }))
    }

    async fn graph_expire(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>> {
        Ok(self.graphs(by, |tx| tx.expire(limit.min(SWEEP_MAX_BATCH) as usize)))
    }
}

impl Model {
    pub(super) fn finish_jobs(&self, worker: &str, finishes: &[JobFinish]) -> JobsFinished {
        self.graphs(worker, |tx| {
            let mut jobs = vec![JobFinished::LeaseLost; finishes.len()];
            let first = |at: usize| {
                let mut before = finishes[..at].iter();
                before.all(|finish| finish.claim != finishes[at].claim)
            };
            for no_attempt in [true, false] {
                for (at, finish) in finishes.iter().enumerate() {
                    if finish.end.refunds_attempt() == no_attempt && first(at) {
                        jobs[at] = tx.finish(worker, finish);
                    }
                }
            }
            JobsFinished {
                jobs,
                ended: std::mem::take(&mut tx.ended),
                failure: None,
            }
        })
    }
}

impl GraphRow {
    fn node(&self, at: usize, jobs: &Jobs) -> NodeRun {
        let state = self.state.nodes()[at];
        let mut node = NodeRun {
            state,
            ..NodeRun::waiting(self.machine.node(at).id())
        };
        let Some(row) = self.nodes.get(&at) else {
            return node;
        };
        node.job = row.job;
        node.attempts = row.attempts;
        node.output = row.output.clone();
        node.error = row.error.clone();
        node.started_at = Some(row.started_at);
        node.finished_at = row.finished_at;
        let job = row.job.and_then(|job| jobs.rows.get(&job));
        if let (NodeState::Running, Some(job)) = (state, job) {
            node.attempts = job.attempts;
            node.error = job.last_error.clone();
        }
        node
    }
}

impl GraphTransaction<'_> {
    fn start(&mut self, start: &GraphStart) -> GraphStarted {
        let execution = start.execution;
        if let Some(row) = self.state.graphs.get(&execution) {
            let ended = row.state.end().is_some();
            return GraphStarted::AlreadyStarted { ended };
        }
        let found = self.state.executions.get(&execution);
        let runs = |e: &&Execution| {
            e.status == ExecutionStatus::Running
                && (e.workspace, e.version) == (start.origin.workspace, start.version)
        };
        let Some(found) = found.filter(runs) else {
            return GraphStarted::NotFound;
        };
        let version = &self.state.versions[&found.version];
        let VersionBody::Graph(graph) = version.body.clone() else {
            return GraphStarted::NotAGraph;
        };
        let machine = Machine::new(graph).expect("a published graph is valid");
        let (state, step) = machine.begin();
        let row = GraphRow {
            machine,
            state,
            error: None,
            deadline: version.execution_timeout.map(|after| self.now + after),
            started_at: self.now,
            finished_at: None,
            nodes: BTreeMap::new(),
        };
        self.advance(execution, row, step, None, 0);
        let ended = self.ended.pop();
        ended.map_or(GraphStarted::Started, GraphStarted::Ended)
    }

    fn expire(&mut self, limit: usize) -> Vec<EndedExecution> {
        let mut ended_count = 0;
        for ((execution, at), error) in std::mem::take(&mut self.jobs.exhausted) {
            if ended_count == limit {
                self.jobs.exhausted.insert((execution, at), error);
            } else if self.event(execution, GraphEvent::Failed(at), Some(&error)) {
                ended_count += 1;
            }
        }
        let all = self.state.graphs.iter();
        let open = all.filter(|(_, row)| row.state.end().is_none());
        let overdue = open.filter(|(_, row)| row.deadline.is_some_and(|at| at <= self.now));
        let overdue: Vec<ExecutionId> = overdue.map(|(id, _)| *id).collect();
        for execution in overdue {
            if ended_count < limit {
                let event = GraphEvent::Stopped(GraphStop::TimedOut);
                self.event(execution, event, Some(TIMED_OUT));
                ended_count += 1;
            }
        }
        std::mem::take(&mut self.ended)
    }

    fn finish(&mut self, worker: &str, finish: &JobFinish) -> JobFinished {
        let job = finish.claim.job;
        let row = self.jobs.rows.get(&job);
        let Some((execution, at)) = row.and_then(|row| row.node) else {
            return self.jobs.finish(worker, finish, self.now);
        };
        let mut own = finish.clone();
        let mut output = None;
        if let JobEnd::Completed { result } = &mut own.end {
            output = Some(result.take().unwrap_or_default());
        }
        let answer = self.jobs.finish(worker, &own, self.now);
        match (answer, &own.end) {
            (JobFinished::Completed, _) => {
                if let Some(row) = self.state.graphs.get_mut(&execution)
                    && let Some(node) = row.nodes.get_mut(&at)
                {
                    node.output = output;
                }
                self.event(execution, GraphEvent::Completed(at), None);
            }
            (JobFinished::Failed, JobEnd::Failed { error, .. }) => {
                let error = clip(error, ERROR_MAX_CHARS);
                self.event(execution, GraphEvent::Failed(at), Some(&error));
            }
            (_, _) => {}
        }
        answer
    }

    /// Applies an event to a graph; returns false if the graph ignores it.
    fn event(&mut self, execution: ExecutionId, event: GraphEvent, error: Option<&str>) -> bool {
        let Some(mut row) = self.state.graphs.remove(&execution) else {
            return false;
        };
        let Some(step) = row.machine.apply(&mut row.state, event) else {
            self.state.graphs.insert(execution, row);
            return false;
        };
        let mut why = error.map(str::to_owned);
        let mut written = 0;
        if let GraphEvent::Completed(at) = event {
            let output = row.nodes.get(&at).and_then(|node| node.output.as_ref());
            written = NODE_ROW_BYTES + output.map_or(0, |output| output.as_str().len());
        }
        if let GraphEvent::Completed(at) | GraphEvent::Failed(at) = event {
            why = error.map(|error| row.machine.failure(at, error));
            self.end_node(&mut row, at, error);
        }
        if !step.begin.is_empty() {
            self.reset_crashes(execution);
        }
        self.advance(execution, row, step, why, written);
        true
    }

    /// Resets the crashes of an execution's request: this step computes its inputs.
    fn reset_crashes(&mut self, execution: ExecutionId) {
        let request = self.state.executions[&execution].request;
        if let Some(row) = self.state.requests.get_mut(&request) {
            (row.crashes, row.crashed_process) = Default::default();
        }
    }

    fn end_node(&mut self, row: &mut GraphRow, at: usize, error: Option<&str>) {
        let node = row.nodes.entry(at);
        let node = node.or_insert_with(|| NodeRow::new(None, self.now));
        node.error = error.map(str::to_owned);
        node.finished_at = Some(self.now);
        if let Some(job) = node.job {
            node.attempts = self.jobs.attempts(job);
        }
    }

    fn advance(
        &mut self,
        execution: ExecutionId,
        mut row: GraphRow,
        step: Step,
        mut error: Option<String>,
        mut written: usize,
    ) {
        written += row.state.nodes().len();
        let outputs = row.nodes.iter();
        let outputs: HashMap<usize, JsonText> = outputs
            .filter_map(|(at, node)| Some((*at, node.output.clone()?)))
            .collect();
        let request = self.state.executions[&execution].request;
        let request = self.state.requests[&request].request.clone();
        let params = request.params.clone();
        let given = NodeContext {
            execution,
            workspace: request.workspace,
            params: &params,
            outputs: &outputs,
        };
        let row_bytes = |_: usize, _: &JsonText| NODE_ROW_BYTES;
        let machine = &row.machine;
        let prepared = machine.prepare_references(&mut row.state, step, &given, row_bytes);
        let jobs = &*self.jobs;
        let prepared = jobs.refuse(machine, &mut row.state, request.workspace, prepared);
        for (at, reference) in prepared.begin {
            let (kind, stored) = (machine.node(at).job_kind(), reference.as_str());
            let traced = request.trace_context.as_ref().map_or(0, String::len);
            written += NODE_ROW_BYTES + kind.len() + stored.len() + traced;
            let trace_context = request.trace_context.as_deref();
            let payload = machine.payloads(&[at], &given).remove(0);
            let payload = payload.expect("the input was checked");
            let job = job_of(machine.node(at), reference, request.priority, trace_context);
            let node = (execution, at);
            let job = self.jobs.enqueue_node(&job, payload, node, self.now);
            row.nodes.insert(at, NodeRow::new(Some(job), self.now));
        }
        for at in prepared.abandon {
            if let Some(job) = row.nodes.get(&at).and_then(|node| node.job)
                && self.jobs.abandon(job, self.now)
            {
                self.end_node(&mut row, at, None);
            }
        }
        if let Some((at, problem)) = prepared.failed {
            error = Some(row.machine.failure(at, &problem));
            self.end_node(&mut row, at, Some(&problem));
        }
        if prepared.end.is_none()
            && written > STEP_UNCHARGED_BYTES
            && let Some(charged) = self.state.requests.get_mut(&request.id)
        {
            charged.execution_bytes += written as u64;
        }
        if let Some(end) = prepared.end {
            row.error = error.clone();
            row.finished_at = Some(self.now);
            let finish = ExecutionFinish {
                execution,
                end,
                error,
            };
            let outcome = self.state.finish(self.by, &finish, self.now);
            self.ended.extend(EndedExecution::of(&finish, &outcome));
            self.jobs.exhausted.retain(|(of, _), _| *of != execution);
        }
        self.state.graphs.insert(execution, row);
    }
}
