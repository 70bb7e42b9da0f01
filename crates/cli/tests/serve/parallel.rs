//! Two processes dispatch thousands of requests in parallel.

use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program, is_of};
use crate::temporal::{self, Namespace};
use crate::{blocking, database};
use leasehold_core::RequestStatus;
use leasehold_store::Store;
use leasehold_store::change::{ChangeStart, Event};
use leasehold_testkit::{DevServerOptions, TestTemporal, sized};
use serde_json::json;
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
        let workspace = OrderWorkspace::new(store.clone(), requests_per_workspace() as u32).await;
        workspace
            .enqueue_many(requests_per_workspace(), &json!({"do": "wait"}))
            .await;
        workspaces.push(workspace);
    }
    for workspace in &workspaces {
        let all = |counts: &leasehold_store::request::Counts| {
            counts.dispatched == requests_per_workspace() as u64
        };
        workspace.until_for(LONG, "all dispatched", all).await;
    }
    println!(
        "{} starts took {:?}",
        WORKSPACES * requests_per_workspace(),
        started.elapsed()
    );

    let runs = namespace
        .all_runs(WORKSPACES * requests_per_workspace())
        .await;
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

    let changes = changes(&*store).await;
    let dispatched: Vec<&str> = changes
        .iter()
        .filter(|event| event.to == RequestStatus::Dispatched)
        .map(|event| event.by.as_str())
        .collect();
    assert_eq!(dispatched.len(), WORKSPACES * requests_per_workspace());
    let shares = [&first, &second].map(|process| {
        let by_it = dispatched.iter().filter(|by| is_of(process, by));
        by_it.count()
    });
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
    assert_eq!(shares.iter().sum::<usize>(), dispatched.len());
    println!("the two dispatched {shares:?}");
    program::stop(&mut first);
    program::stop(&mut second);
}
