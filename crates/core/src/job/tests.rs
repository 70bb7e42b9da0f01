//! Tests of the state machine of jobs, and that the documented diagram matches it.

use super::*;
use JobStatus::*;
use proptest::prelude::*;

#[test]
fn the_allowed_transitions_are_exactly_these() {
    let mut allowed = Vec::new();
    for from in JobStatus::ALL {
        for event in JobEvent::ALL {
            if let Ok(to) = from.after(event) {
                allowed.push((from, event, to));
            }
        }
    }
    assert_eq!(
        allowed,
        [
            (Queued, JobEvent::Claim, Running),
            (Queued, JobEvent::Cancel, Failed),
            (Running, JobEvent::Complete, Completed),
            (Running, JobEvent::Retry, Queued),
            (Running, JobEvent::Fail, Failed),
            (Running, JobEvent::Snooze, Queued),
            (Running, JobEvent::Return, Queued),
            (Running, JobEvent::Expire, Queued),
            (Running, JobEvent::Exhaust, Failed),
        ]
    );
}

#[test]
fn finished_job_allows_no_event() {
    for status in JobStatus::ALL.into_iter().filter(|s| s.is_finished()) {
        for event in JobEvent::ALL {
            let illegal = IllegalJobTransition { status, event };
            assert_eq!(status.after(event), Err(illegal));
        }
    }
}

#[test]
fn events_that_require_the_lease_are_allowed_only_while_running() {
    for event in JobEvent::ALL.into_iter().filter(|e| e.requires_lease()) {
        for status in JobStatus::ALL {
            assert_eq!(status.after(event).is_ok(), status == Running, "{event:?}");
        }
    }
}

#[test]
fn only_snooze_and_return_refund_the_attempt() {
    let events = JobEvent::ALL.into_iter();
    let refunded: Vec<JobEvent> = events.filter(|e| e.refunds_attempt()).collect();
    assert_eq!(refunded, [JobEvent::Snooze, JobEvent::Return]);
    for event in refunded {
        assert_eq!(Running.after(event), Ok(Queued));
    }
}

#[test]
fn illegal_event_names_status_and_event() {
    let illegal = Queued.after(JobEvent::Complete).unwrap_err();
    assert_eq!(illegal.to_string(), "a queued job does not allow Complete");
}

#[test]
fn documented_state_diagram_matches_the_code() {
    let mut diagram = String::from("stateDiagram-v2\n    [*] --> queued: Enqueue\n");
    for from in JobStatus::ALL {
        for event in JobEvent::ALL {
            if let Ok(to) = from.after(event) {
                diagram.push_str(&format!("    {from} --> {to}: {event:?}\n"));
            }
        }
    }
    let page = include_str!("../../../../docs/states.md");
    assert!(
        page.contains(&diagram),
        "docs/states.md must contain:\n{diagram}"
    );
}

#[test]
fn names_parse_back() {
    for status in JobStatus::ALL {
        assert_eq!(status.as_str().parse(), Ok(status));
        let json = serde_json::to_value(status).unwrap();
        assert_eq!(json, status.as_str());
    }
    let unknown: Result<JobStatus, _> = "QUEUED".parse();
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "unknown job status `QUEUED`"
    );
    assert_eq!("42".parse(), Ok(JobId(42)));
    assert_eq!(JobId(42).to_string(), "42");
}

#[test]
fn the_last_attempt_is_not_followed_by_another() {
    let retry = JobRetry {
        max_attempts: 3,
        backoff: Backoff {
            jitter: 0.0,
            ..Backoff::default()
        },
    };
    let waits: Vec<Option<u64>> = (1..=4)
        .map(|attempt| retry.after_failure(attempt, 0.0).map(|w| w.as_secs()))
        .collect();
    assert_eq!(waits, [Some(1), Some(2), None, None]);
    assert_eq!(JobRetry::default().max_attempts, 25);
}

proptest! {
    #[test]
    fn job_is_retried_exactly_while_attempts_are_left(max_attempts: u32, attempt in 1u32.., unit in 0.0..=1.0f64) {
        let retry = JobRetry { max_attempts, ..JobRetry::default() };
        let wait = retry.after_failure(attempt, unit);
        prop_assert_eq!(wait.is_some(), attempt < max_attempts);
        prop_assert!(wait.is_none_or(|wait| wait <= retry.backoff.max));
    }

    #[test]
    fn jitter_is_between_zero_and_one_and_deterministic(job: i64, token: i64) {
        let unit = jitter(JobId(job), token);
        prop_assert!((0.0..1.0).contains(&unit));
        prop_assert_eq!(unit, jitter(JobId(job), token));
    }

    #[test]
    fn any_sequence_of_events_ends_in_a_known_status(events in proptest::collection::vec(0..JobEvent::ALL.len(), 0..40)) {
        let mut status = Queued;
        for event in events {
            if let Ok(next) = status.after(JobEvent::ALL[event]) {
                prop_assert!(!status.is_finished());
                status = next;
            }
        }
        prop_assert!(JobStatus::ALL.contains(&status));
    }
}

#[test]
fn jitter_of_consecutive_jobs_is_spread() {
    let units: Vec<f64> = (0..1_000).map(|n| jitter(JobId(n), 1)).collect();
    let mean = units.iter().sum::<f64>() / 1_000.0;
    assert!((0.4..0.6).contains(&mean), "{mean}");
    let low = units.iter().filter(|unit| **unit < 0.1).count();
    assert!((50..150).contains(&low), "{low}");
    let next: Vec<f64> = (0..1_000).map(|n| jitter(JobId(n), 2)).collect();
    assert!(units.iter().zip(&next).all(|(a, b)| a != b));
}
