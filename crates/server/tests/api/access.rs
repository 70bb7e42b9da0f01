//! Calls every route with every kind of key: the server grants exactly the access that docs/reference/api.md documents.

use crate::fixtures::{ALL, AccessFixture, CallerKind, problem};
use leasehold_server::routes;
use std::collections::BTreeSet;

/// The access of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RouteAccess {
    Open,
    AnyKey,
    Admins,
    Workspace,
    Queue,
    /// Workers of the job's queue.
    Job,
    /// The holders of the leases. Other workers are authorized too, but the response reports the leases as lost.
    Leases,
    /// Workspaces see their own entries.
    Audit,
    Metrics,
}

use RouteAccess::{Admins, AnyKey, Audit, Job, Leases, Metrics, Open, Queue, Workspace};

/// The expected result; `Through` means that the response has none of the statuses of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedResult {
    Through,
    Denied(u16),
}

use ExpectedResult::{Denied, Through};

/// The expectation, deliberately independent of the server's own decision, which is under test.
fn expected(method: &str, path: &str, route: RouteAccess, who: CallerKind) -> ExpectedResult {
    if route == Open {
        return Through;
    }
    let (scope, reads_only, hides) = match who {
        CallerKind::NoKey
        | CallerKind::WrongKey
        | CallerKind::Garbage
        | CallerKind::Revoked
        | CallerKind::Expired
        | CallerKind::RotatedBefore
        | CallerKind::DeletedWorkspace => return Denied(401),
        CallerKind::ReadOnlyAdmin => (CallerKind::Admin, true, false),
        CallerKind::ReadOnlyWorkspace => (CallerKind::Workspace, true, false),
        CallerKind::ReadOnlyWorker => (CallerKind::Worker, true, false),
        CallerKind::HiddenAdmin => (CallerKind::Admin, false, true),
        CallerKind::HiddenWorkspace => (CallerKind::Workspace, false, true),
        CallerKind::HiddenWorker => (CallerKind::Worker, false, true),
        CallerKind::RotatedNow | CallerKind::Successor => (CallerKind::Workspace, false, false),
        other => (other, false, false),
    };
    match of_scope(route, scope) {
        Through if reads_only && method != "GET" => Denied(403),
        Through if hides && path.ends_with("/claim") => Denied(403),
        // A graph can send params anywhere.
        Through if hides && method == "POST" && path.ends_with("/versions") => Denied(403),
        // The key of the fixture has more rights than this one.
        Through if hides && path.ends_with("/rotate") => Denied(403),
        Through if hides && method == "DELETE" && path == "/v1/keys/{key}" => Denied(403),
        other => other,
    }
}

fn of_scope(route: RouteAccess, scope: CallerKind) -> ExpectedResult {
    match (route, scope) {
        (_, CallerKind::Admin)
        | (Metrics, CallerKind::Metrics)
        | (Audit, CallerKind::Workspace | CallerKind::OtherWorkspace) => Through,
        (_, CallerKind::Metrics) => Denied(403),
        (AnyKey, _)
        | (Workspace, CallerKind::Workspace)
        | (Queue | Job | Leases, CallerKind::Worker)
        | (Leases, CallerKind::OtherWorker) => Through,
        (Workspace, CallerKind::OtherWorkspace) | (Queue | Job, CallerKind::OtherWorker) => {
            Denied(404)
        }
        (Open | Admins | Workspace | Queue | Job | Leases | Audit | Metrics, _) => Denied(403),
    }
}

/// Returns every route of the reference with its documented access.
fn documented() -> Vec<(&'static str, &'static str, RouteAccess)> {
    let reference = include_str!("../../../../docs/reference/api.md");
    let sections = reference.split("\n### `").skip(1);
    sections
        .filter_map(|section| {
            let (heading, text) = section.split_once("`\n")?;
            let (method, path) = heading.split_once(' ')?;
            let access = text.split("**Access:** ").nth(1)?.lines().next()?;
            Some((method, path, route_access(path, access)))
        })
        .collect()
}

fn route_access(path: &str, access: &str) -> RouteAccess {
    match access {
        "no key required" => Open,
        "any key except a metrics key" => AnyKey,
        "workspace key for the entries of its workspace, administrator key" => Audit,
        "metrics key, administrator key" => Metrics,
        "administrator key" => Admins,
        "key of the workspace, administrator key" => Workspace,
        "worker key for the queue, administrator key" => Queue,
        "worker key, administrator key" if path.contains("{job}") => Job,
        "worker key, administrator key" => Leases,
        other => panic!("{path}: unknown access `{other}`"),
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
async fn every_kind_of_key_gets_the_documented_access_to_every_route() {
    for (method, path, route) in documented() {
        let mut fixture = AccessFixture::new().await;
        for who in ALL {
            let got = fixture.status(method, path, who).await;
            match expected(method, path, route, who) {
                Denied(status) => assert_eq!(got, status, "{method} {path} by {who:?}"),
                Through => {
                    assert!(
                        !matches!(got, 401 | 403 | 404 | 405) && got < 500,
                        "{method} {path} by {who:?}: {got}"
                    );
                    // The call may have deleted the fixture's objects.
                    if method != "GET" {
                        fixture = AccessFixture::new().await;
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn path_that_is_not_utf8_is_invalid_parameter_for_callers_with_a_key() {
    let fixture = AccessFixture::new().await;
    for (who, status) in [
        (CallerKind::NoKey, 401),
        (CallerKind::Worker, 400),
        (CallerKind::Admin, 400),
    ] {
        let answer = fixture
            .send("GET", "/v1/queues/%FF", who, "application/json", "")
            .await;
        assert_eq!(problem(&answer).status, status, "{who:?}");
    }
}

#[tokio::test]
async fn malformed_id_in_path_is_named() {
    let fixture = AccessFixture::new().await;
    let answer = fixture
        .server
        .get("/v1/workspaces/x", &fixture.server.admin);
    answer
        .await
        .expect_problem("invalid_parameter", "workspace");
}
