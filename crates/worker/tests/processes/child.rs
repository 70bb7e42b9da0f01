//! A worker process under test: starts it, reads its events, stops and kills it. Does not read the database.

use crate::WAIT_TIMEOUT;
use crate::program::{CONFIG_VARIABLE, PROGRAM};
use crate::protocol::{ProcessConfig, ProcessEvent, WorkTotals};
use leasehold_testkit::{Process, skew_clock, wait_until};
use std::process::Command;

pub(crate) struct Child {
    pub(crate) process: Process,
    /// The process's wall clock at its start, in seconds since 1970.
    pub(crate) clock: i64,
}

impl Child {
    /// Starts a process and waits until its workers run.
    pub(crate) fn start(config: &ProcessConfig) -> Self {
        Self::start_with_clock(config, None)
    }

    /// Starts a process with its clock off by `wrong_by`.
    pub(crate) fn start_with_clock(config: &ProcessConfig, wrong_by: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // With one test thread libtest prints the test's name before the first event.
        command.args(["--exact", PROGRAM, "--nocapture", "--test-threads=2"]);
        command.env(CONFIG_VARIABLE, serde_json::to_string(config).unwrap());
        if let Some(by) = wrong_by {
            skew_clock(&mut command, by);
        }
        let process = Process::spawn(command);
        let ready = process.wait_for_line(WAIT_TIMEOUT, |line| {
            matches!(parse(line), Some(ProcessEvent::Ready { .. }))
        });
        let Some(ProcessEvent::Ready { clock }) = parse(&ready) else {
            unreachable!("just parsed: {ready}");
        };
        Self { process, clock }
    }

    /// Returns all events so far.
    pub(crate) fn events(&self) -> Vec<ProcessEvent> {
        let lines = self.process.lines();
        lines.iter().filter_map(|line| parse(line)).collect()
    }

    /// Waits for `count` matching events.
    pub(crate) fn wait_for(&self, count: usize, what: &str, fits: impl Fn(&ProcessEvent) -> bool) {
        let seen = || self.events().iter().filter(|event| fits(event)).count();
        let enough = wait_until(WAIT_TIMEOUT, || seen() >= count);
        assert!(enough, "{} of {count} {what}", seen());
    }

    /// Waits until `count` handlers have started.
    pub(crate) fn wait_for_started(&self, count: usize) {
        self.wait_for(count, "handlers have started", |event| {
            matches!(event, ProcessEvent::Started { .. })
        });
    }

    /// Terminates the process, waits for its end, and returns its totals.
    pub(crate) fn terminate(mut self) -> WorkTotals {
        self.process.terminate();
        let status = self.process.wait(WAIT_TIMEOUT);
        assert!(status.success(), "{status}");
        match self.events().last() {
            Some(ProcessEvent::Stopped { totals }) => *totals,
            other => panic!("unexpected last event: {other:?}"),
        }
    }
}

fn parse(line: &str) -> Option<ProcessEvent> {
    serde_json::from_str(line).ok()
}
