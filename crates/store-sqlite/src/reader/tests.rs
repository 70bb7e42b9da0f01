//! The line of questions: what is still answered, and what nobody waits for any more.
#![allow(clippy::unwrap_used)]

use super::Readers;
use crate::connection::open_writer;
use crate::options::SqliteOptions;
use crate::session::Session;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LINE: usize = 1_000;
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// One reader, so that there is one line and an order in it.
fn readers(folder: &Path) -> Readers {
    let file = folder.join("leasehold.db");
    let options = SqliteOptions {
        readers: 1,
        ..SqliteOptions::default()
    };
    drop(open_writer(&file, &options).unwrap());
    Readers::start(&file, &options).unwrap()
}

#[tokio::test]
async fn a_question_whose_asker_has_gone_is_not_asked() {
    let folder = leasehold_testkit::temp_dir();
    let readers = readers(folder.path());
    let asked = Arc::new(AtomicUsize::new(0));
    let (open, gate) = mpsc::channel();
    let held = readers.read("test", move |_| Ok(gate.recv_timeout(WAIT_LIMIT).is_ok()));
    let leave = async {
        for _ in 0..LINE {
            let asked = Arc::clone(&asked);
            let question = readers.read("test", move |_| {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            // Asked once, so that it stands in the line, and left.
            tokio::select! {
                biased;
                _ = question => panic!("answered though the reader is held"),
                () = std::future::ready(()) => {}
            }
        }
        open.send(()).unwrap();
    };
    let (held, ()) = tokio::join!(held, leave);
    assert!(held.unwrap());
    // Stands behind them all.
    let stayed = readers.read("test", |_| Ok("answered")).await;
    assert_eq!(stayed.unwrap(), "answered");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn dropping_the_readers_ends_the_question_under_way_and_no_other() {
    let folder = leasehold_testkit::temp_dir();
    let readers = readers(folder.path());
    let asked = Arc::new(AtomicUsize::new(0));
    let (begun, beginning) = mpsc::channel();
    let (open, gate) = mpsc::channel();
    // Put into the line by hand: whoever asks in the ordinary way is gone before the readers can be dropped.
    let line = readers.line.clone().unwrap();
    let counted = Arc::clone(&asked);
    line.send(Box::new(move |_: &Session<'_>| {
        begun.send(()).unwrap();
        gate.recv_timeout(WAIT_LIMIT).unwrap();
        counted.fetch_add(1, Ordering::Relaxed);
    }))
    .unwrap();
    for _ in 0..LINE {
        let counted = Arc::clone(&asked);
        line.send(Box::new(move |_: &Session<'_>| {
            counted.fetch_add(1, Ordering::Relaxed);
        }))
        .unwrap();
    }
    drop(line);
    beginning.recv_timeout(WAIT_LIMIT).unwrap();
    let ending = Arc::clone(&readers.ending);
    let dropping = std::thread::spawn(move || drop(readers));
    let begun = std::time::Instant::now();
    while !ending.load(Ordering::Relaxed) {
        assert!(
            begun.elapsed() < WAIT_LIMIT,
            "the readers are not told to end"
        );
        std::thread::yield_now();
    }
    open.send(()).unwrap();
    dropping.join().unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}
