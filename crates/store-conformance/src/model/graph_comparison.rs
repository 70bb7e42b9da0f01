//! Compares a store with the model on graphs: applies each operation to both, then compares everything. Where a store may
//! choose (ids, tokens), the model adopts its choice.

use super::Model;
use super::comparison::{Mismatch, answer, same};
use super::job_comparison::{determined, is_same_json};
use crate::Fixture;
use crate::factory::{LEASE, OWNER, TestWorkspace, new_request, ok};
use crate::graph_factory::{
    StartedGraph, TIMEOUT_SWEEPER, diamond, graph_of, task, task_in, task_with_max_attempts,
};
use crate::graph_invariants;
use crate::job_factory::{QUEUE, job_claim};
use leasehold_core::graph::{Graph, GraphStop, Node, NodeRun, NodeState};
use leasehold_core::job::{ClaimedJob, JobEnd, JobFinish, RetryMode};
use leasehold_core::{JobId, JsonText, VersionBody};
use leasehold_store::definition::{NewVersion, Publisher};
use leasehold_store::job::JobFilter;
use leasehold_store::queue::SharedWith;
use leasehold_store::request::{Claim, ClaimOutcome, Enqueue};
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Result as StoreResult, Store, fresh_id};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// An operation. Numbers are taken modulo the number of things.
#[derive(Clone, Debug)]
pub(super) enum GraphOp {
    Start { graph: u8, dispatched: bool },
    Claim { worker: u8, max: u32 },
    Finish { claim: u8, stranger: bool, end: u8 },
    Stop { execution: u8, stop: u8 },
    Share { queue: u8, with: u8 },
    Sweep,
    Advance { seconds: u8 },
}

pub(super) fn graph_op() -> impl Strategy<Value = GraphOp> {
    prop_oneof![
        2 => (any::<u8>(), any::<bool>()).prop_map(|(graph, dispatched)| GraphOp::Start { graph, dispatched }),
        3 => (any::<u8>(), 0..5_u32).prop_map(|(worker, max)| GraphOp::Claim { worker, max }),
        6 => (any::<u8>(), prop::bool::weighted(0.05), any::<u8>())
            .prop_map(|(claim, stranger, end)| GraphOp::Finish { claim, stranger, end }),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(execution, stop)| GraphOp::Stop { execution, stop }),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(queue, with)| GraphOp::Share { queue, with }),
        1 => Just(GraphOp::Sweep),
        2 => (0..20_u8).prop_map(|seconds| GraphOp::Advance { seconds }),
    ]
}

fn graphs() -> [Graph; 4] {
    let picky = Node {
        input: Some(json!({"$from": "/nodes/a/n"})),
        ..task("picky")
    };
    let frail = ["a", "b", "c", "d"].map(|id| task_with_max_attempts(id, 2));
    let edges = [("a", "c"), ("b", "c"), ("a", "d")];
    let second = vec![task("a"), task("b"), task_in(SECOND_QUEUE, "second")];
    [
        diamond(),
        graph_of(frail.to_vec(), &edges),
        graph_of(second, &[("a", "b"), ("a", "second")]),
        graph_of(vec![task("a"), task("b"), picky], &[("a", "picky")]),
    ]
}

/// The queue of some nodes, beside [`QUEUE`]. No worker claims from it.
const SECOND_QUEUE: &str = "second";

/// The name of a workspace by its number, from one.
fn workspace_name(number: usize) -> String {
    format!("workspace {number}")
}

/// A store and the model, compared on graphs.
pub(super) struct GraphComparison {
    real: Fixture,
    model: Fixture,
    inner: Arc<Model>,
    workspaces: Vec<TestWorkspace>,
    started: Vec<StartedGraph>,
    /// Every claim so far, with its worker.
    claims: Vec<(String, ClaimedJob)>,
}

impl GraphComparison {
    pub(super) async fn new(real: Fixture) -> Result<Self, Mismatch> {
        let inner = Arc::new(Model::new(real.clock.clone()));
        let model = Fixture::new(inner.clone(), real.clock.clone());
        let mut comparison = Self {
            real,
            model,
            inner,
            workspaces: Vec::new(),
            started: Vec::new(),
            claims: Vec::new(),
        };
        for graph in graphs() {
            comparison.create_workspace(graph).await?;
        }
        Ok(comparison)
    }

    async fn create_workspace(&mut self, graph: Graph) -> Result<(), Mismatch> {
        let workspace = NewWorkspace {
            id: fresh_id(),
            name: workspace_name(self.workspaces.len() + 1),
            plan: leasehold_core::Plan::Free,
            limit_override: Some(100),
        };
        let create = async |store: &dyn Store| {
            store
                .workspace_create(&workspace, &leasehold_store::Actor::Local)
                .await
        };
        self.both("workspace_create", create).await?;
        let definition = leasehold_store::definition::NewDefinition {
            id: fresh_id(),
            workspace: workspace.id,
            name: "graph".into(),
        };
        let create = async |store: &dyn Store| {
            store
                .definition_create(&definition, &leasehold_store::Actor::Local)
                .await
        };
        self.both("definition_create", create).await?;
        let version = NewVersion {
            id: fresh_id(),
            workspace: workspace.id,
            definition: definition.id,
            body: VersionBody::Graph(graph),
            params_schema: None,
            execution_timeout: None,
            publisher: Publisher::Administrator,
        };
        let publish = async |store: &dyn Store| {
            store
                .version_publish(&version, &leasehold_store::Actor::Local)
                .await
        };
        self.both("version_publish", publish).await?;
        self.workspaces.push(TestWorkspace {
            workspace: workspace.id,
            definition: definition.id,
            version: version.id,
        });
        Ok(())
    }

    /// Makes the same call on both, the store first, and compares the results.
    async fn both<T: PartialEq + Debug>(
        &self,
        what: &str,
        call: impl AsyncFn(&dyn Store) -> StoreResult<T>,
    ) -> Result<T, Mismatch> {
        let real = answer(what, call(&*self.real.store).await)?;
        self.adopt_job_ids().await;
        let model = answer(what, call(&*self.inner).await)?;
        same(what, &real, &model)?;
        Ok(real)
    }

    /// Adopts the job ids that the store chose for nodes.
    async fn adopt_job_ids(&self) {
        for started in &self.started {
            let execution = started.execution;
            let nodes = ok(self.real.store.graph_nodes(execution).await).unwrap_or_default();
            let jobs = nodes.into_iter().enumerate();
            let jobs = jobs.filter_map(|(at, node)| Some(((execution, at), node.job?)));
            self.inner.jobs(|model, _| model.chosen.extend(jobs));
        }
    }

    /// Applies `op` to both and compares them.
    pub(super) async fn step(&mut self, op: &GraphOp) -> Result<(), Mismatch> {
        match *op {
            GraphOp::Start { graph, dispatched } => {
                let workspace = self.workspaces[usize::from(graph) % self.workspaces.len()];
                self.start(workspace, dispatched).await?;
            }
            GraphOp::Claim { worker, max } => {
                self.claim(&format!("worker-{}", worker % 2), max).await?;
            }
            GraphOp::Finish {
                claim,
                stranger,
                end,
            } => self.finish(claim, stranger, end).await?,
            GraphOp::Stop { execution, stop } => self.stop(execution, stop).await?,
            GraphOp::Share { queue, with } => self.share(queue, with).await?,
            GraphOp::Sweep => self.sweep().await?,
            GraphOp::Advance { seconds } => self.real.advance(u64::from(seconds)),
        }
        self.compare().await
    }

    async fn start(&mut self, workspace: TestWorkspace, dispatched: bool) -> Result<(), Mismatch> {
        let enqueue = Enqueue {
            workspace: workspace.workspace,
            requests: vec![new_request(&workspace)],
            by: "user".into(),
        };
        let enqueue_call = async |store: &dyn Store| store.request_enqueue(&enqueue).await;
        self.both("request_enqueue", enqueue_call).await?;
        let claimed = self.real.claim_one().await;
        let claim = Claim {
            owner: OWNER.into(),
            batch: 1,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        let now = self.real.now();
        let model = self
            .inner
            .state()
            .claim(&claim, now, &mut |_| claimed.execution);
        let ClaimOutcome::Claimed(model) = model else {
            return Err("the model lost a lock that the claim does not have".into());
        };
        same("request_claim", &claimed.id, &model.requests[0].id)?;
        self.started.push(StartedGraph::of(&workspace, &claimed));
        let start = async |store: &dyn Store| store.graph_start(&(&claimed).into()).await;
        self.both("graph_start", start).await?;
        self.both("graph_start again", start).await?;
        if dispatched {
            let claim = [(&claimed).into()];
            let outcomes = self.real.store.request_dispatched(OWNER, &claim).await;
            let real = answer("request_dispatched", outcomes)?;
            let claim = [(&model.requests[0]).into()];
            let outcomes = self.model.store.request_dispatched(OWNER, &claim).await;
            let model = answer("request_dispatched", outcomes)?;
            same("request_dispatched", &real, &model)?;
        }
        Ok(())
    }

    /// The store chooses the tokens. Expired leases are taken back first, so that the claim has no other choice.
    async fn claim(&mut self, worker: &str, max: u32) -> Result<(), Mismatch> {
        self.sweep().await?;
        let claim = job_claim(worker, max);
        let mut real = answer("job_claim", self.real.store.job_claim(&claim).await)?;
        let tokens: BTreeMap<JobId, i64> = real.jobs.iter().map(|j| (j.id, j.token)).collect();
        let model = self.inner.jobs(|jobs, now| {
            jobs.claim(&claim, now, &[], &mut |id| {
                tokens.get(&id).copied().unwrap_or(i64::MAX)
            })
        });
        for (real, model) in real.jobs.iter_mut().zip(&model.jobs) {
            if is_same_json(&real.payload, &model.payload) {
                real.payload.clone_from(&model.payload);
            }
        }
        same("job_claim", &real, &model)?;
        let claims = real.jobs.into_iter().map(|job| (worker.to_owned(), job));
        self.claims.extend(claims);
        Ok(())
    }

    async fn finish(&self, claim: u8, stranger: bool, end: u8) -> Result<(), Mismatch> {
        let newest = self.claims.iter().rev();
        let Some((worker, job)) = newest.cycle().nth(usize::from(claim % 8)) else {
            return Ok(());
        };
        let worker = if stranger { "stranger" } else { worker };
        let failed = |retry_mode| JobEnd::Failed {
            error: "it broke".into(),
            retry_mode,
        };
        let end = match end % 16 {
            0 => failed(RetryMode::Never),
            1 | 2 => failed(RetryMode::Policy),
            3 => JobEnd::Returned,
            4 => JobEnd::Snoozed(Duration::from_secs(2)),
            5 => JobEnd::Completed { result: None },
            _ => JobEnd::Completed {
                result: Some(JsonText::from(&json!({"n": job.id.0}))),
            },
        };
        let finish = [JobFinish {
            claim: job.claim(),
            end,
        }];
        let finish = async |store: &dyn Store| store.job_finish(worker, &finish).await;
        self.both("job_finish", finish).await.map(drop)
    }

    async fn stop(&self, execution: u8, stop: u8) -> Result<(), Mismatch> {
        let index = usize::from(execution) % self.started.len().max(1);
        let started = self.started.get(index);
        let execution = started.map_or_else(fresh_id, |started| started.execution);
        let stop = [
            GraphStop::Cancelled,
            GraphStop::Terminated,
            GraphStop::TimedOut,
        ][usize::from(stop) % 3];
        let call = async |store: &dyn Store| {
            store
                .graph_stop(execution, stop, TIMEOUT_SWEEPER, "so")
                .await
        };
        self.both("graph_stop", call).await.map(drop)
    }

    /// Shares a queue with all workspaces, with the first ones, or with none.
    async fn share(&self, queue: u8, with: u8) -> Result<(), Mismatch> {
        let queue = [QUEUE, SECOND_QUEUE][usize::from(queue) % 2];
        let with = match usize::from(with) % 8 {
            n @ 0..4 => SharedWith::Workspaces((1..=n).map(workspace_name).collect()),
            _ => SharedWith::All,
        };
        let share = async |store: &dyn Store| {
            store
                .queue_share(queue, &with, &leasehold_store::Actor::Local)
                .await
        };
        self.both("queue_share", share).await?;
        let names = [queue.to_owned()];
        let ownership = async |store: &dyn Store| store.queue_ownership(&names).await;
        self.both("queue_ownership", ownership).await.map(drop)
    }

    /// Sweeps one expired lease at a time, so that the order of exhausted nodes is determined.
    async fn sweep(&self) -> Result<(), Mismatch> {
        loop {
            let real = self.real.store.job_requeue_expired(1).await;
            let real = answer("job_requeue_expired", real)?;
            let chosen: Vec<JobId> = real.iter().map(|expired| expired.claim.job).collect();
            let model = self.inner.jobs(|jobs, now| {
                let left = jobs.expired(now).iter().any(|id| !chosen.contains(id));
                (jobs.requeue_expired_jobs(&chosen, now), left)
            });
            same("job_requeue_expired", &real, &model.0)?;
            let expire = async |store: &dyn Store| store.graph_expire(TIMEOUT_SWEEPER, 100).await;
            self.both("graph_expire", expire).await?;
            if chosen.is_empty() {
                return same("expired leases left", &false, &model.1);
            }
        }
    }

    async fn compare(&self) -> Result<(), Mismatch> {
        let all = JobFilter::default();
        let real = self.real.all_jobs(&all, 1_000).await;
        let model = self.model.all_jobs(&all, 1_000).await;
        same("numbers of jobs", &real.len(), &model.len())?;
        for (real, model) in real.into_iter().zip(model) {
            let (real, model) = determined(real, model);
            same("jobs", &real, &model)?;
        }
        for s in &self.started {
            let get = async |store: &dyn Store| store.graph_get(s.execution).await;
            self.both("graph_get", get).await?;
            let nodes = async |store: &dyn Store| {
                let nodes = store.graph_nodes(s.execution).await?;
                Ok(nodes.map(|nodes| nodes.into_iter().map(comparable).collect::<Vec<_>>()))
            };
            self.both("graph_nodes", nodes).await?;
            let get = async |store: &dyn Store| store.execution_get(s.workspace, s.execution).await;
            self.both("execution_get", get).await?;
            let get = async |store: &dyn Store| store.request_get(s.workspace, s.request).await;
            self.both("request_get", get).await?;
        }
        Ok(())
    }

    /// Checks the store's invariants at the end.
    pub(super) async fn compare_all(&self) -> Result<(), Mismatch> {
        graph_invariants::check(&self.real, &self.started).await;
        for workspace in &self.workspaces {
            let slots = async |store: &dyn Store| store.workspace_slots(workspace.workspace).await;
            self.both("workspace_slots", slots).await?;
        }
        Ok(())
    }
}

/// Removes what a store may choose: earlier errors of a node that completed or was cancelled.
fn comparable(mut node: NodeRun) -> NodeRun {
    if matches!(node.state, NodeState::Completed | NodeState::Cancelled) {
        node.error = None;
    }
    node
}
