//! What facts about an installation mean: fine, worth a look, or wrong, and what to do then. Pure; every bound has a name here.

use leasehold_core::Timestamp;
use leasehold_core::doctor::{Finding, Verdict};
use leasehold_store::capacity::Drift;
use leasehold_store::instance::Instance;
use leasehold_store::lock::LockState;
use leasehold_store::request::Oldest;
use leasehold_store::{MigrationState, MigrationStatus, StepKind};
use std::collections::BTreeMap;
use std::time::Duration;

/// Clocks that differ by more make timestamps hard to read side by side.
const SKEW_WARNING: Duration = Duration::from_secs(1);
/// By more, and whoever compares times of two machines is misled.
const SKEW_PROBLEM: Duration = Duration::from_secs(30);
/// An instance says that it lives every few seconds.
const ALIVE_WITHIN: Duration = Duration::from_secs(20);
/// A request that could be claimed for longer is not being served.
const WAITING_WARNING: Duration = Duration::from_secs(5 * 60);
/// Failed requests that are kept: more are worth a look.
const DEAD_WARNING: u64 = 1_000;
/// Differences of one kind that are named.
const DRIFTS_NAMED: usize = 10;
/// The lock under which requests are dispatched.
const DISPATCH_LOCK: &str = "processExecutionQueue";

/// As it should be.
pub(crate) fn well(check: &'static str, says: impl Into<String>) -> Finding {
    Finding {
        check,
        verdict: Verdict::Ok,
        says: says.into(),
        todo: None,
    }
}

pub(crate) fn warning(
    check: &'static str,
    says: impl Into<String>,
    todo: impl Into<String>,
) -> Finding {
    Finding {
        check,
        verdict: Verdict::Warning,
        says: says.into(),
        todo: Some(todo.into()),
    }
}

pub(crate) fn problem(
    check: &'static str,
    says: impl Into<String>,
    todo: impl Into<String>,
) -> Finding {
    Finding {
        check,
        verdict: Verdict::Problem,
        says: says.into(),
        todo: Some(todo.into()),
    }
}

/// Whether the schema can be asked for more.
pub(super) fn schema_fits(status: &[MigrationStatus]) -> bool {
    status
        .iter()
        .all(|one| matches!(one.state, MigrationState::Applied | MigrationState::Newer))
}

pub(super) fn schema(status: &[MigrationStatus]) -> Finding {
    let first = |state| status.iter().find(move |one| one.state == state);
    if let Some(newer) = first(MigrationState::Unknown) {
        return problem(
            "schema",
            format!("is newer than this program: it has {newer}"),
            "run the newer leasehold",
        );
    }
    if let Some(changed) = first(MigrationState::Changed) {
        return problem(
            "schema",
            format!("{changed} has another text than this program's"),
            "run the program that applied it",
        );
    }
    if let Some(pending) = first(MigrationState::Pending) {
        return warning(
            "schema",
            format!("lacks {pending}"),
            "run `leasehold migrate up`, or start a server whose store.migrate is true; the rest was not looked at",
        );
    }
    let count = |kind| status.iter().filter(|one| one.kind == kind).count();
    let migrations = count(StepKind::Migration);
    well(
        "schema",
        match count(StepKind::Function) {
            0 => format!("has all {migrations} migrations"),
            functions => format!("has all {migrations} migrations and {functions} functions"),
        },
    )
}

pub(super) fn clock(store: Timestamp, machine: Timestamp) -> Finding {
    let skew = Duration::try_from(store.duration_since(machine).abs()).unwrap_or(Duration::MAX);
    let seconds = skew.as_secs_f64();
    let todo = "have both machines set their clocks by the same source; leases are judged by the database's clock alone";
    let says = format!("the database's and this machine's differ by {seconds:.1} s");
    match skew {
        skew if skew > SKEW_PROBLEM => problem("clock", says, todo),
        skew if skew > SKEW_WARNING => warning("clock", says, todo),
        _ => well("clock", "the database's and this machine's agree"),
    }
}

fn alive(instance: &Instance, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(instance.seen_at)).unwrap_or_default() <= ALIVE_WITHIN
}

pub(super) fn instances(instances: &[Instance], now: Timestamp) -> Finding {
    let living: Vec<&Instance> = instances
        .iter()
        .filter(|instance| alive(instance, now))
        .collect();
    if living.is_empty() {
        return warning(
            "instances",
            "no server is running on this store",
            "start `leasehold serve`; requests wait meanwhile, and none is lost",
        );
    }
    let named: Vec<&str> = living.iter().take(5).map(|one| one.id.as_str()).collect();
    let says = format!("{} alive: {}", living.len(), named.join(", "));
    if living.iter().any(|instance| instance.dispatches) {
        return well("instances", says);
    }
    warning(
        "instances",
        format!("{says}; none of them dispatches"),
        "set engine.enabled in one of them, or nothing that is enqueued ever runs",
    )
}

pub(super) fn locks(locks: &[LockState], instances: &[Instance], now: Timestamp) -> Finding {
    let held: Vec<String> = locks
        .iter()
        .filter(|lock| lock.until > now)
        .map(|lock| format!("{} by {}", lock.name, lock.owner))
        .collect();
    let dispatches = instances
        .iter()
        .any(|instance| instance.dispatches && alive(instance, now));
    let dead = locks.iter().find(|lock| {
        lock.name == DISPATCH_LOCK
            && lock.until > now
            && !instances
                .iter()
                .any(|instance| instance.id == lock.owner && alive(instance, now))
    });
    if let Some(dead) = dead
        && dispatches
    {
        return warning(
            "locks",
            format!(
                "{} is held by {}, who is not seen to live",
                dead.name, dead.owner
            ),
            format!("wait until {}: then another takes it by itself", dead.until),
        );
    }
    if held.is_empty() {
        return well("locks", "none is held");
    }
    well("locks", format!("held: {}", held.join(", ")))
}

/// One difference with the ids it is about.
fn named(drift: &Drift) -> String {
    let request = drift.request.map(|id| format!(", request {id}"));
    let execution = drift.execution.map(|id| format!(", execution {id}"));
    format!(
        "workspace {}{}{}: {}",
        drift.workspace,
        request.unwrap_or_default(),
        execution.unwrap_or_default(),
        drift.text
    )
}

pub(super) fn drift(found: &[Drift]) -> Finding {
    if found.is_empty() {
        return well("drift", "slots, executions, requests and counts agree");
    }
    let mut kinds: BTreeMap<&str, Vec<&Drift>> = BTreeMap::new();
    for drift in found {
        kinds.entry(drift.kind.as_str()).or_default().push(drift);
    }
    let told: Vec<String> = kinds
        .iter()
        .map(|(kind, all)| {
            let first: Vec<String> = all
                .iter()
                .take(DRIFTS_NAMED)
                .map(|one| named(one))
                .collect();
            format!("{} {kind} ({})", all.len(), first.join("; "))
        })
        .collect();
    problem(
        "drift",
        told.join("; "),
        "a running server mends what is safe to mend within drift.interval; what stays is in docs/operations/doctor.md#drift",
    )
}

pub(super) fn dead_letters(failed: u64) -> Finding {
    if failed <= DEAD_WARNING {
        return well("dead letters", format!("{failed} failed requests are kept"));
    }
    warning(
        "dead letters",
        format!("{failed} failed requests are kept"),
        "`leasehold dead-letter list` shows why; redrive them once the cause is gone, or lower retention.failed",
    )
}

pub(super) fn waiting(pending: u64, oldest: &Oldest) -> Finding {
    let since = oldest.pending.map(|since| oldest.at.duration_since(since));
    let age = since
        .and_then(|age| Duration::try_from(age).ok())
        .unwrap_or_default();
    let says = match oldest.pending {
        Some(_) => format!("{pending} wait, the oldest for {} s", age.as_secs()),
        None => format!("{pending} wait, none of them due"),
    };
    if age <= WAITING_WARNING {
        return well("waiting", says);
    }
    warning(
        "waiting",
        says,
        "`leasehold request why ID` tells what it waits for; full workspaces need a higher limit or shorter executions",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_store::capacity::DriftKind;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn instance(id: &str, dispatches: bool, seen: i64) -> Instance {
        Instance {
            id: id.to_owned(),
            version: "1".to_owned(),
            dispatches,
            listens: None,
            started_at: at(0),
            seen_at: at(seen),
        }
    }

    fn lock(owner: &str, until: i64) -> LockState {
        LockState {
            name: DISPATCH_LOCK.to_owned(),
            owner: owner.to_owned(),
            locked_at: at(0),
            until: at(until),
            token: 1,
        }
    }

    #[test]
    fn clocks_may_differ_a_little() {
        for (skew, verdict) in [
            (0, Verdict::Ok),
            (1, Verdict::Ok),
            (2, Verdict::Warning),
            (-30, Verdict::Warning),
            (31, Verdict::Problem),
            (-4_000, Verdict::Problem),
        ] {
            assert_eq!(clock(at(skew), at(0)).verdict, verdict, "{skew}");
        }
    }

    #[test]
    fn a_schema_is_this_programs_or_is_told_why_not() {
        let one = |state| MigrationStatus {
            kind: StepKind::Migration,
            number: 1,
            name: "0001_workspaces".to_owned(),
            state,
        };
        for (state, verdict) in [
            (MigrationState::Applied, Verdict::Ok),
            (MigrationState::Pending, Verdict::Warning),
            (MigrationState::Changed, Verdict::Problem),
            (MigrationState::Unknown, Verdict::Problem),
        ] {
            let finding = schema(&[one(MigrationState::Applied), one(state)]);
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            assert_eq!(finding.todo.is_none(), verdict == Verdict::Ok);
        }
    }

    #[test]
    fn older_functions_are_a_finding_and_newer_ones_are_not() {
        let function = |state| MigrationStatus {
            kind: StepKind::Function,
            number: 2,
            name: "leasehold_fold".to_owned(),
            state,
        };
        let older = [function(MigrationState::Pending)];
        assert!(!schema_fits(&older));
        assert_eq!(schema(&older).verdict, Verdict::Warning);
        assert_eq!(
            schema(&older).says,
            "lacks release 2 of function leasehold_fold"
        );
        let newer = [function(MigrationState::Newer)];
        assert!(schema_fits(&newer));
        assert_eq!(schema(&newer).says, "has all 0 migrations and 1 functions");
    }

    #[test]
    fn someone_must_live_and_dispatch() {
        for (all, verdict) in [
            (vec![], Verdict::Warning),
            (vec![instance("old", true, 0)], Verdict::Warning),
            (vec![instance("idle", false, 99)], Verdict::Warning),
            (
                vec![instance("idle", false, 99), instance("one", true, 99)],
                Verdict::Ok,
            ),
        ] {
            assert_eq!(instances(&all, at(100)).verdict, verdict, "{all:?}");
        }
    }

    #[test]
    fn a_lock_that_a_dead_instance_holds_is_told_while_another_waits_for_it() {
        let living = instance("one", true, 99);
        for (owner, until, verdict) in [
            ("one", 110, Verdict::Ok),
            ("dead", 90, Verdict::Ok),
            ("dead", 110, Verdict::Warning),
        ] {
            let finding = locks(
                &[lock(owner, until)],
                std::slice::from_ref(&living),
                at(100),
            );
            assert_eq!(finding.verdict, verdict, "{finding:?}");
        }
    }

    #[test]
    fn drift_is_a_problem_and_named_by_kind() {
        assert_eq!(drift(&[]).verdict, Verdict::Ok);
        let one = Drift {
            kind: DriftKind::Counts,
            workspace: leasehold_store::fresh_id(),
            request: None,
            execution: None,
            text: "two and three".to_owned(),
        };
        let finding = drift(&[one.clone(), one]);
        assert_eq!(finding.verdict, Verdict::Problem);
        assert!(
            finding.says.starts_with("2 counts (workspace "),
            "{finding:?}"
        );
    }

    #[test]
    fn what_waits_too_long_is_worth_a_look() {
        let oldest = |pending: Option<i64>| Oldest {
            at: at(1_000),
            pending: pending.map(at),
            startable: None,
            claimed: None,
            dispatched: None,
        };
        for (since, verdict) in [
            (None, Verdict::Ok),
            (Some(900), Verdict::Ok),
            (Some(600), Verdict::Warning),
        ] {
            assert_eq!(waiting(3, &oldest(since)).verdict, verdict, "{since:?}");
        }
        assert_eq!(dead_letters(1_000).verdict, Verdict::Ok);
        assert_eq!(dead_letters(1_001).verdict, Verdict::Warning);
    }
}
