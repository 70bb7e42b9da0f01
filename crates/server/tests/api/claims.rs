//! Routes of workers: claim, wait, renew, report, finish; ownership of leases, and disconnected callers.

use axum::body::Body;
use axum::http::{Request, header};
use leasehold_core::key::KeyScope;
use leasehold_server::ServerOptions;
use leasehold_testbed::{BackendKind, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tower::ServiceExt;

const CLAIM: &str = "/v1/queues/emails/claim";
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a scenario is repeated that a slow machine made meaningless.
const ATTEMPTS: usize = 20;

async fn enqueue(server: &TestServer, count: usize) -> Vec<Value> {
    let jobs = json!({"jobs": vec![json!({"kind": "a"}); count]});
    let answer = server
        .post("/v1/queues/emails/jobs/batch", &server.admin, jobs)
        .await;
    let answer = answer.expect(201);
    let jobs = answer["jobs"].as_array().unwrap();
    jobs.iter().map(|job| job["id"].clone()).collect()
}

async fn claim(server: &TestServer, worker: &str, max: u32, wait_ms: u64) -> Vec<Value> {
    let asked = json!({"worker": worker, "max": max, "wait_ms": wait_ms});
    let answer = server.post(CLAIM, &server.admin, asked).await.expect(200);
    answer["jobs"].as_array().unwrap().clone()
}

async fn job(server: &TestServer, id: &Value) -> Value {
    server
        .get(&format!("/v1/jobs/{id}"), &server.admin)
        .await
        .expect(200)
}

async fn running(server: &TestServer) -> usize {
    let path = "/v1/jobs?status=running&limit=1000";
    let jobs = server.get(path, &server.admin).await.expect(200);
    jobs["items"].as_array().unwrap().len()
}

fn ended(job: &Value, outcome: &str) -> Value {
    json!({"id": job["id"], "token": job["token"], "outcome": outcome})
}

#[tokio::test]
async fn claim_returns_jobs_with_lease_and_payload() {
    let server = TestServer::with_manual_clock().await;
    let new = json!({"kind": "welcome", "payload": {"to": "ada"}, "timeout_ms": 900});
    server
        .post("/v1/queues/emails/jobs", &server.admin, new)
        .await
        .expect(201);
    let asked = json!({"worker": "host-1", "max": 5, "lease_ms": 4_000});
    let answer = server.post(CLAIM, &server.admin, asked).await.expect(200);
    let claimed = &answer["jobs"][0];
    assert_eq!(claimed["payload"], json!({"to": "ada"}));
    assert_eq!(
        (&claimed["kind"], &claimed["attempt"]),
        (&json!("welcome"), &json!(1))
    );
    assert_eq!(
        (&claimed["lease_ms"], &claimed["timeout_ms"]),
        (&json!(4_000), &json!(900))
    );
    assert_eq!(claimed["lease_expires_at"], "2026-03-01T12:00:04Z");
    let shown = job(&server, &claimed["id"]).await;
    let by = shown["claimed_by"].as_str().unwrap();
    let me = server.get("/v1/me", &server.admin).await.expect(200);
    assert_eq!(by, format!("host-1@{}", me["id"].as_str().unwrap()));
    assert_eq!(shown["token"], claimed["token"]);
}

#[tokio::test]
async fn every_outcome_sets_the_expected_state() {
    let server = TestServer::with_manual_clock().await;
    enqueue(&server, 6).await;
    let jobs = claim(&server, "w", 6, 0).await;
    let with = |job: &Value, outcome: &str, more: Value| {
        let mut end = ended(job, outcome);
        end.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        end
    };
    let finishes = json!([
        with(&jobs[0], "completed", json!({"result": {"sent": true}})),
        with(&jobs[1], "failed", json!({"error": "no route"})),
        with(
            &jobs[2],
            "failed",
            json!({"error": "no route", "after_ms": 5_000})
        ),
        with(
            &jobs[3],
            "failed",
            json!({"error": "no such address", "retry": false})
        ),
        with(&jobs[4], "snoozed", json!({"after_ms": 7_000})),
        with(&jobs[5], "given_back", json!({})),
        with(&jobs[0], "completed", json!({})),
    ]);
    let asked = json!({"worker": "w", "finishes": finishes});
    let answer = server
        .post("/v1/jobs/finish", &server.admin, asked)
        .await
        .expect(200);
    let states: Vec<&str> = answer["finished"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finished| finished["state"].as_str().unwrap())
        .collect();
    let expected = [
        "completed",
        "queued",
        "queued",
        "failed",
        "queued",
        "queued",
        "lease_lost",
    ];
    assert_eq!(states, expected);
    assert_eq!(answer["finished"][2]["run_at"], "2026-03-01T12:00:05Z");
    assert_eq!(answer["finished"][4]["run_at"], "2026-03-01T12:00:07Z");
    assert_eq!(
        job(&server, &jobs[0]["id"]).await["result"],
        json!({"sent": true})
    );
    assert_eq!(
        job(&server, &jobs[3]["id"]).await["last_error"],
        "no such address"
    );
    assert_eq!(job(&server, &jobs[1]["id"]).await["attempts"], 1);
    assert_eq!(job(&server, &jobs[5]["id"]).await["attempts"], 0);
}

#[tokio::test]
async fn fields_not_allowed_with_the_outcome_are_rejected_and_nothing_finishes() {
    let server = TestServer::new().await;
    enqueue(&server, 2).await;
    let jobs = claim(&server, "w", 2, 0).await;
    let (long, longer) = ("x".repeat(256 * 1024), "e".repeat(100_001));
    let too_far = 31_622_400_001u64;
    for (outcome, more, path) in [
        ("failed", json!({}), "/error"),
        ("failed", json!({"error": "e", "result": 1}), "/result"),
        (
            "failed",
            json!({"error": "e", "retry": false, "after_ms": 1}),
            "/after_ms",
        ),
        (
            "failed",
            json!({"error": "e", "after_ms": too_far}),
            "/after_ms",
        ),
        ("failed", json!({"error": longer}), "/error"),
        ("completed", json!({"error": "e"}), "/error"),
        ("completed", json!({"after_ms": 1}), "/after_ms"),
        ("completed", json!({"retry": true}), "/retry"),
        ("completed", json!({"result": long}), "/result"),
        ("completed", json!({"result": ["a\u{0}"]}), "/result/0"),
        ("snoozed", json!({}), "/after_ms"),
        ("given_back", json!({"after_ms": 1}), "/after_ms"),
        ("given_back", json!({"id": 0}), "/id"),
        ("given_back", json!({"token": 0}), "/token"),
        ("done", json!({}), "/outcome"),
    ] {
        let mut finish = ended(&jobs[1], outcome);
        let fields = finish.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let asked = json!({"worker": "w", "finishes": [ended(&jobs[0], "completed"), finish]});
        let answer = server.post("/v1/jobs/finish", &server.admin, asked).await;
        answer.expect_problem("invalid", &format!("/finishes/1{path}"));
    }
    assert_eq!(running(&server).await, 2);
}

#[tokio::test]
async fn claims_renewals_and_reports_out_of_range_name_the_field() {
    let server = TestServer::new().await;
    enqueue(&server, 1).await;
    for (asked, path) in [
        (json!({"worker": "w".repeat(91)}), "/worker"),
        (json!({"worker": " "}), "/worker"),
        (json!({"worker": "w", "max": 0}), "/max"),
        (json!({"worker": "w", "max": 1001}), "/max"),
        (json!({"worker": "w", "lease_ms": 99}), "/lease_ms"),
        (json!({"worker": "w", "lease_ms": 86_400_001}), "/lease_ms"),
        (json!({"worker": "w", "wait_ms": 60_001}), "/wait_ms"),
    ] {
        server
            .post(CLAIM, &server.admin, asked)
            .await
            .expect_problem("invalid", path);
    }
    let one = json!([{"id": 1, "token": 1}]);
    for (asked, path) in [
        (
            json!({"worker": "", "claims": one, "lease_ms": 1_000}),
            "/worker",
        ),
        (
            json!({"worker": "w", "claims": [], "lease_ms": 1_000}),
            "/claims",
        ),
        (
            json!({"worker": "w", "claims": one, "lease_ms": 1}),
            "/lease_ms",
        ),
        (
            json!({"worker": "w", "claims": [{"id": 0, "token": 1}], "lease_ms": 1_000}),
            "/claims/0/id",
        ),
    ] {
        let answer = server.post("/v1/jobs/renew", &server.admin, asked).await;
        answer.expect_problem("invalid", path);
    }
    let report = json!({"worker": "w", "id": 1, "token": 1, "progress": {"at": "a\u{0}"}});
    let answer = server
        .post("/v1/jobs/progress", &server.admin, report)
        .await;
    answer.expect_problem("invalid", "/progress/at");
    assert_eq!(running(&server).await, 0);
}

#[tokio::test]
async fn only_the_claiming_key_can_renew_report_and_finish_a_lease() {
    let server = TestServer::new().await;
    let queues = vec!["emails".to_owned()];
    let other_key = server.key(KeyScope::Worker { queues }).await;
    enqueue(&server, 1).await;
    let claimed = claim(&server, "w", 1, 0).await.remove(0);
    let own_claim = json!([{"id": claimed["id"], "token": claimed["token"]}]);
    let renew = json!({"worker": "w", "claims": own_claim, "lease_ms": 30_000});
    let report =
        json!({"worker": "w", "id": claimed["id"], "token": claimed["token"], "progress": 50});
    let finish = json!({"worker": "w", "finishes": [ended(&claimed, "completed")]});

    let answer = server
        .post("/v1/jobs/renew", &other_key, renew.clone())
        .await;
    assert_eq!(answer.expect(200)["held"], json!([]));
    let answer = server
        .post("/v1/jobs/progress", &other_key, report.clone())
        .await;
    assert_eq!(answer.expect(200)["held"], false);
    let answer = server
        .post("/v1/jobs/finish", &other_key, finish.clone())
        .await;
    assert_eq!(answer.expect(200)["finished"][0]["state"], "lease_lost");

    let answer = server.post("/v1/jobs/renew", &server.admin, renew).await;
    assert_eq!(answer.expect(200)["held"], json!([claimed["id"]]));
    let answer = server
        .post("/v1/jobs/progress", &server.admin, report)
        .await;
    assert_eq!(answer.expect(200)["held"], true);
    assert_eq!(job(&server, &claimed["id"]).await["progress"], 50);
    let answer = server.post("/v1/jobs/finish", &server.admin, finish).await;
    assert_eq!(answer.expect(200)["finished"][0]["state"], "completed");
}

async fn waiting_claim_returns_when_a_job_is_enqueued(on: BackendKind) {
    let server = TestServer::on(on).await;
    let waiting = claim(&server, "w", 1, 60_000);
    let begun = Instant::now();
    let (jobs, ids) = tokio::join!(waiting, async {
        until_waiting(&server).await;
        enqueue(&server, 1).await
    });
    assert_eq!(jobs[0]["id"], ids[0]);
    assert!(
        begun.elapsed() < TIMEOUT,
        "the waiting claim was not notified"
    );
}

async fn until_waiting(server: &TestServer) {
    let waits = eventually(TIMEOUT, async || server.state.waiting_claims() > 0).await;
    assert!(waits, "no claim waits");
}

#[tokio::test]
async fn waiting_claim_returns_when_a_job_is_enqueued_on_postgres() {
    waiting_claim_returns_when_a_job_is_enqueued(BackendKind::Postgres).await;
}

#[tokio::test]
async fn waiting_claim_returns_when_a_job_is_enqueued_on_sqlite() {
    waiting_claim_returns_when_a_job_is_enqueued(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn claim_says_how_long_it_waited_before_the_leases_began() {
    let server = TestServer::new().await;
    let delay = Duration::from_millis(300);
    let new = json!({"kind": "a", "run_in_ms": 300});
    let path = "/v1/queues/emails/jobs";
    server.post(path, &server.admin, new).await.expect(201);
    let begun = Instant::now();
    let asked = json!({"worker": "w", "wait_ms": 60_000});
    let answer = server.post(CLAIM, &server.admin, asked).await.expect(200);
    let waited = Duration::from_millis(answer["waited_ms"].as_u64().unwrap());
    assert!(waited <= begun.elapsed(), "{waited:?}");
    // The job may have been enqueued some time before the claim was sent.
    assert!(waited + begun.elapsed() >= delay, "{waited:?}");
    assert!(!waited.is_zero());
    let asked = json!({"worker": "w"});
    let answer = server.post(CLAIM, &server.admin, asked).await.expect(200);
    assert!(answer["waited_ms"].is_u64(), "{answer}");
}

#[tokio::test]
async fn waiting_claim_returns_when_a_job_becomes_due() {
    let server = TestServer::new().await;
    for _ in 0..ATTEMPTS {
        let begun = Instant::now();
        let new = json!({"kind": "a", "run_in_ms": 300});
        server
            .post("/v1/queues/emails/jobs", &server.admin, new)
            .await
            .expect(201);
        if claim(&server, "w", 1, 0).await.is_empty() {
            assert_eq!(claim(&server, "w", 1, 60_000).await.len(), 1);
            return;
        }
        // The machine was too slow: the job was due before the first claim.
        assert!(begun.elapsed() >= Duration::from_millis(300), "too early");
    }
    panic!("the job was due at the first claim {ATTEMPTS} times");
}

#[tokio::test]
async fn waiting_claim_returns_no_jobs_after_its_wait_or_when_the_server_stops() {
    let options = ServerOptions {
        claim_wait_max: Duration::from_millis(50),
        ..ServerOptions::default()
    };
    let server = TestServer::with_options(options).await;
    let bounded = tokio::time::timeout(TIMEOUT, claim(&server, "w", 1, 60_000)).await;
    assert_eq!(bounded.unwrap().len(), 0);

    let server = TestServer::new().await;
    let waiting = tokio::time::timeout(TIMEOUT, claim(&server, "w", 1, 60_000));
    let (jobs, ()) = tokio::join!(waiting, async {
        until_waiting(&server).await;
        server.stop.cancel();
    });
    assert_eq!(jobs.unwrap().len(), 0);
}

#[tokio::test]
async fn many_waiting_claims_get_one_job_each() {
    let server = TestServer::new().await;
    let names: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
    let waiting = names.iter().map(|name| claim(&server, name, 1, 60_000));
    let (brought, ids) = tokio::join!(futures::future::join_all(waiting), async {
        until_waiting(&server).await;
        enqueue(&server, 100).await
    });
    let mut got: Vec<i64> = brought
        .iter()
        .map(|jobs| jobs[0]["id"].as_i64().unwrap())
        .collect();
    got.sort_unstable();
    let put: Vec<i64> = ids.iter().map(|id| id.as_i64().unwrap()).collect();
    assert_eq!(got, put);
    assert_eq!(server.state.waiting_claims(), 0);
}

/// Claims a job and drops the call after `polls` polls: what it waited for may be ready then, and not consumed.
/// Returns whether the response came before.
pub(crate) async fn claim_and_disconnect(server: &TestServer, path: &str, polls: usize) -> bool {
    let asked = json!({"worker": "w", "max": 1, "wait_ms": 60_000});
    let request = Request::post(path)
        .header(header::AUTHORIZATION, format!("Bearer {}", server.admin))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(asked.to_string()))
        .unwrap();
    let mut call = Box::pin(server.app.clone().oneshot(request));
    let mut seen = 0;
    std::future::poll_fn(|context| {
        seen += 1;
        if seen > polls {
            return Poll::Ready(false);
        }
        call.as_mut().poll(context).map(|_| true)
    })
    .await
}

async fn disconnected_claim_leaves_no_job_leased(on: BackendKind) {
    let server = TestServer::on(on).await;
    enqueue(&server, 1).await;
    let mut polls = 0;
    while !claim_and_disconnect(&server, CLAIM, polls).await {
        polls += 1;
        assert_nothing_leased(&server, polls).await;
    }
    // The last call was answered; all earlier ones disconnected at another await point.
    assert!(polls >= 2, "{polls}");
    assert_eq!(running(&server).await, 1);
}

async fn disconnected_waiting_claim_leaves_no_job_leased(on: BackendKind) {
    let server = TestServer::on(on).await;
    for polls in 0.. {
        let gone = AtomicBool::new(false);
        let asking = async {
            let answered = claim_and_disconnect(&server, CLAIM, polls).await;
            gone.store(true, Ordering::SeqCst);
            answered
        };
        let (answered, ids) = tokio::join!(asking, async {
            let waits = async || server.state.waiting_claims() > 0 || gone.load(Ordering::SeqCst);
            assert!(eventually(TIMEOUT, waits).await);
            enqueue(&server, 1).await
        });
        if answered {
            assert!(polls >= 3, "the claim did not wait: {polls}");
            break;
        }
        assert_nothing_leased(&server, polls).await;
        let path = format!("/v1/jobs/{}/cancel", ids[0]);
        // The abandoned call may claim the job only now, and returns it at once.
        let cancelled = async || {
            let response = server.post(&path, &server.admin, Value::Null).await;
            response.status == 200
        };
        assert!(eventually(TIMEOUT, cancelled).await);
    }
}

pub(crate) async fn assert_nothing_leased(server: &TestServer, polls: usize) {
    let free = eventually(TIMEOUT, async || running(server).await == 0).await;
    assert!(free, "after {polls} polls a job is still leased");
}

#[tokio::test]
async fn disconnected_waiting_claim_leaves_no_job_leased_on_postgres() {
    disconnected_waiting_claim_leaves_no_job_leased(BackendKind::Postgres).await;
}

#[tokio::test]
async fn disconnected_waiting_claim_leaves_no_job_leased_on_sqlite() {
    disconnected_waiting_claim_leaves_no_job_leased(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn disconnected_claim_leaves_no_job_leased_on_postgres() {
    disconnected_claim_leaves_no_job_leased(BackendKind::Postgres).await;
}

#[tokio::test]
async fn disconnected_claim_leaves_no_job_leased_on_sqlite() {
    disconnected_claim_leaves_no_job_leased(BackendKind::Sqlite).await;
}
