//! `leasehold config print`: what is in effect, where it comes from, and no secret.

use crate::program::Folder;

fn folder() -> Folder {
    let folder = Folder::new()
        .variable("LEASEHOLD__TEMPORAL__API_KEY", "hush-api-key")
        .variable("LEASEHOLD__TEMPORAL__NAMESPACE", "007")
        .variable("LEASEHOLD__HTTP_NODES__ALLOW", "10.0.0.0/8, api.internal")
        .variable("LEASEHOLD_CONFIG", "leasehold.toml");
    folder.write(
        "leasehold.toml",
        "[store]\nurl = \"postgres://me:hush@db/x\"\n[dispatch]\nbatch_size = 7\npoll_interval = \"300s\"\n",
    );
    folder
}

#[test]
fn what_is_in_effect_is_shown_with_where_it_comes_from_and_without_secrets() {
    let folder = folder();
    let ended = folder
        .run(&["config", "print", "--data-dir", "else\"where"])
        .well();
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
        let has = ended.stdout.lines().any(|one| one == line);
        assert!(has, "{line:?} is not in\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains("hush"), "{}", ended.stdout);
    // It is a file that can be read again.
    folder.write("again.toml", ended.stdout.replace("\"***\"", "\"x\""));
    let again = folder.run(&["config", "check", "again.toml"]).well();
    assert!(again.stdout.ends_with("all well\n"), "{again:?}");
}

#[test]
fn programs_get_the_same_as_json() {
    let ended = folder().run(&["config", "print", "-o", "json"]).well();
    let all: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(all["settings"]["dispatch"]["batch_size"], 7);
    assert_eq!(all["settings"]["store"]["url"], "postgres://me:***@db/x");
    assert_eq!(all["settings"]["temporal"]["api_key"], "***");
    assert_eq!(all["settings"]["data_dir"], "leasehold-data");
    assert_eq!(all["from"]["dispatch.batch_size"], "leasehold.toml:4");
    assert!(!ended.stdout.contains("hush"), "{}", ended.stdout);
}

#[test]
fn settings_that_are_wrong_are_not_shown() {
    let ended = Folder::new()
        .variable("LEASEHOLD__STORE__URL", "db:hush")
        .run(&["config", "print"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .error()
            .starts_with("LEASEHOLD__STORE__URL: must be `sqlite:`"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("hush"), "{ended:?}");
}
