//! Cursors of every list and of the change stream: accepted where they came from, and nowhere else.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_core::key::KeyScope;
use leasehold_core::limits::CURSOR_MAX_BYTES;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A server on which every list of two workspaces has more than one item.
struct Lists {
    server: TestServer,
    workspaces: [KeyedWorkspace; 2],
}

impl Lists {
    async fn on(kind: BackendKind) -> Self {
        let server = TestServer::on(kind).await;
        let workspaces = [server.workspace(9).await, server.workspace(9).await];
        for workspace in &workspaces {
            for number in 0..2 {
                let name = json!({ "name": format!("definition {number}") });
                let path = workspace.path("/definitions");
                server.post(&path, &workspace.key, name).await.expect(201);
                let (id, definition) = (workspace.workspace, workspace.definition);
                server.publish(id, definition, None).await;
                server.enqueue_ended(workspace, ExecutionEnd::Failed).await;
                server.key(KeyScope::Workspace(id)).await;
            }
        }
        for queue in ["emails", "invoices"] {
            for _ in 0..2 {
                let path = format!("/v1/queues/{queue}/jobs");
                let made = server.post(&path, &server.admin, json!({ "kind": "a" }));
                made.await.expect(201);
            }
        }
        Self { server, workspaces }
    }

    /// Every list: its path in the API, and its paths here, each with a key. Lists of workspaces and queues have two.
    fn paths(&self) -> BTreeMap<&'static str, Vec<(String, String)>> {
        let admin = |path: &str| (path.to_owned(), self.server.admin.clone());
        let of_each = |below: fn(&KeyedWorkspace) -> String| -> Vec<(String, String)> {
            let path = |own: &KeyedWorkspace| (own.path(&below(own)), own.key.clone());
            self.workspaces.iter().map(path).collect()
        };
        BTreeMap::from([
            ("/v1/workspaces", vec![admin("/v1/workspaces")]),
            ("/v1/requests", vec![admin("/v1/requests")]),
            ("/v1/keys", vec![admin("/v1/keys")]),
            ("/v1/audit", vec![admin("/v1/audit")]),
            ("/v1/queues", vec![admin("/v1/queues")]),
            ("/v1/jobs", vec![admin("/v1/jobs")]),
            ("/v1/changes", vec![admin("/v1/changes?from=oldest")]),
            (
                "/v1/queues/{queue}/jobs",
                vec![
                    admin("/v1/queues/emails/jobs"),
                    admin("/v1/queues/invoices/jobs"),
                ],
            ),
            (
                "/v1/workspaces/{workspace}/definitions",
                of_each(|_| "/definitions".to_owned()),
            ),
            (
                "/v1/workspaces/{workspace}/definitions/{definition}/versions",
                of_each(|own| format!("/definitions/{}/versions", own.definition)),
            ),
            (
                "/v1/workspaces/{workspace}/requests",
                of_each(|_| "/requests".to_owned()),
            ),
            (
                "/v1/workspaces/{workspace}/dead-letters",
                of_each(|_| "/dead-letters".to_owned()),
            ),
            (
                "/v1/workspaces/{workspace}/executions",
                of_each(|_| "/executions".to_owned()),
            ),
            (
                "/v1/workspaces/{workspace}/changes",
                of_each(|_| "/changes?from=oldest".to_owned()),
            ),
        ])
    }

    /// Returns a page of one item.
    async fn page(&self, (path, key): &(String, String), after: Option<&str>) -> Value {
        let after = after
            .map(|after| format!("&after={after}"))
            .unwrap_or_default();
        let page = format!("{path}{}limit=1{after}", separator(path));
        self.server.get(&page, key).await.expect(200)
    }

    async fn expect_refused(&self, (path, key): &(String, String), cursor: &str) {
        let page = format!("{path}{}after={cursor}", separator(path));
        let refused = self.server.get(&page, key).await;
        assert_eq!(
            refused.status, 400,
            "{path} with {cursor}: {}",
            refused.text
        );
        refused.expect_problem("invalid_parameter", "after");
        if path.contains("/changes") {
            let headers = [("last-event-id", cursor), ("accept", "text/event-stream")];
            let refused = self
                .server
                .call_with(Method::GET, path, key, &headers, Value::Null);
            refused
                .await
                .expect_problem("invalid_parameter", "Last-Event-ID");
        }
    }
}

fn separator(path: &str) -> char {
    if path.contains('?') { '&' } else { '?' }
}

/// Returns the paths of the API that take a cursor.
async fn paths_with_cursor(server: &TestServer) -> BTreeSet<String> {
    let document = server.get("/openapi.json", "").await.expect(200);
    let takes_cursor = |operation: &Value| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        parameters
            .filter(|parameter| parameter["in"] == "query")
            .any(|parameter| parameter["name"] == "after")
    };
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .filter(|(_, item)| takes_cursor(&item["get"]))
        .map(|(path, _)| path.clone())
        .collect()
}

#[tokio::test]
async fn cursor_is_accepted_only_by_its_own_list() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let lists = Lists::on(on).await;
        let all = lists.paths();
        let known: BTreeSet<String> = all.keys().map(|path| (*path).to_owned()).collect();
        assert_eq!(paths_with_cursor(&lists.server).await, known);
        let every: Vec<&(String, String)> = all.values().flatten().collect();
        let mut cursors = Vec::new();
        for list in &every {
            let first = lists.page(list, None).await;
            let next = first["next"]
                .as_str()
                .unwrap_or_else(|| panic!("{}: {first}", list.0));
            assert!(next.len() <= CURSOR_MAX_BYTES);
            let second = lists.page(list, Some(next)).await;
            assert_ne!(first, second, "{}", list.0);
            cursors.push(next.to_owned());
        }
        for (at, list) in every.iter().enumerate() {
            for (of, cursor) in cursors.iter().enumerate() {
                if at != of {
                    lists.expect_refused(list, cursor).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn forged_or_truncated_cursor_is_rejected_by_every_list() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let lists = Lists::on(on).await;
        for list in lists.paths().values().flatten() {
            let first = lists.page(list, None).await;
            let cursor = first["next"].as_str().unwrap();
            let mut forged: Vec<String> = [
                "42",
                "x",
                "00000000-0000-0000-0000-000000000001",
                "%00",
                "AQ",
            ]
            .map(str::to_owned)
            .into();
            forged.extend([1, 4, 20, cursor.len() - 1].map(|length| cursor[..length].to_owned()));
            forged.push(format!("{cursor}AAAA"));
            for at in [0, 5, 25, cursor.len() - 2] {
                let other = if &cursor[at..=at] == "A" { "B" } else { "A" };
                forged.push(format!("{}{other}{}", &cursor[..at], &cursor[at + 1..]));
            }
            for cursor in &forged {
                lists.expect_refused(list, cursor).await;
            }
        }
    }
}

#[tokio::test]
async fn instances_of_one_installation_accept_each_others_cursors() {
    let lists = Lists::on(BackendKind::Postgres).await;
    let list = (
        lists.workspaces[0].path("/requests"),
        lists.workspaces[0].key.clone(),
    );
    let first = lists.page(&list, None).await;
    let next = first["next"].as_str().unwrap();
    let store = lists.server.backend.second_store();
    let secret = leasehold_ops::installation::secret(&*store).await.unwrap();
    let again = leasehold_ops::installation::secret(&*lists.server.store)
        .await
        .unwrap();
    assert_eq!(secret, again);
    assert_ne!(secret, [0; 32]);
    lists.page(&list, Some(next)).await;
}
