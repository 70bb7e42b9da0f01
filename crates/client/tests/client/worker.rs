//! The worker over HTTP: the same handlers and guarantees as with a store.

use crate::WAIT_TIMEOUT;
use crate::counting_server::{CountingServer, QUEUE, until};
use leasehold_client::api::job::{Job, NewJob, NewJobs};
use leasehold_client::api::queue::{Backoff, QueueChange};
use leasehold_client::{Client, HttpSource};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use leasehold_worker::{JobContext, JobError, Outcome, ProgressResult, Worker, WorkerBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};

on_both!(
    http_worker_handles_all_outcomes,
    job_enqueued_while_the_worker_sleeps_starts_at_once,
    idle_worker_makes_one_call_and_waits,
    one_worker_runs_jobs_of_several_queues,
    lost_lease_cancels_the_handler,
    leases_are_renewed,
    drain_returns_prefetched_jobs_and_ends_at_once,
    worker_stopped_while_waiting_leaves_no_lease,
    worker_resumes_after_a_server_outage,
);

const NEVER: Duration = Duration::from_secs(3600);
/// Less than a claim waits at the server, so that only a notification can end the wait; generous for a slow machine.
const AT_ONCE: Duration = Duration::from_secs(20);

fn worker(client: Client) -> WorkerBuilder {
    Worker::builder(Arc::new(HttpSource::new(client)))
        .queue(QUEUE)
        .poll_interval(NEVER)
}

async fn enqueue(server: &CountingServer, queue: &str, kind: &str, count: usize) -> Vec<JobId> {
    let job = |number: usize| NewJob::new(kind, JsonText::of(&number).unwrap());
    let jobs = (0..count).map(job).collect();
    let jobs = server
        .client
        .job_enqueue_many(queue, &NewJobs { jobs })
        .await;
    jobs.unwrap().iter().map(|job| job.id).collect()
}

async fn until_is(server: &CountingServer, id: JobId, status: JobStatus) -> Job {
    let what = format!("job {id} is {status}");
    let job = async || server.client.job_get(id).await.unwrap();
    until(&what, async || job().await.status == status).await;
    job().await
}

async fn http_worker_handles_all_outcomes(on: BackendKind) {
    let server = CountingServer::new(on).await;
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
    server.client.queue_update(QUEUE, &change).await.unwrap();
    let snoozes = Arc::new(AtomicUsize::new(0));
    let handler = move |payload: Value, job: JobContext| {
        let snoozes = snoozes.clone();
        async move {
            match payload.as_str().unwrap() {
                "completes" => {
                    assert_eq!(
                        job.progress(&json!({"at": 1})).await?,
                        ProgressResult::Saved
                    );
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
    let started = worker(server.worker_client().await)
        .handler("do", handler)
        .build()
        .unwrap()
        .start();
    let mut ids = Vec::new();
    for what in ["completes", "fails", "snoozes", "panics"] {
        let new = NewJob::new("do", JsonText::of(what).unwrap());
        ids.push(server.client.job_enqueue(QUEUE, &new).await.unwrap().id);
    }
    let completed = until_is(&server, ids[0], JobStatus::Completed).await;
    assert_eq!(completed.result.unwrap().as_str(), r#"{"attempt":1}"#);
    let failed = until_is(&server, ids[1], JobStatus::Failed).await;
    assert_eq!(
        (failed.attempts, failed.last_error.as_deref()),
        (2, Some("no route"))
    );
    until_is(&server, ids[2], JobStatus::Completed).await;
    let panicked = until_is(&server, ids[3], JobStatus::Failed).await;
    assert!(panicked.last_error.unwrap().contains("out of cheese"));
    let stats = started.stop().await;
    assert_eq!((stats.completed, stats.failed, stats.retried), (2, 2, 2));
    assert_eq!((stats.snoozed, stats.panicked, stats.lost), (1, 2, 0));
}

fn quick(client: Client) -> WorkerBuilder {
    worker(client).handler("quick", async |_: Value, _: JobContext| Ok(()))
}

async fn job_enqueued_while_the_worker_sleeps_starts_at_once(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let started = quick(server.worker_client().await).build().unwrap().start();
    for _ in 0..5 {
        server.until_waiting().await;
        let begun = Instant::now();
        let ids = enqueue(&server, QUEUE, "quick", 1).await;
        until_is(&server, ids[0], JobStatus::Completed).await;
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    }
    assert_eq!(started.stop().await.completed, 5);
}

async fn idle_worker_makes_one_call_and_waits(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = server.worker_client().await;
    let idle = quick(client).poll_interval(Duration::from_millis(10));
    let started = idle.build().unwrap().start();
    server.until_waiting().await;
    let before = server.calls();
    until("the worker has polled often", async || {
        started.stats().polls > 20
    })
    .await;
    assert_eq!(server.calls(), before);
    started.stop().await;
}

async fn one_worker_runs_jobs_of_several_queues(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let queues: Vec<String> = (0..3).map(|n| format!("queue-{n}")).collect();
    let builder = Worker::builder(Arc::new(HttpSource::new(server.client.clone())));
    let builder = queues
        .iter()
        .fold(builder, |builder, queue| builder.queue(queue));
    let builder = builder.handler("quick", async |_: Value, _: JobContext| Ok(()));
    let started = builder.poll_interval(NEVER).build().unwrap().start();
    for round in 0..3 {
        until("claims wait for all queues", async || {
            server.state.waiting_claims() == 3
        })
        .await;
        let mut ids = Vec::new();
        for queue in &queues[round..] {
            ids.extend(enqueue(&server, queue, "quick", 5).await);
        }
        for id in ids {
            until_is(&server, id, JobStatus::Completed).await;
        }
    }
    assert_eq!(started.stop().await.completed, 30);
}

/// Notifies when it is dropped.
struct DropSignal(Arc<Notify>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

async fn lost_lease_cancels_the_handler(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let (begun, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, stops) = (begun.clone(), stopped.clone());
    let handler = move |_: Value, _: JobContext| {
        let stops = DropSignal(stops.clone());
        begins.notify_one();
        async move {
            let _signal = stops;
            std::future::pending::<()>().await;
            Ok("too late")
        }
    };
    let started = worker(server.worker_client().await)
        .lease(Duration::from_secs(6))
        .handler("do", handler)
        .build()
        .unwrap()
        .start();
    let id = enqueue(&server, QUEUE, "do", 1).await[0];
    begun.notified().await;
    // Ends the lease in the store without the worker's knowledge.
    let held = server.store.job_get(id).await.unwrap().unwrap();
    let end = leasehold_core::job::JobFinish {
        claim: leasehold_core::job::JobRef {
            job: id,
            token: held.token,
        },
        end: leasehold_core::job::JobEnd::Completed { result: None },
    };
    let owner = held.claimed_by.unwrap();
    server.store.job_finish(&owner, &[end]).await.unwrap();
    stopped.notified().await;
    let stats = started.stop().await;
    assert_eq!((stats.lost, stats.completed), (1, 0));
    assert_eq!(server.client.job_get(id).await.unwrap().result, None);
}

async fn leases_are_renewed(on: BackendKind) {
    let server = CountingServer::new(on).await;
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
    let started = worker(server.worker_client().await)
        .lease(Duration::from_secs(6))
        .handler("do", handler)
        .build()
        .unwrap()
        .start();
    let id = enqueue(&server, QUEUE, "do", 1).await[0];
    wait.acquire().await.unwrap().forget();
    let first = server.client.job_get(id).await.unwrap().lease_expires_at;
    until("the lease was renewed twice", async || {
        let now = server.store.now().await.unwrap();
        first.unwrap() < now
    })
    .await;
    let job = server.client.job_get(id).await.unwrap();
    assert_eq!((job.status, job.attempts), (JobStatus::Running.into(), 1));
    go.add_permits(1);
    until_is(&server, id, JobStatus::Completed).await;
    assert_eq!(started.stop().await.lost, 0);
}

async fn drain_returns_prefetched_jobs_and_ends_at_once(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let handler = move |_: Value, job: JobContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            job.stopping().await;
            Ok(())
        }
    };
    let ids = enqueue(&server, QUEUE, "do", 6).await;
    let started = worker(server.worker_client().await)
        .concurrency(2)
        .prefetch(8)
        .prefetch_timeout(NEVER)
        .handler("do", handler)
        .build()
        .unwrap()
        .start();
    until("all are claimed", async || started.stats().claimed == 6).await;
    until("two have started", async || {
        begun.load(Ordering::SeqCst) == 2
    })
    .await;
    let stats = tokio::time::timeout(WAIT_TIMEOUT, started.stop())
        .await
        .unwrap();
    assert_eq!((stats.completed, stats.returned), (2, 4));
    assert_eq!((stats.lost, stats.unwritten), (0, 0));
    for id in &ids[2..] {
        let job = server.client.job_get(*id).await.unwrap();
        assert_eq!((job.status, job.attempts), (JobStatus::Queued.into(), 0));
    }
}

async fn worker_stopped_while_waiting_leaves_no_lease(on: BackendKind) {
    let server = CountingServer::new(on).await;
    for _ in 0..5 {
        let started = quick(server.worker_client().await).build().unwrap().start();
        server.until_waiting().await;
        let stopping = tokio::time::timeout(WAIT_TIMEOUT, started.stop());
        let (stats, ids) = tokio::join!(stopping, enqueue(&server, QUEUE, "quick", 1));
        assert_eq!(stats.unwrap().lost, 0);
        until("no claim waits", async || {
            server.state.waiting_claims() == 0
        })
        .await;
        let id = ids[0];
        until("the job is done, or free", async || {
            server.client.job_get(id).await.unwrap().status != JobStatus::Running
        })
        .await;
        let _ = server.client.job_cancel(id).await;
    }
}

async fn worker_resumes_after_a_server_outage(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let proxy = FaultProxy::to(&server.address.to_string()).await;
    let queues = vec![QUEUE.to_owned()];
    let scope = leasehold_core::key::KeyScope::Worker { queues };
    let key = server.key(scope).await;
    let client = Client::new(&format!("http://{}", proxy.address()), &key).unwrap();
    let started = quick(client).build().unwrap().start();
    server.until_waiting().await;
    proxy.refuse();
    proxy.cut();
    until("no claim waits", async || {
        server.state.waiting_claims() == 0
    })
    .await;
    let ids = enqueue(&server, QUEUE, "quick", 20).await;
    proxy.accept_again();
    for id in ids {
        until_is(&server, id, JobStatus::Completed).await;
    }
    assert_eq!(started.stop().await.completed, 20);
}
