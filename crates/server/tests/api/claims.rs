//! What workers do over HTTP: claim, wait, renew, report, finish; whose leases they are, and what becomes of them when the worker goes away.

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
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

async fn enqueue(ground: &TestServer, count: usize) -> Vec<Value> {
    let jobs = json!({"jobs": vec![json!({"kind": "a"}); count]});
    let answer = ground
        .post("/v1/queues/emails/jobs/batch", &ground.admin, jobs)
        .await;
    let answer = answer.expect(201);
    let jobs = answer["jobs"].as_array().unwrap();
    jobs.iter().map(|job| job["id"].clone()).collect()
}

async fn claim(ground: &TestServer, worker: &str, max: u32, wait_ms: u64) -> Vec<Value> {
    let asked = json!({"worker": worker, "max": max, "wait_ms": wait_ms});
    let answer = ground.post(CLAIM, &ground.admin, asked).await.expect(200);
    answer["jobs"].as_array().unwrap().clone()
}

async fn job(ground: &TestServer, id: &Value) -> Value {
    ground
        .get(&format!("/v1/jobs/{id}"), &ground.admin)
        .await
        .expect(200)
}

async fn running(ground: &TestServer) -> usize {
    let path = "/v1/jobs?status=running&limit=1000";
    let jobs = ground.get(path, &ground.admin).await.expect(200);
    jobs["items"].as_array().unwrap().len()
}

fn ended(job: &Value, outcome: &str) -> Value {
    json!({"id": job["id"], "token": job["token"], "outcome": outcome})
}

#[tokio::test]
async fn a_claim_brings_jobs_with_all_a_worker_needs() {
    let ground = TestServer::with_manual_clock().await;
    let new = json!({"kind": "welcome", "payload": {"to": "ada"}, "timeout_ms": 900});
    ground
        .post("/v1/queues/emails/jobs", &ground.admin, new)
        .await
        .expect(201);
    let asked = json!({"worker": "host-1", "max": 5, "lease_ms": 4_000});
    let answer = ground.post(CLAIM, &ground.admin, asked).await.expect(200);
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
    let shown = job(&ground, &claimed["id"]).await;
    let by = shown["claimed_by"].as_str().unwrap();
    let me = ground.get("/v1/me", &ground.admin).await.expect(200);
    assert_eq!(by, format!("host-1@{}", me["id"].as_str().unwrap()));
    assert_eq!(shown["token"], claimed["token"]);
}

#[tokio::test]
async fn every_outcome_leads_where_it_says() {
    let ground = TestServer::with_manual_clock().await;
    enqueue(&ground, 6).await;
    let jobs = claim(&ground, "w", 6, 0).await;
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
    let answer = ground
        .post("/v1/jobs/finish", &ground.admin, asked)
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
        job(&ground, &jobs[0]["id"]).await["result"],
        json!({"sent": true})
    );
    assert_eq!(
        job(&ground, &jobs[3]["id"]).await["last_error"],
        "no such address"
    );
    assert_eq!(job(&ground, &jobs[1]["id"]).await["attempts"], 1);
    assert_eq!(job(&ground, &jobs[5]["id"]).await["attempts"], 0);
}

#[tokio::test]
async fn fields_that_do_not_fit_the_outcome_are_refused_and_nothing_ends() {
    let ground = TestServer::new().await;
    enqueue(&ground, 2).await;
    let jobs = claim(&ground, "w", 2, 0).await;
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
        let answer = ground.post("/v1/jobs/finish", &ground.admin, asked).await;
        answer.refused("invalid", &format!("/finishes/1{path}"));
    }
    assert_eq!(running(&ground).await, 2);
}

#[tokio::test]
async fn claims_renewals_and_reports_out_of_bounds_are_refused_by_field() {
    let ground = TestServer::new().await;
    enqueue(&ground, 1).await;
    for (asked, path) in [
        (json!({"worker": "w".repeat(91)}), "/worker"),
        (json!({"worker": " "}), "/worker"),
        (json!({"worker": "w", "max": 0}), "/max"),
        (json!({"worker": "w", "max": 1001}), "/max"),
        (json!({"worker": "w", "lease_ms": 99}), "/lease_ms"),
        (json!({"worker": "w", "lease_ms": 86_400_001}), "/lease_ms"),
        (json!({"worker": "w", "wait_ms": 60_001}), "/wait_ms"),
    ] {
        ground
            .post(CLAIM, &ground.admin, asked)
            .await
            .refused("invalid", path);
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
        let answer = ground.post("/v1/jobs/renew", &ground.admin, asked).await;
        answer.refused("invalid", path);
    }
    let report = json!({"worker": "w", "id": 1, "token": 1, "progress": {"at": "a\u{0}"}});
    let answer = ground
        .post("/v1/jobs/progress", &ground.admin, report)
        .await;
    answer.refused("invalid", "/progress/at");
    assert_eq!(running(&ground).await, 0);
}

#[tokio::test]
async fn a_lease_is_renewed_reported_on_and_finished_only_with_the_key_that_claimed_it() {
    let ground = TestServer::new().await;
    let queues = vec!["emails".to_owned()];
    let stranger = ground.key(KeyScope::Worker { queues }).await;
    enqueue(&ground, 1).await;
    let claimed = claim(&ground, "w", 1, 0).await.remove(0);
    let own_claim = json!([{"id": claimed["id"], "token": claimed["token"]}]);
    let renew = json!({"worker": "w", "claims": own_claim, "lease_ms": 30_000});
    let report =
        json!({"worker": "w", "id": claimed["id"], "token": claimed["token"], "progress": 50});
    let finish = json!({"worker": "w", "finishes": [ended(&claimed, "completed")]});

    let answer = ground
        .post("/v1/jobs/renew", &stranger, renew.clone())
        .await;
    assert_eq!(answer.expect(200)["held"], json!([]));
    let answer = ground
        .post("/v1/jobs/progress", &stranger, report.clone())
        .await;
    assert_eq!(answer.expect(200)["held"], false);
    let answer = ground
        .post("/v1/jobs/finish", &stranger, finish.clone())
        .await;
    assert_eq!(answer.expect(200)["finished"][0]["state"], "lease_lost");

    let answer = ground.post("/v1/jobs/renew", &ground.admin, renew).await;
    assert_eq!(answer.expect(200)["held"], json!([claimed["id"]]));
    let answer = ground
        .post("/v1/jobs/progress", &ground.admin, report)
        .await;
    assert_eq!(answer.expect(200)["held"], true);
    assert_eq!(job(&ground, &claimed["id"]).await["progress"], 50);
    let answer = ground.post("/v1/jobs/finish", &ground.admin, finish).await;
    assert_eq!(answer.expect(200)["finished"][0]["state"], "completed");
}

async fn a_claim_that_waits_is_answered_when_a_job_comes(on: BackendKind) {
    let ground = TestServer::on(on).await;
    let waiting = claim(&ground, "w", 1, 60_000);
    let begun = Instant::now();
    let (jobs, ids) = tokio::join!(waiting, async {
        until_waiting(&ground).await;
        enqueue(&ground, 1).await
    });
    assert_eq!(jobs[0]["id"], ids[0]);
    assert!(begun.elapsed() < PATIENCE, "it was not woken");
}

async fn until_waiting(ground: &TestServer) {
    let waits = eventually(PATIENCE, async || ground.state.waiting_claims() > 0).await;
    assert!(waits, "nobody waits");
}

#[tokio::test]
async fn a_claim_that_waits_is_answered_when_a_job_comes_on_postgres() {
    a_claim_that_waits_is_answered_when_a_job_comes(BackendKind::Postgres).await;
}

#[tokio::test]
async fn a_claim_that_waits_is_answered_when_a_job_comes_on_sqlite() {
    a_claim_that_waits_is_answered_when_a_job_comes(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn a_claim_waits_for_a_job_that_becomes_due() {
    let ground = TestServer::new().await;
    let new = json!({"kind": "a", "run_in_ms": 300});
    ground
        .post("/v1/queues/emails/jobs", &ground.admin, new)
        .await
        .expect(201);
    assert_eq!(claim(&ground, "w", 1, 0).await.len(), 0);
    assert_eq!(claim(&ground, "w", 1, 60_000).await.len(), 1);
}

#[tokio::test]
async fn a_wait_ends_empty_handed_when_its_time_is_over_or_the_server_stops() {
    let options = ServerOptions {
        claim_wait_max: Duration::from_millis(50),
        ..ServerOptions::default()
    };
    let ground = TestServer::with_options(options).await;
    let bounded = tokio::time::timeout(PATIENCE, claim(&ground, "w", 1, 60_000)).await;
    assert_eq!(bounded.unwrap().len(), 0);

    let ground = TestServer::new().await;
    let waiting = tokio::time::timeout(PATIENCE, claim(&ground, "w", 1, 60_000));
    let (jobs, ()) = tokio::join!(waiting, async {
        until_waiting(&ground).await;
        ground.stop.cancel();
    });
    assert_eq!(jobs.unwrap().len(), 0);
}

#[tokio::test]
async fn many_who_wait_get_one_job_each() {
    let ground = TestServer::new().await;
    let names: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
    let waiting = names.iter().map(|name| claim(&ground, name, 1, 60_000));
    let (brought, ids) = tokio::join!(futures::future::join_all(waiting), async {
        until_waiting(&ground).await;
        enqueue(&ground, 100).await
    });
    let mut got: Vec<i64> = brought
        .iter()
        .map(|jobs| jobs[0]["id"].as_i64().unwrap())
        .collect();
    got.sort_unstable();
    let put: Vec<i64> = ids.iter().map(|id| id.as_i64().unwrap()).collect();
    assert_eq!(got, put);
    assert_eq!(ground.state.waiting_claims(), 0);
}

/// Asks for a job and goes away when the call would be polled once more than so often: whatever it waited for is there then, and unseen.
/// Says whether the answer had come before.
pub(crate) async fn ask_and_go_away(ground: &TestServer, path: &str, polls: usize) -> bool {
    let asked = json!({"worker": "w", "max": 1, "wait_ms": 60_000});
    let request = Request::post(path)
        .header(header::AUTHORIZATION, format!("Bearer {}", ground.admin))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(asked.to_string()))
        .unwrap();
    let mut call = Box::pin(ground.app.clone().oneshot(request));
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

async fn who_goes_away_leaves_nothing_leased(on: BackendKind) {
    let ground = TestServer::on(on).await;
    enqueue(&ground, 1).await;
    let mut polls = 0;
    while !ask_and_go_away(&ground, CLAIM, polls).await {
        polls += 1;
        nothing_is_leased(&ground, polls).await;
    }
    // The last one was answered; all before went away at another point of the call.
    assert!(polls >= 2, "{polls}");
    assert_eq!(running(&ground).await, 1);
}

async fn who_goes_away_while_it_waits_leaves_nothing_leased(on: BackendKind) {
    let ground = TestServer::on(on).await;
    for polls in 0.. {
        let gone = AtomicBool::new(false);
        let asking = async {
            let answered = ask_and_go_away(&ground, CLAIM, polls).await;
            gone.store(true, Ordering::SeqCst);
            answered
        };
        let (answered, ids) = tokio::join!(asking, async {
            let waits = async || ground.state.waiting_claims() > 0 || gone.load(Ordering::SeqCst);
            assert!(eventually(PATIENCE, waits).await);
            enqueue(&ground, 1).await
        });
        if answered {
            assert!(polls >= 3, "it did not wait: {polls}");
            break;
        }
        nothing_is_leased(&ground, polls).await;
        let path = format!("/v1/jobs/{}/cancel", ids[0]);
        ground
            .post(&path, &ground.admin, Value::Null)
            .await
            .expect(200);
    }
}

pub(crate) async fn nothing_is_leased(ground: &TestServer, polls: usize) {
    let free = eventually(PATIENCE, async || running(ground).await == 0).await;
    assert!(free, "after {polls} polls a job is leased to nobody");
}

#[tokio::test]
async fn who_goes_away_while_it_waits_leaves_nothing_leased_on_postgres() {
    who_goes_away_while_it_waits_leaves_nothing_leased(BackendKind::Postgres).await;
}

#[tokio::test]
async fn who_goes_away_while_it_waits_leaves_nothing_leased_on_sqlite() {
    who_goes_away_while_it_waits_leaves_nothing_leased(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn who_goes_away_leaves_nothing_leased_on_postgres() {
    who_goes_away_leaves_nothing_leased(BackendKind::Postgres).await;
}

#[tokio::test]
async fn who_goes_away_leaves_nothing_leased_on_sqlite() {
    who_goes_away_leaves_nothing_leased(BackendKind::Sqlite).await;
}
