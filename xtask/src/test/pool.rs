//! Runs test programs, several at once where there are cores for it. Shows a line for each with the progress, and all that a failed one printed.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
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
    let (shared, alone) = parts(programs, arguments);
    let progress = Progress::of(shared.len() + alone.len());
    let run_one = |program: &TestProgram| -> Result<()> {
        let run = run_one(program, arguments, environment, interrupt)?;
        print!("{}", run.line(program, &progress.next()));
        lock(&sum).add(run.outcome);
        Ok(())
    };
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
) -> Result<Run> {
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
    Ok(Run {
        outcome,
        has_succeeded: status.success(),
        said,
        took: begun.elapsed(),
    })
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

/// How many programs have ended.
struct Progress {
    ended: AtomicUsize,
    all: usize,
}

impl Progress {
    fn of(all: usize) -> Self {
        Self {
            ended: AtomicUsize::new(0),
            all,
        }
    }

    /// Counts one more: `3 of 51`.
    fn next(&self) -> String {
        let ended = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{ended} of {}", self.all)
    }
}

/// A program that has ended.
struct Run {
    outcome: Outcome,
    has_succeeded: bool,
    said: String,
    took: Duration,
}

impl Run {
    /// One line, and all output if it failed; nothing if no test was selected. One text, so that the lines of two programs do not mix.
    fn line(&self, program: &TestProgram, progress: &str) -> String {
        let Outcome { passed, .. } = self.outcome;
        let failed = match self.outcome.failed() {
            0 if passed == 0 && self.has_succeeded => return String::new(),
            0 => String::new(),
            failed => format!(", {failed} FAILED"),
        };
        let server = program.postgres.as_ref();
        let on = server.map_or_else(String::new, |server| {
            format!(" on PostgreSQL {}", server.version)
        });
        let details = if self.has_succeeded { "" } else { &self.said };
        format!(
            "test: {progress}: {}: {passed} passed{failed} in {}{on}\n{details}",
            program.name,
            minutes(self.took)
        )
    }
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

    #[test]
    fn each_program_has_a_line_with_the_progress() {
        let program = TestProgram::named("ops");
        let progress = Progress::of(51);
        let run = |lines: &[&str], has_succeeded| {
            let mut outcome = Outcome::default();
            for line in lines {
                outcome.read("ops", line);
            }
            let run = Run {
                outcome,
                has_succeeded,
                said: "all that it printed\n".to_owned(),
                took: Duration::from_millis(1_300),
            };
            run.line(&program, &progress.next())
        };
        let passed = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s";
        assert_eq!(
            run(&[passed], true),
            "test: 1 of 51: ops: 3 passed in 1.3 s\n"
        );
        assert_eq!(run(&[], true), "", "no test of it was selected");
        assert_eq!(
            run(&[passed, "test x ... FAILED <1s>"], false),
            "test: 3 of 51: ops: 3 passed, 1 FAILED in 1.3 s\nall that it printed\n"
        );
    }
}
