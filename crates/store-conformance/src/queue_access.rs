//! Owners and sharing of queues: which graphs may be published, whose new queues are, and nodes whose queue is no longer permitted.

use crate::Fixture;
use crate::factory::{TestWorkspace, ok};
use crate::graph_factory::{graph_of, task_in};
use crate::job_factory::{QUEUE, completed, new_job};
use futures::future::join_all;
use leasehold_core::graph::{Graph, NodeState};
use leasehold_core::limits::QUEUES_OWNED_MAX;
use leasehold_core::queue_access::refusal_text;
use leasehold_core::{DefinitionId, ExecutionEnd, ExecutionStatus, Plan, VersionBody, WorkspaceId};
use leasehold_store::definition::{NewVersion, Publisher, QueueRefusal, VersionPublished};
use leasehold_store::graph::GraphStarted;
use leasehold_store::queue::{QueueChange, QueueOwnership, QueueShared, SharedWith};
use leasehold_store::workspace::Workspace;
use leasehold_store::{Actor, fresh_id};
use tokio::sync::Barrier;

/// A graph of one task in each of these queues.
fn tasks(queues: &[&str]) -> Graph {
    let node = |(index, queue): (usize, &&str)| task_in(queue, &format!("n{index}"));
    graph_of(queues.iter().enumerate().map(node).collect(), &[])
}

fn new_version(
    publisher: Publisher,
    workspace: WorkspaceId,
    definition: DefinitionId,
    graph: Graph,
) -> NewVersion {
    NewVersion {
        id: fresh_id(),
        workspace,
        definition,
        body: VersionBody::Graph(graph),
        params_schema: None,
        execution_timeout: None,
        publisher,
    }
}

fn not_permitted(queue: &str) -> VersionPublished {
    VersionPublished::QueueRefused(QueueRefusal::NotPermitted(queue.to_owned()))
}

fn names(workspaces: &[&Workspace]) -> SharedWith {
    let mut names: Vec<String> = workspaces.iter().map(|w| w.name.clone()).collect();
    names.sort_unstable();
    SharedWith::Workspaces(names)
}

impl Fixture {
    /// Publishes a graph of tasks in these queues as a new definition.
    async fn publish_tasks(
        &self,
        publisher: Publisher,
        workspace: WorkspaceId,
        queues: &[&str],
    ) -> VersionPublished {
        let definition = self.create_draft(workspace).await;
        let new = new_version(publisher, workspace, definition, tasks(queues));
        ok(self.store.version_publish(&new, &Actor::Local).await)
    }

    /// Publishes a graph with the workspace's own key and returns its definition.
    async fn publish_own(&self, workspace: WorkspaceId, graph: Graph) -> TestWorkspace {
        let definition = self.create_draft(workspace).await;
        let new = new_version(Publisher::Workspace, workspace, definition, graph);
        let published = ok(self.store.version_publish(&new, &Actor::Local).await);
        assert!(published.version().is_some(), "the graph is accepted");
        TestWorkspace {
            workspace,
            definition,
            version: new.id,
        }
    }

    async fn ownership(&self, queue: &str) -> Option<QueueOwnership> {
        let mut found = ok(self.store.queue_ownership(&[queue.to_owned()]).await);
        assert!(found.len() <= 1);
        found.pop()
    }

    async fn share(&self, queue: &str, with: &SharedWith) -> QueueOwnership {
        match ok(self.store.queue_share(queue, with, &Actor::Local).await) {
            QueueShared::Shared(ownership) => ownership,
            QueueShared::WorkspaceNotFound(name) => panic!("workspace {name} not found"),
        }
    }

    async fn assert_owned(&self, queue: &str, owner: Option<&Workspace>, with: SharedWith) {
        let expected = QueueOwnership {
            queue: queue.to_owned(),
            owner: owner.map(|owner| owner.name.clone()),
            shared_with: with,
        };
        assert_eq!(self.ownership(queue).await, Some(expected));
    }
}

fn none() -> SharedWith {
    SharedWith::Workspaces(Vec::new())
}

/// Publishing a graph that names an unknown queue creates the queue for the workspace, which may publish it again.
pub async fn unknown_queue_of_a_graph_belongs_to_its_workspace(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, None).await;
    assert_eq!(f.ownership(QUEUE).await, None);
    for _ in 0..2 {
        let published = f.publish_tasks(Publisher::Workspace, own.id, &[QUEUE]);
        assert!(published.await.version().is_some());
        f.assert_owned(QUEUE, Some(&own), none()).await;
    }
    let queue = ok(f.store.queue_get(QUEUE).await).expect("the queue exists");
    assert_eq!(queue.settings, Default::default());
    assert_eq!(queue.created_at, f.now());
}

/// A graph that names another workspace's queue is refused for every publisher, and neither its version nor its other queues exist.
pub async fn queue_of_another_workspace_is_refused_and_nothing_changes(f: Fixture) {
    let owner = f.bare_workspace(Plan::Free, None).await;
    let other = f.bare_workspace(Plan::Free, None).await;
    f.publish_own(owner.id, tasks(&[QUEUE])).await;
    let definition = f.create_draft(other.id).await;
    for publisher in [Publisher::Workspace, Publisher::Administrator] {
        let graph = tasks(&["unknown", QUEUE]);
        let new = new_version(publisher, other.id, definition, graph);
        let refused = ok(f.store.version_publish(&new, &Actor::Local).await);
        assert_eq!(refused, not_permitted(QUEUE));
        assert_eq!(ok(f.store.version_get(other.id, new.id).await), None);
    }
    let current = ok(f.store.definition_get(other.id, definition).await);
    assert_eq!(current.and_then(|found| found.current_version), None);
    assert_eq!(f.ownership("unknown").await, None);
    f.assert_owned(QUEUE, Some(&owner), none()).await;
}

/// Queues that jobs, settings and sharing create belong to the installation and are shared with none until an administrator shares them.
pub async fn queue_of_the_installation_is_refused_until_it_is_shared(f: Fixture) {
    let (own, other) = (
        f.bare_workspace(Plan::Free, None).await,
        f.bare_workspace(Plan::Free, None).await,
    );
    f.enqueue_job(new_job()).await;
    ok(f.store
        .queue_update("configured", &QueueChange::default(), &Actor::Local)
        .await);
    f.share("shared", &none()).await;
    for queue in [QUEUE, "configured", "shared"] {
        f.assert_owned(queue, None, none()).await;
        let publish = async || {
            f.publish_tasks(Publisher::Workspace, own.id, &[queue])
                .await
        };
        assert_eq!(publish().await, not_permitted(queue));
        f.share(queue, &names(&[&other])).await;
        assert_eq!(publish().await, not_permitted(queue));
        for with in [names(&[&own, &other]), SharedWith::All, names(&[&own])] {
            let shared = f.share(queue, &with).await;
            assert_eq!((shared.owner, &shared.shared_with), (None, &with));
            f.assert_owned(queue, None, with).await;
            assert!(publish().await.version().is_some());
        }
        f.share(queue, &none()).await;
        assert_eq!(publish().await, not_permitted(queue));
    }
}

/// A queue of a workspace can be shared with others, which do not own it.
pub async fn queue_of_a_workspace_can_be_shared(f: Fixture) {
    let owner = f.bare_workspace(Plan::Free, None).await;
    let other = f.bare_workspace(Plan::Free, None).await;
    f.publish_own(owner.id, tasks(&[QUEUE])).await;
    f.share(QUEUE, &names(&[&other])).await;
    f.publish_own(other.id, tasks(&[QUEUE])).await;
    f.assert_owned(QUEUE, Some(&owner), names(&[&other])).await;
    f.share(QUEUE, &none()).await;
    f.publish_own(owner.id, tasks(&[QUEUE])).await;
    let refused = f.publish_tasks(Publisher::Workspace, other.id, &[QUEUE]);
    assert_eq!(refused.await, not_permitted(QUEUE));
}

/// An administrator's publish creates queues for the installation and shares the installation's queues with the workspace.
pub async fn administrators_publish_shares_queues_of_the_installation(f: Fixture) {
    let first = f.bare_workspace(Plan::Free, None).await;
    let second = f.bare_workspace(Plan::Free, None).await;
    f.enqueue_job(new_job()).await;
    let queues = [QUEUE, "unknown"];
    for (workspace, with) in [
        (&first, names(&[&first])),
        (&second, names(&[&first, &second])),
    ] {
        let published = f.publish_tasks(Publisher::Administrator, workspace.id, &queues);
        assert!(published.await.version().is_some());
        for queue in queues {
            f.assert_owned(queue, None, with.clone()).await;
        }
        f.publish_own(workspace.id, tasks(&queues)).await;
    }
}

/// A workspace owns at most a fixed number of queues. Shared ones do not count, and a refused graph creates none.
pub async fn workspace_owns_a_limited_number_of_queues(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, None).await;
    let queues: Vec<String> = (0..=QUEUES_OWNED_MAX).map(|n| format!("q{n:03}")).collect();
    let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
    let (allowed, last) = (&queues[..QUEUES_OWNED_MAX], queues[QUEUES_OWNED_MAX]);
    let too_many =
        |queue: &str| VersionPublished::QueueRefused(QueueRefusal::TooMany(queue.to_owned()));
    let publish =
        async |queues: &[&str]| f.publish_tasks(Publisher::Workspace, own.id, queues).await;
    assert_eq!(publish(&queues).await, too_many(last));
    assert_eq!(f.ownership(queues[0]).await, None);
    assert!(publish(allowed).await.version().is_some());
    assert_eq!(publish(&[last]).await, too_many(last));
    assert!(publish(allowed).await.version().is_some());
    f.share(last, &SharedWith::All).await;
    assert!(publish(&queues).await.version().is_some());
    let by_admin = f.publish_tasks(Publisher::Administrator, own.id, &["one more"]);
    assert!(by_admin.await.version().is_some());
}

/// Of workspaces that publish the same unknown queues concurrently exactly one owns each, and the others are refused.
pub async fn concurrent_publishes_of_an_unknown_queue_have_one_owner(f: Fixture) {
    const ROUNDS: usize = 12;
    let mut workspaces = Vec::new();
    for _ in 0..6 {
        let workspace = f.bare_workspace(Plan::Free, None).await;
        let definition = f.create_draft(workspace.id).await;
        workspaces.push((workspace, definition));
    }
    for round in 0..ROUNDS {
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        let barrier = Barrier::new(workspaces.len());
        let publishes = workspaces.iter().enumerate().map(|(index, workspace)| {
            let order = if index % 2 == 0 { [&a, &b] } else { [&b, &a] };
            let graph = tasks(&order.map(String::as_str));
            let (workspace, definition) = (workspace.0.id, workspace.1);
            let new = new_version(Publisher::Workspace, workspace, definition, graph);
            let (f, barrier) = (&f, &barrier);
            async move {
                barrier.wait().await;
                ok(f.store.version_publish(&new, &Actor::Local).await)
            }
        });
        let published = join_all(publishes).await;
        let won: Vec<usize> = (0..published.len())
            .filter(|index| matches!(published[*index], VersionPublished::Published(_)))
            .collect();
        assert_eq!(won.len(), 1, "{published:?}");
        let refused = |outcome: &&VersionPublished| {
            **outcome == not_permitted(&a) || **outcome == not_permitted(&b)
        };
        assert_eq!(published.iter().filter(refused).count(), 5);
        for queue in [&a, &b] {
            let owner = &workspaces[won[0]].0;
            f.assert_owned(queue, Some(owner), none()).await;
        }
    }
}

/// Concurrent publishes of one workspace do not create more queues than it may own.
pub async fn concurrent_publishes_do_not_exceed_the_limit_of_queues(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, None).await;
    let before: Vec<String> = (0..QUEUES_OWNED_MAX - 3).map(|n| format!("q{n}")).collect();
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    f.publish_own(own.id, tasks(&before)).await;
    let new: Vec<String> = (0..8).map(|n| format!("new {n}")).collect();
    let publishes = new.iter().map(|queue| {
        let f = &f;
        async move {
            f.publish_tasks(Publisher::Workspace, own.id, &[queue])
                .await
        }
    });
    let published = join_all(publishes).await;
    let accepted = published.into_iter().filter_map(VersionPublished::version);
    assert_eq!(accepted.count(), 3);
    let owned = ok(f.store.queue_ownership(&new).await);
    assert_eq!(owned.len(), 3);
}

/// When the owner is deleted its queues become the installation's, shared as before. Its running executions go on.
pub async fn queue_of_a_deleted_owner_belongs_to_the_installation(f: Fixture) {
    let owner = f.bare_workspace(Plan::Free, Some(5)).await;
    let friend = f.bare_workspace(Plan::Free, None).await;
    let other = f.bare_workspace(Plan::Free, None).await;
    let graph = graph_of(
        vec![task_in(QUEUE, "a"), task_in(QUEUE, "b")],
        &[("a", "b")],
    );
    let t = f.publish_own(owner.id, graph).await;
    f.share(QUEUE, &names(&[&friend])).await;
    let started = f.enqueue_started(&t).await;
    assert!(ok(f.store.workspace_delete(owner.id, &Actor::Local).await));
    f.assert_owned(QUEUE, None, names(&[&friend])).await;
    let refused = f.publish_tasks(Publisher::Workspace, other.id, &[QUEUE]);
    assert_eq!(refused.await, not_permitted(QUEUE));
    f.publish_own(friend.id, tasks(&[QUEUE])).await;
    let by_admin = f.publish_tasks(Publisher::Administrator, other.id, &[QUEUE]);
    assert!(by_admin.await.version().is_some());
    f.share(QUEUE, &none()).await;
    f.complete_node("a", serde_json::json!(1)).await;
    f.complete_node("b", serde_json::json!(2)).await;
    let run = f.graph_run(started.execution).await;
    assert_eq!(run.state.end(), Some(ExecutionEnd::Completed));
}

/// A deleted workspace publishes nothing and owns nothing.
pub async fn deleted_workspace_cannot_publish(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, None).await;
    let definition = f.create_draft(own.id).await;
    assert!(ok(f.store.workspace_delete(own.id, &Actor::Local).await));
    for publisher in [Publisher::Workspace, Publisher::Administrator] {
        let new = new_version(publisher, own.id, definition, tasks(&[QUEUE]));
        let published = ok(f.store.version_publish(&new, &Actor::Local).await);
        assert_eq!(published, VersionPublished::DefinitionNotFound);
    }
    assert_eq!(f.ownership(QUEUE).await, None);
}

/// A node whose queue is no longer permitted fails its execution when it begins; the error names the queue, running nodes are abandoned.
pub async fn node_in_a_queue_that_is_no_longer_shared_fails_its_execution(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, Some(5)).await;
    let nodes = vec![
        task_in(QUEUE, "a"),
        task_in(QUEUE, "beside"),
        task_in(QUEUE, "next"),
        task_in("other", "far"),
    ];
    let graph = graph_of(nodes, &[("a", "next"), ("a", "far")]);
    f.share("other", &names(&[&own])).await;
    let t = f.publish_own(own.id, graph).await;
    let started = f.enqueue_started(&t).await;
    let jobs = f.claim_nodes(&["a", "beside"]).await;
    f.share("other", &none()).await;
    f.finish_job(&jobs[0], completed()).await;
    let run = f.graph_run(started.execution).await;
    assert_eq!(run.state.end(), Some(ExecutionEnd::Failed));
    let why = refusal_text("other");
    let error = format!("node `far` failed: {why}");
    assert_eq!(run.error.as_deref(), Some(error.as_str()));
    assert!(error.contains("`other`"));
    let states = f.node_states(started.execution).await;
    let cancelled = NodeState::Cancelled;
    assert_eq!(
        states,
        [
            NodeState::Completed,
            cancelled,
            cancelled,
            NodeState::Failed
        ]
    );
    let far = f.node(started.execution, "far").await;
    assert_eq!((far.error, far.job, far.attempts), (Some(why), None, 0));
    assert_eq!(f.claim_jobs(5).await, []);
    assert_eq!(f.claim_jobs_from("other", 5).await.jobs, []);
    let lost = f.finish_job(&jobs[1], completed()).await;
    assert_eq!(lost, leasehold_core::job::JobFinished::LeaseLost);
    let slots = ok(f.store.workspace_slots(own.id).await);
    assert_eq!(slots.map(|slots| slots.in_use), Some(0));
    f.share("other", &SharedWith::All).await;
    let again = f.enqueue_started(&t).await;
    f.complete_node_of(&again, "a").await;
    assert_eq!(f.claim_jobs_from("other", 5).await.jobs.len(), 1);
}

impl Fixture {
    /// Claims all jobs of [`QUEUE`] and completes the one of this node.
    async fn complete_node_of(&self, started: &crate::graph_factory::StartedGraph, id: &str) {
        let job = self.node(started.execution, id).await.job;
        let jobs = self.claim_jobs(100).await;
        let own = jobs.iter().find(|claimed| Some(claimed.id) == job);
        let own = own.expect("the node has a job");
        self.finish_job(own, completed()).await;
    }
}

/// A graph whose first node may not use its queue ends when it is started, and frees its slot.
pub async fn graph_whose_first_queue_is_not_permitted_ends_at_its_start(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, Some(5)).await;
    f.share(QUEUE, &SharedWith::All).await;
    let t = f.publish_own(own.id, tasks(&[QUEUE])).await;
    f.share(QUEUE, &none()).await;
    f.enqueue(&t, 1).await;
    let claimed = f.claim_one().await;
    let started = ok(f.store.graph_start(&(&claimed).into()).await);
    let GraphStarted::Ended(ended) = started else {
        panic!("the graph started: {started:?}");
    };
    assert_eq!(ended.end, ExecutionEnd::Failed);
    let error = format!("node `n0` failed: {}", refusal_text(QUEUE));
    assert_eq!(ended.error.as_deref(), Some(error.as_str()));
    let execution = ok(f.store.execution_get(own.id, claimed.execution).await);
    let status = execution.map(|execution| execution.status);
    assert_eq!(status, Some(ExecutionStatus::Failed.into()));
    assert_eq!(f.claim_jobs(5).await, []);
    let again = ok(f.store.graph_start(&(&claimed).into()).await);
    assert_eq!(again, GraphStarted::AlreadyStarted { ended: true });
    let slots = ok(f.store.workspace_slots(own.id).await);
    assert_eq!(slots.map(|slots| slots.in_use), Some(0));
}

/// Sharing with an unknown or deleted workspace changes nothing and creates no queue.
pub async fn sharing_with_an_unknown_workspace_changes_nothing(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, None).await;
    let deleted = f.bare_workspace(Plan::Free, None).await;
    assert!(ok(f
        .store
        .workspace_delete(deleted.id, &Actor::Local)
        .await));
    let with = SharedWith::Workspaces(vec![own.name.clone(), deleted.name.clone()]);
    let outcome = ok(f.store.queue_share(QUEUE, &with, &Actor::Local).await);
    assert_eq!(outcome, QueueShared::WorkspaceNotFound(deleted.name));
    assert_eq!(f.ownership(QUEUE).await, None);
    let twice = SharedWith::Workspaces(vec![own.name.clone(), own.name.clone()]);
    let shared = f.share(QUEUE, &twice).await;
    assert_eq!(shared.shared_with, names(&[&own]));
}

/// Ownership is listed by name; unknown queues are left out and deleted workspaces not shown.
pub async fn ownership_is_listed_by_name(f: Fixture) {
    let own = f.bare_workspace(Plan::Free, None).await;
    let other = f.bare_workspace(Plan::Free, None).await;
    f.share("b", &names(&[&own, &other])).await;
    f.share("a", &SharedWith::All).await;
    assert!(ok(f.store.workspace_delete(other.id, &Actor::Local).await));
    let wanted = ["b", "c", "a"].map(str::to_owned);
    let found = ok(f.store.queue_ownership(&wanted).await);
    let of = |queue: &str, shared_with| QueueOwnership {
        queue: queue.to_owned(),
        owner: None,
        shared_with,
    };
    assert_eq!(found, [of("a", SharedWith::All), of("b", names(&[&own]))]);
}

/// The first workspace that may not use a queue is found; an unknown queue permits none.
pub async fn first_workspace_without_access_is_found(f: Fixture) {
    let owner = f.bare_workspace(Plan::Free, None).await;
    let friend = f.bare_workspace(Plan::Free, None).await;
    let other = f.bare_workspace(Plan::Free, None).await;
    f.publish_own(owner.id, tasks(&[QUEUE])).await;
    f.share(QUEUE, &names(&[&friend])).await;
    let refused = async |queue: &str, workspaces: &[WorkspaceId]| {
        ok(f.store.queue_refused(queue, workspaces).await)
    };
    assert_eq!(refused(QUEUE, &[]).await, None);
    assert_eq!(refused(QUEUE, &[friend.id, owner.id]).await, None);
    let all = [owner.id, other.id, friend.id];
    assert_eq!(refused(QUEUE, &all).await, Some(other.id));
    assert_eq!(refused("unknown", &all).await, Some(owner.id));
    f.share(QUEUE, &SharedWith::All).await;
    assert_eq!(refused(QUEUE, &all).await, None);
}
