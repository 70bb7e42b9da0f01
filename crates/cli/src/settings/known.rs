//! Finds settings by name. The rows stand beside the settings of each section; `docs/operations/settings.md` says what each is for.

use super::kind::Kind;
use std::time::Duration;

/// A setting.
pub(crate) struct Known {
    /// Its section and its name.
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    /// For one that is not set by default: what it could be.
    pub(crate) example: Option<&'static str>,
}

pub(super) const ANY: Duration = Duration::ZERO;
pub(super) const TICK: Duration = Duration::from_millis(10);
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Longer is a slip of the pen.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// What is kept for longer is kept for ever; more is no date.
const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
pub(super) const MIB: u64 = 1024 * 1024;

pub(super) const fn of(key: &'static str, kind: Kind) -> Known {
    Known {
        key,
        kind,
        example: None,
    }
}

pub(super) const fn optional(key: &'static str, kind: Kind, example: &'static str) -> Known {
    Known {
        key,
        kind,
        example: Some(example),
    }
}

pub(super) const fn count(key: &'static str, least: u64, most: u64) -> Known {
    of(key, Kind::Count { least, most })
}

pub(super) const fn time(key: &'static str, least: Duration) -> Known {
    of(key, Kind::Time { least, most: DAY })
}

pub(super) const fn kept(key: &'static str) -> Known {
    let (least, most) = (ANY, CENTURY);
    of(key, Kind::Time { least, most })
}

pub(super) const fn file(key: &'static str, example: &'static str) -> Known {
    optional(key, Kind::File, example)
}

/// Every section's settings, in the order in which they are shown.
const SECTIONS: &[&[Known]] = &[
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

/// All of them, each section together.
pub(crate) fn all() -> impl Iterator<Item = &'static Known> {
    SECTIONS.iter().copied().flatten()
}

/// The setting of that name.
pub(crate) fn find(key: &str) -> Option<&'static Known> {
    all().find(|known| known.key == key)
}

pub(super) fn is_section(name: &str) -> bool {
    all().any(|known| section(known.key) == name) && !name.is_empty()
}

/// The section that a setting is in; empty for those above all sections.
pub(crate) fn section(key: &str) -> &str {
    key.split_once('.').map_or("", |(section, _)| section)
}

/// What to say of a name that no setting has.
pub(super) fn unknown(key: &str) -> String {
    if is_section(key) {
        return format!("is a section: write [{key}], and its settings below it");
    }
    if let Some(near) = nearest(key) {
        return format!("there is no such setting; did you mean {near}?");
    }
    if is_section(section(key)) {
        let section = section(key);
        let inside = all().filter_map(|known| {
            let (of, name) = known.key.split_once('.')?;
            (of == section).then_some(name)
        });
        let inside: Vec<&str> = inside.collect();
        let inside = inside.join(", ");
        return format!("there is no such setting; {section} has {inside}");
    }
    let mut sections: Vec<&str> = all().map(|known| section(known.key)).collect();
    sections.dedup();
    sections.retain(|name| !name.is_empty());
    let given = key.split('.').next().unwrap_or_default();
    let near = sections.iter().find(|name| like(given, name) > ENOUGH);
    match near {
        Some(near) => format!("there is no such section; did you mean [{near}]?"),
        None => {
            let sections = sections.join(", ");
            format!("there is no such section or setting; sections are {sections}")
        }
    }
}

/// How alike two names must be for one to be meant by the other.
const ENOUGH: f64 = 0.7;

fn like(one: &str, other: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(one, other)
}

/// The name that was probably meant: one of the same section if any is like it, else the same name elsewhere, else the nearest of all.
fn nearest(key: &str) -> Option<&'static str> {
    fn own(key: &str) -> &str {
        key.rsplit('.').next().unwrap_or_default()
    }
    let likeness = |known: &Known| {
        let (given, name) = (own(key), own(known.key));
        let whole = like(key, known.key);
        let begins = given.starts_with(name) || name.starts_with(given);
        match section(key) == section(known.key) {
            true if begins || like(given, name) > ENOUGH => 2.0 + whole,
            _ if given == name => 1.0 + whole,
            _ => whole,
        }
    };
    let all = all().map(|known| (likeness(known), known.key));
    let best = all.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 > ENOUGH).then_some(best.1)
}
