//! Counts tests and their times from the lines that test programs print. Pure.

use std::collections::BTreeMap;

/// How many tests passed and were ignored, which failed, and how long each took.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(super) passed: u64,
    pub(super) ignored: u64,
    failed: BTreeMap<String, u64>,
    /// By test, in seconds.
    times: Vec<(String, f64)>,
}

impl Outcome {
    /// Adds what one line of a program's output says.
    pub(super) fn read(&mut self, program: &str, line: &str) {
        let line = line.trim();
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.read_counts(counts);
        } else if let Some((name, rest)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.rsplit_once(" ... "))
        {
            let name = format!("{program} {name}");
            if rest.starts_with("FAILED") {
                *self.failed.entry(name.clone()).or_default() += 1;
            }
            if let Some(seconds) = seconds(rest) {
                self.times.push((name, seconds));
            }
        }
    }

    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`. What failed is known by name.
    fn read_counts(&mut self, counts: &str) {
        for part in counts.split([';', '.']) {
            let Some((count, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            match what {
                "passed" => self.passed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    /// A program that failed without a failed test (it crashed, or was killed) still counts as one.
    pub(super) fn settle(&mut self, program: &str, succeeded: bool) {
        let has_failure = self.failed.keys().any(|name| name.starts_with(program));
        if !succeeded && !has_failure {
            let crashed = format!("{program} (ended without a result)");
            *self.failed.entry(crashed).or_default() += 1;
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.ignored += other.ignored;
        self.times.extend(other.times);
        for (name, times) in other.failed {
            *self.failed.entry(name).or_default() += times;
        }
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.values().sum()
    }

    /// The failed tests, and how often each failed.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&String, &u64)> {
        self.failed.iter()
    }

    /// An ignored test proves nothing, and neither does a run of none.
    pub(super) fn is_green(&self) -> bool {
        self.failed.is_empty() && self.ignored == 0 && self.passed > 0
    }

    /// The slowest tests, the slowest first.
    pub(super) fn slowest(&self, count: usize) -> Vec<&(String, f64)> {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by(|a, b| b.1.total_cmp(&a.1));
        times.truncate(count);
        times
    }

    /// All times.
    pub(super) fn times(&self) -> &[(String, f64)] {
        &self.times
    }
}

/// `ok <1.234s>`.
fn seconds(rest: &str) -> Option<f64> {
    let (_, time) = rest.split_once('<')?;
    time.strip_suffix("s>")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &[&str], succeeded: bool) -> Outcome {
        let mut outcome = Outcome::default();
        for line in lines {
            outcome.read("ops", line);
        }
        outcome.settle("ops", succeeded);
        outcome
    }

    const OK: &str = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.10s";
    const FAILED: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s";
    const IGNORED: &str = "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";

    #[test]
    fn results_and_times_are_added_up() {
        let lines = [
            "running 3 tests",
            "test quick ... ok <0.001s>",
            "test slow::one ... FAILED <2.500s>",
            "test panics - should panic ... ok <0.002s>",
            "test other ... FAILED <0.1s>",
            FAILED,
        ];
        let sum = outcome(&lines, false);
        assert_eq!((sum.passed, sum.failed(), sum.ignored), (1, 2, 0));
        assert!(!sum.is_green());
        let slowest = sum.slowest(1);
        assert_eq!(slowest, [&("ops slow::one".to_owned(), 2.5)]);
        let failed: Vec<_> = sum.failures().map(|(name, _)| name.as_str()).collect();
        assert_eq!(failed, ["ops other", "ops slow::one"]);
    }

    #[test]
    fn a_test_that_fails_in_two_runs_is_one_name() {
        let mut sum = outcome(&["test x ... FAILED <1s>"], false);
        sum.add(outcome(&["test x ... FAILED <1s>"], false));
        assert_eq!(
            sum.failures().collect::<Vec<_>>(),
            [(&"ops x".to_owned(), &2)]
        );
    }

    #[test]
    fn green_is_some_passed_none_failed_none_ignored() {
        assert!(outcome(&[OK, OK], true).is_green());
        assert!(!outcome(&[OK, IGNORED], true).is_green());
        assert!(!outcome(&[], true).is_green());
    }

    #[test]
    fn a_crash_without_a_result_counts_as_a_failure() {
        let sum = outcome(&[OK], false);
        assert_eq!((sum.passed, sum.failed()), (3, 1));
    }
}
