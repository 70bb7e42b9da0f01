//! Tests of the validation before a job or a change of a queue reaches the store, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use leasehold_core::JsonText;
use leasehold_core::job::JobRetry;
use leasehold_core::limits::ENQUEUE_MAX_JOBS;
use leasehold_core::retry::Backoff;
use leasehold_ops::job::{self, JobOperationError};
use leasehold_store::SchemaStore;
use leasehold_store::job::{Dedup, JobFilter, JobStart, JobStore, NewJob};
use leasehold_store::queue::{QueueChange, QueueStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

async fn store() -> SqliteStore {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    store
}

fn new_job() -> NewJob {
    NewJob::new("mail", "send", JsonText::parse("{\"to\": 7}").unwrap())
}

fn with(change: impl FnOnce(&mut NewJob)) -> NewJob {
    let mut job = new_job();
    change(&mut job);
    job
}

async fn jobs_in(store: &SqliteStore) -> usize {
    let page = leasehold_store::Page::first(10);
    let jobs = store.job_list(&JobFilter::default(), page).await;
    jobs.unwrap().len()
}

#[tokio::test]
async fn valid_jobs_are_enqueued() {
    let store = store().await;
    let everything = with(|job| {
        job.priority = 1000;
        job.start = JobStart::In(366 * DAY);
        job.max_attempts = Some(32_767);
        job.backoff = Some(Backoff::default());
        job.timeout = Some(366 * DAY);
        job.dedup = Some(Dedup {
            key: "k".repeat(255),
            window: Some(366 * DAY),
        });
        job.trace_context = Some("t".repeat(1_024));
        job.queue = "ä".repeat(128);
        job.payload = JsonText::of(&"x".repeat(262_142)).unwrap();
    });
    let answers = job::enqueue(&store, &[new_job(), everything])
        .await
        .unwrap();
    assert!(answers.iter().all(|answer| !answer.existing));
    assert_eq!(jobs_in(&store).await, 2);
}

fn invalid_texts() -> Vec<(NewJob, &'static str)> {
    let text = |text: &str| JsonText::trusted(text.to_owned());
    let nested = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    vec![
        (
            with(|j| j.queue = String::new()),
            "jobs[1].queue must not be empty",
        ),
        (
            with(|j| j.queue = "q".repeat(129)),
            "jobs[1].queue must have at most 128 characters, has 129",
        ),
        (
            with(|j| j.kind = "a\0b".into()),
            "jobs[1].kind must not contain control characters (found U+0000)",
        ),
        (
            with(|j| j.payload = text(&format!("\"{}\"", "x".repeat(262_143)))),
            "jobs[1].payload: must have at most 262144 bytes as JSON, has 262145",
        ),
        (
            with(|j| j.payload = text(&nested)),
            "jobs[1].payload: at /0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0: must not nest deeper than 64 levels",
        ),
        (
            with(|j| j.payload = text(r#"{"a": ["\u0000"]}"#)),
            "jobs[1].payload: at /a/0: must not contain NUL characters",
        ),
        (
            with(|j| j.payload = text("{")),
            "jobs[1].payload: not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            with(|j| j.trace_context = Some("a\nb".into())),
            "jobs[1].trace_context must not contain control characters (found U+000A)",
        ),
        (
            with(|j| {
                j.dedup = Some(Dedup {
                    key: " ".into(),
                    window: None,
                })
            }),
            "jobs[1].dedup.key must not be empty",
        ),
    ]
}

fn invalid_numbers() -> Vec<(NewJob, &'static str)> {
    let backoff = |change: fn(&mut Backoff)| {
        let mut backoff = Backoff::default();
        change(&mut backoff);
        with(|job| job.backoff = Some(backoff))
    };
    vec![
        (
            with(|j| j.priority = -1001),
            "jobs[1].priority must be between -1000 and 1000, not -1001",
        ),
        (
            with(|j| j.max_attempts = Some(0)),
            "jobs[1].max_attempts must be between 1 and 32767, not 0",
        ),
        (
            with(|j| j.max_attempts = Some(32_768)),
            "jobs[1].max_attempts must be between 1 and 32767, not 32768",
        ),
        (
            with(|j| j.timeout = Some(Duration::ZERO)),
            "jobs[1].timeout must be between 1ms and 366 days",
        ),
        (
            with(|j| j.start = JobStart::In(367 * DAY)),
            "jobs[1].start must be between 0s and 366 days",
        ),
        (
            with(|j| {
                j.dedup = Some(Dedup {
                    key: "k".into(),
                    window: Some(Duration::ZERO),
                })
            }),
            "jobs[1].dedup.window must be between 1ms and 366 days",
        ),
        (
            backoff(|b| b.jitter = f64::NAN),
            "jobs[1].backoff.jitter must be between 0 and 1, not NaN",
        ),
        (
            backoff(|b| b.factor = 0.5),
            "jobs[1].backoff.factor must be between 1 and 1000, not 0.5",
        ),
        (
            backoff(|b| b.max = Duration::ZERO),
            "jobs[1].backoff.max must be between 1s and 366 days",
        ),
    ]
}

#[tokio::test]
async fn error_names_the_invalid_field_and_nothing_is_enqueued() {
    let store = store().await;
    for (bad, expected) in invalid_texts().into_iter().chain(invalid_numbers()) {
        let error = job::enqueue(&store, &[new_job(), bad]).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(jobs_in(&store).await, 0);
}

#[tokio::test]
async fn number_of_jobs_per_call_is_bounded() {
    let store = store().await;
    for n in [0, ENQUEUE_MAX_JOBS + 1] {
        let error = job::enqueue(&store, &vec![new_job(); n]).await.unwrap_err();
        let expected = format!("an enqueue call takes 1 to 100000 jobs, not {n}");
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn repeated_deduplication_key_is_not_an_error() {
    let store = store().await;
    let keyed = with(|job| {
        job.dedup = Some(Dedup {
            key: "once".into(),
            window: None,
        })
    });
    let answers = job::enqueue(&store, &[keyed.clone(), keyed]).await.unwrap();
    assert_eq!(answers[0].id, answers[1].id);
    assert!(!answers[0].existing && answers[1].existing);
}

fn retry(max_attempts: u32, jitter: f64) -> Option<JobRetry> {
    let backoff = Backoff {
        jitter,
        ..Backoff::default()
    };
    Some(JobRetry {
        max_attempts,
        backoff,
    })
}

/// Queue names, changes and the expected errors.
fn invalid_changes() -> Vec<(String, QueueChange, &'static str)> {
    let none = QueueChange::default();
    vec![
        (String::new(), none, "name must not be empty"),
        (
            "q".repeat(129),
            none,
            "name must have at most 128 characters, has 129",
        ),
        (
            "mail".to_owned(),
            QueueChange {
                limit: Some(Some(1_000_001)),
                ..none
            },
            "limit must be between 0 and 1000000, not 1000001",
        ),
        (
            "mail".to_owned(),
            QueueChange {
                lease: Some(Duration::from_millis(99)),
                ..none
            },
            "lease must be between 100ms and 1 day",
        ),
        (
            "mail".to_owned(),
            QueueChange {
                retry: retry(0, 0.0),
                ..none
            },
            "max_attempts must be between 1 and 32767, not 0",
        ),
        (
            "mail".to_owned(),
            QueueChange {
                retry: retry(1, 1.5),
                ..none
            },
            "backoff.jitter must be between 0 and 1, not 1.5",
        ),
        (
            "mail".to_owned(),
            QueueChange {
                timeout: Some(Some(Duration::ZERO)),
                ..none
            },
            "timeout must be between 1ms and 366 days",
        ),
    ]
}

#[tokio::test]
async fn changes_of_a_queue_are_validated() {
    let store = store().await;
    let cases = invalid_changes();
    for (name, change, expected) in cases {
        let error = job::update_queue(&store, &name, &change, &leasehold_store::Actor::Local)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(store.queue_get("mail").await.unwrap(), None);
    let good = QueueChange {
        limit: Some(Some(0)),
        lease: Some(DAY),
        timeout: Some(None),
        retry: retry(1, 1.0),
        ..QueueChange::default()
    };
    let queue = job::update_queue(&store, "mail", &good, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    assert_eq!(queue.settings.limit, Some(0));
}

#[tokio::test]
async fn limit_over_all_queues_is_validated() {
    let store = store().await;
    let error = job::set_limit(&store, Some(1_000_001), &leasehold_store::Actor::Local)
        .await
        .unwrap_err();
    assert!(matches!(error, JobOperationError::Number { .. }), "{error}");
    job::set_limit(&store, Some(7), &leasehold_store::Actor::Local)
        .await
        .unwrap();
    assert_eq!(store.job_limit().await.unwrap(), Some(7));
    job::set_limit(&store, None, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    assert_eq!(store.job_limit().await.unwrap(), None);
}
