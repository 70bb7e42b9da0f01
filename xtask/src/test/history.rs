//! How long tests took last time, kept in the build folder: for the announcement, and to begin with what takes longest.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::outcome::Outcome;
use super::programs::TestProgram;
use crate::workspace;

/// What a whole run may take on two cores, once everything is built.
pub(super) const BUDGET: Duration = Duration::from_secs(10 * 60);

/// Seconds by program on two cores, for a first run.
const USUAL: &str = include_str!("usual_times.txt");

/// What the whole run is called among the programs.
const WHOLE: &str = "whole";

/// Seconds by program, and of the whole.
#[derive(Debug, Default)]
pub(super) struct History {
    seconds: BTreeMap<String, f64>,
}

impl History {
    pub(super) fn read() -> Self {
        // The times of this machine replace the usual ones.
        let own = fs::read_to_string(file()).unwrap_or_default();
        Self::parse(&format!("{USUAL}{own}"))
    }

    /// One program a line: its name, a space, the sum of its tests' seconds.
    fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let (name, seconds) = line.rsplit_once(' ')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        };
        Self {
            seconds: text.lines().filter_map(entry).collect(),
        }
    }

    /// The last whole run.
    pub(super) fn last(&self) -> Option<Duration> {
        let seconds = self.seconds.get(WHOLE)?;
        Duration::try_from_secs_f64(*seconds).ok()
    }

    /// The longest first, so that none of them runs alone at the end. What is not known may be long.
    pub(super) fn sort(&self, programs: &mut [TestProgram]) {
        let of =
            |program: &TestProgram| self.seconds.get(&program.name).copied().unwrap_or(f64::MAX);
        programs.sort_by(|a, b| of(b).total_cmp(&of(a)));
    }

    pub(super) fn keep(&mut self, took: Duration, outcome: &Outcome) -> Result<()> {
        self.seconds.clear();
        for (test, seconds) in outcome.times() {
            let program = test.split(' ').next().unwrap_or_default();
            *self.seconds.entry(program.to_owned()).or_default() += seconds;
        }
        self.seconds.insert(WHOLE.to_owned(), took.as_secs_f64());
        let line = |(name, seconds): (&String, &f64)| format!("{name} {seconds:.1}\n");
        let text: String = self.seconds.iter().map(line).collect();
        let file = file();
        fs::write(&file, text).with_context(|| format!("{} cannot be written", file.display()))
    }
}

fn file() -> PathBuf {
    workspace::target().join("test-times.txt")
}

/// `9 min 30 s`, or `12.3 s`.
pub(super) fn minutes(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_go_first_and_the_unknown_before_them() {
        let history = History::parse("a 1.5\nb 20\nwhole 21\nrubbish\n");
        assert_eq!(history.last(), Some(Duration::from_secs(21)));
        let mut programs = ["a", "new", "b"].map(TestProgram::named);
        history.sort(&mut programs);
        let names: Vec<_> = programs
            .iter()
            .map(|program| program.name.as_str())
            .collect();
        assert_eq!(names, ["new", "b", "a"]);
    }

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(minutes(Duration::from_millis(12_340)), "12.3 s");
        assert_eq!(minutes(Duration::from_secs(570)), "9 min 30 s");
    }
}
