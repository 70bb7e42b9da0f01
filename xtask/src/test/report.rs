//! What a run says before it begins and after it ends. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::history::{BUDGET, minutes};
use super::outcome::Outcome;

/// How many of the slowest tests the summary shows.
const SHOWN: usize = 10;
/// How many of them are in the file.
const LISTED: usize = 50;

/// What is missing and will be installed, and how long the run may take.
pub(super) fn announcement(missing: &[String], last: Option<Duration>) -> String {
    let budget = minutes(BUDGET);
    let install = match missing {
        [] => "all that the tests need is installed".to_owned(),
        missing => format!("this will be installed: {}", missing.join(", ")),
    };
    let time = match last {
        Some(last) => format!(
            "the last whole run took {} (budget {budget})",
            minutes(last)
        ),
        None => format!("the budget of a whole run, once everything is built, is {budget}"),
    };
    format!("test: {install}\ntest: {time}\n")
}

/// The slowest tests, the failed ones, and what the tests ran on.
pub(super) fn summary(outcome: &Outcome, took: Duration, servers: &[String]) -> String {
    let slowest = outcome.slowest(SHOWN);
    let mut text = format!(
        "\ntest: the {} slowest of {}\n",
        slowest.len(),
        outcome.passed
    );
    for (name, seconds) in slowest {
        let _ = writeln!(text, "  {seconds:>7.1} s  {name}");
    }
    for (name, times) in outcome.failures() {
        let often = match times {
            1 => String::new(),
            times => format!(" ({times} times)"),
        };
        let _ = writeln!(text, "test: FAILED {name}{often}");
    }
    let _ = writeln!(text, "test: took {}, on", minutes(took));
    for server in servers {
        let _ = writeln!(text, "  {server}");
    }
    if outcome.ignored > 0 {
        let _ = writeln!(
            text,
            "test: {} ignored, which is not allowed",
            outcome.ignored
        );
    }
    if outcome.passed + outcome.failed() == 0 {
        text.push_str("test: nothing ran\n");
    }
    text
}

/// The warning of a whole run that took longer than it may.
pub(super) fn budget_warning(took: Duration) -> Option<String> {
    (took > BUDGET).then(|| {
        format!(
            "test: warning: the run took {}, the budget is {}; begin with the slowest tests above\n",
            minutes(took),
            minutes(BUDGET)
        )
    })
}

/// The slowest tests by program, the programs with the most of their time first.
pub(super) fn slowest_by_program(outcome: &Outcome) -> String {
    let slowest = outcome.slowest(LISTED);
    let mut programs: BTreeMap<&str, Vec<(&str, f64)>> = BTreeMap::new();
    for (name, seconds) in &slowest {
        let (program, test) = name.split_once(' ').unwrap_or((name, ""));
        programs.entry(program).or_default().push((test, *seconds));
    }
    let sum = |tests: &[(&str, f64)]| tests.iter().map(|(_, seconds)| seconds).sum::<f64>();
    let mut programs: Vec<_> = programs.into_iter().collect();
    programs.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)));
    let mut text = String::new();
    for (program, tests) in programs {
        let _ = writeln!(
            text,
            "{program}: {} of the {} slowest, {:.1} s",
            tests.len(),
            slowest.len(),
            sum(&tests)
        );
        for (test, seconds) in tests {
            let _ = writeln!(text, "  {seconds:>7.1} s  {test}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &[&str]) -> Outcome {
        let mut outcome = Outcome::default();
        for line in lines {
            let (program, line) = line.split_once(": ").unwrap();
            outcome.read(program, line);
        }
        outcome
    }

    #[test]
    fn announcement_names_what_is_missing_and_the_last_time() {
        let missing = ["PgBouncer".to_owned(), "yamllint==1.38.0".to_owned()];
        let last = Some(Duration::from_secs(570));
        assert_eq!(
            announcement(&missing, last),
            "test: this will be installed: PgBouncer, yamllint==1.38.0\n\
             test: the last whole run took 9 min 30 s (budget 10 min 0 s)\n"
        );
        assert_eq!(
            announcement(&[], None),
            "test: all that the tests need is installed\n\
             test: the budget of a whole run, once everything is built, is 10 min 0 s\n"
        );
    }

    #[test]
    fn summary_has_slow_and_failed_tests_and_the_servers() {
        let outcome = outcome(&[
            "ops: test quick ... ok <0.001s>",
            "ops: test wrong ... FAILED <2.500s>",
            "ops: test wrong ... FAILED <1.500s>",
            "ops: test other ... FAILED <0.5s>",
            "ops: test result: FAILED. 1 passed; 3 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0s",
        ]);
        let servers = ["SQLite (bundled)".to_owned()];
        assert_eq!(
            summary(&outcome, Duration::from_secs(61), &servers),
            "\ntest: the 4 slowest of 1\n      \
             2.5 s  ops wrong\n      1.5 s  ops wrong\n      0.5 s  ops other\n      0.0 s  ops quick\n\
             test: FAILED ops other\ntest: FAILED ops wrong (2 times)\n\
             test: took 1 min 1 s, on\n  SQLite (bundled)\n\
             test: 2 ignored, which is not allowed\n"
        );
    }

    #[test]
    fn summary_of_a_run_without_tests_says_so() {
        let text = summary(&outcome(&[]), Duration::ZERO, &[]);
        assert!(text.ends_with("test: nothing ran\n"), "{text}");
    }

    #[test]
    fn run_above_the_budget_is_warned_about() {
        assert_eq!(budget_warning(BUDGET), None);
        let warning = budget_warning(BUDGET + Duration::from_secs(16)).unwrap();
        assert!(
            warning
                .starts_with("test: warning: the run took 10 min 16 s, the budget is 10 min 0 s; "),
            "{warning}"
        );
    }

    #[test]
    fn budget_is_the_one_of_the_guide() {
        let guide = include_str!("../../../CONTRIBUTING.md");
        let budget = BUDGET.as_secs() / 60;
        let sentence = format!("The budget of a whole run is {budget} minutes on two cores");
        assert!(guide.contains(&sentence), "CONTRIBUTING.md: {sentence}");
    }

    #[test]
    fn slowest_tests_are_listed_by_program() {
        let mut lines = vec![
            "cli::load: test memory ... ok <40.0s>".to_owned(),
            "cli::graphs: test crashes ... ok <30.0s>".to_owned(),
            "cli::graphs: test others ... ok <20.0s>".to_owned(),
        ];
        lines.extend((0..LISTED).map(|n| format!("ops: test t{n} ... ok <0.1s>")));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = slowest_by_program(&outcome(&lines));
        let begin = "cli::graphs: 2 of the 50 slowest, 50.0 s\n     30.0 s  crashes\n     20.0 s  others\n\
                     cli::load: 1 of the 50 slowest, 40.0 s\n     40.0 s  memory\nops: 47 of the 50 slowest, 4.7 s\n";
        assert!(text.starts_with(begin), "{text}");
        assert_eq!(text.lines().count(), 3 + LISTED);
    }
}
