//! What settings accept, and that their documentation knows them all.
#![allow(clippy::unwrap_used)]

use super::*;

fn read(text: &str) -> Result<Settings> {
    let folder = leasehold_testkit::temp_dir();
    let file = folder.path().join("leasehold.toml");
    std::fs::write(&file, text).unwrap();
    Settings::read(Some(&file), &[])
}

#[test]
fn an_empty_file_gives_the_defaults_of_the_services() {
    let settings = read("").unwrap();
    let defaults = RuntimeOptions::new("me");
    let options = settings.runtime("me");
    assert_eq!(format!("{options:?}"), format!("{defaults:?}"));
    let defaults = leasehold_server::ServerOptions::default();
    assert_eq!(
        format!("{:?}", settings.server.options()),
        format!("{defaults:?}")
    );
}

#[test]
fn a_file_sets_what_it_names_and_a_flag_goes_before_it() {
    let folder = leasehold_testkit::temp_dir();
    let file = folder.path().join("leasehold.toml");
    std::fs::write(
        &file,
        "[dispatch]\nbatch_size = 10\npoll_interval = \"250ms\"\nmode = \"parallel\"\n",
    )
    .unwrap();
    let flags = [("dispatch.batch_size", "7".to_owned())];
    let settings = Settings::read(Some(&file), &flags).unwrap();
    assert_eq!(settings.dispatch.batch_size, 7);
    assert_eq!(
        settings.dispatch.poll_interval.0,
        Duration::from_millis(250)
    );
    let mode = settings.runtime("me").dispatcher.mode;
    assert_eq!(mode, leasehold_runtime::DispatchMode::Parallel);
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        ("[dispatch]\nbatch = 10\n", "batch"),
        (
            "[dispatch]\nbatch_size = 0\n",
            "dispatch.batch_size: must be from 1 to 1000, is 0",
        ),
        (
            "[dispatch]\npoll_interval = \"soon\"\n",
            "`soon` is no length of time",
        ),
        (
            "[dispatch]\nstart_timeout = \"1s\"\n",
            "dispatch.start_timeout: must be longer than",
        ),
        (
            "[sweep]\ninterval = \"0s\"\n",
            "sweep.interval: must be at least 10ms",
        ),
        (
            "[dispatch]\nclaim_lease = \"10ms\"\n",
            "dispatch.claim_lease: must be at least 1s",
        ),
        (
            "[follow]\ncatch_up = \"1000000h\"\n",
            "follow.catch_up: must be at most a day",
        ),
        ("[engine]\nkind = \"other\"\n", "other"),
        (
            "[server]\nbatch_max_bytes = 500000000\n",
            "server.bodies_max_bytes: must be from 500000000",
        ),
        (
            "[instance]\ninterval = \"2h\"\n",
            "instance.forget_after: must be longer",
        ),
        ("[nonsense]\n", "nonsense"),
    ];
    for (text, expected) in cases {
        let error = format!("{:#}", read(text).unwrap_err());
        assert!(error.contains(expected), "{text:?} gave {error:?}");
    }
}

#[test]
fn the_page_of_settings_has_a_line_for_each_with_its_default() {
    let page = include_str!("../../../../docs/operations/settings.md");
    let all = serde_json::to_value(Settings::default()).unwrap();
    let mut settings = Vec::new();
    for (section, value) in all.as_object().unwrap() {
        match value.as_object() {
            Some(keys) => settings.extend(
                keys.iter()
                    .map(|(key, value)| (format!("{section}.{key}"), value)),
            ),
            None => settings.push((section.clone(), value)),
        }
    }
    for (name, value) in settings {
        let shown = match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")));
        let line = line.unwrap_or_else(|| panic!("{name} is not on the page"));
        assert!(
            line.contains(&format!("`{shown}`")),
            "{name} is {shown} by default: {line}"
        );
    }
}

#[test]
fn a_variable_is_taken_as_it_is_written() {
    let variables = std::collections::HashMap::from([
        (
            "LEASEHOLD__TEMPORAL__NAMESPACE".to_owned(),
            "007".to_owned(),
        ),
        (
            "LEASEHOLD__DISPATCH__BATCH_SIZE".to_owned(),
            "12".to_owned(),
        ),
        ("LEASEHOLD__ENGINE__ENABLED".to_owned(), "false".to_owned()),
        ("LEASEHOLD__DATA_DIR".to_owned(), "elsewhere".to_owned()),
    ]);
    let settings = Settings::merge(None, Some(variables), &[]).unwrap();
    assert_eq!(settings.temporal.namespace, "007");
    assert_eq!(settings.dispatch.batch_size, 12);
    assert!(!settings.engine.enabled);
    assert_eq!(settings.store_url(), "sqlite:elsewhere/leasehold.db");
}

#[test]
fn settings_that_are_logged_say_no_password() {
    let settings = read("[store]\nurl = \"postgres://me:hunter2@db/x\"\n").unwrap();
    let text = format!("{settings:?}");
    assert!(text.contains("postgres://me:***@db/x"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
