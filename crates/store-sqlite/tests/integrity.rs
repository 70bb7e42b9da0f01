//! Files that Leasehold has written are intact, for the SQLite of this program and for the one of the machine, which may be older.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use leasehold_core::ExecutionEnd;
use leasehold_core::graph::GraphStop;
use leasehold_core::job::RetryMode;
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store_conformance::factory::ok;
use leasehold_store_conformance::graph_factory::{completed_with, diamond};
use leasehold_store_conformance::job_factory::{
    WORKER, completed, failed, job_with_dedup_key, new_job, payload,
};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use rusqlite::Connection;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const INTEGRITY: &str = include_str!("sql/integrity_check.sql");
const FOREIGN_KEYS: &str = include_str!("sql/foreign_key_check.sql");

/// Checks a file, which may be open.
pub(crate) fn check(file: &Path) {
    let connection = Connection::open(file).unwrap();
    let result: String = connection
        .query_row(INTEGRITY, [], |row| row.get(0))
        .unwrap();
    assert_eq!(result, "ok");
    let mut statement = connection.prepare(FOREIGN_KEYS).unwrap();
    let orphans = statement.query_map([], |row| row.get::<_, String>(0));
    let orphans: Vec<String> = orphans.unwrap().map(Result::unwrap).collect();
    assert_eq!(orphans, [""; 0]);
}

/// Writes rows to every table that grows: requests, executions, graphs and jobs in all states, keys, notes, leases.
async fn fill(f: &Fixture) {
    let t = f.workspace(10).await;
    f.enqueue_failed(&t).await;
    f.enqueue_completed(&t).await;
    let running = f.enqueue_running(&t).await;
    f.finish(running.execution, ExecutionEnd::TimedOut).await;
    f.enqueue_running(&t).await;
    let graphs = f.graph_workspace(5, diamond()).await;
    let stopped = f.enqueue_started(&graphs).await;
    f.complete_node("a", serde_json::json!({"to": [7, "ä"]}))
        .await;
    f.stop_graph(stopped.execution, GraphStop::Cancelled).await;
    f.enqueue_started(&graphs).await;
    let jobs = f.claim_nodes(&["a"]).await;
    f.finish_job(&jobs[0], completed_with(serde_json::json!(1)))
        .await;
    f.enqueue_unknown(&t).await;
    f.enqueue(&t, 3).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(60)),
        ..new_job()
    };
    f.enqueue_new_jobs(&[later, job_with_dedup_key("k", Some(60))])
        .await;
    f.enqueue_jobs(100).await;
    let jobs = f.claim_jobs(80).await;
    assert_eq!(jobs.len(), 80);
    let progress = payload(1);
    let reported = f.store.job_progress(WORKER, jobs[79].claim(), &progress);
    assert!(ok(reported.await));
    for (at, job) in jobs.iter().enumerate().take(30) {
        let end = match at % 3 {
            0 => completed(),
            1 => failed(RetryMode::Never),
            _ => failed(RetryMode::Policy),
        };
        f.finish_job(job, end).await;
    }
}

async fn filled() -> (Fixture, TestBackend) {
    let clock = clock();
    let options = BackendOptions::default().clock(clock.clone());
    let backend = TestBackend::with(BackendKind::Sqlite, options).await;
    let f = Fixture::new(backend.store.clone(), clock);
    fill(&f).await;
    (f, backend)
}

#[tokio::test]
async fn file_is_intact_after_work_of_every_kind() {
    let (_f, backend) = filled().await;
    check(&backend.file());
}

/// Operators open the file with the `sqlite3` of their distribution.
#[tokio::test]
async fn sqlite3_of_the_machine_finds_the_file_intact() {
    let (_f, backend) = filled().await;
    // The program takes an argument that begins with `-` for an option.
    let script = format!("\n{INTEGRITY};\n{FOREIGN_KEYS};");
    let program = Command::new("sqlite3")
        .arg(backend.file())
        .arg(script)
        .output();
    let Ok(output) = program else {
        println!("sqlite3 is not installed");
        return;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!((text.trim(), errors.as_ref()), ("ok", ""));
}
