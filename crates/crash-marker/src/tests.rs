//! Tests of the markers: what a crashed process leaves, and that suspects are computed alone.

#![allow(clippy::unwrap_used)]

use super::file::{MarkerFile, header, parse};
use super::*;
use leasehold_testkit::{Fuzzer, temp_dir};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

fn execution(number: u128) -> ExecutionId {
    ExecutionId(Uuid::from_u128(number))
}

fn of(execution: ExecutionId, crashed: bool) -> Computation {
    Computation { execution, crashed }
}

/// Copies the marker file of a live process to a new name, without its lock: the state after a crash.
fn crash(dir: &Path, from: &Path) {
    fs::copy(from, dir.join("crashed")).unwrap();
}

#[test]
fn markers_of_a_crashed_process_are_found_until_they_are_forgotten() {
    let dir = temp_dir();
    let file = MarkerFile::create(dir.path(), "server-1").unwrap();
    let first = file.mark(execution(1));
    let second = file.mark(execution(2));
    drop(file.mark(execution(3)));
    crash(dir.path(), file.path());
    drop((first, second));

    for _ in 0..2 {
        let markers = CrashMarkers::default();
        let mut crashed = markers.attach(dir.path(), "server-2").unwrap();
        assert_eq!(crashed.len(), 1, "{crashed:?}");
        let crashed = crashed.remove(0);
        assert_eq!(crashed.process, "server-1");
        assert_eq!(crashed.executions, [execution(1), execution(2)]);
    }
    let markers = CrashMarkers::default();
    let crashed = markers.attach(dir.path(), "server-3").unwrap();
    crashed
        .into_iter()
        .for_each(|process| process.forget().unwrap());
    let again = CrashMarkers::default().attach(dir.path(), "server-4");
    assert!(again.unwrap().is_empty());
}

#[test]
fn live_process_and_clean_exit_leave_nothing_to_count() {
    let dir = temp_dir();
    let live = MarkerFile::create(dir.path(), "live").unwrap();
    let _marker = live.mark(execution(1));
    let ended = CrashMarkers::default();
    assert!(ended.attach(dir.path(), "ended").unwrap().is_empty());
    drop(ended);
    let idle = MarkerFile::create(dir.path(), "idle").unwrap();
    crash(dir.path(), idle.path());
    fs::write(dir.path().join("other"), "another file").unwrap();
    let next = CrashMarkers::default();
    assert!(next.attach(dir.path(), "next").unwrap().is_empty());
    let names = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, 4, "live, idle, next, other");
}

#[test]
fn marker_is_set_during_the_computation_only() {
    let dir = temp_dir();
    let markers = CrashMarkers::default();
    markers.attach(dir.path(), "server").unwrap();
    let path = markers.shared.file.get().unwrap().path().to_owned();
    let marked = || parse(&fs::read(&path).unwrap()).unwrap().1;
    let seen = markers.compute(of(execution(7), false), marked);
    assert_eq!(seen, [execution(7)]);
    assert!(marked().is_empty());
    let panicked =
        std::panic::catch_unwind(|| markers.compute(of(execution(8), true), || panic!("planted")));
    assert!(panicked.is_err());
    assert!(marked().is_empty());
}

#[test]
fn request_that_crashed_is_computed_alone() {
    let markers = CrashMarkers::default();
    let running = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u128 {
            let (markers, running) = (markers.clone(), &running);
            scope.spawn(move || {
                for turn in 0..200 {
                    let crashed = thread == 0 && turn % 10 == 0;
                    markers.compute(of(execution(thread), crashed), || {
                        let beside = running.fetch_add(1, Ordering::SeqCst);
                        assert!(!crashed || beside == 0, "{beside} beside");
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            });
        }
    });
}

#[test]
fn long_names_are_cut_at_a_character() {
    let (name, marked) = parse(&header(&"ü".repeat(1_000))).unwrap();
    assert!(name.chars().all(|c| c == 'ü') && name.len() > 400);
    assert!(marked.is_empty());
}

#[test]
fn fuzzed_marker_files_are_read_or_ignored() {
    let mut example = header("server-1").to_vec();
    example.extend([0; 64]);
    example[512] = 1;
    let example = String::from_utf8(example).unwrap();
    Fuzzer::new(&[&example, ""]).run(|input| {
        let (_, marked) = parse(input)?;
        assert!(marked.len() <= input.len() / 32);
        Some(marked.len())
    });
}
