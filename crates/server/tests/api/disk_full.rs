//! A disk that fills and empties under a server on SQLite.

use leasehold_testbed::TestServer;
use leasehold_testkit::SmallDisk;
use serde_json::json;

const JOBS: &str = "/v1/queues/emails/jobs";

#[tokio::test]
async fn full_disk_is_answered_with_store_unavailable_until_it_has_space() {
    let test = "disk_full::full_disk_is_answered_with_store_unavailable_until_it_has_space";
    let Some(disk) = SmallDisk::of_test(test, 16) else {
        return;
    };
    let server = TestServer::new().await;
    let enqueue = async || {
        let job = json!({"kind": "welcome", "payload": {"to": "ada"}});
        server.post(JOBS, &server.admin, job).await
    };
    enqueue().await.expect(201);
    // Opens a connection for reads: a new one cannot map its files on a full disk.
    server.get("/v1/jobs", &server.admin).await.expect(200);
    disk.fill();
    let problem = enqueue().await.expect(503);
    assert_eq!(problem["code"], "store_unavailable");
    server.get("/v1/jobs", &server.admin).await.expect(200);
    disk.empty();
    enqueue().await.expect(201);
}
