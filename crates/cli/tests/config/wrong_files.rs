//! What is wrong with a file of settings is named with its line, its key and what is allowed; all of it, and no secret.

use crate::cases::{FILES, NAMES, NUMBERS_AND_TIMES, TOGETHER, WORDS};
use crate::program::{Ended, Folder};

const FILE: &str = "leasehold.toml";

/// What `config check` says of a file.
fn check(folder: &Folder, text: impl AsRef<[u8]>) -> Ended {
    folder.write(FILE, text).run(&["config", "check", FILE])
}

#[test]
fn each_wrong_file_is_answered_with_its_line_its_key_and_what_is_allowed() {
    let folder = Folder::new();
    folder.write("text", "nothing of interest\n");
    folder.write(
        "pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let all = [NUMBERS_AND_TIMES, WORDS, NAMES, TOGETHER, FILES].concat();
    assert!(all.len() >= 50, "{}", all.len());
    for (text, line, key, allowed) in all {
        let ended = check(&folder, text);
        assert_eq!(ended.code, 2, "{text:?}: {ended:?}");
        let begin = format!("{FILE}:{line}: {key}: ");
        let first = ended.stderr.lines().next().unwrap();
        let rest = first.strip_prefix(&begin);
        let rest = rest.unwrap_or_else(|| panic!("{text:?}: {ended:?} has no {begin:?}"));
        assert!(
            rest.contains(allowed),
            "{text:?}: {rest:?} has no {allowed:?}"
        );
        assert!(!ended.stderr.contains("hush"), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 2, "{text:?}: {ended:?}");
        assert!(
            ended.error().starts_with("1 problem in the settings"),
            "{ended:?}"
        );
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn a_file_that_is_no_toml_is_answered_with_the_line_and_what_was_expected() {
    let folder = Folder::new();
    for (text, line, expected) in [
        ("[dispatch]\nbatch_size 10\n", 2, "expected"),
        ("[dispatch]\nbatch_size =\n", 2, "this is no TOML"),
        ("[dispatch\n", 1, "expected `]`"),
        (
            "[store]\n\nurl = \"postgres://me:hush@db\n",
            3,
            "this is no TOML",
        ),
        (
            "[log]\nlevel = \"info\"\nlevel = \"warn\"\n",
            3,
            "duplicate key",
        ),
    ] {
        let ended = check(&folder, text);
        assert_eq!(ended.code, 2, "{ended:?}");
        let begin = format!("{FILE}:{line}: ");
        assert!(ended.stderr.starts_with(&begin), "{text:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{text:?}: {ended:?}");
        assert!(!ended.stderr.contains("hush"), "{ended:?}");
    }
    let ended = check(&folder, b"[log]\nlevel = \"\xff\"\n");
    assert!(
        ended
            .stderr
            .starts_with("leasehold.toml:2: must be text in UTF-8"),
        "{ended:?}"
    );
    let ended = folder.run(&["config", "check", "nowhere.toml"]);
    assert!(
        ended
            .stderr
            .starts_with("nowhere.toml: the configuration file cannot be read"),
        "{ended:?}"
    );
    assert_eq!(ended.code, 2);
}

#[test]
fn everything_that_is_wrong_is_named_in_order_and_for_programs_too() {
    let folder = Folder::new()
        .variable("LEASEHOLD__SWEEP__RATE", "fast")
        .variable("LEASEHOLD__SWEEP__RATES", "1");
    let text = "[dispatch]\nbatch_size = 0\nmodes = 1\n\n[log]\nlevel = \"loud\"\n";
    let ended = check(&folder, text);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let begins = [
        "leasehold.toml:2: dispatch.batch_size: ",
        "leasehold.toml:3: dispatch.modes: ",
        "leasehold.toml:6: log.level: ",
        "LEASEHOLD__SWEEP__RATE: must be a whole number from 1 to 1000, is `fast`",
        "LEASEHOLD__SWEEP__RATES: there is no such setting; did you mean sweep.rate?",
        "error: 5 problems",
    ];
    assert_eq!(lines.len(), begins.len(), "{ended:?}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line:?} {begin:?}");
    }
    let ended = folder.run(&["config", "check", FILE, "-o", "json"]);
    assert_eq!(ended.code, 2);
    let problems: Vec<serde_json::Value> = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(problems.len(), 5);
    assert_eq!(problems[0]["file"], FILE);
    assert_eq!(problems[0]["line"], 2);
    assert_eq!(problems[0]["key"], "dispatch.batch_size");
    assert_eq!(problems[0]["message"], "must be from 1 to 1000, is 0");
    assert_eq!(problems[3]["from"], "LEASEHOLD__SWEEP__RATE");
    assert_eq!(problems[3]["file"], serde_json::Value::Null);

    // A command that needs the settings says the first of them, in one line.
    let ended = folder.run(&["serve", "--config", FILE]);
    assert_eq!(ended.code, 2, "{ended:?}");
    let line = ended.error();
    assert!(line.starts_with(begins[0]), "{line}");
    assert!(
        line.ends_with("(4 more are wrong: `leasehold config check leasehold.toml` lists all)"),
        "{line}"
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
}

#[test]
fn a_flag_that_is_wrong_is_named_as_it_was_written() {
    let folder = Folder::new();
    for (arguments, begin) in [
        (
            ["serve", "--listen", "7777"],
            "--listen: must be an address with a port",
        ),
        (
            ["serve", "--log-level", "loud"],
            "--log-level: must be error, warn,",
        ),
        (
            ["serve", "--store", "db"],
            "--store: must be `sqlite:` and a file",
        ),
        (
            ["worker", "--concurrency", "0"],
            "--concurrency: must be from 1 to 100000, is 0",
        ),
    ] {
        let ended = folder.run(&arguments);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.error().starts_with(begin), "{ended:?}");
    }
}

#[test]
fn a_file_that_is_well_is_answered_with_what_was_read() {
    let folder = Folder::new();
    let ended = folder.run(&["config", "check"]).well();
    assert_eq!(
        ended.stdout,
        "no file and no variables: everything is as by default\n"
    );
    let ended = check(
        &folder,
        "[dispatch]\nbatch_size = 10\nmode = \"parallel\"\n",
    )
    .well();
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("leasehold.toml: 2 settings, all well\n", "")
    );
    let folder = folder.variable("LEASEHOLD__SWEEP__RATE", "7");
    let ended = folder.run(&["config", "check", "--config", FILE]).well();
    assert_eq!(
        ended.stdout,
        "leasehold.toml: 2 settings and 1 variable, all well\n"
    );
    let ended = folder.run(&["config", "check", FILE, "-o", "json"]).well();
    assert_eq!(ended.stdout, "[]\n");
    // It makes nothing.
    assert!(!folder.path("leasehold-data").exists());
}
