//! Counts tests from the `test result:` lines of cargo test. Pure.

/// How many tests passed, failed and were ignored.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl Tally {
    /// Adds what one line of output says, if it is a result.
    pub(crate) fn read(&mut self, line: &str) {
        // "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s"
        let Some(result) = line.trim().strip_prefix("test result: ") else {
            return;
        };
        let counts = result.split_once(". ").map_or("", |(_, counts)| counts);
        for part in counts.split(';') {
            let Some((count, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    /// A failed command without a failed test (a build error, a crashed test program) still counts as one.
    pub(crate) fn settle(&mut self, command_succeeded: bool) {
        if !command_succeeded && self.failed == 0 {
            self.failed = 1;
        }
    }

    /// An ignored test proves nothing, and neither does a run of none.
    pub(crate) fn is_green(&self) -> bool {
        self.failed == 0 && self.ignored == 0 && self.passed > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str], command_succeeded: bool) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read(line);
        }
        tally.settle(command_succeeded);
        tally
    }

    const OK: &str = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.10s";
    const FAILED: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s";
    const IGNORED: &str = "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";

    #[test]
    fn results_are_added_up() {
        let sum = tally(&["running 3 tests", OK, "test a ... ok", FAILED], false);
        assert_eq!((sum.passed, sum.failed, sum.ignored), (4, 2, 0));
        assert!(!sum.is_green());
    }

    #[test]
    fn green_is_some_passed_none_failed_none_ignored() {
        assert!(tally(&[OK, OK], true).is_green());
        assert!(!tally(&[OK, IGNORED], true).is_green());
        assert!(!tally(&[], true).is_green());
    }

    #[test]
    fn a_crash_without_a_result_line_counts_as_a_failure() {
        let sum = tally(&[OK], false);
        assert_eq!((sum.passed, sum.failed), (3, 1));
    }
}
