//! Groups: what shares a commit, and what does not touch its neighbours.

use super::{Effect, Writer};
use crate::error::Fault;
use crate::options::SqliteOptions;
use crate::session::Session;
use leasehold_store::sql;
use leasehold_store::{ErrorKind, Result};
use rusqlite::Connection;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const TABLE_CREATE: &str = include_str!("../../tests/sql/word_table_create.sql");
const WORD_INSERT: &str = include_str!("../../tests/sql/word_insert.sql");
const WORD_LIST: &str = include_str!("../../tests/sql/word_list.sql");
const COMMIT: &str = sql!("transaction/commit");

fn writer(max_group: usize) -> (Writer, Arc<Mutex<u32>>) {
    let mut connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(TABLE_CREATE).unwrap();
    let commits = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&commits);
    let hook = move || {
        *seen.lock().unwrap() += 1;
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

/// Holds the writer inside an operation until the gate is opened, so that what follows lines up behind it.
async fn hold(writer: &Writer, gate: mpsc::Receiver<()>) -> Result<()> {
    let wait = move |_: &Session<'_>| {
        let _ = gate.recv();
        Ok(())
    };
    writer.write("test", wait).await
}

#[tokio::test]
async fn operations_that_wait_together_share_a_commit() {
    let (writer, commits) = writer(100);
    let (open, gate) = mpsc::channel();
    let (held, one, two, opened) = tokio::join!(
        hold(&writer, gate),
        write(&writer, "one"),
        write(&writer, "two"),
        async { open.send(()) }
    );
    held.and(one).and(two).unwrap();
    opened.unwrap();
    assert_eq!(*commits.lock().unwrap(), 1);
    assert_eq!(words(&writer).await, ["one", "two"]);
}

#[tokio::test]
async fn a_group_carries_no_more_than_its_maximum() {
    let (writer, commits) = writer(2);
    let (open, gate) = mpsc::channel();
    let (held, one, two, _) = tokio::join!(
        hold(&writer, gate),
        write(&writer, "one"),
        write(&writer, "two"),
        async { open.send(()) }
    );
    held.and(one).and(two).unwrap();
    assert_eq!(*commits.lock().unwrap(), 2);
}

#[tokio::test]
async fn one_that_fails_panics_or_changes_its_mind_disturbs_nobody_in_its_group() {
    let (writer, commits) = writer(100);
    let (open, gate) = mpsc::channel();
    let (_, before, failed, panicked, undone, after, _) = tokio::join!(
        hold(&writer, gate),
        write(&writer, "before"),
        // The word is written, then the same word again, which its key refuses.
        writer.write("test", |s| {
            insert(s, "failed")?;
            insert(s, "failed")
        }),
        writer.write("test", |s| {
            insert(s, "panicked")?;
            let none: Option<()> = None;
            none.ok_or_else(|| panic!("on purpose"))
        }),
        writer.write_or_undo("test", |s| {
            insert(s, "undone")?;
            Ok(Effect::Undo("changed its mind"))
        }),
        write(&writer, "after"),
        async { open.send(()) }
    );
    before.and(after).unwrap();
    assert_eq!(undone.unwrap(), "changed its mind");
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
async fn a_group_that_cannot_be_committed_fails_for_all_of_it() {
    let (writer, _) = writer(100);
    let (open, gate) = mpsc::channel();
    let (held, one, stolen, _) = tokio::join!(
        hold(&writer, gate),
        write(&writer, "one"),
        // Ends the group's transaction from inside, as a full disk would.
        writer.write("test", |s| s.run(COMMIT, []).map(|_| ())),
        async { open.send(()) }
    );
    for outcome in [held, one, stolen] {
        assert!(matches!(outcome.unwrap_err().kind, ErrorKind::Broken(_)));
    }
    write(&writer, "later").await.unwrap();
}

#[tokio::test]
async fn an_answer_is_given_only_after_the_commit() {
    let (writer, commits) = writer(100);
    write(&writer, "one").await.unwrap();
    assert_eq!(*commits.lock().unwrap(), 1);
    write(&writer, "two").await.unwrap();
    assert_eq!(*commits.lock().unwrap(), 2);
}
