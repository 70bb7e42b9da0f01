//! Runs test programs, several at once where there are cores for it. Shows a line for each, and all that a failed one printed.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::history::minutes;
use super::outcome::Outcome;
use super::programs::TestProgram;
use super::{TestArguments, with};
use crate::interrupt::Interrupt;

/// Tests of one program at once: some wait for servers while others compute.
const TESTS_AT_ONCE: usize = 4;
/// Programs that measure how fast a server answers under load. They run one by one after the others, so that they measure nothing else.
/// With each, the module whose tests measure no times: these run with the other programs.
const ALONE: [(&str, &str); 1] = [("cli::load", "memory::")];
/// A program that takes longer hangs, and is killed.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// Between two looks at a program.
const LOOK: Duration = Duration::from_millis(20);

/// Runs all of them: first those that may share the machine, then the others one by one.
pub(super) fn run(
    programs: &[TestProgram],
    arguments: &TestArguments,
    environment: &[(&'static str, String)],
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let sum = Mutex::new(Outcome::default());
    let run_one = |program: &TestProgram| -> Result<()> {
        let outcome = run_one(program, arguments, environment, interrupt)?;
        lock(&sum).add(outcome);
        Ok(())
    };
    let (shared, alone) = parts(programs, arguments);
    let waiting = Mutex::new(shared.into_iter());
    let next = || lock(&waiting).next();
    let work = || -> Result<()> {
        while let Some(program) = next() {
            run_one(&program)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..programs_at_once()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            let panicked = |_| anyhow::anyhow!("a thread that runs tests panicked");
            worker.join().map_err(panicked)?
        })
    })?;
    alone.iter().try_for_each(run_one)?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The programs that may share the machine, and those that run alone. Names of tests select as they are given, in whole programs.
fn parts(
    programs: &[TestProgram],
    arguments: &TestArguments,
) -> (Vec<TestProgram>, Vec<TestProgram>) {
    let (mut shared, mut alone) = (Vec::new(), Vec::new());
    for program in programs.iter().cloned() {
        match ALONE.iter().find(|(name, _)| *name == program.name) {
            None => shared.push(program),
            Some(_) if !arguments.filter.is_empty() => alone.push(program),
            Some((_, untimed)) => {
                let part = |options: &[&str]| TestProgram {
                    options: options.iter().map(ToString::to_string).collect(),
                    ..program.clone()
                };
                shared.push(part(&[untimed]));
                alone.push(part(&["--skip", untimed]));
            }
        }
    }
    (shared, alone)
}

/// Half as many again as there are cores: a program that starts servers leaves its core idle for seconds.
fn programs_at_once() -> usize {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    cores + cores.div_ceil(2)
}

fn run_one(
    program: &TestProgram,
    arguments: &TestArguments,
    environment: &[(&'static str, String)],
    interrupt: &Interrupt,
) -> Result<Outcome> {
    interrupt.check()?;
    let mut output = tempfile::tempfile()?;
    let mut command = Command::new(&program.executable);
    with(&mut command, environment, program);
    // The times of tests are an unstable option of the test harness, which this allows with any compiler.
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUST_TEST_THREADS", TESTS_AT_ONCE.to_string())
        .args(["-Zunstable-options", "--report-time"])
        .args(&program.options)
        .args(&arguments.filter)
        .args(&arguments.options)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?);
    let begun = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("{} could not be started", program.executable.display()))?;
    let group = child.id();
    interrupt.add(group);
    let status = wait(child, begun, interrupt, group);
    interrupt.remove(group);
    let status = status?;
    interrupt.check()?;
    let said = read(&mut output)?;
    let mut outcome = Outcome::default();
    for line in said.lines() {
        outcome.read(&program.name, line);
    }
    outcome.settle(&program.name, status.success());
    show(program, &outcome, status, &said, begun.elapsed());
    Ok(outcome)
}

fn wait(mut child: Child, begun: Instant, interrupt: &Interrupt, group: u32) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begun.elapsed() > LONGEST {
            interrupt.kill(group);
            return Ok(child.wait()?);
        }
        thread::sleep(LOOK);
    }
}

fn read(output: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// One line, or everything if it failed.
fn show(program: &TestProgram, outcome: &Outcome, status: ExitStatus, said: &str, took: Duration) {
    if outcome.passed + outcome.failed() == 0 && status.success() {
        return;
    }
    let failed = match outcome.failed() {
        0 => String::new(),
        failed => format!(", {failed} FAILED"),
    };
    // One call, so that the lines of two programs do not mix.
    let details = if status.success() { "" } else { said };
    let server = program.postgres.as_ref();
    let on = server.map_or_else(String::new, |server| {
        format!(" on PostgreSQL {}", server.version)
    });
    print!(
        "test: {}: {} passed{failed} in {}{on}\n{details}",
        program.name,
        outcome.passed,
        minutes(took)
    );
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(filter: &[&str]) -> TestArguments {
        TestArguments {
            full: false,
            repeat: 1,
            postgres: None,
            package: Vec::new(),
            program: Vec::new(),
            filter: filter.iter().map(ToString::to_string).collect(),
            options: Vec::new(),
        }
    }

    #[test]
    fn programs_that_measure_times_run_alone_and_their_other_tests_do_not() {
        let programs = ["core", "cli::load"].map(TestProgram::named);
        let options = |programs: &[TestProgram]| -> Vec<(String, String)> {
            let pair = |p: &TestProgram| (p.name.clone(), p.options.join(" "));
            programs.iter().map(pair).collect()
        };
        let pair = |name: &str, options: &str| (name.to_owned(), options.to_owned());
        let (shared, alone) = parts(&programs, &arguments(&[]));
        assert_eq!(
            options(&shared),
            [pair("core", ""), pair("cli::load", "memory::")]
        );
        assert_eq!(options(&alone), [pair("cli::load", "--skip memory::")]);
        let (shared, alone) = parts(&programs, &arguments(&["attacks"]));
        assert_eq!(options(&shared), [pair("core", "")]);
        assert_eq!(options(&alone), [pair("cli::load", "")]);
    }
}
