//! Fuzz tests of settings: the file, durations, the URL of a store.

use super::HumanDuration;
use super::file;
use super::load::apply;
use crate::store::redacted_url;
use leasehold_testkit::Fuzzer;
use std::path::Path;
use std::time::Duration;

const FILES: &[&str] = &[
    "data_dir = \"x\"\n[store]\nurl = \"postgres://me:hunter2@db/x\"\n[server]\nlisten = \"127.0.0.1:7777\"\n",
    "[dispatch]\nbatch_size = 12\nlease = \"15s\"\n[http_nodes]\nallow = [\"10.0.0.0/8\", \"*.internal\"]\n",
    "[engine]\nenabled = false\nkind = \"temporal\"\n[temporal]\naddress = \"h:1\"\napi_key = \"hunter2\"\n",
];
const TOKENS: &[&str] = &[
    "[",
    "]",
    "=",
    "\"",
    "\n",
    "#",
    ".",
    ",",
    "{}",
    "true",
    "0x7f",
    "1e9",
    "2026-01-01",
    "\"\"\"",
    "'",
    "\\u0000",
    "\u{e4}",
    "[server]\n",
    "[[x]]\n",
    "99999999999999999999999999999999999999999",
    "-1",
    "\"5s\"",
    "key = ",
];

#[test]
fn files() {
    Fuzzer::new(FILES).tokens(TOKENS).run(|input| {
        let mut problems = Vec::new();
        let lines = input.iter().filter(|byte| **byte == b'\n').count() + 1;
        let raw = file::parse(input, Path::new("leasehold.toml"), &mut problems);
        let _ = apply(raw, &mut problems);
        for problem in &problems {
            let at = problem.json();
            let line = at["line"].as_u64().expect("every problem has a line");
            assert!((1..=lines as u64).contains(&line), "{problem}");
        }
        problems.len().min(20)
    });
}

#[test]
fn durations() {
    let examples = ["5s", "250ms", "2m", "1h 30m", "PT5S", "-1s", "1.5h"];
    let tokens = [
        "ms",
        "us",
        "d",
        "w",
        "P",
        "T",
        "-",
        ".",
        "99999999999999999999",
        " ",
    ];
    Fuzzer::new(&examples).tokens(&tokens).run(|input| {
        let text = String::from_utf8_lossy(input);
        let HumanDuration(time) = text.parse().ok()?;
        let shown = HumanDuration(time).to_string();
        let again: Result<HumanDuration, String> = shown.parse();
        assert_eq!(again, Ok(HumanDuration(time)), "{text}");
        Some(time > Duration::from_secs(1))
    });
}

#[test]
fn store_urls_show_no_password() {
    let examples = ["", "a@b", "a/b?c", "me:x@", "?x=y&", "[::1]", "#"];
    let tokens = ["@", ":", "/", "?", "#", "%40", "[", "]", ",", "=", "&"];
    Fuzzer::new(&examples).tokens(&tokens).run(|input| {
        let text = String::from_utf8_lossy(input);
        let (before, after) = text.split_at(text.floor_char_boundary(text.len() / 2));
        let shown = redacted_url(&format!("postgres://me:{before}hunter2{after}@db/x"));
        assert!(!shown.contains("hunter2"), "{shown}");
        shown.len().min(40)
    });
}
