//! Round trips of every call about workspaces, keys, queues, jobs and the server.

use crate::counting_server::{CountingServer, QUEUE};
use futures::TryStreamExt;
use leasehold_client::api::Code;
use leasehold_client::api::job::{
    ClaimOptions, Finish, FinishBatch, FinishState, JobOutcome, LeaseRenewal, NewJob, NewJobs,
    ProgressReport,
};
use leasehold_client::api::key::{Key, NewKey, Scope};
use leasehold_client::api::overview::EngineHealth;
use leasehold_client::api::queue::{JobCounts, QueueChange};
use leasehold_client::api::workspace::{NewWorkspace, WorkspaceChange};
use leasehold_client::{Client, ClientError};
use leasehold_core::{JobStatus, JsonText, Plan};
use leasehold_testbed::BackendKind;

on_both!(
    workspace_calls_round_trip,
    keys_are_created_used_and_revoked,
    queue_and_job_calls_round_trip,
    job_is_claimed_renewed_and_finished_with_progress,
    lists_are_read_to_the_last_page,
    server_info_calls_answer,
);

fn code(error: ClientError) -> Code {
    match error {
        ClientError::Problem(problem) => problem.code,
        other => panic!("{other:?}"),
    }
}

async fn workspace_calls_round_trip(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = &server.client;
    let new = NewWorkspace {
        name: "acme".to_owned(),
        plan: Plan::Pro,
        max_concurrent_executions: None,
    };
    let created = client.workspace_create(&new).await.unwrap();
    assert_eq!(
        (created.name.as_str(), created.max_concurrent_executions),
        ("acme", 5)
    );
    let taken = client.workspace_create(&new).await.unwrap_err();
    assert_eq!(code(taken), Code::NameTaken);
    let change = WorkspaceChange {
        max_concurrent_executions: Some(Some(7)),
        paused: Some(true),
        ..WorkspaceChange::default()
    };
    let changed = client.workspace_update(created.id, &change).await.unwrap();
    assert!(changed.paused && changed.overridden);
    let state = client.workspace_get(created.id).await.unwrap();
    assert_eq!((state.slots.limit, &state.workspace), (7, &changed));
    let found = client.workspace_find("acme").await.unwrap();
    assert_eq!(found, Some(state.workspace));
    assert_eq!(client.workspace_find("a & b?").await.unwrap(), None);
    client.workspace_delete(created.id).await.unwrap();
    assert_eq!(client.workspace_find("acme").await.unwrap(), None);
    let gone = client.workspace_get(created.id).await.unwrap_err();
    assert_eq!(code(gone), Code::NotFound);
}

async fn keys_are_created_used_and_revoked(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let new = NewKey::full(
        "mail workers",
        Scope::Worker {
            queues: vec![QUEUE.to_owned()],
        },
    );
    let created = server.client.key_create(&new).await.unwrap();
    let address = format!("http://{}/", server.address);
    let worker = Client::new(&address, &created.secret).unwrap();
    // The server records the use of the key a little later.
    let unused = |key: Key| Key {
        last_used_at: None,
        ..key
    };
    assert_eq!(unused(worker.key_me().await.unwrap()), created.key);
    let shown = server.client.key_get(created.key.id).await.unwrap();
    assert_eq!(unused(shown), created.key);
    assert_eq!(server.client.key_list().all().await.unwrap().len(), 2);
    let forbidden = worker.key_list().all().await.unwrap_err();
    assert_eq!(code(forbidden), Code::Forbidden);
    let revoked = server.client.key_revoke(created.key.id).await.unwrap();
    assert!(revoked.revoked_at.is_some());
    let refused = worker.key_me().await.unwrap_err();
    assert!(!refused.is_retryable());
    assert_eq!(code(refused), Code::Unauthenticated);
    let shown = format!("{worker:?} {created:?}");
    assert!(!shown.contains(&created.secret), "{shown}");
}

async fn queue_and_job_calls_round_trip(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = &server.client;
    let name = "e mails/ä?";
    let change = QueueChange {
        limit: Some(Some(3)),
        ..QueueChange::default()
    };
    let queue = client.queue_update(name, &change).await.unwrap();
    assert_eq!((queue.name.as_str(), queue.limit), (name, Some(3)));
    assert_eq!(client.queue_get(name).await.unwrap(), queue);
    assert_eq!(client.queue_list().all().await.unwrap(), [queue]);

    let mut new = NewJob::new("welcome", JsonText::of("ada").unwrap());
    new.dedup_key = Some("ada".to_owned());
    let first = client.job_enqueue(name, &new).await.unwrap();
    let second = client.job_enqueue(name, &new).await.unwrap();
    assert_eq!(
        (second.id, first.inserted, second.inserted),
        (first.id, true, false)
    );
    let jobs = vec![NewJob::new("welcome", JsonText::default()); 2];
    let more = client
        .job_enqueue_many(name, &NewJobs { jobs })
        .await
        .unwrap();
    let counts = client.queue_counts(name).await.unwrap();
    let three = JobCounts {
        ready: 3,
        ..JobCounts::default()
    };
    assert_eq!(counts, three);
    let job = client.job_get(first.id).await.unwrap();
    assert_eq!(
        (job.status, job.payload.as_str()),
        (JobStatus::Queued.into(), "\"ada\"")
    );
    let cancelled = client.job_cancel(more[0].id).await.unwrap();
    assert_eq!(cancelled.status, JobStatus::Failed);
    let failed = client
        .job_list(name, Some(JobStatus::Failed))
        .all()
        .await
        .unwrap();
    assert_eq!(failed, [cancelled]);
    assert_eq!(client.job_list_all(None).all().await.unwrap().len(), 3);

    assert_eq!(client.job_limit().await.unwrap(), None);
    client.job_limit_set(Some(9)).await.unwrap();
    assert_eq!(client.job_limit().await.unwrap(), Some(9));
}

async fn job_is_claimed_renewed_and_finished_with_progress(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = server.worker_client().await;
    let new = NewJob::new("welcome", JsonText::of("ada").unwrap());
    let id = client.job_enqueue(QUEUE, &new).await.unwrap().id;
    let claim = ClaimOptions {
        worker: "w".to_owned(),
        max: 5,
        lease_ms: Some(60_000),
        wait_ms: 1_000,
    };
    let claimed = client.job_claim(QUEUE, &claim).await.unwrap();
    let job = &claimed.jobs[0];
    assert_eq!((job.id, job.attempt, job.lease_ms), (id, 1, 60_000));
    let renew = LeaseRenewal {
        worker: "w".to_owned(),
        claims: vec![leasehold_client::api::job::JobRef {
            id,
            token: job.token,
        }],
        lease_ms: 60_000,
    };
    assert_eq!(client.job_renew(&renew).await.unwrap().held, [id]);
    let progress = ProgressReport {
        worker: "w".to_owned(),
        id,
        token: job.token,
        progress: JsonText::of(&50).unwrap(),
    };
    assert!(client.job_progress(&progress).await.unwrap());
    let finish = FinishBatch {
        worker: "w".to_owned(),
        finishes: vec![Finish {
            id,
            token: job.token,
            outcome: JobOutcome::Completed,
            result: Some(JsonText::of("sent").unwrap()),
            error: None,
            retry: None,
            after_ms: None,
        }],
    };
    let finished = client.job_finish(&finish).await.unwrap();
    assert_eq!(finished.finished[0].state, FinishState::Completed);
    assert!(!client.job_progress(&progress).await.unwrap());
    let job = client.job_get(id).await.unwrap();
    assert_eq!(job.result.unwrap().as_str(), "\"sent\"");
}

async fn lists_are_read_to_the_last_page(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let jobs = vec![NewJob::new("a", JsonText::default()); 25];
    let jobs = server
        .client
        .job_enqueue_many(QUEUE, &NewJobs { jobs })
        .await;
    let mut ids: Vec<i64> = jobs.unwrap().iter().map(|job| job.id.0).collect();
    ids.reverse();
    let list = server.client.job_list(QUEUE, None).limit(10);
    let page = list.page(None).await.unwrap();
    assert_eq!(page.items.len(), 10);
    let page = list.page(page.next.as_deref()).await.unwrap();
    assert_eq!(page.items[0].id.0, ids[10]);
    let listed: Vec<i64> = list
        .stream()
        .map_ok(|job| job.id.0)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(listed, ids);
}

async fn server_info_calls_answer(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = &server.client;
    client.healthy().await.unwrap();
    client.ready().await.unwrap();
    assert_eq!(client.lock_list().await.unwrap(), []);
    assert_eq!(client.instance_list().await.unwrap(), []);
    let overview = client.overview().await.unwrap();
    assert_eq!((overview.workspaces, overview.busiest), (0, Vec::new()));
    assert_eq!(overview.engine.state, EngineHealth::None);
    assert!(
        client
            .openapi()
            .await
            .unwrap()
            .contains("\"openapi\":\"3.1")
    );
    let metrics = client.metrics().await.unwrap();
    assert!(metrics.contains("leasehold_http_requests"), "{metrics}");
    server.stop.cancel();
    let stopping = client.ready().await.unwrap_err();
    assert!(stopping.is_retryable());
}
