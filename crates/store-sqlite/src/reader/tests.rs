//! The queue of reads: abandoned queries are skipped, and dropping the readers ends the queue.
#![allow(clippy::unwrap_used)]

use super::{ReadTask, Readers};
use crate::answer::{erase, restore};
use crate::connection::open_writer;
use crate::error::Fault;
use crate::options::SqliteOptions;
use crate::session::Session;
use leasehold_store::{ErrorKind, Result};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const ENDLESS: &str = include_str!("../../tests/sql/endless.sql");
const QUEUED: usize = 1_000;
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// One reader thread, so that queries run in order.
fn readers(dir: &Path) -> Readers {
    readers_with_timeout(dir, SqliteOptions::default().read_timeout)
}

fn readers_with_timeout(dir: &Path, read_timeout: Duration) -> Readers {
    let file = dir.join("leasehold.db");
    let options = SqliteOptions {
        readers: 1,
        read_timeout,
        ..SqliteOptions::default()
    };
    drop(open_writer(&file, &options).unwrap());
    Readers::start(&file, &options).unwrap()
}

fn task(query: impl FnOnce(&Session<'_>) + Send + 'static) -> ReadTask {
    ReadTask {
        context: "test",
        query: Box::new(query),
    }
}

async fn read<T, F>(readers: &Readers, query: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(&Session<'_>) -> std::result::Result<T, Fault> + Send + 'static,
{
    restore("test", readers.read("test", erase(query)).await?)
}

#[tokio::test]
async fn query_of_a_cancelled_caller_is_skipped() {
    let dir = leasehold_testkit::temp_dir();
    let readers = readers(dir.path());
    let ran = Arc::new(AtomicUsize::new(0));
    let (release, unblock) = mpsc::channel();
    let blocked = read(&readers, move |_| {
        Ok(unblock.recv_timeout(WAIT_LIMIT).is_ok())
    });
    let cancel = async {
        for _ in 0..QUEUED {
            let ran = Arc::clone(&ran);
            let query = read(&readers, move |_| {
                ran.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            // Polled once, so that the query is queued, then dropped.
            tokio::select! {
                biased;
                _ = query => panic!("answered although the reader is blocked"),
                () = std::future::ready(()) => {}
            }
        }
        release.send(()).unwrap();
    };
    let (blocked, ()) = tokio::join!(blocked, cancel);
    assert!(blocked.unwrap());
    // Queued behind all of them.
    let last = read(&readers, |_| Ok("answered")).await;
    assert_eq!(last.unwrap(), "answered");
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[test]
fn dropping_the_readers_finishes_only_the_current_query() {
    let dir = leasehold_testkit::temp_dir();
    let readers = readers(dir.path());
    let ran = Arc::new(AtomicUsize::new(0));
    let (begun, beginning) = mpsc::channel();
    let (release, unblock) = mpsc::channel();
    // Sent directly: the future of `read` would have to end before the readers can be dropped.
    let sender = readers.sender.clone().unwrap();
    let counted = Arc::clone(&ran);
    sender
        .send(task(move |_: &Session<'_>| {
            begun.send(()).unwrap();
            unblock.recv_timeout(WAIT_LIMIT).unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }))
        .unwrap();
    for _ in 0..QUEUED {
        let counted = Arc::clone(&ran);
        sender
            .send(task(move |_: &Session<'_>| {
                counted.fetch_add(1, Ordering::Relaxed);
            }))
            .unwrap();
    }
    drop(sender);
    beginning.recv_timeout(WAIT_LIMIT).unwrap();
    let stopping = Arc::clone(&readers.stopping);
    let dropping = std::thread::spawn(move || drop(readers));
    let begun = std::time::Instant::now();
    while !stopping.load(Ordering::Relaxed) {
        assert!(
            begun.elapsed() < WAIT_LIMIT,
            "the readers did not get the stop flag"
        );
        std::thread::yield_now();
    }
    release.send(()).unwrap();
    dropping.join().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn read_beyond_its_limit_is_unavailable_and_frees_its_reader() {
    let dir = leasehold_testkit::temp_dir();
    let readers = readers_with_timeout(dir.path(), Duration::from_millis(50));
    for _ in 0..2 {
        let endless = read(&readers, |s| {
            s.one(ENDLESS, [], |row| Ok(row.get::<_, i64>(0)?))
        });
        let error = tokio::time::timeout(WAIT_LIMIT, endless);
        let error = error.await.unwrap().unwrap_err();
        let text = "the read took longer than 50ms".to_owned();
        assert_eq!(error.kind, ErrorKind::Unavailable(text));
        let next = read(&readers, |_| Ok("answered")).await;
        assert_eq!(next.unwrap(), "answered");
    }
}
