//! Runs a command, optionally shows its output, and passes each line to a reader. Knows nothing of tests.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use crate::interrupt::Interrupt;

/// Runs a command and shows its output.
pub(crate) fn run(
    command: &mut Command,
    interrupt: &Interrupt,
    on_line: impl FnMut(&str),
) -> Result<ExitStatus> {
    run_to(command, interrupt, &mut io::stdout(), on_line)
}

/// Runs a command without showing its output.
pub(crate) fn read(
    command: &mut Command,
    interrupt: &Interrupt,
    on_line: impl FnMut(&str),
) -> Result<ExitStatus> {
    run_to(command, interrupt, &mut io::sink(), on_line)
}

/// Uses a separate process group, so that a signal reaches all its children once.
fn run_to(
    command: &mut Command,
    interrupt: &Interrupt,
    to: &mut impl Write,
    mut on_line: impl FnMut(&str),
) -> Result<ExitStatus> {
    interrupt.check()?;
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    interrupt.add(child.id());
    let shown = match child.stdout.take() {
        Some(output) => tee(BufReader::new(output), to, &mut on_line),
        None => Ok(()),
    };
    let status = child.wait();
    interrupt.remove(child.id());
    interrupt.check()?;
    shown?;
    Ok(status?)
}

/// Copies output immediately, also partial lines ("test x ... "), and passes on each complete line.
fn tee(
    mut from: impl BufRead,
    to: &mut impl Write,
    on_line: &mut impl FnMut(&str),
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        to.write_all(piece)?;
        to.flush()?;
        for byte in piece {
            if *byte == b'\n' {
                on_line(&String::from_utf8_lossy(&line));
                line.clear();
            } else {
                line.push(*byte);
            }
        }
        let length = piece.len();
        from.consume(length);
    }
    if !line.is_empty() {
        on_line(&String::from_utf8_lossy(&line));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_copied_and_read_by_line() {
        let mut shown = Vec::new();
        let mut lines = Vec::new();
        let output = BufReader::with_capacity(3, &b"one\ntwo\nrest"[..]);
        tee(output, &mut shown, &mut |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(shown, b"one\ntwo\nrest");
        assert_eq!(lines, ["one", "two", "rest"]);
    }
}
