//! What a claim touches must not grow: not with the backlog, nor with the workspaces, nor with what is in its way.
//!
//! Buffers per admitted request, never times. Each test prints its table (`--nocapture`); with `cargo xtask test --full`
//! the sizes are those of a large installation.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod measured;
mod table;

use leasehold_testkit::sized;
use measured::{Crowd, MeasuredDatabase, Waiting};
use table::Table;

/// More than is ever admitted here, so that claims can go on.
const NO_LIMIT: i32 = 100_000;

struct Sizes {
    backlog: i64,
    workspaces: i64,
    admitted: usize,
    in_the_way: i64,
}

/// The smaller sizes are always tested; the larger ones take minutes.
fn sizes() -> Sizes {
    Sizes {
        backlog: sized(30_000, 1_000_000),
        workspaces: sized(3_000, 100_000),
        admitted: sized(3_000, 50_000),
        in_the_way: sized(30_000, 1_000_000),
    }
}

async fn cost(pending: i64, workspaces: i64) -> measured::Cost {
    let measured = MeasuredDatabase::new().await;
    measured.crowd(Crowd::new(workspaces, NO_LIMIT)).await;
    measured
        .requests(pending, Waiting::in_line(workspaces))
        .await;
    measured.settle().await;
    measured.cost(false).await
}

#[tokio::test]
async fn a_claim_costs_the_same_whatever_the_backlog() {
    let large = sizes().backlog;
    let mut table = Table::new("backlog");
    for workspaces in [10, 1_000] {
        let name = |pending| format!("{pending} pending in {workspaces} workspaces");
        let base = table.first(&name(1_000), cost(1_000, workspaces).await);
        table.beside(base, &name(large), cost(large, workspaces).await);
    }
    table.assert_less_than_twice();
}

#[tokio::test]
async fn a_claim_costs_the_same_however_many_workspaces_wait() {
    let Sizes {
        backlog,
        workspaces: many,
        ..
    } = sizes();
    let mut table = Table::new("workspaces");
    let name = |workspaces| format!("{workspaces} workspaces with {backlog} pending");
    let base = table.first(&name(10), cost(backlog, 10).await);
    for workspaces in [1_000, many] {
        table.beside(base, &name(workspaces), cost(backlog, workspaces).await);
    }
    table.assert_less_than_twice();
}

/// What becomes of the requests that are admitted under the snapshot.
#[derive(Clone, Copy)]
enum Fate {
    LeftRunning,
    /// With room to spare, so that running executions are counted now and then.
    Finished,
    /// In workspaces that are full at every claim but for what it admits, one execution of each running on for good:
    /// running executions are counted each time, past all that have ended.
    FinishedInFullWorkspaces,
}

#[tokio::test]
async fn a_claim_costs_the_same_after_many_under_an_open_snapshot() {
    let mut table = Table::new("open snapshot");
    for workspaces in [10, 1_000] {
        for fate in [
            Fate::LeftRunning,
            Fate::Finished,
            Fate::FinishedInFullWorkspaces,
        ] {
            under_a_snapshot(&mut table, workspaces, fate).await;
        }
    }
    table.assert_less_than_twice();
}

async fn under_a_snapshot(table: &mut Table, workspaces: i64, fate: Fate) {
    let admitted = sizes().admitted;
    let each = i32::try_from(100 / workspaces).unwrap().max(1);
    let (limit, how) = match fate {
        Fate::LeftRunning => (NO_LIMIT, "left running"),
        Fate::Finished => (20 * each, "finished"),
        Fate::FinishedInFullWorkspaces => (each + 1, "finished, full"),
    };
    let finishing = !matches!(fate, Fate::LeftRunning);
    let measured = MeasuredDatabase::new().await;
    measured.crowd(Crowd::new(workspaces, limit)).await;
    let pending = i64::try_from(admitted).unwrap() + 10_000;
    measured
        .requests(pending, Waiting::in_line(workspaces))
        .await;
    measured.settle().await;
    if matches!(fate, Fate::FinishedInFullWorkspaces) {
        measured
            .admit(usize::try_from(workspaces).unwrap(), false)
            .await;
    }
    let name = format!("{workspaces} workspaces");
    let before = table.first(&name, measured.cost(finishing).await);
    let snapshot = measured.snapshot().await;
    measured.admit(admitted, finishing).await;
    let name = format!("{workspaces} workspaces, {admitted} admitted and {how}");
    table.beside(before, &name, measured.cost(finishing).await);
    drop(snapshot);
}

#[tokio::test]
async fn a_claim_costs_the_same_whatever_is_in_its_way() {
    let many = sizes().in_the_way;
    let mut table = Table::new("in the way");
    for workspaces in [10, 1_000] {
        let base = table.first(
            &format!("nothing, {workspaces} workspaces"),
            cost(1_000, workspaces).await,
        );
        let paused = Crowd::new(workspaces, NO_LIMIT).after(workspaces).paused();
        for (what, waiting) in [
            ("not due", Waiting::not_due(workspaces)),
            ("backing off", Waiting::backing_off(workspaces)),
            (
                "of paused workspaces",
                Waiting::in_line(workspaces).after(workspaces),
            ),
        ] {
            let measured = MeasuredDatabase::new().await;
            measured.crowd(Crowd::new(workspaces, NO_LIMIT)).await;
            measured.crowd(paused).await;
            measured.requests(many, waiting).await;
            measured.requests(1_000, Waiting::in_line(workspaces)).await;
            measured.settle().await;
            table.beside(base, &format!("{many} {what}"), measured.cost(false).await);
        }
    }
    table.assert_less_than_twice();
}
