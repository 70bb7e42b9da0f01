//! Two processes that both dispatch, and a queue with thousands of requests.

use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program, is_of};
use crate::temporal::{self, Namespace};
use crate::{blocking, database};
use leasehold_core::RequestStatus;
use leasehold_store::Store;
use leasehold_store::change::{ChangeStart, Event};
use leasehold_testkit::{TemporalOptions, TestTemporal, sized};
use serde_json::json;
use std::time::{Duration, Instant};

const WORKSPACES: usize = 10;
const LONG: Duration = Duration::from_secs(300);

/// Requests of a workspace.
fn each() -> usize {
    sized(100, 500)
}

/// Every change there was.
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
async fn requests_are_started_once_each_by_two_processes() {
    let database = database::fresh().await;
    let server = blocking(|| TestTemporal::start(TemporalOptions::default())).unwrap();
    let namespace = Namespace::named(&server, "default");
    let store = database::store(database.url());
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("dispatch.mode", "parallel");
    let (mut first, mut second) = (program.start(), program.start());
    let begun = Instant::now();
    let mut sites = Vec::new();
    for _ in 0..WORKSPACES {
        let site = OrderWorkspace::new(store.clone(), each() as u32).await;
        site.enqueue_many(each(), &json!({"do": "wait"})).await;
        sites.push(site);
    }
    for site in &sites {
        let all = |counts: &leasehold_store::request::Counts| counts.dispatched == each() as u64;
        site.until_for(LONG, "all dispatched", all).await;
    }
    println!("{} starts took {:?}", WORKSPACES * each(), begun.elapsed());

    let runs = namespace.all_runs(WORKSPACES * each()).await;
    let mut executions = Vec::new();
    for site in &sites {
        let requests = site.all().await;
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
    assert_eq!(dispatched.len(), WORKSPACES * each());
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
