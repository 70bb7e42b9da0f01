//! A rolling upgrade on PostgreSQL under load: this program beside a synthetic next one, which migrates the schema first compatibly, then not.

use crate::TIMEOUT;
use crate::next_program::NextProgram;
use crate::server::Server;
use leasehold_client::Client;
use leasehold_client::RequestFilter;
use leasehold_client::api::request::NewRequest;
use leasehold_core::{RequestId, RequestStatus, Timestamp};
use leasehold_store::request::Idempotency;
use leasehold_store::{Page, Store};
use leasehold_testbed::TestWorkspace;
use leasehold_testkit::{TestPostgres, eventually};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Requests that the old program dispatches in each phase.
const EACH: i64 = 5;
/// Unfinished requests at which the load pauses.
const MAX_OPEN: u64 = 20;
/// An old program must notice within this time that the schema is too new for it.
const NOTICE: Duration = Duration::from_secs(5);
/// What a busy machine adds at least.
const BUSY: Duration = Duration::from_secs(2);
/// What it logs then.
const TOO_NEW: &str = "schema is too new for this program; stopping";

/// Enqueues without a pause, alternately over HTTP to the old program and into the store, as the next one would.
struct Load {
    stop: Arc<AtomicBool>,
    task: JoinHandle<HashSet<RequestId>>,
}

impl Load {
    fn start(store: Arc<dyn Store>, old: Client, workspace: TestWorkspace) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut enqueued = HashSet::new();
            while !stopped.load(Ordering::SeqCst) {
                let key = format!("order {}", enqueued.len());
                let id = match enqueued.len() % 2 {
                    0 => enqueue_over_http(&old, workspace, &key).await,
                    _ => None,
                };
                let id = match id {
                    Some(id) => id,
                    None => enqueue(&*store, workspace, &key).await,
                };
                assert!(enqueued.insert(id), "two keys have one request");
                let room = async || {
                    let counts = workspace.counts(&*store).await;
                    counts.pending + counts.claimed + counts.dispatched < MAX_OPEN
                };
                assert!(eventually(TIMEOUT, room).await, "nothing finishes");
            }
            enqueued
        });
        Self { stop, task }
    }

    async fn stop(self) -> HashSet<RequestId> {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

/// Enqueues over the old program; none while it does not answer.
async fn enqueue_over_http(old: &Client, on: TestWorkspace, key: &str) -> Option<RequestId> {
    let mut new = NewRequest::new(on.definition, json!({}));
    new.idempotency_key = Some(key.to_owned());
    let enqueued = old.request_enqueue(on.workspace, &new).await;
    enqueued.ok().map(|enqueued| enqueued.id)
}

/// Enqueues into the store. If the old program did it before it stopped answering, the key returns that request.
async fn enqueue(store: &dyn Store, on: TestWorkspace, key: &str) -> RequestId {
    let mut new = on.request_with(json!({}));
    new.idempotency = Some(Idempotency {
        key: key.to_owned(),
        window: None,
    });
    on.enqueue(store, vec![new]).await[0]
}

/// Waits until the old program has dispatched some more requests.
async fn until_old_works(next: &NextProgram, old: &mut Server) {
    let name = format!("-{}-", old.pid());
    let before = next.dispatched_by(&name).await;
    let works = async || next.dispatched_by(&name).await >= before + EACH;
    assert!(eventually(TIMEOUT, works).await, "{}", old.log());
}

/// Asserts that the old program shows and counts a request whose failure reason it does not know.
async fn assert_shows_unknown_reason(client: &Client, on: TestWorkspace, request: RequestId) {
    let shown = client.request_get(on.workspace, request).await.unwrap();
    let reason = shown.failure_reason.as_ref().map(ToString::to_string);
    assert_eq!(reason.as_deref(), Some("evicted_by_policy"));
    let all = RequestFilter::default();
    let listed = client.request_list(on.workspace, all).all().await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&shown));
    let dead = client.dead_letter_list(on.workspace, None, None);
    assert_eq!(dead.all().await.unwrap(), [shown]);
    let state = client.workspace_get(on.workspace).await.unwrap();
    assert_eq!(state.requests.failed, 1);
}

async fn assert_each_completed_once(
    store: &dyn Store,
    on: TestWorkspace,
    enqueued: HashSet<RequestId>,
) {
    let completed = async || on.counts(store).await.completed == enqueued.len() as u64;
    let all = eventually(TIMEOUT, completed).await;
    assert!(
        all,
        "{} enqueued, {:?}",
        enqueued.len(),
        on.counts(store).await
    );
    let filter = leasehold_store::request::RequestFilter {
        workspace: Some(on.workspace),
        ..Default::default()
    };
    let page = Page::first(10_000);
    let requests = store.request_list(&filter, page).await.unwrap();
    let found: HashSet<_> = requests.iter().map(|request| request.id).collect();
    assert_eq!((requests.len(), found), (enqueued.len(), enqueued));
    let mut executions = HashSet::new();
    for request in &requests {
        assert_eq!(request.status, RequestStatus::Completed, "{request:?}");
        assert!(executions.insert(request.execution), "{request:?}");
        let events = on.timeline(store, request.id).await;
        let ends = |to| events.iter().filter(|event| event.to == to).count();
        let statuses = [RequestStatus::Completed, RequestStatus::Dispatched].map(ends);
        assert_eq!(statuses, [1, 1], "{events:?}");
    }
    assert_eq!(on.slots(store).await.in_use, 0, "a slot leaked");
}

/// Calls the database until a program that notices in time must have noticed, and returns how late the latest answer was: what the machine's load adds.
async fn latest_answer(store: Arc<dyn Store>) -> Duration {
    let (begun, mut latest) = (Instant::now(), Duration::ZERO);
    let mut ticks = interval(Duration::from_millis(100));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while begun.elapsed() < NOTICE {
        let due = ticks.tick().await;
        store.now().await.unwrap();
        latest = latest.max(due.elapsed());
    }
    latest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_program_works_and_restarts_on_a_newer_schema_until_it_is_too_new() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let mut old = Server::new(database.url());
    old.start(None);
    let client = old.admin();
    let next = NextProgram::start(&database).await;
    let workspace = next.workspace("work").await;
    let load = Load::start(next.store.clone(), client.clone(), workspace);
    until_old_works(&next, &mut old).await;

    next.migrate_compatibly().await;
    until_old_works(&next, &mut old).await;
    let functions = next.functions().await;
    let (failing, failed) = next.fail_with_new_reason().await;
    assert_shows_unknown_reason(&client, failing, failed).await;
    old.stop();
    old.start(None);
    assert_eq!(next.functions().await, functions, "put back");
    until_old_works(&next, &mut old).await;
    assert_shows_unknown_reason(&client, failing, failed).await;

    let migrated = next.migrate_incompatibly().await;
    let latest = tokio::spawn(latest_answer(next.store.clone()));
    let line = old.until_logged(TOO_NEW);
    let latest = latest.await.unwrap();
    let noticed: Timestamp = line.split_whitespace().next().unwrap().parse().unwrap();
    let after: Duration = noticed.duration_since(migrated).try_into().unwrap();
    println!(
        "noticed {after:?} after the migration; the latest answer of the database was {latest:?} late"
    );
    // The clock of the database is that of this machine.
    assert!(
        after <= NOTICE + BUSY.max(latest * 10),
        "{after:?}: {}",
        old.log()
    );
    assert!(line.contains("needs a program with migration"), "{line}");
    old.until_exit(9, TIMEOUT);
    old.spawn(&[]);
    old.until_exit(9, TIMEOUT);

    let enqueued = load.stop().await;
    assert_each_completed_once(&*next.store, workspace, enqueued).await;
    assert_eq!(next.functions().await, functions, "put back");
    next.stop().await;
}
