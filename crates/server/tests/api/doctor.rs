//! The doctor route.

use leasehold_testbed::TestServer;
use serde_json::Value;

#[tokio::test]
async fn doctor_reports_good_and_bad_findings() {
    let server = TestServer::new().await;
    let answer = server.get("/v1/doctor", &server.admin).await.expect(200);
    let found = |check: &str| -> &Value {
        let all = answer["findings"].as_array().unwrap();
        let one = all.iter().find(|one| one["check"] == check);
        one.unwrap_or_else(|| panic!("no {check} in {answer}"))
    };
    for check in ["schema", "clock", "drift", "engine"] {
        assert_eq!(found(check)["verdict"], "ok", "{answer}");
        assert!(found(check).get("todo").is_none(), "{answer}");
    }
    // The test server does not record itself in the store.
    assert_eq!(found("instances")["verdict"], "warning", "{answer}");
    assert!(found("instances")["todo"].is_string(), "{answer}");
}
