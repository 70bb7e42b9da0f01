//! Executions: shown, listed last admitted first, and filtered.

use leasehold_core::ExecutionEnd;
use leasehold_store::fresh_id;
use leasehold_testbed::{KeyedWorkspace, TestServer};
use serde_json::Value;
use uuid::Uuid;

async fn ids(ground: &TestServer, site: &KeyedWorkspace, query: &str, limit: u32) -> Vec<String> {
    let path = site.path(&format!("/executions{query}"));
    let listed = ground.all_pages(&path, &site.key, limit).await;
    listed
        .iter()
        .map(|e| e["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn an_execution_is_shown_while_it_runs_and_when_it_has_ended() {
    let ground = TestServer::new().await;
    let site = ground.workspace(5).await;
    let running = ground.running(&site).await;
    let path = site.path(&format!("/executions/{}", running.execution));
    let shown = ground.get(&path, &site.key).await.expect(200);
    assert_eq!(shown["status"], "RUNNING");
    assert_eq!(shown["request"], running.id.to_string());
    assert_eq!(shown["finished_at"], Value::Null);
    ground
        .finish(running.execution, ExecutionEnd::Cancelled)
        .await;
    let shown = ground.get(&path, &site.key).await.expect(200);
    assert_eq!(shown["status"], "CANCELLED");
    assert!(shown["finished_at"].is_string());
    let stranger: Uuid = fresh_id();
    let nothing = site.path(&format!("/executions/{stranger}"));
    ground
        .get(&nothing, &site.key)
        .await
        .refused("not_found", "");
}

#[tokio::test]
async fn executions_are_listed_last_admitted_first_to_the_end_and_by_filter() {
    let ground = TestServer::new().await;
    let site = ground.workspace(50).await;
    let elsewhere = ground.workspace(50).await;
    let mut all = Vec::new();
    let mut completed = Vec::new();
    for n in 0..9 {
        ground.running(&elsewhere).await;
        let running = ground.running(&site).await;
        if n % 3 == 0 {
            ground
                .finish(running.execution, ExecutionEnd::Completed)
                .await;
            completed.insert(0, running.execution.to_string());
        }
        all.insert(0, running.execution.to_string());
    }
    for limit in [1, 2, 3, 100] {
        assert_eq!(ids(&ground, &site, "", limit).await, all);
        assert_eq!(
            ids(&ground, &site, "?status=COMPLETED", limit).await,
            completed
        );
    }
    let own = format!("?definition={}", site.definition);
    assert_eq!(ids(&ground, &site, &own, 4).await, all);
    let other = format!("?definition={}", elsewhere.definition);
    assert_eq!(ids(&ground, &site, &other, 4).await, [""; 0]);
    let wrong = ground
        .get(&site.path("/executions?status=ENDED"), &site.key)
        .await;
    wrong.refused("invalid_parameter", "query");
    let wrong = ground
        .get(&site.path("/executions?after=x"), &site.key)
        .await;
    wrong.refused("invalid_parameter", "after");
    let nowhere = format!("/v1/workspaces/{}/executions", Uuid::nil());
    ground
        .get(&nowhere, &ground.admin)
        .await
        .refused("not_found", "");
}
