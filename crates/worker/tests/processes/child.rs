//! A worker process in the hands of a test: started, listened to, stopped, killed. Does not know what is in the database.

use crate::PATIENCE;
use crate::orders::{Done, Orders, Said};
use crate::program::{ORDERS, PROGRAM};
use leasehold_testkit::{Process, set_wrong_clock, wait_until};
use std::process::Command;

pub(crate) struct Child {
    pub(crate) process: Process,
    /// The time that it believed in at its start, in seconds since 1970.
    pub(crate) clock: i64,
}

impl Child {
    /// Starts a process and waits until its workers run.
    pub(crate) fn start(orders: &Orders) -> Self {
        Self::start_with_clock(orders, None)
    }

    /// The same, with a clock that is wrong by so much.
    pub(crate) fn start_with_clock(orders: &Orders, wrong_by: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // With one thread the name of the test would stand before the first line that is said.
        command.args(["--exact", PROGRAM, "--nocapture", "--test-threads=2"]);
        command.env(ORDERS, serde_json::to_string(orders).unwrap());
        if let Some(by) = wrong_by {
            set_wrong_clock(&mut command, by);
        }
        let process = Process::spawn(command);
        let ready = process.wait_for_line(PATIENCE, |line| {
            matches!(parse(line), Some(Said::Ready { .. }))
        });
        let Some(Said::Ready { clock }) = parse(&ready) else {
            unreachable!("just seen: {ready}");
        };
        Self { process, clock }
    }

    /// All it has said so far.
    pub(crate) fn said(&self) -> Vec<Said> {
        let lines = self.process.lines();
        lines.iter().filter_map(|line| parse(line)).collect()
    }

    /// Waits until it has said so many things that fit.
    pub(crate) fn wait_for(&self, count: usize, what: &str, fits: impl Fn(&Said) -> bool) {
        let seen = || self.said().iter().filter(|said| fits(said)).count();
        let enough = wait_until(PATIENCE, || seen() >= count);
        assert!(enough, "{} of {count} {what}", seen());
    }

    /// Waits until so many of its handlers have begun.
    pub(crate) fn wait_for_started(&self, count: usize) {
        self.wait_for(count, "handlers have begun", |said| {
            matches!(said, Said::Started { .. })
        });
    }

    /// Tells it to end, waits for that, and returns what it has done.
    pub(crate) fn end(mut self) -> Done {
        self.process.terminate();
        let status = self.process.wait(PATIENCE);
        assert!(status.success(), "{status}");
        match self.said().last() {
            Some(Said::Stopped { done }) => *done,
            other => panic!("the last it said was {other:?}"),
        }
    }
}

fn parse(line: &str) -> Option<Said> {
    serde_json::from_str(line).ok()
}
