//! A worker over HTTP: the same handlers and the same promises as beside a store, however far away that is.

use crate::PATIENCE;
use crate::counting_server::{CountingServer, QUEUE, until};
use leasehold_client::api::job::{Job, NewJob, NewJobs};
use leasehold_client::api::queue::{Backoff, QueueChange};
use leasehold_client::{Client, HttpSource};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use leasehold_worker::{JobContext, JobError, Outcome, Progress, Worker, WorkerBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};

on_both!(
    jobs_are_completed_failed_snoozed_and_panicked_as_beside_a_store,
    a_job_that_comes_while_the_worker_sleeps_is_begun_at_once,
    an_idle_worker_makes_one_call_and_waits,
    jobs_of_several_queues_come_to_one_worker,
    a_lost_lease_stops_its_handler,
    leases_are_kept_alive,
    a_drain_gives_back_what_was_not_started_and_ends_at_once,
    a_worker_that_stops_while_it_waits_leaves_nothing_leased,
    a_worker_goes_on_when_its_server_was_away,
);

const NEVER: Duration = Duration::from_secs(3600);

fn worker(client: Client) -> WorkerBuilder {
    Worker::of(Arc::new(HttpSource::new(client)))
        .queue(QUEUE)
        .poll_interval(NEVER)
}

async fn enqueue(ground: &CountingServer, queue: &str, kind: &str, count: usize) -> Vec<JobId> {
    let job = |number: usize| NewJob::new(kind, JsonText::of(&number).unwrap());
    let jobs = (0..count).map(job).collect();
    let jobs = ground
        .client
        .job_enqueue_many(queue, &NewJobs { jobs })
        .await;
    jobs.unwrap().iter().map(|job| job.id).collect()
}

async fn until_is(ground: &CountingServer, id: JobId, status: JobStatus) -> Job {
    let what = format!("job {id} is {status}");
    let job = async || ground.client.job_get(id).await.unwrap();
    until(&what, async || job().await.status == status).await;
    job().await
}

async fn jobs_are_completed_failed_snoozed_and_panicked_as_beside_a_store(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let change = QueueChange {
        max_attempts: Some(2),
        backoff: Some(Backoff {
            base_ms: 1,
            factor: 1.0,
            max_ms: 1,
            jitter: 0.0,
        }),
        ..QueueChange::default()
    };
    ground.client.queue_update(QUEUE, &change).await.unwrap();
    let snoozes = Arc::new(AtomicUsize::new(0));
    let handler = move |payload: Value, job: JobContext| {
        let snoozes = snoozes.clone();
        async move {
            match payload.as_str().unwrap() {
                "completes" => {
                    assert_eq!(job.progress(&json!({"at": 1})).await?, Progress::Kept);
                    Outcome::done(&json!({"attempt": job.attempt()}))
                }
                "fails" => Err(JobError::new("no route")),
                "snoozes" if snoozes.fetch_add(1, Ordering::SeqCst) == 0 => {
                    Ok(Outcome::snooze(Duration::from_millis(1)))
                }
                "snoozes" => Outcome::done(&json!("later")),
                _ => panic!("out of cheese"),
            }
        }
    };
    let started = worker(ground.worker_client().await)
        .handler("do", handler)
        .build()
        .unwrap()
        .start();
    let mut ids = Vec::new();
    for what in ["completes", "fails", "snoozes", "panics"] {
        let new = NewJob::new("do", JsonText::of(what).unwrap());
        ids.push(ground.client.job_enqueue(QUEUE, &new).await.unwrap().id);
    }
    let completed = until_is(&ground, ids[0], JobStatus::Completed).await;
    assert_eq!(completed.result.unwrap().as_str(), r#"{"attempt":1}"#);
    let failed = until_is(&ground, ids[1], JobStatus::Failed).await;
    assert_eq!(
        (failed.attempts, failed.last_error.as_deref()),
        (2, Some("no route"))
    );
    until_is(&ground, ids[2], JobStatus::Completed).await;
    let panicked = until_is(&ground, ids[3], JobStatus::Failed).await;
    assert!(panicked.last_error.unwrap().contains("out of cheese"));
    let stats = started.stop().await;
    assert_eq!((stats.completed, stats.failed, stats.retried), (2, 2, 2));
    assert_eq!((stats.snoozed, stats.panicked, stats.lost), (1, 2, 0));
}

fn quick(client: Client) -> WorkerBuilder {
    worker(client).handler("quick", async |_: Value, _: JobContext| Ok(()))
}

async fn a_job_that_comes_while_the_worker_sleeps_is_begun_at_once(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let started = quick(ground.worker_client().await).build().unwrap().start();
    for _ in 0..5 {
        ground.until_waiting().await;
        let begun = Instant::now();
        let ids = enqueue(&ground, QUEUE, "quick", 1).await;
        until_is(&ground, ids[0], JobStatus::Completed).await;
        assert!(begun.elapsed() < PATIENCE / 3, "{:?}", begun.elapsed());
    }
    assert_eq!(started.stop().await.completed, 5);
}

async fn an_idle_worker_makes_one_call_and_waits(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let client = ground.worker_client().await;
    let idle = quick(client).poll_interval(Duration::from_millis(10));
    let started = idle.build().unwrap().start();
    ground.until_waiting().await;
    let before = ground.calls();
    until("it has looked often", async || started.stats().looks > 20).await;
    assert_eq!(ground.calls(), before);
    started.stop().await;
}

async fn jobs_of_several_queues_come_to_one_worker(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let queues: Vec<String> = (0..3).map(|n| format!("queue-{n}")).collect();
    let builder = Worker::of(Arc::new(HttpSource::new(ground.client.clone())));
    let builder = queues
        .iter()
        .fold(builder, |builder, queue| builder.queue(queue));
    let builder = builder.handler("quick", async |_: Value, _: JobContext| Ok(()));
    let started = builder.poll_interval(NEVER).build().unwrap().start();
    for round in 0..3 {
        until("it waits for all", async || {
            ground.state.waiting_claims() == 3
        })
        .await;
        let mut ids = Vec::new();
        for queue in &queues[round..] {
            ids.extend(enqueue(&ground, queue, "quick", 5).await);
        }
        for id in ids {
            until_is(&ground, id, JobStatus::Completed).await;
        }
    }
    assert_eq!(started.stop().await.completed, 30);
}

/// Tells when it is dropped.
struct Told(Arc<Notify>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

async fn a_lost_lease_stops_its_handler(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let (begun, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, stops) = (begun.clone(), stopped.clone());
    let handler = move |_: Value, _: JobContext| {
        let stops = Told(stops.clone());
        begins.notify_one();
        async move {
            let _until_dropped = stops;
            std::future::pending::<()>().await;
            Ok("too late")
        }
    };
    let started = worker(ground.worker_client().await)
        .lease(Duration::from_millis(600))
        .handler("do", handler)
        .build()
        .unwrap()
        .start();
    let id = enqueue(&ground, QUEUE, "do", 1).await[0];
    begun.notified().await;
    // Another process gives it to nobody: the lease is ended behind the worker's back.
    let held = ground.store.job_get(id).await.unwrap().unwrap();
    let end = leasehold_core::job::JobFinish {
        claim: leasehold_core::job::JobRef {
            job: id,
            token: held.token,
        },
        end: leasehold_core::job::JobEnd::Completed { result: None },
    };
    let owner = held.claimed_by.unwrap();
    ground.store.job_finish(&owner, &[end]).await.unwrap();
    stopped.notified().await;
    let stats = started.stop().await;
    assert_eq!((stats.lost, stats.completed), (1, 0));
    assert_eq!(ground.client.job_get(id).await.unwrap().result, None);
}

async fn leases_are_kept_alive(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let (go, wait) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (goes, waits) = (go.clone(), wait.clone());
    let handler = move |_: Value, _: JobContext| {
        let (goes, waits) = (goes.clone(), waits.clone());
        async move {
            waits.add_permits(1);
            goes.acquire().await?.forget();
            Ok(())
        }
    };
    let started = worker(ground.worker_client().await)
        .lease(Duration::from_millis(900))
        .handler("do", handler)
        .build()
        .unwrap()
        .start();
    let id = enqueue(&ground, QUEUE, "do", 1).await[0];
    wait.acquire().await.unwrap().forget();
    let first = ground.client.job_get(id).await.unwrap().lease_expires_at;
    until("the lease was renewed twice", async || {
        let now = ground.store.now().await.unwrap();
        first.unwrap() < now
    })
    .await;
    let job = ground.client.job_get(id).await.unwrap();
    assert_eq!((job.status, job.attempts), (JobStatus::Running, 1));
    go.add_permits(1);
    until_is(&ground, id, JobStatus::Completed).await;
    assert_eq!(started.stop().await.lost, 0);
}

async fn a_drain_gives_back_what_was_not_started_and_ends_at_once(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let handler = move |_: Value, job: JobContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            job.stopping().await;
            Ok(())
        }
    };
    let ids = enqueue(&ground, QUEUE, "do", 6).await;
    let started = worker(ground.worker_client().await)
        .concurrency(2)
        .prefetch(8)
        .prefetch_patience(NEVER)
        .handler("do", handler)
        .build()
        .unwrap()
        .start();
    until("all are claimed", async || started.stats().claimed == 6).await;
    until("two have begun", async || begun.load(Ordering::SeqCst) == 2).await;
    let stats = tokio::time::timeout(PATIENCE, started.stop())
        .await
        .unwrap();
    assert_eq!((stats.completed, stats.given_back), (2, 4));
    assert_eq!((stats.lost, stats.unwritten), (0, 0));
    for id in &ids[2..] {
        let job = ground.client.job_get(*id).await.unwrap();
        assert_eq!((job.status, job.attempts), (JobStatus::Queued, 0));
    }
}

async fn a_worker_that_stops_while_it_waits_leaves_nothing_leased(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    for _ in 0..5 {
        let started = quick(ground.worker_client().await).build().unwrap().start();
        ground.until_waiting().await;
        let stopping = tokio::time::timeout(PATIENCE, started.stop());
        let (stats, ids) = tokio::join!(stopping, enqueue(&ground, QUEUE, "quick", 1));
        assert_eq!(stats.unwrap().lost, 0);
        until("nobody waits", async || ground.state.waiting_claims() == 0).await;
        let id = ids[0];
        until("the job is done, or free", async || {
            ground.client.job_get(id).await.unwrap().status != JobStatus::Running
        })
        .await;
        let _ = ground.client.job_cancel(id).await;
    }
}

async fn a_worker_goes_on_when_its_server_was_away(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let proxy = FaultProxy::to(&ground.address.to_string()).await;
    let queues = vec![QUEUE.to_owned()];
    let scope = leasehold_core::key::KeyScope::Worker { queues };
    let key = ground.key(scope).await;
    let client = Client::new(&format!("http://{}", proxy.address()), &key).unwrap();
    let started = quick(client).build().unwrap().start();
    ground.until_waiting().await;
    proxy.refuse();
    proxy.cut();
    until("nobody waits", async || ground.state.waiting_claims() == 0).await;
    let ids = enqueue(&ground, QUEUE, "quick", 20).await;
    proxy.accept_again();
    for id in ids {
        until_is(&ground, id, JobStatus::Completed).await;
    }
    assert_eq!(started.stop().await.completed, 20);
}
