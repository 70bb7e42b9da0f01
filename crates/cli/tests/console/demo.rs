//! `leasehold demo` without a terminal: it runs, prints figures, and removes its data.

use crate::TIMEOUT;
use crate::cli_env::{program, run};
use leasehold_testkit::{Process, temp_dir};

/// The number after a word in a line of figures.
fn figure(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split_whitespace().skip_while(|one| *one != word);
    words.nth(1)?.trim_end_matches(',').parse().ok()
}

#[test]
fn demo_runs_until_stopped_and_removes_its_data() {
    let (dir, temporary) = (temp_dir(), temp_dir());
    let mut command = program(dir.path(), &["demo", "--plain", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", temporary.path());
    let mut demo = Process::spawn(command);
    let line = demo.wait_for_line(TIMEOUT, |line| {
        figure(line, "completed").is_some_and(|done| done > 0)
    });
    assert!(figure(&line, "waiting").is_some(), "{line}");
    let data = demo.wait_for_line(TIMEOUT, |line| line.trim().starts_with("data "));
    let data = data.split_whitespace().nth(1).unwrap();
    // Other commands find the server through the data directory.
    let output = run(
        program(dir.path(), &["workspace", "list", "--data-dir", data]),
        "",
    );
    for name in ["sparrow", "acme", "globex", "magpie"] {
        assert!(output.out.contains(name), "{output:?}");
    }
    demo.terminate();
    assert!(demo.wait(TIMEOUT).success(), "{}", demo.log());
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn demo_reports_a_port_in_use() {
    let in_use = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = in_use.local_addr().unwrap().to_string();
    let dir = temp_dir();
    let output = run(
        program(dir.path(), &["demo", "--plain", "--listen", &in_use]),
        "",
    );
    assert_eq!(output.code, 8, "{output:?}");
    assert!(output.err.contains("--listen"), "{output:?}");
}
