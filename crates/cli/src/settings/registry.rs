//! The registry of all settings. Each section's rows are in its module; `docs/operations/settings.md` describes them.

use super::kind::SettingKind;
use std::time::Duration;

/// The specification of a setting.
pub(crate) struct SettingSpec {
    /// Section and name.
    pub(crate) key: &'static str,
    pub(crate) kind: SettingKind,
    /// An example value, for a setting without default.
    pub(crate) example: Option<&'static str>,
}

pub(super) const ANY: Duration = Duration::ZERO;
pub(super) const TICK: Duration = Duration::from_millis(10);
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Upper limit of durations; a longer one is a typo.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);
/// Upper limit of retention; a longer one overflows timestamps.
const MAX_RETENTION: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
pub(super) const MIB: u64 = 1024 * 1024;

pub(super) const fn of(key: &'static str, kind: SettingKind) -> SettingSpec {
    SettingSpec {
        key,
        kind,
        example: None,
    }
}

pub(super) const fn optional(
    key: &'static str,
    kind: SettingKind,
    example: &'static str,
) -> SettingSpec {
    SettingSpec {
        key,
        kind,
        example: Some(example),
    }
}

pub(super) const fn count(key: &'static str, min: u64, max: u64) -> SettingSpec {
    of(key, SettingKind::Integer { min, max })
}

pub(super) const fn time(key: &'static str, min: Duration) -> SettingSpec {
    of(
        key,
        SettingKind::Duration {
            min,
            max: MAX_DURATION,
        },
    )
}

pub(super) const fn retention(key: &'static str) -> SettingSpec {
    let (min, max) = (ANY, MAX_RETENTION);
    of(key, SettingKind::Duration { min, max })
}

pub(super) const fn file(key: &'static str, example: &'static str) -> SettingSpec {
    optional(key, SettingKind::File, example)
}

/// The settings of every section, in display order.
const SECTIONS: &[&[SettingSpec]] = &[
    super::DATA_DIR,
    super::STORE,
    super::server::SERVER,
    super::server::INSTANCE,
    super::ENGINE,
    super::embedded::EMBEDDED,
    super::TEMPORAL,
    super::http_nodes::HTTP_NODES,
    super::worker::WORKER,
    super::runtime::DISPATCH,
    super::runtime::RECOVERY,
    super::runtime::FOLLOW,
    super::runtime::SWEEP,
    super::runtime::DRIFT,
    super::runtime::CANCEL,
    super::jobs::JOBS,
    super::jobs::RETENTION,
    super::metrics::METRICS,
    super::traces::TRACES,
    super::LOG,
];

/// All settings, grouped by section.
pub(crate) fn all() -> impl Iterator<Item = &'static SettingSpec> {
    SECTIONS.iter().copied().flatten()
}

/// Finds a setting by key.
pub(crate) fn find(key: &str) -> Option<&'static SettingSpec> {
    all().find(|spec| spec.key == key)
}

pub(super) fn is_section(name: &str) -> bool {
    all().any(|spec| section(spec.key) == name) && !name.is_empty()
}

/// The section of a key; empty for top-level settings.
pub(crate) fn section(key: &str) -> &str {
    key.split_once('.').map_or("", |(section, _)| section)
}

/// The message for an unknown key, with a suggestion.
pub(super) fn unknown(key: &str) -> String {
    if is_section(key) {
        return format!("is a section: write [{key}] and its settings below it");
    }
    if let Some(near) = nearest(key) {
        return format!("unknown setting; did you mean {near}?");
    }
    if is_section(section(key)) {
        let section = section(key);
        let inside = all().filter_map(|spec| {
            let (of, name) = spec.key.split_once('.')?;
            (of == section).then_some(name)
        });
        let inside: Vec<&str> = inside.collect();
        let inside = inside.join(", ");
        return format!("unknown setting; {section} has {inside}");
    }
    let mut sections: Vec<&str> = all().map(|spec| section(spec.key)).collect();
    sections.dedup();
    sections.retain(|name| !name.is_empty());
    let given = key.split('.').next().unwrap_or_default();
    let near = sections
        .iter()
        .find(|name| similarity(given, name) > MIN_SIMILARITY);
    match near {
        Some(near) => format!("unknown section; did you mean [{near}]?"),
        None => {
            let sections = sections.join(", ");
            format!("unknown section or setting; sections are {sections}")
        }
    }
}

/// Minimum similarity of a suggestion.
const MIN_SIMILARITY: f64 = 0.7;

fn similarity(one: &str, other: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(one, other)
}

/// The best suggestion: a similar name of the same section, else the same name elsewhere, else the most similar of all.
fn nearest(key: &str) -> Option<&'static str> {
    fn own(key: &str) -> &str {
        key.rsplit('.').next().unwrap_or_default()
    }
    let rank = |spec: &SettingSpec| {
        let (given, name) = (own(key), own(spec.key));
        let whole = similarity(key, spec.key);
        let begins = given.starts_with(name) || name.starts_with(given);
        match section(key) == section(spec.key) {
            true if begins || similarity(given, name) > MIN_SIMILARITY => 2.0 + whole,
            _ if given == name => 1.0 + whole,
            _ => whole,
        }
    };
    let all = all().map(|spec| (rank(spec), spec.key));
    let best = all.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 > MIN_SIMILARITY).then_some(best.1)
}
