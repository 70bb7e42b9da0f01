//! Executions: show and list them.

use leasehold_core::ExecutionEnd;
use leasehold_store::fresh_id;
use leasehold_testbed::{KeyedWorkspace, TestServer};
use serde_json::Value;
use uuid::Uuid;

async fn ids(
    server: &TestServer,
    workspace: &KeyedWorkspace,
    query: &str,
    limit: u32,
) -> Vec<String> {
    let path = workspace.path(&format!("/executions{query}"));
    let listed = server.all_pages(&path, &workspace.key, limit).await;
    listed
        .iter()
        .map(|e| e["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn execution_is_shown_while_running_and_after_its_end() {
    let server = TestServer::new().await;
    let workspace = server.workspace(5).await;
    let running = server.enqueue_running(&workspace).await;
    let path = workspace.path(&format!("/executions/{}", running.execution));
    let shown = server.get(&path, &workspace.key).await.expect(200);
    assert_eq!(shown["status"], "RUNNING");
    assert_eq!(shown["request"], running.id.to_string());
    assert_eq!(shown["finished_at"], Value::Null);
    server
        .finish(running.execution, ExecutionEnd::Cancelled)
        .await;
    let shown = server.get(&path, &workspace.key).await.expect(200);
    assert_eq!(shown["status"], "CANCELLED");
    assert!(shown["finished_at"].is_string());
    let unknown_id: Uuid = fresh_id();
    let nothing = workspace.path(&format!("/executions/{unknown_id}"));
    server
        .get(&nothing, &workspace.key)
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn executions_are_listed_last_admitted_first_and_filtered() {
    let server = TestServer::new().await;
    let workspace = server.workspace(50).await;
    let elsewhere = server.workspace(50).await;
    let mut all = Vec::new();
    let mut completed = Vec::new();
    for n in 0..9 {
        server.enqueue_running(&elsewhere).await;
        let running = server.enqueue_running(&workspace).await;
        if n % 3 == 0 {
            server
                .finish(running.execution, ExecutionEnd::Completed)
                .await;
            completed.insert(0, running.execution.to_string());
        }
        all.insert(0, running.execution.to_string());
    }
    for limit in [1, 2, 3, 100] {
        assert_eq!(ids(&server, &workspace, "", limit).await, all);
        assert_eq!(
            ids(&server, &workspace, "?status=COMPLETED", limit).await,
            completed
        );
    }
    let own = format!("?definition={}", workspace.definition);
    assert_eq!(ids(&server, &workspace, &own, 4).await, all);
    let other = format!("?definition={}", elsewhere.definition);
    assert_eq!(ids(&server, &workspace, &other, 4).await, [""; 0]);
    let wrong = server
        .get(&workspace.path("/executions?status=ENDED"), &workspace.key)
        .await;
    wrong.expect_problem("invalid_parameter", "query");
    let wrong = server
        .get(&workspace.path("/executions?after=x"), &workspace.key)
        .await;
    wrong.expect_problem("invalid_parameter", "after");
    let nowhere = format!("/v1/workspaces/{}/executions", Uuid::nil());
    server
        .get(&nowhere, &server.admin)
        .await
        .expect_problem("not_found", "");
}
