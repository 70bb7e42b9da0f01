//! Enqueueing jobs.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{QUEUE, job_ids, new_job, payload};
use leasehold_core::job::{JobRetry, JobStatus};
use leasehold_core::limits::ENQUEUE_MAX_JOBS;
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, JsonText};
use leasehold_store::ErrorKind;
use leasehold_store::job::{Dedup, Job, JobFilter, JobStart, NewJob};
use std::collections::BTreeSet;
use std::time::Duration;

/// A job with all options is read back with all of them.
pub async fn is_read_back_as_enqueued(f: Fixture) {
    let own = Backoff {
        base: Duration::from_millis(100),
        factor: 3.0,
        max: Duration::from_secs(5),
        jitter: 0.5,
    };
    let new = NewJob {
        queue: "reports".into(),
        kind: "render".into(),
        group: Some("käse".into()),
        payload: JsonText::parse(" {\"b\":1.50, \"a\":[1,2]} ").expect("valid JSON"),
        priority: -7,
        start: JobStart::At(f.now() + Duration::from_secs(60)),
        max_attempts: Some(4),
        backoff: Some(own),
        timeout: Some(Duration::from_millis(1_250)),
        dedup: Some(Dedup {
            key: "käse/1".into(),
            window: None,
        }),
        trace_context: Some("00-abc-def-01".into()),
    };
    let id = f.enqueue_job(new.clone()).await;
    let expected = Job {
        id,
        queue: new.queue,
        kind: new.kind,
        group: new.group,
        status: JobStatus::Queued.into(),
        priority: -7,
        payload: new.payload,
        run_at: f.now() + Duration::from_secs(60),
        attempts: 0,
        retry: JobRetry {
            max_attempts: 4,
            backoff: own,
        },
        timeout: new.timeout,
        dedup_key: Some("käse/1".into()),
        claimed_by: None,
        claimed_at: None,
        lease_expires_at: None,
        token: 0,
        progress: None,
        result: None,
        last_error: None,
        trace_context: new.trace_context,
        created_at: f.now(),
        execution: None,
        finished_at: None,
    };
    assert_eq!(f.job(id).await, expected);
    let listed = f.all_jobs(&JobFilter::default(), 10).await;
    assert_eq!(listed, [expected]);
}

/// A job without options has the settings of its queue and is due at once.
pub async fn plain_job_has_the_settings_of_its_queue(f: Fixture) {
    let id = f.enqueue_jobs(1).await[0];
    let job = f.job(id).await;
    assert_eq!((job.run_at, job.created_at), (f.now(), f.now()));
    assert_eq!((job.retry, job.timeout), (JobRetry::default(), None));
    assert_eq!((job.priority, job.dedup_key), (0, None));
    assert_eq!(job.status, JobStatus::Queued);
}

/// A payload is stored exactly, whatever JSON it is.
pub async fn payload_is_stored_exactly(f: Fixture) {
    let texts = [
        "null".to_owned(),
        "0.10".into(),
        "[]".into(),
        r#"{"z":1,"a":{"z":1,"z":2},"e":"\u00e9é\n"}"#.into(),
        "12345678901234567890123".into(),
        format!("\"{}\"", "x".repeat(200_000)),
    ];
    let new = texts.iter().map(|text| NewJob {
        payload: JsonText::parse(text).expect("valid JSON"),
        ..new_job()
    });
    let new: Vec<NewJob> = new.collect();
    let ids = f.enqueue_new_jobs(&new).await;
    for (id, new) in ids.iter().zip(&new) {
        assert!(f.job(*id).await.payload == new.payload);
    }
    for (claimed, new) in f.claim_jobs(10).await.iter().zip(&new) {
        assert!(claimed.payload == new.payload);
    }
}

/// A start time in the past, or a delay of zero, means now.
pub async fn past_start_time_means_now(f: Fixture) {
    let starts = [
        JobStart::Now,
        JobStart::At(f.now() - Duration::from_secs(60)),
        JobStart::In(Duration::ZERO),
        JobStart::At(f.now()),
    ];
    let new = starts.map(|start| NewJob { start, ..new_job() });
    let ids = f.enqueue_new_jobs(&new).await;
    for id in &ids {
        let job = f.job(*id).await;
        assert_eq!(job.run_at, job.created_at);
    }
    assert_eq!(f.job_counts().await.ready, 4);
    assert_eq!(job_ids(&f.claim_jobs(9).await), ids);
}

/// A delay counts from the enqueue, by the store's clock.
pub async fn delay_counts_from_the_enqueue(f: Fixture) {
    let new = NewJob {
        start: JobStart::In(Duration::from_millis(1_500)),
        ..new_job()
    };
    let id = f.enqueue_job(new).await;
    let due = f.now() + Duration::from_millis(1_500);
    assert_eq!(f.job(id).await.run_at, due);
    f.advance(1);
    assert_eq!(f.claim_jobs(1).await, []);
    f.advance(1);
    assert_eq!(f.claim_job().await.id, id);
}

/// Outcomes are in the order of the call, over several queues, and ids rise in that order.
pub async fn outcomes_are_in_order(f: Fixture) {
    let new: Vec<NewJob> = (0..9)
        .map(|n| NewJob {
            queue: ["b", "a", "c"][n % 3].into(),
            priority: (n % 2) as i16,
            payload: payload(n as u32),
            ..new_job()
        })
        .collect();
    let mut ids = f.enqueue_new_jobs(&new).await;
    ids.extend(f.enqueue_new_jobs(&new).await);
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    for (id, new) in ids.iter().zip(new.iter().chain(&new)) {
        let job = f.job(*id).await;
        assert!(job.queue == new.queue && job.payload == new.payload);
        assert_eq!(job.priority, new.priority);
    }
}

/// An empty call does nothing.
pub async fn empty_call_does_nothing(f: Fixture) {
    assert_eq!(f.try_enqueue_jobs(&[]).await, []);
    assert_eq!(f.all_jobs(&JobFilter::default(), 10).await, []);
}

/// If one job of a call cannot be inserted, none is, and no key is reserved for the others.
pub async fn is_all_or_none(f: Fixture) {
    let job_with_key = |key: String| NewJob {
        dedup: Some(Dedup { key, window: None }),
        ..new_job()
    };
    let elsewhere = NewJob {
        queue: "reports".into(),
        start: JobStart::In(Duration::from_secs(60)),
        ..new_job()
    };
    let good = [
        new_job(),
        job_with_key("a".into()),
        elsewhere,
        job_with_key("b".into()),
        new_job(),
    ];
    for place in 0..=good.len() {
        let mut new = good.to_vec();
        new.insert(place, job_with_key("k".repeat(256)));
        let error = f.store.job_enqueue(&new).await;
        let kind = error.expect_err("the key is too long").kind;
        assert_eq!(kind, ErrorKind::Constraint("job_key_length".into()));
        assert_eq!(f.all_jobs(&JobFilter::default(), 10).await, []);
    }
    let put = ok(f.store.job_enqueue(&good).await);
    assert!(put.iter().all(|job| !job.existing));
    assert_eq!(f.all_jobs(&JobFilter::default(), 10).await.len(), 5);
}

/// One call takes the maximum number of jobs.
pub async fn one_call_takes_the_maximum_number(f: Fixture) {
    // A tenth of the maximum: adapters behave the same from a thousand jobs on.
    let n = ENQUEUE_MAX_JOBS / 10;
    let ids = f.enqueue_jobs(n).await;
    let distinct: BTreeSet<JobId> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), n);
    assert_eq!(f.job_counts().await.ready, n as u64);
    assert_eq!(f.job(ids[n - 1]).await.queue, QUEUE);
}

/// Concurrent enqueues lose no job, and each job is claimed once.
pub async fn concurrent_enqueues_lose_nothing(f: Fixture) {
    let calls = (0..16u32).map(|n| {
        let store = f.store.clone();
        let new: Vec<NewJob> = (0..10)
            .map(|m| NewJob {
                payload: payload(n * 10 + m),
                ..new_job()
            })
            .collect();
        tokio::spawn(async move { ok(store.job_enqueue(&new).await) })
    });
    let mut ids = BTreeSet::new();
    for call in futures::future::join_all(calls).await {
        ids.extend(call.expect("the call did not panic").iter().map(|a| a.id));
    }
    assert_eq!(ids.len(), 160);
    let mut claimed = Vec::new();
    loop {
        let jobs = f.claim_jobs(50).await;
        if jobs.is_empty() {
            break;
        }
        claimed.extend(job_ids(&jobs));
    }
    assert_eq!(claimed.len(), 160);
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), ids);
}
