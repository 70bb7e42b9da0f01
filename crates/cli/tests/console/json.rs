//! `-o json` prints one JSON document and nothing else, for every command.

use crate::cli_env::CliEnv;

#[test]
fn json_output_is_one_document_without_colours() {
    let env = CliEnv::new();
    env.publish_pause("pause", 1);
    let request = env.ok("request enqueue pause");
    env.ok(&format!("request watch {request}"));
    let about: serde_json::Value =
        serde_json::from_str(&env.ok(&format!("request get {request} -o json"))).unwrap();
    let execution = about["execution"].as_str().unwrap();
    let job = env.ok("job enqueue letters a");
    let key: serde_json::Value =
        serde_json::from_str(&env.ok("key create k --admin -o json")).unwrap();
    let key = key["key"]["id"].as_str().unwrap();
    let commands = [
        "workspace list".to_owned(),
        "workspace get default".to_owned(),
        "workspace create acme --plan pro".to_owned(),
        "workspace set acme --limit 3".to_owned(),
        "workspace pause acme".to_owned(),
        "workspace resume acme".to_owned(),
        "workspace delete acme".to_owned(),
        "definition list".to_owned(),
        "definition get pause".to_owned(),
        "definition versions pause".to_owned(),
        "definition publish pause pause.json".to_owned(),
        "definition publish gone pause.json".to_owned(),
        "definition delete gone".to_owned(),
        "definition check pause.json".to_owned(),
        "request list".to_owned(),
        "request list -A --status completed".to_owned(),
        format!("request get {request}"),
        format!("request why {request}"),
        format!("request timeline {request}"),
        "request enqueue pause --in 1h".to_owned(),
        "execution list".to_owned(),
        format!("execution get {execution}"),
        format!("execution graph {execution}"),
        format!("execution node {execution} pause"),
        "dead-letter list".to_owned(),
        "queue list".to_owned(),
        "queue get letters".to_owned(),
        "queue set letters --limit 2 --timeout 1m --keep-completed false".to_owned(),
        "queue pause letters".to_owned(),
        "queue resume letters".to_owned(),
        "queue total-limit 100".to_owned(),
        "job list".to_owned(),
        "job list letters --status queued".to_owned(),
        format!("job get {job}"),
        format!("job cancel {job}"),
        "job enqueue letters b --in 1h".to_owned(),
        "key list".to_owned(),
        "key me".to_owned(),
        format!("key get {key}"),
        format!("key revoke {key}"),
        "instance list".to_owned(),
        "lock list".to_owned(),
        "top --once".to_owned(),
    ];
    for words in commands {
        let output = env.run(&format!("{words} -o json --color always"));
        assert_eq!(output.code, 0, "{words}: {output:?}");
        let parsed = serde_json::from_str::<serde_json::Value>(&output.out);
        assert!(parsed.is_ok(), "{words}: {output:?}");
        assert!(!output.out.contains('\u{1b}'), "{words}: {output:?}");
    }
}

#[test]
fn colours_need_a_terminal_or_the_flag() {
    let env = CliEnv::new();
    env.publish_pause("pause", 1);
    env.ok("request enqueue pause --watch");
    assert!(!env.ok("request list").contains('\u{1b}'));
    assert!(env.ok("request list --color always").contains('\u{1b}'));
    assert!(!env.ok("request list --color never").contains('\u{1b}'));
}
