//! Group commit: which operations share a commit, and that a failed operation does not affect the others.

use super::{Effect, Writer};
use crate::error::Fault;
use crate::options::SqliteOptions;
use crate::session::Session;
use leasehold_store::sql;
use leasehold_store::{ErrorKind, Result};
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const TABLE_CREATE: &str = include_str!("../../tests/sql/word_table_create.sql");
const WORD_INSERT: &str = include_str!("../../tests/sql/word_insert.sql");
const WORD_LIST: &str = include_str!("../../tests/sql/word_list.sql");
const COMMIT: &str = sql!("transaction/commit");

fn writer(max_group: usize) -> (Writer, Arc<Mutex<u32>>) {
    writer_on(Connection::open_in_memory().unwrap(), max_group)
}

fn writer_on(mut connection: Connection, max_group: usize) -> (Writer, Arc<Mutex<u32>>) {
    connection.execute_batch(TABLE_CREATE).unwrap();
    let commits = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&commits);
    let hook = move || {
        *counter.lock().unwrap() += 1;
        false
    };
    connection.commit_hook(Some(hook)).unwrap();
    let options = SqliteOptions {
        max_group,
        max_group_time: Duration::from_secs(3_600),
        ..SqliteOptions::default()
    };
    (Writer::start(connection, &options).unwrap(), commits)
}

fn insert(session: &Session<'_>, word: &str) -> std::result::Result<(), Fault> {
    session.run(WORD_INSERT, [word]).map(|_| ())
}

async fn write(writer: &Writer, word: &'static str) -> Result<()> {
    writer.write("test", move |s| insert(s, word)).await
}

async fn words(writer: &Writer) -> Vec<String> {
    let list = |s: &Session<'_>| s.all(WORD_LIST, [], |row| Ok(row.get(0)?));
    writer.write("test", list).await.unwrap()
}

/// Blocks the writer inside an operation until `unblock` receives, so that later operations queue up behind it.
async fn block(writer: &Writer, unblock: mpsc::Receiver<()>) -> Result<()> {
    let wait = move |_: &Session<'_>| {
        let _ = unblock.recv();
        Ok(())
    };
    writer.write("test", wait).await
}

#[tokio::test]
async fn queued_operations_share_a_commit() {
    let (writer, commits) = writer(100);
    let (release, unblock) = mpsc::channel();
    let (blocked, one, two, opened) = tokio::join!(
        block(&writer, unblock),
        write(&writer, "one"),
        write(&writer, "two"),
        async { release.send(()) }
    );
    blocked.and(one).and(two).unwrap();
    opened.unwrap();
    assert_eq!(*commits.lock().unwrap(), 1);
    assert_eq!(words(&writer).await, ["one", "two"]);
}

#[tokio::test]
async fn group_size_is_limited() {
    let (writer, commits) = writer(2);
    let (release, unblock) = mpsc::channel();
    let (blocked, one, two, _) = tokio::join!(
        block(&writer, unblock),
        write(&writer, "one"),
        write(&writer, "two"),
        async { release.send(()) }
    );
    blocked.and(one).and(two).unwrap();
    assert_eq!(*commits.lock().unwrap(), 2);
}

#[tokio::test]
async fn failed_panicked_or_rolled_back_operation_does_not_affect_its_group() {
    let (writer, commits) = writer(100);
    let (release, unblock) = mpsc::channel();
    let (_, before, failed, panicked, rolled_back, after, _) = tokio::join!(
        block(&writer, unblock),
        write(&writer, "before"),
        // The second insert of the same word violates the primary key.
        writer.write("test", |s| {
            insert(s, "failed")?;
            insert(s, "failed")
        }),
        writer.write("test", |s| {
            insert(s, "panicked")?;
            let none: Option<()> = None;
            none.ok_or_else(|| panic!("on purpose"))
        }),
        writer.write_or_rollback("test", |s| {
            insert(s, "rolled back")?;
            Ok(Effect::Rollback("rolled back"))
        }),
        write(&writer, "after"),
        async { release.send(()) }
    );
    before.and(after).unwrap();
    assert_eq!(rolled_back.unwrap(), "rolled back");
    let failed = failed.unwrap_err().kind;
    assert_eq!(failed, ErrorKind::Constraint("word.text".into()));
    let panicked = panicked.unwrap_err().kind;
    assert_eq!(
        panicked,
        ErrorKind::Broken("the operation panicked: on purpose".into())
    );
    assert_eq!(*commits.lock().unwrap(), 1);
    assert_eq!(words(&writer).await, ["before", "after"]);
}

#[tokio::test]
async fn failed_commit_fails_every_operation_of_the_group() {
    let (writer, _) = writer(100);
    let (release, unblock) = mpsc::channel();
    let (blocked, one, ended, _) = tokio::join!(
        block(&writer, unblock),
        write(&writer, "one"),
        // Ends the group's transaction from inside, as a full disk does.
        writer.write("test", |s| s.run(COMMIT, []).map(|_| ())),
        async { release.send(()) }
    );
    for outcome in [blocked, one, ended] {
        assert!(matches!(outcome.unwrap_err().kind, ErrorKind::Broken(_)));
    }
    write(&writer, "later").await.unwrap();
}

/// As if the disk filled between a constraint violation and the rollback of its operation.
#[tokio::test]
async fn rollback_that_meets_trouble_makes_its_group_unavailable() {
    let mut connection = Connection::open_in_memory().unwrap();
    let (trouble, interrupt) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let (troubled, count) = (Arc::clone(&trouble), Arc::clone(&interrupt));
    let interrupts = move || {
        let interrupts = troubled.load(Ordering::Relaxed);
        if interrupts {
            AtomicUsize::fetch_add(&count, 1, Ordering::Relaxed);
        }
        interrupts
    };
    connection.progress_handler(1, Some(interrupts)).unwrap();
    let (writer, commits) = writer_on(connection, 100);
    let before_commits = *commits.lock().unwrap();
    let (release, unblock) = mpsc::channel();
    let (begin, end) = (Arc::clone(&trouble), Arc::clone(&trouble));
    let (blocked, before, failed, _) = tokio::join!(
        block(&writer, unblock),
        write(&writer, "before"),
        writer.write("test", move |s| {
            insert(s, "failed")?;
            let violation = insert(s, "failed");
            begin.store(true, Ordering::Relaxed);
            violation
        }),
        async { release.send(()) }
    );
    end.store(false, Ordering::Relaxed);
    for outcome in [blocked, before, failed] {
        let error = outcome.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Unavailable(_)), "{error}");
    }
    assert!(interrupt.load(Ordering::Relaxed) > 0);
    assert_eq!(*commits.lock().unwrap(), before_commits);
    assert_eq!(words(&writer).await, [""; 0]);
}

#[tokio::test]
async fn answer_follows_the_commit() {
    let (writer, commits) = writer(100);
    write(&writer, "one").await.unwrap();
    assert_eq!(*commits.lock().unwrap(), 1);
    write(&writer, "two").await.unwrap();
    assert_eq!(*commits.lock().unwrap(), 2);
}
