//! Decides which tests run through a PgBouncer in transaction mode. Starts none: a test program starts its own.

use leasehold_testkit::POOLER_VARIABLE;

use super::programs::TestProgram;

/// The default isolation levels of the databases, besides that of PostgreSQL.
const ISOLATIONS: [&str; 2] = ["serializable", "repeatable read"];

/// A program whose tests know the variable.
struct Pooled {
    name: &'static str,
    /// Its tests in an ordinary run; none if it has no part in one.
    usual: &'static [&'static str],
    /// Its tests in a full run; all if empty.
    full: &'static [&'static str],
}

/// The store's own tests have a part that always runs through a PgBouncer.
const PROGRAMS: [Pooled; 2] = [
    Pooled {
        name: "cli::serve",
        usual: &[
            "happy::fifteen_requests_are_claimed_in_batches_and_reconciled",
            "parallel::",
        ],
        full: &[],
    },
    Pooled {
        name: "store-postgres::postgres",
        usual: &[],
        // A store behind a pooler does not listen.
        full: &["conformance::", "--skip", "notification"],
    },
];

/// Adds these programs once more for each isolation level; in an ordinary run a part of them, for one level. `has_filter`: the caller chose tests, and
/// a part would add others.
pub(super) fn add(programs: &mut Vec<TestProgram>, full: bool, has_filter: bool) {
    let levels = if full {
        &ISOLATIONS[..]
    } else {
        &ISOLATIONS[..1]
    };
    let mut added = Vec::new();
    for pooled in PROGRAMS {
        let options = if full { pooled.full } else { pooled.usual };
        let is_left_out = match options.is_empty() {
            true => !full,
            false => has_filter,
        };
        if is_left_out {
            continue;
        }
        let Some(program) = programs.iter().find(|program| program.name == pooled.name) else {
            continue;
        };
        added.extend(levels.iter().map(|isolation| TestProgram {
            name: name(program, isolation),
            options: options.iter().map(ToString::to_string).collect(),
            variables: vec![(POOLER_VARIABLE, (*isolation).to_owned())],
            ..program.clone()
        }));
    }
    programs.extend(added);
}

/// A name without spaces, as those of all programs.
fn name(program: &TestProgram, isolation: &str) -> String {
    format!("{}@pgbouncer-{}", program.name, isolation.replace(' ', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_run_goes_through_the_pooler_once_for_each_isolation_level() {
        let added = |full, has_filter| {
            let names = ["core", "cli::serve", "store-postgres::postgres"];
            let mut programs: Vec<TestProgram> = names.map(TestProgram::named).into();
            add(&mut programs, full, has_filter);
            let added = programs.split_off(names.len()).into_iter();
            let text = |one: TestProgram| (one.name, one.options.len(), one.variables[0].1.clone());
            added.map(text).collect::<Vec<_>>()
        };
        let of =
            |name: &str, options, isolation: &str| (name.to_owned(), options, isolation.to_owned());
        let usual = of("cli::serve@pgbouncer-serializable", 2, "serializable");
        assert_eq!(added(false, false), [usual]);
        assert_eq!(added(false, true), []);
        let full = [
            of("cli::serve@pgbouncer-serializable", 0, "serializable"),
            of("cli::serve@pgbouncer-repeatable-read", 0, "repeatable read"),
            of(
                "store-postgres::postgres@pgbouncer-serializable",
                3,
                "serializable",
            ),
            of(
                "store-postgres::postgres@pgbouncer-repeatable-read",
                3,
                "repeatable read",
            ),
        ];
        assert_eq!(added(true, false), full);
        assert_eq!(added(true, true), full[..2]);
    }
}
