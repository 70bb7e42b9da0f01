//! Checks that packages use only documented settings. A test of the program keeps the documentation complete.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::text;

const PREFIX: &str = "LEASEHOLD__";

/// Every setting, as `section.name`, and its default.
pub(crate) fn settings() -> BTreeMap<String, String> {
    let page = text("docs/operations/settings.md");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.strip_suffix('`')?;
        let default = cells.nth(1)?.trim_matches('`');
        Some((name.to_owned(), default.to_owned()))
    });
    let settings: BTreeMap<_, _> = rows.collect();
    assert!(
        settings.len() > 100,
        "cannot read the tables of the page: {settings:?}"
    );
    settings
}

/// A default duration in whole seconds, such as `20s`.
pub(crate) fn seconds(setting: &str) -> Duration {
    let default = settings().remove(setting).unwrap();
    let number = default.strip_suffix('s').unwrap();
    Duration::from_secs(number.parse().unwrap())
}

/// The setting of a variable.
fn setting_of(variable: &str) -> String {
    let name = variable.strip_prefix(PREFIX).unwrap();
    name.to_lowercase().replace("__", ".")
}

/// The setting variables in a text.
fn variables(text: &str) -> BTreeSet<&str> {
    let name = |c: char| c.is_ascii_uppercase() || c == '_';
    text.match_indices(PREFIX)
        .map(|(at, _)| {
            let rest = &text[at..];
            &rest[..rest.find(|c| !name(c)).unwrap_or(rest.len())]
        })
        // The prefix alone is no variable.
        .filter(|variable| variable.len() > PREFIX.len())
        .collect()
}

#[test]
fn every_variable_in_a_package_is_a_setting() {
    let settings = settings();
    let files = [
        ("packaging/README.md", 0),
        ("packaging/docker/Dockerfile", 2),
        ("packaging/compose/compose.yaml", 3),
        ("packaging/helm/leasehold/templates/_settings.tpl", 2),
        ("packaging/helm/leasehold/templates/server.yaml", 5),
        ("packaging/helm/leasehold/templates/worker.yaml", 3),
        ("packaging/systemd/leasehold.service", 0),
        ("packaging/systemd/leasehold-worker.service", 0),
    ];
    for (file, at_least) in files {
        let text = text(file);
        let named = variables(&text);
        assert!(named.len() >= at_least, "{file} names only {named:?}");
        for variable in named {
            let setting = setting_of(variable);
            assert!(
                settings.contains_key(&setting),
                "{file}: {variable}: unknown setting {setting}"
            );
        }
    }
}

#[test]
fn variable_maps_to_its_setting() {
    let text = "LEASEHOLD__STORE__URL=x LEASEHOLD__DATA_DIR: y (LEASEHOLD__…)";
    let named: Vec<_> = variables(text).into_iter().map(setting_of).collect();
    assert_eq!(named, ["data_dir", "store.url"]);
}
