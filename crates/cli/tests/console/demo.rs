//! `leasehold demo` without a terminal: it plays, it tells, and it leaves nothing behind.

use crate::PATIENCE;
use crate::cli_env::{program, run};
use leasehold_testkit::{Process, temp_dir};

/// The figure behind a word in a line of figures.
fn figure(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split_whitespace().skip_while(|one| *one != word);
    words.nth(1)?.trim_end_matches(',').parse().ok()
}

#[test]
fn it_plays_until_it_is_told_to_stop_and_cleans_up_behind_itself() {
    let (folder, passing) = (temp_dir(), temp_dir());
    let mut command = program(
        folder.path(),
        &["demo", "--plain", "--listen", "127.0.0.1:0"],
    );
    command.env("TMPDIR", passing.path());
    let mut demo = Process::spawn(command);
    let line = demo.wait_for_line(PATIENCE, |line| {
        figure(line, "completed").is_some_and(|done| done > 0)
    });
    assert!(figure(&line, "waiting").is_some(), "{line}");
    let data = demo.wait_for_line(PATIENCE, |line| line.trim().starts_with("data "));
    let data = data.split_whitespace().nth(1).unwrap();
    // Every other command finds its way in by the folder.
    let said = run(
        program(folder.path(), &["workspace", "list", "--data-dir", data]),
        "",
    );
    for name in ["sparrow", "acme", "globex", "magpie"] {
        assert!(said.out.contains(name), "{said:?}");
    }
    demo.terminate();
    assert!(demo.wait(PATIENCE).success(), "{}", demo.log());
    assert_eq!(std::fs::read_dir(passing.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_port_that_is_taken_is_told_like_everywhere() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let folder = temp_dir();
    let said = run(
        program(folder.path(), &["demo", "--plain", "--listen", &taken]),
        "",
    );
    assert_eq!(said.code, 8, "{said:?}");
    assert!(said.err.contains("--listen"), "{said:?}");
}
