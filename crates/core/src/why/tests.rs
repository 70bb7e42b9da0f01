//! Every reason, which comes first, what is told beside it, and what can be guessed.
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

/// A request that waits and could begin at once.
fn free() -> Facts {
    Facts {
        status: RequestStatus::Pending,
        now: now(),
        run_at: now(),
        attempt_count: 0,
        last_error: None,
        cancel_requested: false,
        execution: None,
        workspace_exists: true,
        paused: false,
        limit: 2,
        holders: Vec::new(),
        in_use: 0,
        ahead: Some(Ahead::Exactly(0)),
        usual_time: None,
        engine: EngineFacts::Well,
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

/// Everything that can be in the way of a PENDING request, in the order of precedence.
fn obstacles_in_order() -> Vec<(Change, Reason)> {
    vec![
        (|f| f.cancel_requested = true, Reason::Cancelling),
        (|f| f.workspace_exists = false, Reason::WorkspaceGone),
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
fn each_obstacle_alone_is_the_reason() {
    for (change, reason) in obstacles_in_order() {
        let why = explain(&with(&[change]));
        assert_eq!((why.reason, why.also), (reason, vec![]));
    }
}

#[test]
fn of_any_two_obstacles_the_first_is_the_reason_and_the_other_is_told_too() {
    let all = obstacles_in_order();
    for (at, (first, reason)) in all.iter().enumerate() {
        for (second, other) in &all[at + 1..] {
            let why = explain(&with(&[*first, *second]));
            assert_eq!((&why.reason, &why.also[..]), (reason, &[other.clone()][..]));
        }
    }
}

#[test]
fn all_obstacles_together_are_told_in_order() {
    let (changes, reasons): (Vec<_>, Vec<_>) = obstacles_in_order().into_iter().unzip();
    let why = explain(&with(&changes));
    assert_eq!(why.reason, reasons[0]);
    assert_eq!(why.also, reasons[1..]);
    assert_eq!(why.estimated_start, None);
}

#[test]
fn a_request_with_nothing_in_its_way_is_next_and_may_begin_now() {
    for engine in [EngineFacts::Well, EngineFacts::NotDispatchedHere] {
        let facts = Facts { engine, ..free() };
        let why = explain(&facts);
        assert_eq!((why.reason, why.also), (Reason::NextInLine, vec![]));
        assert_eq!(why.estimated_start, Some(now()));
        assert_eq!(why.ahead, Some(Ahead::Exactly(0)));
    }
}

#[test]
fn without_any_engine_there_is_none_to_start_it_in() {
    let why = explain(&with(&[|f| f.engine = EngineFacts::Missing]));
    assert_eq!(why.reason, Reason::NoEngine);
}

#[test]
fn a_request_that_was_tried_before_backs_off_with_what_went_wrong() {
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
fn a_request_that_kept_its_execution_needs_no_second_slot() {
    let why = explain(&with(&[
        |f| f.in_use = 2,
        |f| f.execution = Some(execution(1)),
        |f| f.ahead = None,
    ]));
    assert_eq!((why.reason, why.also), (Reason::NextInLine, vec![]));
    assert_eq!(why.estimated_start, Some(now()));
}

#[test]
fn every_other_status_has_its_reason_whatever_waits() {
    use RequestStatus::{Claimed, Completed, Dispatched, Failed};
    let wished = [Reason::Cancelling];
    let table = [
        (Completed, false, None, Reason::Finished, &[][..]),
        (Failed, true, None, Reason::Finished, &[]),
        (Dispatched, false, None, Reason::Running, &[]),
        (Dispatched, false, Some(3), Reason::Running, &[]),
        (Dispatched, false, Some(0), Reason::NoPollers, &[]),
        (Dispatched, true, Some(0), Reason::NoPollers, &wished),
        (Dispatched, true, Some(1), Reason::Running, &wished),
        (Claimed, false, None, Reason::Starting, &[]),
        (Claimed, true, None, Reason::Cancelling, &[]),
    ];
    for (status, cancel_requested, pollers, reason, also) in table {
        let facts = Facts {
            status,
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
            usual_time: Some(4 * MINUTE),
            ..free()
        };
        let expected = now() + minutes * MINUTE;
        assert_eq!(explain(&facts).estimated_start, Some(expected), "{facts:?}");
    }
}

#[test]
fn nothing_is_guessed_where_nothing_is_known() {
    let full: Change = |f| f.in_use = 2;
    let timed: Change = |f| f.usual_time = Some(MINUTE);
    let unknown: [&[Change]; 8] = [
        &[full],
        &[full, timed, |f| f.ahead = Some(Ahead::MoreThan(1_000))],
        &[full, timed, |f| f.paused = true],
        &[full, timed, |f| f.engine = EngineFacts::Missing],
        &[full, timed, |f| f.engine = down()],
        &[timed, |f| f.limit = 0],
        &[timed, |f| f.workspace_exists = false],
        &[full, |f| f.usual_time = Some(Duration::MAX)],
    ];
    for changes in unknown {
        let facts = with(changes);
        assert_eq!(explain(&facts).estimated_start, None, "{facts:?}");
    }
}

#[test]
fn a_request_for_later_is_not_expected_before_its_time() {
    let later = |seconds| Facts {
        run_at: now() + Duration::from_secs(seconds),
        ahead: None,
        in_use: 2,
        usual_time: Some(2 * MINUTE),
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
fn every_reason_has_its_sentence() {
    let runs: Change = |f| f.status = RequestStatus::Dispatched;
    let table: [(&[Change], &str); 10] = [
        (&[runs], "It runs."),
        (
            &[runs, |f| f.pollers = Some(0)],
            "It runs, but nobody works on it: no worker asks for the work of its task queue.",
        ),
        (&[|f| f.status = RequestStatus::Failed], "It has ended."),
        (
            &[|f| f.status = RequestStatus::Claimed],
            "It is admitted and being started right now.",
        ),
        (
            &[|f| f.cancel_requested = true],
            "It is cancelled, and ends as soon as it is known what became of its start.",
        ),
        (
            &[|f| f.workspace_exists = false],
            "Its workspace is deleted: it fails when its turn comes.",
        ),
        (
            &[|f| f.paused = true],
            "Its workspace is paused: nothing of it is admitted.",
        ),
        (
            &[|f| f.engine = EngineFacts::Missing],
            "There is no engine to start it in.",
        ),
        (&[|f| f.engine = down()], "The engine is down: no answer"),
        (&[], "It is the next of its workspace to be admitted."),
    ];
    for (changes, expected) in table {
        assert_eq!(sentence(changes), expected);
    }
}

#[test]
fn a_time_that_has_not_come_is_said() {
    let later: Change = |f| f.run_at = now() + MINUTE;
    let tried: Change = |f| f.attempt_count = 1;
    let wrong: Change = |f| f.last_error = Some("refused".to_owned());
    assert_eq!(
        sentence(&[later]),
        "It is not to begin before 2026-03-01T12:01:00Z."
    );
    let tried_again = "Its last start did not succeed; it is tried again at 2026-03-01T12:01:00Z.";
    assert_eq!(sentence(&[later, tried]), tried_again);
    assert_eq!(
        sentence(&[later, tried, wrong]),
        format!("{tried_again} What went wrong: refused")
    );
}

#[test]
fn who_holds_the_slots_and_who_goes_first_is_said() {
    let full: Change = |f| (f.in_use, f.holders) = (2, vec![execution(1), execution(2)]);
    let (one, two) = (execution(1), execution(2));
    assert_eq!(
        sentence(&[full]),
        format!("It waits for a slot: 2 of 2 are taken, by {one}, {two}.")
    );
    assert_eq!(
        sentence(&[
            full,
            |f| f.in_use = 9,
            |f| f.ahead = Some(Ahead::Exactly(1))
        ]),
        format!(
            "It waits for a slot: 9 of 2 are taken, by {one}, {two} and 7 more. \
             One request of its workspace goes first."
        )
    );
    assert_eq!(
        sentence(&[|f| f.limit = 0, |f| f.ahead = Some(Ahead::MoreThan(1_000))]),
        "It waits for a slot: 0 of 0 are taken. \
         More than 1000 requests of its workspace go first."
    );
    assert_eq!(
        sentence(&[|f| f.ahead = Some(Ahead::Exactly(3))]),
        "3 requests of its workspace go first."
    );
}
