//! Private servers survive crashes and end with their owner.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::databases::deadlock;
use leasehold_testkit::{Cluster, SERVER_VARIABLE, TestPostgres, fresh_cluster, wait_until};
use tokio_postgres::{Client, NoTls};

const TABLE_CREATE: &str = include_str!("sql/table_create.sql");
const TABLE_COUNT: &str = include_str!("sql/table_count.sql");
const TEMPLATE_MARK: &str = include_str!("sql/template_mark.sql");
const SETTING: &str = include_str!("sql/setting.sql");
const TIMEOUT: Duration = Duration::from_secs(180);

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn assert_row_exists(cluster: &Cluster) {
    let row = connect(&cluster.url())
        .await
        .query_one(TABLE_COUNT, &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

fn is_alive(pid: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("kill -0 {pid} 2>/dev/null")])
        .status()
        .unwrap()
        .success()
}

#[tokio::test]
async fn cluster_survives_a_crash_a_kill_and_a_stop() {
    let mut cluster = fresh_cluster(&[("max_connections", "20")]);
    let (url, first_pid) = (cluster.url(), cluster.server_pid());
    let client = connect(&url).await;
    client.batch_execute(TABLE_CREATE).await.unwrap();
    for (name, value) in [("max_connections", "20"), ("track_commit_timestamp", "on")] {
        let row = client.query_one(SETTING, &[&name]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), value);
    }

    cluster.restart_immediate().unwrap();
    assert_ne!(cluster.server_pid(), first_pid);
    assert_row_exists(&cluster).await;

    cluster.kill().unwrap();
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    cluster.start_again().unwrap();
    assert_row_exists(&cluster).await;

    cluster.stop().unwrap();
    cluster.start_again().unwrap();
    assert_eq!(cluster.url(), url);
    assert_row_exists(&cluster).await;
}

/// The counters of PostgreSQL vanish in the crash.
#[tokio::test(flavor = "multi_thread")]
async fn test_fails_if_transactions_deadlocked_in_its_cluster_before_a_crash() {
    let mut cluster = fresh_cluster(&[]);
    deadlock(&cluster.url()).await;
    assert_eq!(cluster.deadlocks().unwrap(), 1);
    cluster.restart_immediate().unwrap();
    let failed = catch_unwind(AssertUnwindSafe(|| drop(cluster))).unwrap_err();
    let message = failed.downcast_ref::<String>().unwrap();
    assert_eq!(
        message,
        "PostgreSQL detected 1 deadlocks in the cluster of this test"
    );
}

/// A database that its server cannot be asked about must not pass as one without deadlocks.
#[tokio::test(flavor = "multi_thread")]
async fn test_fails_if_its_database_cannot_be_checked() {
    let cluster = fresh_cluster(&[]);
    let server = TestPostgres::at(cluster.url());
    let database = server.fresh_database(None).await;
    let client = connect(&cluster.url()).await;
    let mark = TEMPLATE_MARK.replace("{name}", database.name());
    client.batch_execute(&mark).await.unwrap();
    let failed = catch_unwind(AssertUnwindSafe(|| drop(database))).unwrap_err();
    let message = failed.downcast_ref::<String>().unwrap();
    assert!(message.contains("failed to check"), "{message}");
}

#[test]
fn dropped_cluster_leaves_no_process_and_no_directory() {
    for stop_first in [false, true] {
        let mut cluster = fresh_cluster(&[]);
        let directory = cluster.directory().to_owned();
        let pid = cluster.server_pid().unwrap().to_string();
        if stop_first {
            cluster.stop().unwrap();
        }
        drop(cluster);
        assert!(!directory.exists());
        assert!(!is_alive(&pid));
    }
}

#[test]
fn failed_start_reports_the_log() {
    let error = Cluster::start(&[("no_such_setting", "1")]).err().unwrap();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

/// A process that owns a server.
struct Holder {
    process: Child,
    server_pid: String,
    directory: PathBuf,
}

fn start_holder() -> Holder {
    let mut process = Command::new(env!("CARGO_BIN_EXE_testkit-hold-server"))
        .env_remove(SERVER_VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let mut words = line.split_whitespace();
    let server_pid = words.next().unwrap().to_owned();
    let directory = Path::new(words.next().unwrap()).to_owned();
    assert!(is_alive(&server_pid));
    assert!(directory.exists());
    Holder {
        process,
        server_pid,
        directory,
    }
}

fn assert_removed(holder: &Holder) {
    assert!(wait_until(TIMEOUT, || !is_alive(&holder.server_pid)));
    assert!(wait_until(TIMEOUT, || !holder.directory.exists()));
}

#[test]
fn server_ends_when_its_owner_is_killed() {
    let mut holder = start_holder();
    holder.process.kill().unwrap();
    holder.process.wait().unwrap();
    assert_removed(&holder);
}

#[test]
fn shared_server_ends_when_its_owner_exits() {
    let mut holder = start_holder();
    drop(holder.process.stdin.take());
    assert!(holder.process.wait().unwrap().success());
    assert_removed(&holder);
}
