//! Every route with every kind of key. The routes are listed by the server itself: one without a row here fails.

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

/// The expectation, written a second time and on purpose: the server's own table is what is tested.
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

const TABLE: &[(&str, &str, For)] = &[
    ("GET", "/healthz", Everybody),
    ("GET", "/readyz", Everybody),
    ("GET", "/openapi.json", Everybody),
    ("GET", "/schemas/graph.json", Everybody),
    ("GET", "/errors", Everybody),
    ("GET", "/errors/{code}", Everybody),
    ("GET", "/metrics", Admins),
    ("GET", "/v1/me", AnyKey),
    ("GET", "/v1/keys", Admins),
    ("POST", "/v1/keys", Admins),
    ("GET", "/v1/keys/{key}", Admins),
    ("DELETE", "/v1/keys/{key}", Admins),
    ("GET", "/v1/workspaces", Admins),
    ("POST", "/v1/workspaces", Admins),
    ("GET", "/v1/workspaces/{workspace}", Workspace),
    ("PATCH", "/v1/workspaces/{workspace}", Admins),
    ("DELETE", "/v1/workspaces/{workspace}", Admins),
    ("GET", "/v1/workspaces/{workspace}/definitions", Workspace),
    ("POST", "/v1/workspaces/{workspace}/definitions", Workspace),
    (
        "GET",
        "/v1/workspaces/{workspace}/definitions/{definition}",
        Workspace,
    ),
    (
        "DELETE",
        "/v1/workspaces/{workspace}/definitions/{definition}",
        Workspace,
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/definitions/{definition}/versions",
        Workspace,
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/definitions/{definition}/versions",
        Workspace,
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/versions/{version}",
        Workspace,
    ),
    ("GET", "/v1/workspaces/{workspace}/requests", Workspace),
    ("POST", "/v1/workspaces/{workspace}/requests", Workspace),
    (
        "POST",
        "/v1/workspaces/{workspace}/requests/batch",
        Workspace,
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/requests/{request}",
        Workspace,
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/requests/{request}/timeline",
        Workspace,
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/requests/{request}/why",
        Workspace,
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/requests/{request}/cancel",
        Workspace,
    ),
    (
        "POST",
        "/v1/workspaces/{workspace}/requests/{request}/redrive",
        Workspace,
    ),
    ("GET", "/v1/workspaces/{workspace}/dead-letters", Workspace),
    (
        "POST",
        "/v1/workspaces/{workspace}/dead-letters/redrive",
        Workspace,
    ),
    ("GET", "/v1/workspaces/{workspace}/executions", Workspace),
    (
        "GET",
        "/v1/workspaces/{workspace}/executions/{execution}",
        Workspace,
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/executions/{execution}/graph",
        Workspace,
    ),
    (
        "GET",
        "/v1/workspaces/{workspace}/executions/{execution}/nodes/{node}",
        Workspace,
    ),
    ("GET", "/v1/workspaces/{workspace}/changes", Workspace),
    ("GET", "/v1/overview", Admins),
    ("GET", "/v1/requests", Admins),
    ("GET", "/v1/requests/{request}", Admins),
    ("GET", "/v1/executions/{execution}", Admins),
    ("GET", "/v1/changes", Admins),
    ("GET", "/v1/queues", Admins),
    ("GET", "/v1/queues/{queue}", Queue),
    ("PATCH", "/v1/queues/{queue}", Admins),
    ("GET", "/v1/queues/{queue}/counts", Queue),
    ("GET", "/v1/queues/{queue}/jobs", Queue),
    ("POST", "/v1/queues/{queue}/jobs", Queue),
    ("POST", "/v1/queues/{queue}/jobs/batch", Queue),
    ("POST", "/v1/queues/{queue}/claim", Queue),
    ("GET", "/v1/jobs", Admins),
    ("GET", "/v1/jobs/{job}", Job),
    ("POST", "/v1/jobs/{job}/cancel", Job),
    ("POST", "/v1/jobs/renew", Leases),
    ("POST", "/v1/jobs/finish", Leases),
    ("POST", "/v1/jobs/progress", Leases),
    ("POST", "/v1/executions/{execution}/ended", Leases),
    ("GET", "/v1/job-limit", Admins),
    ("PUT", "/v1/job-limit", Admins),
    ("GET", "/v1/locks", Admins),
    ("GET", "/v1/instances", Admins),
    ("GET", "/v1/doctor", Admins),
];

#[test]
fn every_route_has_a_row() {
    let there: BTreeSet<(String, String)> = routes()
        .into_iter()
        .map(|(method, path)| (method.to_string(), path))
        .collect();
    let rows: BTreeSet<(String, String)> = TABLE
        .iter()
        .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    let without: Vec<_> = there.difference(&rows).collect();
    assert!(without.is_empty(), "routes without a row: {without:?}");
    let gone: Vec<_> = rows.difference(&there).collect();
    assert!(gone.is_empty(), "rows without a route: {gone:?}");
}

#[tokio::test]
async fn every_key_gets_what_it_should_from_every_route() {
    for (method, path, route) in TABLE {
        let mut everyone = Everyone::new().await;
        for who in ALL {
            let got = everyone.status(method, path, who).await;
            match expected(*route, who) {
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
