//! Two processes dispatch thousands of requests in parallel.

use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program, is_of};
use crate::temporal::{self, Namespace};
use crate::{blocking, database};
use leasehold_core::RequestStatus;
use leasehold_store::Store;
use leasehold_store::change::{ChangeStart, Event};
use leasehold_testkit::{DevServerOptions, Process, TestTemporal, sized};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WORKSPACES: usize = 10;
const LONG: Duration = Duration::from_secs(300);

/// Requests per workspace.
fn requests_per_workspace() -> usize {
    sized(40, 500)
}

/// All changes.
async fn changes(store: &dyn Store) -> Vec<Event> {
    let mut all = Vec::new();
    let mut start = ChangeStart::Oldest;
    loop {
        let page = store.change_list(&start, None, 1000).await.unwrap();
        if page.changes.is_empty() {
            return all;
        }
        all.extend(page.changes.into_iter().map(|change| change.event));
        start = ChangeStart::After(page.cursor);
    }
}

/// How many requests each of the processes has dispatched.
async fn shares_of(store: &dyn Store, processes: [&Process; 2]) -> [usize; 2] {
    let changes = changes(store).await;
    let dispatched = changes
        .iter()
        .filter(|event| event.to == RequestStatus::Dispatched);
    let by: Vec<&str> = dispatched.map(|event| event.by.as_str()).collect();
    processes.map(|process| by.iter().filter(|by| is_of(process, by)).count())
}

/// A workspace with requests that can all run at once.
async fn enqueued(store: &Arc<dyn Store>) -> OrderWorkspace {
    let count = requests_per_workspace();
    let workspace = OrderWorkspace::new(store.clone(), count as u32).await;
    workspace.enqueue_many(count, &json!({"do": "wait"})).await;
    workspace
}

async fn until_all_dispatched(workspaces: &[OrderWorkspace]) {
    for workspace in workspaces {
        let all = |counts: &leasehold_store::request::Counts| {
            counts.dispatched == requests_per_workspace() as u64
        };
        workspace.until_for(LONG, "all dispatched", all).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_start_each_request_once() {
    let database = database::fresh().await;
    let server = blocking(|| TestTemporal::start(DevServerOptions::default())).unwrap();
    let namespace = Namespace::named(&server, "default");
    let store = database::store(database.url());
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("dispatch.mode", "parallel");
    let (mut first, mut second) = (program.start(), program.start());
    let started = Instant::now();
    let mut workspaces = Vec::new();
    for _ in 0..WORKSPACES {
        workspaces.push(enqueued(&store).await);
    }
    until_all_dispatched(&workspaces).await;
    let shares = async || shares_of(&*store, [&first, &second]).await;
    // A process that a busy machine has paused meanwhile gets its share of the next requests.
    while shares().await.contains(&0) && started.elapsed() < LONG {
        workspaces.push(enqueued(&store).await);
        until_all_dispatched(&workspaces).await;
    }
    let total = workspaces.len() * requests_per_workspace();
    println!("{total} starts took {:?}", started.elapsed());

    let runs = namespace.all_runs(total).await;
    let mut executions = Vec::new();
    for workspace in &workspaces {
        let requests = workspace.all().await;
        assert!(
            requests
                .iter()
                .all(|request| request.dispatch_failures == 0)
        );
        executions.extend(requests.into_iter().map(|request| request.execution));
    }
    temporal::assert_one_run_each(&runs, executions);

    let shares = shares().await;
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
    assert_eq!(shares.iter().sum::<usize>(), total);
    println!("the two dispatched {shares:?}");
    program::stop(&mut first);
    program::stop(&mut second);
}
