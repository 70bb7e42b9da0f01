//! Every route with every kind of key: the server lets through whom docs/reference/api.md names, and nobody else.

use crate::everyone::{ALL, Everyone, Who, problem};
use leasehold_server::routes;
use std::collections::BTreeSet;

/// What a route is for, and so who may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Everybody,
    AnyKey,
    Admins,
    Workspace,
    Queue,
    /// Workers of the job's queue.
    Job,
    /// Whoever holds the leases; others are let through and find that they hold none.
    Leases,
}

use For::{Admins, AnyKey, Everybody, Job, Leases, Queue, Workspace};

/// What they get; through means that what the route answers is none of a refusal's statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gets {
    Through,
    Refused(u16),
}

use Gets::{Refused, Through};

/// The expectation, written a second time and on purpose: the server's own verdict is what is tested.
fn expected(route: For, who: Who) -> Gets {
    match (route, who) {
        (Everybody, _) | (_, Who::Admin) => Through,
        (_, Who::Nobody | Who::WrongKey | Who::Garbage | Who::Revoked) => Refused(401),
        (AnyKey, _)
        | (Workspace, Who::Workspace)
        | (Queue | Job | Leases, Who::Worker)
        | (Leases, Who::OtherWorker) => Through,
        (Workspace, Who::OtherWorkspace) | (Queue | Job, Who::OtherWorker) => Refused(404),
        (Admins | Workspace | Queue | Job | Leases, _) => Refused(403),
    }
}

/// Every route of the reference with what it says of who may call it.
fn documented() -> Vec<(&'static str, &'static str, For)> {
    let reference = include_str!("../../../../docs/reference/api.md");
    let sections = reference.split("\n### `").skip(1);
    sections
        .filter_map(|section| {
            let (heading, text) = section.split_once("`\n")?;
            let (method, path) = heading.split_once(' ')?;
            let who = text.split("**Who:** ").nth(1)?.lines().next()?;
            Some((method, path, purpose(path, who)))
        })
        .collect()
}

fn purpose(path: &str, who: &str) -> For {
    match who {
        "everybody, without a key" => Everybody,
        "any key" => AnyKey,
        "administrators" => Admins,
        "keys of the workspace, administrators" => Workspace,
        "workers' keys for the queue, administrators" => Queue,
        "workers' keys, administrators" if path.contains("{job}") => Job,
        "workers' keys, administrators" => Leases,
        other => panic!("{path}: nothing is known of `{other}`"),
    }
}

#[test]
fn every_route_is_in_the_reference() {
    let there: BTreeSet<(String, String)> = routes()
        .into_iter()
        .map(|(method, path)| (method.to_string(), path))
        .collect();
    let documented: BTreeSet<(String, String)> = documented()
        .iter()
        .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(there, documented);
}

#[tokio::test]
async fn every_key_gets_what_it_should_from_every_route() {
    for (method, path, route) in documented() {
        let mut everyone = Everyone::new().await;
        for who in ALL {
            let got = everyone.status(method, path, who).await;
            match expected(route, who) {
                Refused(status) => assert_eq!(got, status, "{method} {path} by {who:?}"),
                Through => {
                    assert!(
                        !matches!(got, 401 | 403 | 404 | 405) && got < 500,
                        "{method} {path} by {who:?}: {got}"
                    );
                    // What was called for may be gone now.
                    everyone = Everyone::new().await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_is_a_problem_and_only_for_those_with_a_key() {
    let everyone = Everyone::new().await;
    for (who, status) in [(Who::Nobody, 401), (Who::Worker, 400), (Who::Admin, 400)] {
        let answer = everyone
            .send("GET", "/v1/queues/%FF", who, "application/json", "")
            .await;
        assert_eq!(problem(&answer).status, status, "{who:?}");
    }
}

#[tokio::test]
async fn a_parameter_that_is_no_id_is_named() {
    let everyone = Everyone::new().await;
    let answer = everyone
        .ground
        .get("/v1/workspaces/x", &everyone.ground.admin);
    answer.await.refused("invalid_parameter", "workspace");
}
