//! `promtool`, the checker of Prometheus, from Debian's package `prometheus`. Installs nothing and starts no Prometheus.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The Debian package of promtool.
pub const PROMTOOL_PACKAGE: &str = "prometheus";

const PROGRAM: &str = "promtool";

/// Returns the first line of promtool's version, if it is installed.
#[must_use]
pub fn promtool_version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").output().ok()?;
    // Some versions print it to standard error.
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let first = printed.lines().next()?.trim();
    output.status.success().then(|| first.to_owned())
}

/// Runs promtool with these arguments and this input, and returns its output.
///
/// # Panics
/// When promtool is not installed: `cargo xtask setup` installs it.
#[must_use]
pub fn promtool(arguments: &[&str], input: &str) -> Output {
    let spawned = Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.unwrap_or_else(|error| {
        panic!(
            "Debian's package {PROMTOOL_PACKAGE} is not installed ({error}); run: cargo xtask setup"
        )
    });
    let mut pipe = child.stdin.take();
    std::thread::scope(|scope| {
        // Writes while the output is read, since promtool may print before it has read all input. A closed pipe is no error here.
        scope.spawn(move || pipe.take().map(|mut pipe| pipe.write_all(input.as_bytes())));
        child.wait_with_output()
    })
    .unwrap_or_else(|error| panic!("failed to read the output of {PROGRAM}: {error}"))
}

/// Checks metrics in Prometheus' text format; promtool must report nothing.
///
/// # Panics
/// When promtool reports a problem or is not installed.
pub fn check_metrics(text: &str) {
    let output = promtool(&["check", "metrics"], text);
    let report = [output.stdout, output.stderr].concat();
    let report = String::from_utf8_lossy(&report);
    assert!(
        output.status.success() && report.trim().is_empty(),
        "promtool check metrics, {}:\n{report}\ninput:\n{text}",
        output.status
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_metrics_pass() {
        check_metrics("# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 1\n");
    }

    #[test]
    #[should_panic(expected = "counter metrics should have \"_total\" suffix")]
    fn metric_with_invalid_name_fails() {
        check_metrics("# HELP calls Calls.\n# TYPE calls counter\ncalls 1\n");
    }

    #[test]
    #[should_panic(expected = "promtool check metrics")]
    fn text_without_metrics_fails() {
        check_metrics("this is no metric\n");
    }
}
