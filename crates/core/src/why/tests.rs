//! Tests of every reason, their precedence, the further reasons and the estimate.
#![allow(clippy::unwrap_used)]

use super::*;
use uuid::Uuid;

const MINUTE: Duration = Duration::from_secs(60);

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn execution(number: u128) -> ExecutionId {
    Uuid::from_u128(number).into()
}

/// A pending request without obstacles.
fn free() -> Facts {
    Facts {
        status: RequestStatus::Pending.into(),
        now: now(),
        run_at: now(),
        attempt_count: 0,
        last_error: None,
        cancel_requested: false,
        execution: None,
        workspace_exists: true,
        definition_exists: true,
        paused: false,
        limit: 2,
        holders: Vec::new(),
        in_use: 0,
        ahead: Some(Ahead::Exactly(0)),
        typical_duration: None,
        engine: EngineFacts::Healthy,
        pollers: None,
    }
}

fn down() -> EngineFacts {
    EngineFacts::Down {
        error: "no answer".to_owned(),
    }
}

type Change = fn(&mut Facts);

fn with(changes: &[Change]) -> Facts {
    let mut facts = free();
    changes.iter().for_each(|change| change(&mut facts));
    facts
}

/// Every obstacle of a PENDING request, in order of precedence.
fn obstacles_in_order() -> Vec<(Change, Reason)> {
    vec![
        (|f| f.cancel_requested = true, Reason::Cancelling),
        (|f| f.workspace_exists = false, Reason::WorkspaceGone),
        (|f| f.definition_exists = false, Reason::DefinitionGone),
        (|f| f.paused = true, Reason::Paused),
        (
            |f| f.run_at = now() + MINUTE,
            Reason::NotDue {
                until: now() + MINUTE,
            },
        ),
        (
            |f| f.engine = down(),
            Reason::EngineDown {
                error: "no answer".to_owned(),
            },
        ),
        (
            |f| (f.in_use, f.holders) = (2, vec![execution(1), execution(2)]),
            Reason::AtCapacity {
                limit: 2,
                in_use: 2,
                holders: vec![execution(1), execution(2)],
            },
        ),
        (|f| f.ahead = Some(Ahead::Exactly(3)), Reason::InLine),
    ]
}

#[test]
fn single_obstacle_is_the_reason() {
    for (change, reason) in obstacles_in_order() {
        let why = explain(&with(&[change]));
        assert_eq!((why.reason, why.also), (reason, vec![]));
    }
}

#[test]
fn of_two_obstacles_the_first_is_the_reason_and_the_other_is_listed() {
    let all = obstacles_in_order();
    for (at, (first, reason)) in all.iter().enumerate() {
        for (second, other) in &all[at + 1..] {
            let why = explain(&with(&[*first, *second]));
            assert_eq!((&why.reason, &why.also[..]), (reason, &[other.clone()][..]));
        }
    }
}

#[test]
fn all_obstacles_are_listed_in_order() {
    let (changes, reasons): (Vec<_>, Vec<_>) = obstacles_in_order().into_iter().unzip();
    let why = explain(&with(&changes));
    assert_eq!(why.reason, reasons[0]);
    assert_eq!(why.also, reasons[1..]);
    assert_eq!(why.estimated_start, None);
}

#[test]
fn request_without_obstacles_is_next_and_may_start_now() {
    for engine in [EngineFacts::Healthy, EngineFacts::NotDispatchedHere] {
        let facts = Facts { engine, ..free() };
        let why = explain(&facts);
        assert_eq!((why.reason, why.also), (Reason::NextInLine, vec![]));
        assert_eq!(why.estimated_start, Some(now()));
        assert_eq!(why.ahead, Some(Ahead::Exactly(0)));
    }
}

#[test]
fn missing_engine_is_the_reason() {
    let why = explain(&with(&[|f| f.engine = EngineFacts::Missing]));
    assert_eq!(why.reason, Reason::NoEngine);
}

#[test]
fn request_with_a_failed_start_backs_off_with_its_error() {
    let why = explain(&with(&[
        |f| f.run_at = now() + MINUTE,
        |f| f.attempt_count = 1,
        |f| f.last_error = Some("refused".to_owned()),
    ]));
    let expected = Reason::BackingOff {
        until: now() + MINUTE,
        error: Some("refused".to_owned()),
    };
    assert_eq!(why.reason, expected);
    assert_eq!(why.estimated_start, Some(now() + MINUTE));
}

#[test]
fn request_that_kept_its_execution_needs_no_second_slot() {
    let why = explain(&with(&[
        |f| f.in_use = 2,
        |f| f.execution = Some(execution(1)),
        |f| f.ahead = None,
    ]));
    assert_eq!((why.reason, why.also), (Reason::NextInLine, vec![]));
    assert_eq!(why.estimated_start, Some(now()));
}

#[test]
fn request_that_kept_its_execution_is_held_back_by_nothing_of_its_workspace() {
    let of_workspace: [Change; 5] = [
        |f| f.workspace_exists = false,
        |f| f.definition_exists = false,
        |f| f.paused = true,
        |f| f.in_use = 2,
        |f| f.ahead = Some(Ahead::MoreThan(1_000)),
    ];
    let kept: Change = |f| f.execution = Some(execution(1));
    for change in of_workspace {
        let why = explain(&with(&[kept, change]));
        assert_eq!((why.reason, why.also), (Reason::NextInLine, vec![]));
        assert_eq!(why.estimated_start, Some(now()));
    }
    let why = explain(&with(&[kept, |f| f.engine = down()]));
    assert!(matches!(why.reason, Reason::EngineDown { .. }));
}

#[test]
fn every_other_status_has_its_reason() {
    use RequestStatus::{Claimed, Completed, Dispatched, Failed};
    let cancelling = [Reason::Cancelling];
    let table = [
        (Completed, false, None, Reason::Finished, &[][..]),
        (Failed, true, None, Reason::Finished, &[]),
        (Dispatched, false, None, Reason::Running, &[]),
        (Dispatched, false, Some(3), Reason::Running, &[]),
        (Dispatched, false, Some(0), Reason::NoPollers, &[]),
        (Dispatched, true, Some(0), Reason::NoPollers, &cancelling),
        (Dispatched, true, Some(1), Reason::Running, &cancelling),
        (Claimed, false, None, Reason::Starting, &[]),
        (Claimed, true, None, Reason::Cancelling, &[]),
    ];
    for (status, cancel_requested, pollers, reason, also) in table {
        let facts = Facts {
            status: status.into(),
            cancel_requested,
            pollers,
            paused: true,
            in_use: 9,
            engine: down(),
            ..free()
        };
        let why = explain(&facts);
        assert_eq!((&why.reason, &why.also[..]), (&reason, also), "{status}");
        let expected = (reason == Reason::Starting).then(now);
        assert_eq!(why.estimated_start, expected, "{status}");
    }
}

#[test]
fn the_estimate_counts_the_slots_that_must_become_free() {
    let table = [
        // (in use, ahead, minutes from now)
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
        (1, 1, 2),
        (2, 0, 2),
        (2, 1, 4),
        (2, 9, 20),
        (5, 0, 8),
    ];
    for (in_use, ahead, minutes) in table {
        let facts = Facts {
            in_use,
            ahead: Some(Ahead::Exactly(ahead)),
            typical_duration: Some(4 * MINUTE),
            ..free()
        };
        let expected = now() + minutes * MINUTE;
        assert_eq!(explain(&facts).estimated_start, Some(expected), "{facts:?}");
    }
}

#[test]
fn no_estimate_without_the_needed_facts() {
    let full: Change = |f| f.in_use = 2;
    let timed: Change = |f| f.typical_duration = Some(MINUTE);
    let unknown: [&[Change]; 9] = [
        &[full],
        &[full, timed, |f| f.ahead = Some(Ahead::MoreThan(1_000))],
        &[full, timed, |f| f.paused = true],
        &[full, timed, |f| f.engine = EngineFacts::Missing],
        &[full, timed, |f| f.engine = down()],
        &[timed, |f| f.limit = 0],
        &[timed, |f| f.workspace_exists = false],
        &[timed, |f| f.definition_exists = false],
        &[full, |f| f.typical_duration = Some(Duration::MAX)],
    ];
    for changes in unknown {
        let facts = with(changes);
        assert_eq!(explain(&facts).estimated_start, None, "{facts:?}");
    }
}

#[test]
fn scheduled_request_is_not_estimated_before_its_time() {
    let later = |seconds| Facts {
        run_at: now() + Duration::from_secs(seconds),
        ahead: None,
        in_use: 2,
        typical_duration: Some(2 * MINUTE),
        ..free()
    };
    let guess = |facts: &Facts| explain(facts).estimated_start.unwrap();
    assert_eq!(guess(&later(90)), now() + Duration::from_secs(90));
    assert_eq!(guess(&later(30)), now() + MINUTE);
}

fn sentence(changes: &[Change]) -> String {
    explain(&with(changes)).to_string()
}

#[test]
fn every_reason_has_a_sentence() {
    let runs: Change = |f| f.status = RequestStatus::Dispatched.into();
    let table: [(&[Change], &str); 12] = [
        (&[runs], "Running."),
        (
            &[runs, |f| f.pollers = Some(0)],
            "Running, but no worker polls its task queue. Start a worker for that task queue.",
        ),
        (&[|f| f.status = RequestStatus::Failed.into()], "Finished."),
        (
            &[|f| f.status = Named::Unknown("EXPIRED".into())],
            "Its status is unknown to this version of the server. Ask a server of the newest version.",
        ),
        (
            &[|f| f.status = RequestStatus::Claimed.into()],
            "Admitted; the dispatcher is starting its execution.",
        ),
        (
            &[|f| f.cancel_requested = true],
            "Cancel requested; the request ends when the outcome of its start is known.",
        ),
        (
            &[|f| f.workspace_exists = false],
            "Its workspace is deleted; the request fails when its turn comes.",
        ),
        (
            &[|f| f.definition_exists = false],
            "Its definition is deleted; the request fails when its turn comes.",
        ),
        (
            &[|f| f.paused = true],
            "Its workspace is paused; none of its requests is admitted.",
        ),
        (
            &[|f| f.engine = EngineFacts::Missing],
            "No instance has an engine to start it in.",
        ),
        (
            &[|f| f.engine = down()],
            "The engine is unavailable: no answer",
        ),
        (&[], "Next to be admitted in its workspace."),
    ];
    for (changes, expected) in table {
        assert_eq!(sentence(changes), expected);
    }
}

#[test]
fn sentence_names_the_scheduled_time_and_the_last_error() {
    let later: Change = |f| f.run_at = now() + MINUTE;
    let tried: Change = |f| f.attempt_count = 1;
    let wrong: Change = |f| f.last_error = Some("refused".to_owned());
    assert_eq!(
        sentence(&[later]),
        "Not due yet; scheduled for 2026-03-01T12:01:00Z."
    );
    let retried = "The last start failed; the next attempt is at 2026-03-01T12:01:00Z.";
    assert_eq!(sentence(&[later, tried]), retried);
    assert_eq!(
        sentence(&[later, tried, wrong]),
        format!("{retried} Last error: refused")
    );
}

#[test]
fn sentence_names_the_slot_holders_and_the_requests_ahead() {
    let full: Change = |f| (f.in_use, f.holders) = (2, vec![execution(1), execution(2)]);
    let (one, two) = (execution(1), execution(2));
    assert_eq!(
        sentence(&[full]),
        format!("Waiting for a slot: 2 of 2 in use ({one}, {two}).")
    );
    assert_eq!(
        sentence(&[
            full,
            |f| f.in_use = 9,
            |f| f.ahead = Some(Ahead::Exactly(1))
        ]),
        format!(
            "Waiting for a slot: 9 of 2 in use ({one}, {two} and 7 more). \
             One request of this workspace is ahead of it."
        )
    );
    assert_eq!(
        sentence(&[|f| f.limit = 0, |f| f.ahead = Some(Ahead::MoreThan(1_000))]),
        "Waiting for a slot: 0 of 0 in use. \
         More than 1000 requests of this workspace are ahead of it."
    );
    assert_eq!(
        sentence(&[|f| f.ahead = Some(Ahead::Exactly(3))]),
        "3 requests of this workspace are ahead of it."
    );
}
