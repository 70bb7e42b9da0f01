//! Every setting there is, by name: what it may be. What a setting is for is in `docs/operations/settings.md`.

use super::kind::{self, Kind};
use leasehold_core::limits::{CLAIM_MAX_BATCH, JOB_MAX_BATCH};
use std::time::Duration;

/// A setting.
pub(crate) struct Known {
    /// Its section and its name.
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    /// For one that is not set by default: what it could be.
    pub(crate) example: Option<&'static str>,
}

const ANY: Duration = Duration::ZERO;
const TICK: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
/// Longer is a slip of the pen.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// What is kept for longer is kept for ever; more is no date.
const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
const MIB: u64 = 1024 * 1024;

const fn of(key: &'static str, kind: Kind) -> Known {
    Known {
        key,
        kind,
        example: None,
    }
}

const fn optional(key: &'static str, kind: Kind, example: &'static str) -> Known {
    Known {
        key,
        kind,
        example: Some(example),
    }
}

const fn count(key: &'static str, least: u64, most: u64) -> Known {
    of(key, Kind::Count { least, most })
}

const fn time(key: &'static str, least: Duration) -> Known {
    of(key, Kind::Time { least, most: DAY })
}

const fn kept(key: &'static str) -> Known {
    let (least, most) = (ANY, CENTURY);
    of(key, Kind::Time { least, most })
}

const fn file(key: &'static str, example: &'static str) -> Known {
    optional(key, Kind::File, example)
}

/// All of them, each section together.
pub(crate) const ALL: &[Known] = &[
    of("data_dir", Kind::File),
    optional(
        "store.url",
        Kind::Secret(kind::store),
        "postgres://leasehold@db/leasehold",
    ),
    file("store.tls_ca_file", "/etc/leasehold/postgres-ca.pem"),
    of("store.migrate", Kind::YesNo),
    count("store.max_connections", 1, 1_000),
    of("store.notify", Kind::YesNo),
    time("store.patience", ANY),
    of("server.listen", Kind::Text(kind::listen)),
    file("server.tls_certificate_file", "/etc/leasehold/server.pem"),
    file("server.tls_key_file", "/etc/leasehold/server.key"),
    count("server.body_max_bytes", 1024, 1024 * MIB),
    count("server.batch_max_bytes", 1024, 1024 * MIB),
    count("server.bodies_max_bytes", 1024, 1024 * 1024 * MIB),
    time("server.body_timeout", TICK),
    time("server.request_timeout", SECOND),
    time("server.claim_wait_max", ANY),
    time("server.header_timeout", TICK),
    count("server.header_max_bytes", 8192, MIB),
    time("server.idle_timeout", TICK),
    // A quiet stream of changes speaks every fifteen seconds, and has twice this time.
    time("server.write_timeout", Duration::from_secs(10)),
    count("server.max_connections", 1, 1_000_000),
    count("server.calls_max", 1, 1_000_000),
    count("server.streams_per_key", 1, 100_000),
    count("server.streams_max", 1, 100_000),
    count("server.backlog_max", 1, 1_000_000_000),
    count("server.rate_per_second", 1, 10_000_000),
    count("server.rate_burst", 1, 100_000_000),
    time("server.key_fresh_for", ANY),
    time("server.drain_timeout", ANY),
    time("instance.interval", Duration::from_millis(100)),
    time("instance.forget_after", SECOND),
    of("engine.kind", Kind::OneOf(&["embedded", "temporal"])),
    of("engine.enabled", Kind::YesNo),
    count("engine.breaker_threshold", 1, 10_000),
    count("engine.breaker_ramp_from", 1, 10_000),
    time("engine.probe_interval", TICK),
    time("engine.probe_interval_when_open", TICK),
    count("embedded.concurrency", 1, JOB_MAX_BATCH as u64),
    time("embedded.lease", SECOND),
    time("embedded.settle_interval", TICK),
    time("embedded.drain_timeout", ANY),
    of("temporal.address", Kind::Text(kind::temporal)),
    of("temporal.namespace", Kind::Text(kind::short)),
    of("temporal.tls", Kind::YesNo),
    file("temporal.tls_ca_file", "/etc/leasehold/temporal-ca.pem"),
    optional(
        "temporal.tls_domain",
        Kind::Text(kind::short),
        "temporal.example.com",
    ),
    file(
        "temporal.tls_certificate_file",
        "/etc/leasehold/temporal.pem",
    ),
    file("temporal.tls_key_file", "/etc/leasehold/temporal.key"),
    optional(
        "temporal.api_key",
        Kind::Secret(kind::visible),
        "the key that Temporal Cloud gave you",
    ),
    of("temporal.graph_workflow_type", Kind::Text(kind::short)),
    of("temporal.graph_task_queue", Kind::Text(kind::short)),
    time("temporal.connect_timeout", TICK),
    time("temporal.call_timeout", TICK),
    of("http_nodes.allow", Kind::Allowed),
    of("worker.server", Kind::Text(kind::server)),
    optional(
        "worker.key",
        Kind::Secret(kind::key),
        "the key, which begins with lh_worker_",
    ),
    file("worker.key_file", "/etc/leasehold/worker.key"),
    file("worker.tls_ca_file", "/etc/leasehold/server-ca.pem"),
    count("worker.concurrency", 1, 100_000),
    time("worker.drain_timeout", ANY),
    of("dispatch.mode", Kind::OneOf(&["exclusive", "parallel"])),
    count("dispatch.batch_size", 1, CLAIM_MAX_BATCH as u64),
    count("dispatch.concurrency", 1, 10_000),
    time("dispatch.poll_interval", TICK),
    time("dispatch.linger", ANY),
    time("dispatch.claim_lease", SECOND),
    time("dispatch.start_timeout", TICK),
    count("dispatch.max_attempts", 1, 1_000),
    time("dispatch.backoff_base", TICK),
    time("dispatch.backoff_max", TICK),
    time("dispatch.lock_at_most_for", SECOND),
    time("dispatch.lock_at_least_for", ANY),
    time("dispatch.lock_retry", TICK),
    time("dispatch.drain_timeout", ANY),
    time("recovery.interval", TICK),
    count("recovery.batch", 1, 10_000),
    time("recovery.lock_at_most_for", SECOND),
    time("recovery.lock_at_least_for", ANY),
    time("follow.interval", TICK),
    time("follow.overlap", ANY),
    time("follow.wide_overlap", ANY),
    time("follow.wide_interval", TICK),
    time("follow.catch_up", ANY),
    count("follow.concurrency", 1, 1_000),
    time("follow.lock_at_most_for", SECOND),
    time("sweep.interval", TICK),
    count("sweep.rate", 1, 1_000),
    count("sweep.concurrency", 1, 1_000),
    time("sweep.lost_after", SECOND),
    count("sweep.lost_at_most", 0, 1_000_000_000),
    time("sweep.lock_at_most_for", SECOND),
    time("drift.interval", TICK),
    time("drift.lock_at_most_for", SECOND),
    time("cancel.interval", TICK),
    count("cancel.batch", 1, 1_000),
    count("cancel.concurrency", 1, 1_000),
    time("jobs.sweep_interval", TICK),
    count("jobs.sweep_batch", 1, 10_000),
    kept("retention.completed"),
    kept("retention.failed"),
    time("retention.interval", TICK),
    count("retention.batch", 1, 10_000),
    time("retention.lock_at_most_for", SECOND),
    count("metrics.workspaces", 0, 1_000),
    optional(
        "traces.endpoint",
        Kind::Text(kind::collector),
        "http://127.0.0.1:4317",
    ),
    count("traces.per_second", 0, 1_000_000),
    of("log.level", Kind::Text(kind::level)),
    of("log.format", Kind::OneOf(&["text", "json"])),
];

/// The setting of that name.
pub(crate) fn find(key: &str) -> Option<&'static Known> {
    ALL.iter().find(|known| known.key == key)
}

pub(super) fn is_section(name: &str) -> bool {
    ALL.iter().any(|known| section(known.key) == name) && !name.is_empty()
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
        let inside = ALL.iter().filter_map(|known| {
            let (of, name) = known.key.split_once('.')?;
            (of == section).then_some(name)
        });
        let inside: Vec<&str> = inside.collect();
        let inside = inside.join(", ");
        return format!("there is no such setting; {section} has {inside}");
    }
    let mut sections: Vec<&str> = ALL.iter().map(|known| section(known.key)).collect();
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
    let all = ALL.iter().map(|known| (likeness(known), known.key));
    let best = all.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 > ENOUGH).then_some(best.1)
}
