//! Prometheus' own checker, `promtool`, of Debian's package `prometheus`. Installs nothing, and starts no Prometheus.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Debian's package that has it.
pub const PROMTOOL_PACKAGE: &str = "prometheus";

const PROGRAM: &str = "promtool";

/// What it says of its version, if it is installed.
#[must_use]
pub fn promtool_version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").output().ok()?;
    // Some versions say it to standard error.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().next()?.trim();
    output.status.success().then(|| first.to_owned())
}

/// What it says with these arguments and this input.
///
/// # Panics
/// When it is not installed: `cargo xtask setup` installs it.
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
        // Beside the reading: it may speak before it has read all. One that stops listening says why.
        scope.spawn(move || pipe.take().map(|mut pipe| pipe.write_all(input.as_bytes())));
        child.wait_with_output()
    })
    .unwrap_or_else(|error| panic!("{PROGRAM} could not be read: {error}"))
}

/// Has it judge metrics in Prometheus' text format: it must find nothing at all to say.
///
/// # Panics
/// When it finds something, or is not installed.
pub fn check_metrics(text: &str) {
    let output = promtool(&["check", "metrics"], text);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        output.status.success() && said.trim().is_empty(),
        "promtool check metrics, {}:\n{said}\nof\n{text}",
        output.status
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_metrics_pass() {
        check_metrics("# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 1\n");
    }

    #[test]
    #[should_panic(expected = "counter metrics should have \"_total\" suffix")]
    fn metrics_with_bad_names_do_not() {
        check_metrics("# HELP calls Calls.\n# TYPE calls counter\ncalls 1\n");
    }

    #[test]
    #[should_panic(expected = "promtool check metrics")]
    fn what_is_no_metric_does_not() {
        check_metrics("this is no metric\n");
    }
}
