//! Runs the commands of the README, the quick start and the examples as a reader would, in a directory like a fresh clone.

use crate::TIMEOUT;
use crate::cli_env::program;
use leasehold_testkit::{Process, TempDir, temp_dir};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the pages start the program.
const FROM_SOURCE: &str = "cargo run --release --";
/// The address on the pages; the test uses a free port.
const DOCUMENTED_ADDRESS: &str = "127.0.0.1:7777";

/// A code block and mode to run it.
#[derive(Debug, PartialEq)]
struct Block {
    mode: String,
    text: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The shell blocks of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(info) if !open => {
                open = true;
                let mode = if info.starts_with("sh") {
                    info
                } else {
                    "other"
                };
                blocks.push(Block {
                    mode: mode.to_owned(),
                    text: String::new(),
                });
            }
            Some(_) => open = false,
            None if open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks.retain(|block| block.mode != "other");
    blocks
}

/// A directory with the examples.
fn clone() -> TempDir {
    let dir = temp_dir();
    let examples = repository().join("examples");
    std::os::unix::fs::symlink(examples, dir.path().join("examples")).unwrap();
    dir
}

/// Starts the server of the first block; returns its address.
fn serve(dir: &Path, block: &Block) -> (Process, String) {
    let command = block
        .text
        .lines()
        .find(|line| line.contains(FROM_SOURCE))
        .unwrap();
    let (before, after) = command.split_once(FROM_SOURCE).unwrap();
    let arguments: Vec<&str> = after
        .split('#')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let mut command = program(dir, &arguments);
    for variable in before.split_whitespace() {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(name, value);
    }
    command.env("LEASEHOLD__SERVER__LISTEN", "127.0.0.1:0");
    let serve = Process::spawn(command);
    serve.wait_for_line(TIMEOUT, |line| line.contains("leasehold is running"));
    let address = std::fs::read_to_string(dir.join("leasehold-data/address")).unwrap();
    let address = address.trim().trim_start_matches("http://").to_owned();
    (serve, address)
}

/// Runs every block of a page in one shell; returns the output.
fn run_page(page: &str) -> String {
    let dir = clone();
    let page = std::fs::read_to_string(repository().join(page)).unwrap();
    let mut server: Option<(Process, String)> = None;
    // A second `serve` block replaces the first server.
    let mut output = String::new();
    let mut script = String::new();
    for block in blocks(&page) {
        match block.mode.as_str() {
            "sh serve" => {
                if let Some((mut process, address)) = server.take() {
                    output.push_str(&shell(dir.path(), &script, &address));
                    script.clear();
                    end(&mut process);
                }
                server = Some(serve(dir.path(), &block));
            }
            "sh background" => {
                script.push_str(&format!("( {} ) &\n", block.text.trim()));
            }
            "sh" => script.push_str(&block.text),
            "sh norun" => {}
            other => panic!("unknown block mode `{other}`"),
        }
    }
    let (mut process, address) = server.unwrap();
    output.push_str(&shell(dir.path(), &script, &address));
    end(&mut process);
    output
}

fn end(serve: &mut Process) {
    serve.terminate();
    assert!(serve.wait(TIMEOUT).success(), "{}", serve.log());
}

fn shell(dir: &Path, script: &str, address: &str) -> String {
    let script = script.replace(DOCUMENTED_ADDRESS, address);
    let program = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args([
            "-c",
            &format!("set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nset -x\n{script}"),
        ])
        .current_dir(dir)
        .env_clear()
        .env("PATH", format!("{}:{path}", program.display()))
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out.into_owned()
}

#[test]
fn readme_commands_work() {
    let output = run_page("README.md");
    // The first workflow, and the one with a worker.
    assert_eq!(output.matches("COMPLETED  after").count(), 2, "{output}");
}

#[test]
fn first_workflow_of_the_readme_takes_four_commands() {
    let page = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let blocks = blocks(&page);
    let first = blocks
        .iter()
        .find(|block| block.text.contains("request watch"))
        .unwrap();
    let commands = first.text.split("\nEOT\n").flat_map(|part| {
        // The content of a here-document is no command.
        if part.contains("<<") {
            part.lines().take(1).collect::<Vec<_>>()
        } else {
            part.lines().collect()
        }
    });
    let commands: Vec<&str> = commands.collect();
    assert_eq!(commands.len(), 4, "{commands:#?}");
}

#[test]
fn quick_start_commands_work() {
    let output = run_page("docs/quick-start.md");
    for part in ["refused with exit code 2", "ended with exit code 7"] {
        assert!(output.contains(part), "{part}\n{output}");
    }
}

#[test]
fn example_commands_work() {
    run_page("examples/README.md");
}
