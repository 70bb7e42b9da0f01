//! Evaluates facts about the database: durability, vacuum, connections, locks and size. Pure.

use super::evaluate::{passed, problem, warning};
use leasehold_core::doctor::Finding;
use leasehold_store::diagnosis::{Diagnosis, PostgresFacts, SqliteFacts, TableFacts};
use std::time::Duration;

/// The oldest supported major version.
const POSTGRES_MIN: u32 = 14;
/// The newest major version that the tests run on.
const POSTGRES_TESTED: u32 = 18;
/// An open snapshot blocks vacuum; claims become slower after some minutes.
const SNAPSHOT_WARNING: Duration = Duration::from_secs(5 * 60);
/// After an hour tables have grown permanently.
const SNAPSHOT_PROBLEM: Duration = Duration::from_secs(60 * 60);
/// Fewer dead rows are no problem at any ratio.
const DEAD_ROWS_MIN: u64 = 100_000;
/// Dead rows per live row.
const DEAD_ROWS_RATIO: u64 = 2;
/// Share of `max_connections` in use, in per cent.
const CONNECTIONS_WARNING: u64 = 80;
const CONNECTIONS_PROBLEM: u64 = 95;
/// Sessions that wait for a lock at the same time.
const LOCK_WAITS_WARNING: u32 = 20;
/// PostgreSQL stops accepting writes at two billion.
const WRAPAROUND_WARNING: u64 = 1_000_000_000;
/// Unused share of a file in per cent, and the minimum in bytes.
const FREE_SHARE: u64 = 50;
const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;
/// A larger write-ahead log indicates that checkpoints are blocked.
const LOG_WARNING_BYTES: u64 = 512 * 1024 * 1024;
/// SQLite's value of `synchronous = FULL`.
const SYNCHRONOUS_FULL: u32 = 2;

pub(super) fn evaluate(facts: &Diagnosis) -> Vec<Finding> {
    match facts {
        Diagnosis::Postgres(facts) => postgres(facts),
        Diagnosis::Sqlite(facts) => sqlite(facts),
        Diagnosis::Memory => vec![warning(
            "database",
            "the store is in memory: data is lost when the process exits",
            "set store.url to a file or a database",
        )],
    }
}

fn postgres(facts: &PostgresFacts) -> Vec<Finding> {
    let mut findings = vec![server(facts), durability(facts)];
    findings.extend(vacuum(facts));
    findings.push(snapshot(facts));
    findings.push(connections(facts));
    findings.push(locks(facts));
    findings.push(wraparound(facts));
    findings.extend(facts.advances_event_log.map(event_log));
    findings.push(sizes(&facts.tables));
    findings
}

fn server(facts: &PostgresFacts) -> Finding {
    let says = format!("PostgreSQL {}", facts.version);
    if facts.in_recovery {
        return problem(
            "database",
            format!("{says} is a read-only replica"),
            "set store.url to the primary",
        );
    }
    let major = facts.version_number / 10_000;
    if major < POSTGRES_MIN {
        return problem(
            "database",
            format!("{says} is not supported"),
            format!("upgrade to a version from {POSTGRES_MIN} to {POSTGRES_TESTED}"),
        );
    }
    if major > POSTGRES_TESTED {
        return warning(
            "database",
            format!(
                "{says} is newer than the versions that Leasehold is tested on ({POSTGRES_MIN} to {POSTGRES_TESTED})"
            ),
            "upgrade Leasehold to a release that is tested on it",
        );
    }
    passed("database", says)
}

fn durability(facts: &PostgresFacts) -> Finding {
    let off: Vec<&str> = [
        ("fsync", facts.fsync),
        ("full_page_writes", facts.full_page_writes),
    ]
    .into_iter()
    .filter(|(_, on)| !on)
    .map(|(name, _)| name)
    .collect();
    if !off.is_empty() {
        return problem(
            "durability",
            format!(
                "{} is off: a crash of the machine can corrupt the database",
                off.join(" and ")
            ),
            "set it to on; if the machine crashed while it was off, restore a backup",
        );
    }
    match facts.synchronous_commit.as_str() {
        "off" => warning(
            "durability",
            "synchronous_commit is off: transactions of SQL clients may be lost in a crash; Leasehold's own connections use on",
            "set synchronous_commit to on for the server, or for the roles that enqueue with SQL",
        ),
        other => passed(
            "durability",
            format!("commits are durable (synchronous_commit {other})"),
        ),
    }
}

fn vacuum(facts: &PostgresFacts) -> Vec<Finding> {
    let todo = "set autovacuum to on and reload the configuration; without it claims become slower over time";
    if !facts.autovacuum {
        return vec![problem("autovacuum", "is off for the whole server", todo)];
    }
    let named = |pick: fn(&&TableFacts) -> bool| -> Vec<&str> {
        let tables = facts.tables.iter().filter(pick);
        tables.map(|table| table.name.as_str()).collect()
    };
    let off = named(|table| !table.autovacuum);
    if !off.is_empty() {
        return vec![problem(
            "autovacuum",
            format!("is off for {}", off.join(", ")),
            "reset the storage parameter autovacuum_enabled of these tables; without autovacuum claims become slower over time",
        )];
    }
    let full =
        named(|table| table.dead > DEAD_ROWS_MIN && table.dead > table.rows * DEAD_ROWS_RATIO);
    if !full.is_empty() {
        return vec![warning(
            "autovacuum",
            format!(
                "does not keep up with {}: most rows are dead",
                full.join(", ")
            ),
            "find the cause: an old snapshot (see the check snapshots), or too few autovacuum workers",
        )];
    }
    vec![passed("autovacuum", "is on and keeps up")]
}

fn snapshot(facts: &PostgresFacts) -> Finding {
    let unseen = facts.unseen_snapshots;
    let Some((age, whose)) = &facts.oldest_snapshot else {
        return warn_if_unseen(unseen, passed("snapshots", "none is open"));
    };
    let says = format!(
        "the oldest has been open for {} s, held by {whose}",
        age.as_secs()
    );
    let todo =
        "end that transaction: while it is open, vacuum cannot remove dead rows, and tables grow";
    match *age {
        age if age > SNAPSHOT_PROBLEM => problem("snapshots", says, todo),
        age if age > SNAPSHOT_WARNING => warning("snapshots", says, todo),
        _ => warn_if_unseen(unseen, passed("snapshots", says)),
    }
}

/// Replaces a finding by a warning if this role cannot see all snapshots.
fn warn_if_unseen(unseen: u32, seen: Finding) -> Finding {
    if unseen == 0 {
        return seen;
    }
    warning(
        "snapshots",
        format!("{unseen} sessions of other roles hold a snapshot whose age this role cannot see"),
        "run GRANT pg_read_all_stats TO leasehold (the role in store.url)",
    )
}

fn connections(facts: &PostgresFacts) -> Finding {
    let (used, max) = (
        u64::from(facts.connections),
        u64::from(facts.max_connections.max(1)),
    );
    let says = format!(
        "{used} of {max} are open, {} of them to this database",
        facts.ours
    );
    let todo = "raise max_connections, or lower store.max_connections or the number of connections of other clients";
    match used * 100 / max {
        share if share >= CONNECTIONS_PROBLEM => problem("connections", says, todo),
        share if share >= CONNECTIONS_WARNING => warning("connections", says, todo),
        _ => passed("connections", says),
    }
}

fn locks(facts: &PostgresFacts) -> Finding {
    let says = format!("{} sessions wait for a lock", facts.lock_waits);
    if facts.lock_waits < LOCK_WAITS_WARNING {
        return passed("lock waits", says);
    }
    let todo = "find the blocking sessions with pg_stat_activity and pg_blocking_pids()";
    warning("lock waits", says, todo)
}

fn event_log(may_advance: bool) -> Finding {
    if may_advance {
        return passed("event log", "old partitions are dropped");
    }
    warning(
        "event log",
        "the role may not drop partitions of the event log: events are never deleted",
        "connect as the owner of the tables, or GRANT the owning role to the role that Leasehold connects as",
    )
}

fn wraparound(facts: &PostgresFacts) -> Finding {
    let says = format!(
        "the oldest unfrozen row is {} transactions old",
        facts.wraparound_age
    );
    if facts.wraparound_age < WRAPAROUND_WARNING {
        return passed("wraparound", says);
    }
    let todo = "run VACUUM (FREEZE): at two billion transactions the server stops accepting writes";
    problem("wraparound", says, todo)
}

fn sizes(tables: &[TableFacts]) -> Finding {
    let all: u64 = tables.iter().map(|table| table.bytes).sum();
    let largest = tables.iter().max_by_key(|table| table.bytes);
    let largest = largest.map_or_else(String::new, |table| {
        format!(
            ", the largest is {} with {} MiB",
            table.name,
            table.bytes >> 20
        )
    });
    passed(
        "size",
        format!("the busiest tables use {} MiB{largest}", all >> 20),
    )
}

fn sqlite(facts: &SqliteFacts) -> Vec<Finding> {
    let mut findings = vec![passed("database", format!("SQLite {}", facts.version))];
    findings.push(match (facts.journal_mode.as_str(), facts.synchronous) {
        ("wal", SYNCHRONOUS_FULL..) => passed("durability", "commits are durable"),
        (mode, synchronous) => problem(
            "durability",
            format!("journal_mode is {mode} and synchronous is {synchronous}; expected wal and 2"),
            "check that the file system of the data directory supports shared memory; network file systems do not",
        ),
    });
    findings.push(match &facts.damage {
        Some(damage) => problem(
            "file",
            format!("is damaged: {damage}"),
            "stop the server, keep a copy of the directory, and restore a backup (docs/operations/recovery.md)",
        ),
        None if facts.unchecked => passed("file", "is too large for a quick check; run `PRAGMA integrity_check` on a copy"),
        None => passed("file", "a quick check found no damage"),
    });
    let (all, free, log) = (
        facts.bytes >> 20,
        facts.free_bytes >> 20,
        facts.log_bytes >> 20,
    );
    let says = format!("{all} MiB, {free} MiB of them unused; write-ahead log {log} MiB");
    findings.push(if facts.log_bytes > LOG_WARNING_BYTES {
        let todo = "end long-running readers of the file: they block the checkpoint of the write-ahead log";
        warning("size", says, todo)
    } else if facts.free_bytes > FREE_BYTES_MIN && facts.free_bytes * 100 / facts.bytes.max(1) > FREE_SHARE {
        let todo = "to reclaim the space, stop the server and run VACUUM on the file";
        warning("size", says, todo)
    } else {
        passed("size", says)
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::Timestamp;
    use leasehold_core::doctor::Verdict;

    fn healthy() -> PostgresFacts {
        PostgresFacts {
            version: "16.4".to_owned(),
            version_number: 160_004,
            in_recovery: false,
            now: Timestamp::UNIX_EPOCH,
            synchronous_commit: "on".to_owned(),
            fsync: true,
            full_page_writes: true,
            autovacuum: true,
            connections: 10,
            max_connections: 100,
            ours: 5,
            oldest_snapshot: None,
            unseen_snapshots: 0,
            lock_waits: 0,
            wraparound_age: 1_000,
            advances_event_log: Some(true),
            tables: vec![TableFacts {
                name: "request_event".to_owned(),
                bytes: 1 << 20,
                rows: 10,
                dead: 10,
                autovacuum: true,
                last_autovacuum: None,
            }],
        }
    }

    type Change = fn(&mut PostgresFacts);

    #[test]
    fn each_postgres_fact_has_its_verdict() {
        use Verdict::{Ok, Problem, Warning};
        let cases: &[(&str, Verdict, Change)] = &[
            ("database", Ok, |_| {}),
            ("database", Problem, |f| f.in_recovery = true),
            ("database", Problem, |f| f.version_number = 130_014),
            ("database", Ok, |f| f.version_number = 140_000),
            ("database", Ok, |f| f.version_number = 180_004),
            ("database", Warning, |f| f.version_number = 190_000),
            ("durability", Problem, |f| f.fsync = false),
            ("durability", Problem, |f| f.full_page_writes = false),
            ("durability", Warning, |f| {
                f.synchronous_commit = "off".to_owned()
            }),
            ("durability", Ok, |f| {
                f.synchronous_commit = "local".to_owned()
            }),
            ("autovacuum", Problem, |f| f.autovacuum = false),
            ("autovacuum", Problem, |f| f.tables[0].autovacuum = false),
            ("autovacuum", Warning, |f| f.tables[0].dead = 1_000_000),
            ("autovacuum", Ok, |f| f.tables[0].dead = 99_999),
            ("snapshots", Warning, |f| f.unseen_snapshots = 2),
            ("snapshots", Ok, |f| {
                f.oldest_snapshot = Some((Duration::from_secs(9), "x".to_owned()))
            }),
            ("snapshots", Warning, |f| {
                f.oldest_snapshot = Some((Duration::from_secs(301), "x".to_owned()))
            }),
            ("snapshots", Problem, |f| {
                f.oldest_snapshot = Some((Duration::from_secs(3_601), "x".to_owned()))
            }),
            ("connections", Ok, |f| f.connections = 79),
            ("connections", Warning, |f| f.connections = 80),
            ("connections", Problem, |f| f.connections = 97),
            ("lock waits", Warning, |f| f.lock_waits = 20),
            ("wraparound", Problem, |f| f.wraparound_age = 1_500_000_000),
            ("event log", Warning, |f| f.advances_event_log = Some(false)),
            ("event log", Ok, |f| f.advances_event_log = None),
        ];
        for (check, verdict, change) in cases {
            let mut facts = healthy();
            change(&mut facts);
            for finding in evaluate(&Diagnosis::Postgres(facts)) {
                let expected = if finding.check == *check {
                    *verdict
                } else {
                    Ok
                };
                assert_eq!(finding.verdict, expected, "{finding:?}");
                assert_eq!(finding.todo.is_none(), expected == Ok, "{finding:?}");
            }
        }
    }

    #[test]
    fn each_sqlite_fact_has_its_verdict() {
        use Verdict::{Ok, Problem, Warning};
        let healthy = SqliteFacts {
            version: "3.50".to_owned(),
            journal_mode: "wal".to_owned(),
            synchronous: 2,
            bytes: 1 << 30,
            free_bytes: 0,
            log_bytes: 0,
            damage: None,
            unchecked: false,
        };
        type Case = (&'static str, Verdict, fn(&mut SqliteFacts));
        let cases: &[Case] = &[
            ("durability", Ok, |_| {}),
            ("durability", Problem, |f| {
                f.journal_mode = "delete".to_owned()
            }),
            ("durability", Problem, |f| f.synchronous = 1),
            ("file", Problem, |f| {
                f.damage = Some("row 3 missing".to_owned())
            }),
            ("file", Ok, |f| f.unchecked = true),
            ("size", Warning, |f| f.log_bytes = 1 << 30),
            ("size", Warning, |f| f.free_bytes = 600 << 20),
        ];
        for (check, verdict, change) in cases {
            let mut facts = healthy.clone();
            change(&mut facts);
            for finding in evaluate(&Diagnosis::Sqlite(facts)) {
                let expected = if finding.check == *check {
                    *verdict
                } else {
                    Ok
                };
                assert_eq!(finding.verdict, expected, "{finding:?}");
            }
        }
    }
}
