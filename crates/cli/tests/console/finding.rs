//! How a command finds its server, key and workspace.

use crate::cli_env::{CliEnv, program, run};
use leasehold_testkit::temp_dir;
use std::fs;

#[test]
fn no_flags_needed_in_the_servers_directory_and_below() {
    let env = CliEnv::new();
    let below = env.dir().join("a/b");
    fs::create_dir_all(&below).unwrap();
    for dir in [env.dir(), &below] {
        let output = run(program(dir, &["key", "me", "-o", "json"]), "");
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.out.contains("\"kind\": \"admin\""), "{output:?}");
    }
}

#[test]
fn flags_and_variables_name_server_and_key() {
    let env = CliEnv::new();
    let elsewhere = temp_dir();
    let dir = env.dir().join("leasehold-data");
    let dir = dir.to_str().unwrap();
    let key_file = format!("{dir}/admin.key");
    for arguments in [
        vec!["key", "--data-dir", dir, "me"],
        vec!["key", "me", "--data-dir", dir],
        vec![
            "key",
            "me",
            "--server",
            &env.address(),
            "--key-file",
            &key_file,
        ],
    ] {
        let output = run(program(elsewhere.path(), &arguments), "");
        assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
    }
    let variables = [
        vec![("LEASEHOLD__DATA_DIR", dir.to_owned())],
        vec![
            ("LEASEHOLD_SERVER", env.address()),
            ("LEASEHOLD_KEY", env.key()),
        ],
        vec![
            ("LEASEHOLD_SERVER", env.address()),
            ("LEASEHOLD_KEY_FILE", key_file),
        ],
    ];
    for variables in variables {
        let mut command = program(elsewhere.path(), &["key", "me"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let output = run(command, "");
        assert_eq!(output.code, 0, "{variables:?}: {output:?}");
    }
}

#[test]
fn empty_key_variable_is_an_error() {
    let env = CliEnv::new();
    for name in ["LEASEHOLD_KEY", "LEASEHOLD_KEY_FILE"] {
        let output = env.run_with_env("key me", &[(name, "")]);
        assert_eq!(output.code, 4, "{output:?}");
        assert!(output.err.contains(name), "{output:?}");
    }
}

#[test]
fn missing_server_is_explained() {
    let elsewhere = temp_dir();
    let output = run(program(elsewhere.path(), &["key", "me"]), "");
    assert_eq!(output.code, 2, "{output:?}");
    for named in [
        "leasehold-data",
        "leasehold serve",
        "--data-dir",
        "--server",
    ] {
        assert!(output.err.contains(named), "{named}: {output:?}");
    }
}

#[test]
fn workspace_is_found_by_name_id_or_key() {
    let env = CliEnv::new();
    env.ok("workspace create acme --plan enterprise --limit 7");
    let acme = env.ok("workspace get acme -o json");
    let acme: serde_json::Value = serde_json::from_str(&acme).unwrap();
    let id = acme["workspace"]["id"].as_str().unwrap();
    assert_eq!(acme["slots"]["limit"], 7);
    env.file(
        "pause.json",
        r#"{"nodes": [{"id": "p", "type": "delay", "milliseconds": 1}]}"#,
    );
    env.ok("definition publish pause pause.json -w acme");
    assert!(env.ok("definition list -w acme").contains("pause"));
    assert!(
        env.ok(&format!("definition list -w {id}"))
            .contains("pause")
    );
    assert!(!env.ok("definition list").contains("pause"));
    let with_workspace = [("LEASEHOLD_WORKSPACE", "acme")];
    assert!(
        env.run_with_env("definition list", &with_workspace)
            .out
            .contains("pause")
    );
    // A workspace key implies its workspace and sees nothing else.
    let key = env.ok("key create acme --for-workspace acme");
    for words in ["definition list", "definition list -w acme"] {
        let output = env.run_with_key(words, &key);
        assert!(output.out.contains("pause"), "{words}: {output:?}");
    }
    let enqueued = env.run_with_key("request enqueue pause", &key);
    let request = enqueued.out.trim();
    let watched = env.run_with_key(&format!("request watch {request}"), &key);
    assert_eq!(watched.code, 0, "{watched:?}");
    // An administrator need not name the workspace of a request.
    let found = env.ok(&format!("request get {request}"));
    assert!(found.contains("workspace   acme"), "{found}");
    // A deleted workspace is not found by name, and its key opens nothing.
    env.ok("workspace delete acme");
    assert_eq!(env.run("definition list -w acme").code, 3);
    assert_eq!(env.run_with_key("definition list", &key).code, 4);
}
