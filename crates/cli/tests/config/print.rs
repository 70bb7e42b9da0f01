//! `leasehold config print`: effective settings, their sources, and no secrets.

use crate::program::CommandEnv;

fn configured_env() -> CommandEnv {
    let env = CommandEnv::new()
        .variable("LEASEHOLD__TEMPORAL__API_KEY", "hush-api-key")
        .variable("LEASEHOLD__TEMPORAL__NAMESPACE", "007")
        .variable("LEASEHOLD__HTTP_NODES__ALLOW", "10.0.0.0/8, api.internal")
        .variable("LEASEHOLD_CONFIG", "leasehold.toml");
    env.write(
        "leasehold.toml",
        "[store]\nurl = \"postgres://me:hush@db/x\"\n[dispatch]\nbatch_size = 7\npoll_interval = \"300s\"\n",
    );
    env
}

#[test]
fn effective_settings_name_their_source_and_hide_secrets() {
    let env = configured_env();
    let output = env
        .run(&["config", "print", "--data-dir", "else\"where"])
        .success();
    for line in [
        "data_dir = 'else\"where'  # --data-dir",
        "url = \"postgres://me:***@db/x\"  # leasehold.toml:2",
        "batch_size = 7  # leasehold.toml:4",
        "poll_interval = \"5m\"  # leasehold.toml:5",
        "namespace = \"007\"  # LEASEHOLD__TEMPORAL__NAMESPACE",
        "api_key = \"***\"  # LEASEHOLD__TEMPORAL__API_KEY",
        "allow = [\"10.0.0.0/8\", \"api.internal\"]  # LEASEHOLD__HTTP_NODES__ALLOW",
        "# tls_domain is not set",
        "listen = \"127.0.0.1:7777\"",
        "migrate = true",
    ] {
        let has = output.stdout.lines().any(|one| one == line);
        assert!(has, "{line:?} is not in\n{}", output.stdout);
    }
    assert!(!output.stdout.contains("hush"), "{}", output.stdout);
    // The output is a valid configuration file.
    env.write("again.toml", output.stdout.replace("\"***\"", "\"x\""));
    let again = env.run(&["config", "check", "again.toml"]).success();
    assert!(again.stdout.ends_with("valid\n"), "{again:?}");
}

#[test]
fn json_output_has_the_same_settings() {
    let output = configured_env()
        .run(&["config", "print", "-o", "json"])
        .success();
    let all: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(all["settings"]["dispatch"]["batch_size"], 7);
    assert_eq!(all["settings"]["store"]["url"], "postgres://me:***@db/x");
    assert_eq!(all["settings"]["temporal"]["api_key"], "***");
    assert_eq!(all["settings"]["data_dir"], "leasehold-data");
    assert_eq!(all["from"]["dispatch.batch_size"], "leasehold.toml:4");
    assert!(!output.stdout.contains("hush"), "{}", output.stdout);
}

#[test]
fn invalid_settings_are_not_printed() {
    let output = CommandEnv::new()
        .variable("LEASEHOLD__STORE__URL", "db:hush")
        .run(&["config", "print"]);
    assert_eq!(output.code, 2);
    assert!(
        output
            .error()
            .starts_with("LEASEHOLD__STORE__URL: must be `sqlite:FILE`"),
        "{output:?}"
    );
    assert!(!output.stderr.contains("hush"), "{output:?}");
}
