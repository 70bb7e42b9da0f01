//! The buffers that a claim touches must not grow with the backlog, the workspaces, open snapshots or requests it cannot admit.
//!
//! Buffers per admitted request, never times. Each test prints its table (`--nocapture`); with `cargo xtask test --full`
//! the sizes are those of a large installation.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod measured;
mod table;

use leasehold_testkit::sized;
use measured::{MeasuredDatabase, Waiting, WorkspaceSet};
use table::Table;

/// More than is ever admitted in these tests.
const NO_LIMIT: i32 = 100_000;

struct Sizes {
    backlog: i64,
    workspaces: i64,
    admitted: usize,
    not_admissible: i64,
}

/// The smaller sizes are always tested; the larger ones take minutes.
fn sizes() -> Sizes {
    Sizes {
        backlog: sized(30_000, 1_000_000),
        workspaces: sized(3_000, 100_000),
        admitted: sized(3_000, 50_000),
        not_admissible: sized(30_000, 1_000_000),
    }
}

async fn cost(pending: i64, workspaces: i64) -> measured::Cost {
    let measured = MeasuredDatabase::new().await;
    measured
        .create_workspaces(WorkspaceSet::new(workspaces, NO_LIMIT))
        .await;
    measured
        .requests(pending, Waiting::in_line(workspaces))
        .await;
    measured.fold_and_analyze().await;
    measured.cost(false).await
}

#[tokio::test]
async fn claim_cost_does_not_depend_on_the_backlog() {
    let large = sizes().backlog;
    let mut table = Table::new("backlog");
    for workspaces in [10, 1_000] {
        let name = |pending| format!("{pending} pending in {workspaces} workspaces");
        let base = table.baseline(&name(1_000), cost(1_000, workspaces).await);
        table.compare(base, &name(large), cost(large, workspaces).await);
    }
    table.assert_less_than_twice();
}

#[tokio::test]
async fn claim_cost_does_not_depend_on_the_number_of_workspaces() {
    let Sizes {
        backlog,
        workspaces: many,
        ..
    } = sizes();
    let mut table = Table::new("workspaces");
    let name = |workspaces| format!("{workspaces} workspaces with {backlog} pending");
    let base = table.baseline(&name(10), cost(backlog, 10).await);
    for workspaces in [1_000, many] {
        table.compare(base, &name(workspaces), cost(backlog, workspaces).await);
    }
    table.assert_less_than_twice();
}

/// What happens to the executions that are admitted under the snapshot.
#[derive(Clone, Copy)]
enum AfterAdmission {
    LeftRunning,
    /// In workspaces with free slots, so that running executions are counted only now and then.
    Finished,
    /// In workspaces that every claim fills, with one execution that never ends: running executions are counted at every
    /// claim, past all ended ones.
    FinishedInFullWorkspaces,
}

#[tokio::test]
async fn claim_cost_does_not_grow_under_an_open_snapshot() {
    let mut table = Table::new("open snapshot");
    for workspaces in [10, 1_000] {
        for after in [
            AfterAdmission::LeftRunning,
            AfterAdmission::Finished,
            AfterAdmission::FinishedInFullWorkspaces,
        ] {
            measure_under_snapshot(&mut table, workspaces, after).await;
        }
    }
    table.assert_less_than_twice();
}

async fn measure_under_snapshot(table: &mut Table, workspaces: i64, after: AfterAdmission) {
    let admitted = sizes().admitted;
    let each = i32::try_from(100 / workspaces).unwrap().max(1);
    let (limit, how) = match after {
        AfterAdmission::LeftRunning => (NO_LIMIT, "left running"),
        AfterAdmission::Finished => (20 * each, "finished"),
        AfterAdmission::FinishedInFullWorkspaces => (each + 1, "finished, full"),
    };
    let finishing = !matches!(after, AfterAdmission::LeftRunning);
    let measured = MeasuredDatabase::new().await;
    measured
        .create_workspaces(WorkspaceSet::new(workspaces, limit))
        .await;
    let pending = i64::try_from(admitted).unwrap() + 10_000;
    measured
        .requests(pending, Waiting::in_line(workspaces))
        .await;
    measured.fold_and_analyze().await;
    if matches!(after, AfterAdmission::FinishedInFullWorkspaces) {
        measured
            .admit(usize::try_from(workspaces).unwrap(), false)
            .await;
    }
    let name = format!("{workspaces} workspaces");
    let before = table.baseline(&name, measured.cost(finishing).await);
    let snapshot = measured.snapshot().await;
    measured.admit(admitted, finishing).await;
    let name = format!("{workspaces} workspaces, {admitted} admitted and {how}");
    table.compare(before, &name, measured.cost(finishing).await);
    drop(snapshot);
}

#[tokio::test]
async fn claim_cost_does_not_depend_on_requests_it_cannot_admit() {
    let many = sizes().not_admissible;
    let mut table = Table::new("not admissible");
    for workspaces in [10, 1_000] {
        let base = table.baseline(
            &format!("nothing, {workspaces} workspaces"),
            cost(1_000, workspaces).await,
        );
        let paused = WorkspaceSet::new(workspaces, NO_LIMIT)
            .after(workspaces)
            .paused();
        for (what, waiting) in [
            ("not due", Waiting::not_due(workspaces)),
            ("backing off", Waiting::backing_off(workspaces)),
            (
                "of paused workspaces",
                Waiting::in_line(workspaces).after(workspaces),
            ),
        ] {
            let measured = MeasuredDatabase::new().await;
            measured
                .create_workspaces(WorkspaceSet::new(workspaces, NO_LIMIT))
                .await;
            measured.create_workspaces(paused).await;
            measured.requests(many, waiting).await;
            measured.requests(1_000, Waiting::in_line(workspaces)).await;
            measured.fold_and_analyze().await;
            table.compare(base, &format!("{many} {what}"), measured.cost(false).await);
        }
    }
    table.assert_less_than_twice();
}
