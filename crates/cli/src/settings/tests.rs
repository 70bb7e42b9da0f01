//! Tests of parsing settings, and of their documentation.
#![allow(clippy::unwrap_used)]

use super::*;

fn read(text: &str) -> Result<Settings, SettingProblems> {
    read_with(text, &[], &[])
}

fn read_with(
    text: &str,
    variables: &[(&str, &str)],
    flags: &[Flag],
) -> Result<Settings, SettingProblems> {
    let dir = leasehold_testkit::temp_dir();
    let file = dir.path().join("leasehold.toml");
    std::fs::write(&file, text).unwrap();
    let variables = variables.iter();
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    Settings::merge(Some(&file), variables, flags).map(|read| read.settings)
}

#[test]
fn empty_file_gives_the_defaults_of_the_services() {
    let settings = read("").unwrap();
    let defaults = RuntimeOptions {
        timeout_sweeper: Some(leasehold_runtime::TimeoutSweeperOptions::default()),
        ..RuntimeOptions::new("me")
    };
    let options = settings.runtime("me");
    assert_eq!(format!("{options:?}"), format!("{defaults:?}"));
    let defaults = leasehold_server::ServerOptions::default();
    assert_eq!(
        format!("{:?}", settings.server.options()),
        format!("{defaults:?}")
    );
}

#[test]
fn variables_override_the_file_and_flags_override_both() {
    let settings = read_with(
        "[dispatch]\nbatch_size = 10\npoll_interval = \"250ms\"\nmode = \"parallel\"\nconcurrency = 3\n",
        &[
            ("LEASEHOLD__DISPATCH__BATCH_SIZE", "8"),
            ("LEASEHOLD__DISPATCH__CONCURRENCY", "4"),
        ],
        &[("--batch", "dispatch.batch_size", Some("7".to_owned()))],
    )
    .unwrap();
    assert_eq!(settings.dispatch.batch_size, 7);
    assert_eq!(settings.dispatch.concurrency, 4);
    assert_eq!(
        settings.dispatch.poll_interval.0,
        Duration::from_millis(250)
    );
    let mode = settings.runtime("me").dispatcher.mode;
    assert_eq!(mode, leasehold_runtime::DispatchMode::Parallel);
}

#[test]
fn every_setting_is_registered_and_its_default_is_valid() {
    let all = serde_json::to_value(Settings::default()).unwrap();
    let mut names: Vec<String> = Vec::new();
    for (section, value) in all.as_object().unwrap() {
        match value.as_object() {
            Some(keys) => names.extend(keys.keys().map(|key| format!("{section}.{key}"))),
            None => names.push(section.clone()),
        }
    }
    let mut known: Vec<&str> = registry::all().map(|spec| spec.key).collect();
    known.sort_unstable();
    names.sort_unstable();
    assert_eq!(names, known);
    for spec in registry::all() {
        let pointer = format!("/{}", spec.key.replace('.', "/"));
        let default = all.pointer(&pointer).unwrap();
        assert_eq!(default.is_null(), spec.example.is_some(), "{}", spec.key);
        let raw = match default {
            serde_json::Value::String(text) => source::RawValue::Text(text.clone()),
            serde_json::Value::Number(number) => {
                source::RawValue::Integer(number.as_u64().unwrap().into())
            }
            serde_json::Value::Bool(yes) => source::RawValue::Bool(*yes),
            serde_json::Value::Array(list) if list.is_empty() => source::RawValue::List(Vec::new()),
            other => {
                assert!(other.is_null(), "{}: {other}", spec.key);
                continue;
            }
        };
        assert_eq!(spec.kind.read(&raw).as_ref(), Ok(default), "{}", spec.key);
    }
}

#[test]
fn sections_are_contiguous() {
    let mut sections: Vec<&str> = registry::all()
        .map(|one| registry::section(one.key))
        .collect();
    sections.dedup();
    let count = sections.len();
    sections.sort_unstable();
    sections.dedup();
    assert_eq!(sections.len(), count, "{sections:?}");
}

#[test]
fn documentation_lists_every_setting_with_its_default() {
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
        let line = line.unwrap_or_else(|| panic!("{name} is not documented"));
        assert!(
            line.contains(&format!("`{shown}`")),
            "default of {name} is {shown}: {line}"
        );
    }
}

#[test]
fn variables_are_parsed_as_the_kind_of_their_setting() {
    let settings = read_with(
        "",
        &[
            ("LEASEHOLD__TEMPORAL__NAMESPACE", "007"),
            ("LEASEHOLD__DISPATCH__BATCH_SIZE", "12"),
            ("LEASEHOLD__ENGINE__ENABLED", "false"),
            ("LEASEHOLD__DATA_DIR", "elsewhere"),
            ("LEASEHOLD__HTTP_NODES__ALLOW", "10.0.0.0/8, localhost"),
            ("LEASEHOLD__HTTP_NODES__DENY", "198.41.0.0/16"),
            ("LEASEHOLD_KEY", "not a setting"),
        ],
        &[],
    )
    .unwrap();
    assert_eq!(settings.temporal.namespace, "007");
    assert_eq!(settings.dispatch.batch_size, 12);
    assert!(!settings.engine.enabled);
    assert_eq!(settings.store_url(), "sqlite:elsewhere/leasehold.db");
    assert_eq!(settings.http_nodes.allow, ["10.0.0.0/8", "localhost"]);
    assert_eq!(settings.http_nodes.deny, ["198.41.0.0/16"]);
}

#[test]
fn debug_output_hides_passwords() {
    let settings = read("[store]\nurl = \"postgres://me:hunter2@db/x\"\n").unwrap();
    let text = format!("{settings:?}");
    assert!(text.contains("postgres://me:***@db/x"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
