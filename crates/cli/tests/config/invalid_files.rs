//! `leasehold config check` reports every problem with line, key and rule, and no secret.

use crate::cases::{FILES, NAMES, NUMBERS_AND_TIMES, TOGETHER, WORDS};
use crate::program::{CommandEnv, CommandOutput};

const FILE: &str = "leasehold.toml";

/// Runs `config check` on a file.
fn check(env: &CommandEnv, text: impl AsRef<[u8]>) -> CommandOutput {
    env.write(FILE, text).run(&["config", "check", FILE])
}

#[test]
fn invalid_file_is_reported_with_line_key_and_rule() {
    let env = CommandEnv::new();
    env.write("text", "nothing of interest\n");
    env.write(
        "pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let all = [NUMBERS_AND_TIMES, WORDS, NAMES, TOGETHER, FILES].concat();
    assert!(all.len() >= 50, "{}", all.len());
    for (text, line, key, allowed) in all {
        let output = check(&env, text);
        assert_eq!(output.code, 2, "{text:?}: {output:?}");
        let begin = format!("{FILE}:{line}: {key}: ");
        let first = output.stderr.lines().next().unwrap();
        let rest = first.strip_prefix(&begin);
        let rest = rest.unwrap_or_else(|| panic!("{text:?}: {output:?} has no {begin:?}"));
        assert!(
            rest.contains(allowed),
            "{text:?}: {rest:?} has no {allowed:?}"
        );
        assert!(!output.stderr.contains("hush"), "{output:?}");
        assert_eq!(output.stderr.lines().count(), 2, "{text:?}: {output:?}");
        assert!(
            output.error().starts_with("1 problem in the settings"),
            "{output:?}"
        );
        assert_eq!(output.stdout, "");
    }
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let env = CommandEnv::new();
    for (text, line, expected) in [
        ("[dispatch]\nbatch_size 10\n", 2, "expected"),
        ("[dispatch]\nbatch_size =\n", 2, "invalid TOML"),
        ("[dispatch\n", 1, "expected `]`"),
        (
            "[store]\n\nurl = \"postgres://me:hush@db\n",
            3,
            "invalid TOML",
        ),
        (
            "[log]\nlevel = \"info\"\nlevel = \"warn\"\n",
            3,
            "duplicate key",
        ),
    ] {
        let output = check(&env, text);
        assert_eq!(output.code, 2, "{output:?}");
        let begin = format!("{FILE}:{line}: ");
        assert!(output.stderr.starts_with(&begin), "{text:?}: {output:?}");
        assert!(output.stderr.contains(expected), "{text:?}: {output:?}");
        assert!(!output.stderr.contains("hush"), "{output:?}");
    }
    let output = check(&env, b"[log]\nlevel = \"\xff\"\n");
    assert!(
        output
            .stderr
            .starts_with("leasehold.toml:2: must be UTF-8 text"),
        "{output:?}"
    );
    let output = env.run(&["config", "check", "nowhere.toml"]);
    assert!(
        output
            .stderr
            .starts_with("nowhere.toml: cannot read the configuration file"),
        "{output:?}"
    );
    assert_eq!(output.code, 2);
}

#[test]
fn all_problems_are_listed_in_order_as_text_and_json() {
    let env = CommandEnv::new()
        .variable("LEASEHOLD__SWEEP__RATE", "fast")
        .variable("LEASEHOLD__SWEEP__RATES", "1");
    let text = "[dispatch]\nbatch_size = 0\nmodes = 1\n\n[log]\nlevel = \"loud\"\n";
    let output = check(&env, text);
    let lines: Vec<&str> = output.stderr.lines().collect();
    let begins = [
        "leasehold.toml:2: dispatch.batch_size: ",
        "leasehold.toml:3: dispatch.modes: ",
        "leasehold.toml:6: log.level: ",
        "LEASEHOLD__SWEEP__RATE: must be an integer from 1 to 1000, is `fast`",
        "LEASEHOLD__SWEEP__RATES: unknown setting; did you mean sweep.rate?",
        "error: 5 problems",
    ];
    assert_eq!(lines.len(), begins.len(), "{output:?}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line:?} {begin:?}");
    }
    let output = env.run(&["config", "check", FILE, "-o", "json"]);
    assert_eq!(output.code, 2);
    let problems: Vec<serde_json::Value> = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(problems.len(), 5);
    assert_eq!(problems[0]["file"], FILE);
    assert_eq!(problems[0]["line"], 2);
    assert_eq!(problems[0]["key"], "dispatch.batch_size");
    assert_eq!(problems[0]["message"], "must be from 1 to 1000, is 0");
    assert_eq!(problems[3]["from"], "LEASEHOLD__SWEEP__RATE");
    assert_eq!(problems[3]["file"], serde_json::Value::Null);

    // Other commands print the first problem on one line.
    let output = env.run(&["serve", "--config", FILE]);
    assert_eq!(output.code, 2, "{output:?}");
    let line = output.error();
    assert!(line.starts_with(begins[0]), "{line}");
    assert!(
        line.ends_with("(4 more problems; list all with `leasehold config check leasehold.toml`)"),
        "{line}"
    );
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
}

#[test]
fn invalid_flag_value_names_the_flag() {
    let env = CommandEnv::new();
    for (arguments, begin) in [
        (["serve", "--listen", "7777"], "--listen: must be host:port"),
        (
            ["serve", "--log-level", "loud"],
            "--log-level: must be error, warn,",
        ),
        (["serve", "--store", "db"], "--store: must be `sqlite:FILE`"),
        (
            ["worker", "--concurrency", "0"],
            "--concurrency: must be from 1 to 100000, is 0",
        ),
    ] {
        let output = env.run(&arguments);
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.error().starts_with(begin), "{output:?}");
    }
}

#[test]
fn valid_file_is_summarized() {
    let env = CommandEnv::new();
    let output = env.run(&["config", "check"]).success();
    assert_eq!(output.stdout, "no file and no variables; all defaults\n");
    let output = check(&env, "[dispatch]\nbatch_size = 10\nmode = \"parallel\"\n").success();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("leasehold.toml: 2 settings, valid\n", "")
    );
    let env = env.variable("LEASEHOLD__SWEEP__RATE", "7");
    let output = env.run(&["config", "check", "--config", FILE]).success();
    assert_eq!(
        output.stdout,
        "leasehold.toml: 2 settings and 1 variable, valid\n"
    );
    let output = env.run(&["config", "check", FILE, "-o", "json"]).success();
    assert_eq!(output.stdout, "[]\n");
    // The check creates nothing.
    assert!(!env.path("leasehold-data").exists());
}
