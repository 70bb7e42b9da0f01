//! Evaluates facts about an installation: passed, warning or problem, and what to do. Pure; every threshold is a named constant.

use leasehold_core::doctor::{Finding, Verdict};
use leasehold_core::{EngineIdentity, Timestamp};
use leasehold_store::drift::Drift;
use leasehold_store::instance::Instance;
use leasehold_store::lock::LockState;
use leasehold_store::request::Oldest;
use leasehold_store::{MigrationState, MigrationStatus, StepKind};
use std::collections::BTreeMap;
use std::time::Duration;

/// A larger clock skew makes timestamps of two machines hard to compare.
const SKEW_WARNING: Duration = Duration::from_secs(1);
/// A larger clock skew makes such comparisons wrong.
const SKEW_PROBLEM: Duration = Duration::from_secs(30);
/// An instance without a heartbeat for longer is not alive; heartbeats are sent every few seconds.
const ALIVE_WITHIN: Duration = Duration::from_secs(20);
/// A request that has been due for longer indicates a backlog.
const WAITING_WARNING: Duration = Duration::from_secs(5 * 60);
/// More stored failed requests than this are a warning.
const DEAD_WARNING: u64 = 1_000;
/// The maximum number of drifts of one kind that are named.
const DRIFTS_NAMED: usize = 10;
/// The named lock of the dispatcher.
const DISPATCH_LOCK: &str = "processExecutionQueue";
/// The check of the recorded engine.
pub(super) const RECORDED_ENGINE: &str = "recorded engine";

/// Creates the finding of a passed check.
pub(crate) fn passed(check: &'static str, says: impl Into<String>) -> Finding {
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

/// Returns whether the schema allows the other checks.
pub(super) fn is_schema_current(status: &[MigrationStatus]) -> bool {
    status
        .iter()
        .all(|one| matches!(one.state, MigrationState::Applied | MigrationState::Newer))
}

pub(super) fn schema(status: &[MigrationStatus]) -> Finding {
    let first = |state| status.iter().find(move |one| one.state == state);
    if let Some(newer) = first(MigrationState::Incompatible) {
        let version = newer.applied_by.as_deref().unwrap_or("unknown");
        return problem(
            "schema",
            format!("is too new for this program: Leasehold {version} applied {newer}"),
            format!("run leasehold {version} or newer; servers of older versions stop"),
        );
    }
    if let Some(changed) = first(MigrationState::Changed) {
        return problem(
            "schema",
            format!("{changed} was applied with another text than this program's"),
            "run the version of leasehold that applied it",
        );
    }
    if let Some(pending) = first(MigrationState::Pending) {
        return warning(
            "schema",
            format!("lacks {pending}"),
            "run `leasehold migrate up`, or start a server with store.migrate = true; the other checks of the store were skipped",
        );
    }
    let is_newer = |one: &&MigrationStatus| one.state == MigrationState::Newer;
    let of = |kind| status.iter().filter(move |one| one.kind == kind);
    let newer = of(StepKind::Migration).filter(is_newer).count();
    let migrations = of(StepKind::Migration).count() - newer;
    let functions = match of(StepKind::Function).count() {
        0 => String::new(),
        functions => format!(" and {functions} functions"),
    };
    let newer = match newer {
        0 => String::new(),
        newer => format!(", and {newer} of a newer version that this program may use"),
    };
    passed(
        "schema",
        format!("has all {migrations} migrations{functions}{newer}"),
    )
}

pub(super) fn clock(store: Timestamp, machine: Timestamp) -> Finding {
    let skew = Duration::try_from(store.duration_since(machine).abs()).unwrap_or(Duration::MAX);
    let seconds = skew.as_secs_f64();
    let todo = "synchronize both machines with the same time source (NTP); leases depend on the database's clock only";
    let says = format!("database and this machine differ by {seconds:.1} s");
    match skew {
        skew if skew > SKEW_PROBLEM => problem("clock", says, todo),
        skew if skew > SKEW_WARNING => warning("clock", says, todo),
        _ => passed("clock", "database and this machine agree"),
    }
}

fn is_alive(instance: &Instance, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(instance.seen_at)).unwrap_or_default() <= ALIVE_WITHIN
}

pub(super) fn instances(instances: &[Instance], now: Timestamp) -> Finding {
    let live: Vec<&Instance> = instances
        .iter()
        .filter(|instance| is_alive(instance, now))
        .collect();
    if live.is_empty() {
        return warning(
            "instances",
            "no server is running on this store",
            "start `leasehold serve`; until then requests wait, and none is lost",
        );
    }
    let named: Vec<&str> = live.iter().take(5).map(|one| one.id.as_str()).collect();
    let says = format!("{} alive: {}", live.len(), named.join(", "));
    if live.iter().any(|instance| instance.dispatches) {
        return passed("instances", says);
    }
    warning(
        "instances",
        format!("{says}; none of them dispatches"),
        "set engine.enabled = true on at least one instance; until then no request is started",
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
        .any(|instance| instance.dispatches && is_alive(instance, now));
    let dead = locks.iter().find(|lock| {
        lock.name == DISPATCH_LOCK
            && lock.until > now
            && !instances
                .iter()
                .any(|instance| instance.id == lock.owner && is_alive(instance, now))
    });
    if let Some(dead) = dead
        && dispatches
    {
        return warning(
            "locks",
            format!(
                "{} is held by {}, which sends no heartbeats",
                dead.name, dead.owner
            ),
            format!(
                "wait until {}; then another instance acquires it",
                dead.until
            ),
        );
    }
    if held.is_empty() {
        return passed("locks", "none is held");
    }
    passed("locks", format!("held: {}", held.join(", ")))
}

/// Formats one drift with its ids.
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
        return passed(
            "drift",
            "slots, executions, requests and counts are consistent",
        );
    }
    let mut kinds: BTreeMap<&str, Vec<&Drift>> = BTreeMap::new();
    for drift in found {
        kinds.entry(drift.kind.as_str()).or_default().push(drift);
    }
    let texts: Vec<String> = kinds
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
        texts.join("; "),
        "a running server repairs safe cases within drift.interval; for the others see docs/operations/doctor.md#drift",
    )
}

pub(super) fn dead_letters(failed: u64) -> Finding {
    if failed <= DEAD_WARNING {
        return passed(
            "dead letters",
            format!("{failed} failed requests are stored"),
        );
    }
    warning(
        "dead letters",
        format!("{failed} failed requests are stored"),
        "`leasehold dead-letter list` shows the reasons; redrive them after the cause is fixed, or lower retention.failed",
    )
}

pub(super) fn waiting(pending: u64, oldest: &Oldest) -> Finding {
    let since = oldest.pending.map(|since| oldest.at.duration_since(since));
    let age = since
        .and_then(|age| Duration::try_from(age).ok())
        .unwrap_or_default();
    let says = match oldest.pending {
        Some(_) => format!(
            "{pending} requests wait, the oldest for {} s",
            age.as_secs()
        ),
        None => format!("{pending} requests wait, none of them due"),
    };
    if age <= WAITING_WARNING {
        return passed("waiting", says);
    }
    warning(
        "waiting",
        says,
        "`leasehold request why ID` shows what a request waits for; full workspaces need a higher limit or shorter executions",
    )
}

/// Compares the recorded engine with the present one, if that answered.
pub(super) fn recorded_engine(
    recorded: Option<&EngineIdentity>,
    present: Option<&EngineIdentity>,
) -> Finding {
    match (recorded, present) {
        (None, _) => passed(
            RECORDED_ENGINE,
            "none yet; the first start that reaches the engine records it",
        ),
        (Some(recorded), Some(present)) if !recorded.has_same_executions(present) => problem(
            RECORDED_ENGINE,
            format!("the store has executions of {recorded}, but the settings lead to {present}"),
            "correct temporal.address and temporal.namespace; a server with these settings starts only while no execution is open",
        ),
        (Some(recorded), _) => passed(RECORDED_ENGINE, recorded.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_store::drift::DriftKind;

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
    fn small_clock_skew_passes() {
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
    fn each_migration_state_has_its_verdict() {
        let one = |state| MigrationStatus {
            kind: StepKind::Migration,
            number: 1,
            name: "0001_workspaces".to_owned(),
            state,
            compatible_from: Some(1),
            applied_by: Some("0.2.0".to_owned()),
        };
        for (state, verdict) in [
            (MigrationState::Applied, Verdict::Ok),
            (MigrationState::Pending, Verdict::Warning),
            (MigrationState::Changed, Verdict::Problem),
            (MigrationState::Newer, Verdict::Ok),
            (MigrationState::Incompatible, Verdict::Problem),
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
            compatible_from: None,
            applied_by: None,
        };
        let older = [function(MigrationState::Pending)];
        assert!(!is_schema_current(&older));
        assert_eq!(schema(&older).verdict, Verdict::Warning);
        assert_eq!(
            schema(&older).says,
            "lacks release 2 of function leasehold_fold"
        );
        let newer = [function(MigrationState::Newer)];
        assert!(is_schema_current(&newer));
        assert_eq!(schema(&newer).says, "has all 0 migrations and 1 functions");
    }

    #[test]
    fn warns_unless_a_live_instance_dispatches() {
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
    fn warns_about_a_lock_of_a_dead_instance_while_another_waits_for_it() {
        let live = instance("one", true, 99);
        for (owner, until, verdict) in [
            ("one", 110, Verdict::Ok),
            ("dead", 90, Verdict::Ok),
            ("dead", 110, Verdict::Warning),
        ] {
            let finding = locks(&[lock(owner, until)], std::slice::from_ref(&live), at(100));
            assert_eq!(finding.verdict, verdict, "{finding:?}");
        }
    }

    #[test]
    fn drift_is_a_problem_and_listed_by_kind() {
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
    fn long_waits_and_many_dead_letters_are_warnings() {
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

    #[test]
    fn engine_with_other_executions_is_a_problem() {
        let recorded = EngineIdentity::of_kind("embedded");
        let other = EngineIdentity {
            namespace_id: "1".to_owned(),
            ..EngineIdentity::of_kind("temporal")
        };
        let verdict = |recorded, present| recorded_engine(recorded, present).verdict;
        assert_eq!(verdict(None, Some(&other)), Verdict::Ok);
        assert_eq!(verdict(Some(&recorded), None), Verdict::Ok);
        assert_eq!(verdict(Some(&recorded), Some(&recorded)), Verdict::Ok);
        assert_eq!(verdict(Some(&recorded), Some(&other)), Verdict::Problem);
    }
}
