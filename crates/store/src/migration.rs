//! Migrations of the schema, for any database: status, checksums and the SQL script to apply them by hand.

#[cfg(test)]
mod tests;

use crate::Result;
use crate::store_trait::store_trait;
use std::fmt;

store_trait! {
    /// The schema of the database.
    pub trait SchemaStore, observed by SchemaObserver {
        /// Applies pending migrations and returns what was applied. Safe to call from several processes at once.
        /// Fails if a newer migration needs a newer program, or if a migration was applied with another text.
        async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>>;

        /// Returns every migration that this program or the database knows. Changes nothing.
        async fn schema_status(&self) -> Result<Vec<MigrationStatus>>;
    }
}

/// One numbered migration.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its number, from 1.
    pub number: u32,
    /// Its name, the same on every store.
    pub name: &'static str,
    /// The lowest migration number that a program must have been built with to use a schema that has this migration.
    pub compatible_from: u32,
    /// Its SQL.
    pub sql: &'static str,
}

/// A migration as a database records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The checksum of the text that was applied.
    pub checksum: i64,
    /// As [`Migration::compatible_from`].
    pub compatible_from: u32,
    /// The version of the program that applied it.
    pub applied_by: String,
}

/// The status of a migration or function in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationStatus {
    /// Migration or function.
    pub kind: StepKind,
    /// The number of the migration, or the release of the function.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Whether it was applied.
    pub state: MigrationState,
    /// As [`Migration::compatible_from`]; none for functions.
    pub compatible_from: Option<u32>,
    /// The version of the program that applied it; none for functions, and if it is pending.
    pub applied_by: Option<String>,
}

/// The kind of a schema step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A migration: applied once.
    Migration,
    /// A SQL function: replaced by each higher release. Not every database has any.
    Function,
}

impl fmt::Display for MigrationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            StepKind::Migration => write!(f, "migration {}", self.name),
            StepKind::Function => write!(f, "release {} of function {}", self.number, self.name),
        }
    }
}

/// Whether a migration was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// Applied with the text of this program.
    Applied,
    /// Not applied yet; a function also if only a lower release is applied.
    Pending,
    /// Applied with another text than this program's.
    Changed,
    /// Applied by a newer program, and this one may use it: a migration that it does not know, a function in a higher release or under
    /// a new name. This program leaves it as it is.
    Newer,
    /// A migration that was applied by a newer program, and this one is too old to use the schema.
    Incompatible,
}

impl Migration {
    /// The start of the second line of a file, before the number.
    const HEADER: &'static str = "-- compatible_from: ";

    /// Creates the migration of a file.
    ///
    /// # Panics
    /// In a constant the file then does not compile: if its second line is not `-- compatible_from: N`, or N is not between 1 and its number.
    pub const fn from_file(number: u32, name: &'static str, sql: &'static str) -> Self {
        let compatible_from = header_number(sql, Self::HEADER);
        assert!(
            compatible_from >= 1 && compatible_from <= number,
            "compatible_from must be between 1 and the number of the migration"
        );
        Self {
            number,
            name,
            compatible_from,
            sql,
        }
    }

    /// Returns the checksum of its text; line endings do not matter.
    pub fn checksum(&self) -> i64 {
        checksum(self.sql)
    }

    /// Returns its status in a database. `applied_by`: the version of the program that applied it; none if it is pending.
    pub fn status(&self, state: MigrationState, applied_by: Option<&str>) -> MigrationStatus {
        MigrationStatus {
            kind: StepKind::Migration,
            number: self.number,
            name: self.name.to_owned(),
            state,
            compatible_from: Some(self.compatible_from),
            applied_by: applied_by.map(str::to_owned),
        }
    }
}

/// Parses the number in the second line of a file, after `mark`.
///
/// # Panics
/// In a constant the file then does not compile: if the second line does not start with `mark` and end with digits.
pub const fn header_number(text: &str, mark: &str) -> u32 {
    const WRONG: &str = "the second line must be `-- release: N` in a function's file, `-- compatible_from: N` in a migration's";
    let (text, mark) = (text.as_bytes(), mark.as_bytes());
    let mut at = 0;
    while at < text.len() && text[at] != b'\n' {
        at += 1;
    }
    at += 1;
    let mut matched = 0;
    while matched < mark.len() {
        assert!(at < text.len() && text[at] == mark[matched], "{}", WRONG);
        at += 1;
        matched += 1;
    }
    let (mut number, mut digits) = (0, 0);
    while at < text.len() && text[at] != b'\n' && text[at] != b'\r' {
        assert!(text[at].is_ascii_digit(), "{}", WRONG);
        number = number * 10 + (text[at] - b'0') as u32;
        at += 1;
        digits += 1;
    }
    assert!(digits > 0, "{}", WRONG);
    number
}

/// Returns the highest of these numbers: that of the last migration.
pub fn last_number(migrations: &[Migration]) -> u32 {
    let numbers = migrations.iter().map(|migration| migration.number);
    numbers.max().unwrap_or_default()
}

/// Compares the migrations that a database has applied with those of this program: returns every one that either knows, by number.
pub fn compare_migrations(
    known: &[Migration],
    applied: &[AppliedMigration],
) -> Vec<MigrationStatus> {
    let last = last_number(known);
    let recorded = |number| applied.iter().find(move |one| one.number == number);
    let is_too_new = |one: &AppliedMigration| one.compatible_from > last;
    let known_status = known.iter().map(|migration| {
        let recorded = recorded(migration.number);
        let state = match recorded {
            None => MigrationState::Pending,
            Some(one) if is_too_new(one) => MigrationState::Incompatible,
            Some(one) if one.checksum == migration.checksum() => MigrationState::Applied,
            Some(_) => MigrationState::Changed,
        };
        let status = migration.status(state, recorded.map(|one| &*one.applied_by));
        MigrationStatus {
            compatible_from: recorded
                .map_or(status.compatible_from, |one| Some(one.compatible_from)),
            ..status
        }
    });
    let is_unknown = |one: &&AppliedMigration| known.iter().all(|m| m.number != one.number);
    let newer = applied
        .iter()
        .filter(is_unknown)
        .map(|one| MigrationStatus {
            kind: StepKind::Migration,
            number: one.number,
            name: one.name.clone(),
            state: match is_too_new(one) {
                true => MigrationState::Incompatible,
                false => MigrationState::Newer,
            },
            compatible_from: Some(one.compatible_from),
            applied_by: Some(one.applied_by.clone()),
        });
    let mut all: Vec<_> = known_status.chain(newer).collect();
    all.sort_by_key(|status| status.number);
    all
}

/// Why a program cannot use a database with this status, and what to do; none if it can, once pending steps are applied.
pub fn schema_refusal(status: &[MigrationStatus]) -> Option<String> {
    let is = |state| status.iter().filter(move |one| one.state == state);
    let too_new = is(MigrationState::Incompatible).max_by_key(|one| one.compatible_from);
    if let Some(one) = too_new {
        let known = status.iter().filter(|one| {
            one.kind == StepKind::Migration
                && matches!(
                    one.state,
                    MigrationState::Applied | MigrationState::Changed | MigrationState::Pending
                )
        });
        let known = known.map(|one| one.number).max().unwrap_or_default();
        let needed = one.compatible_from.unwrap_or_default();
        let version = one.applied_by.as_deref().unwrap_or("unknown");
        return Some(format!(
            "the schema is too new for this program: {one} was applied by Leasehold {version} and needs a program with migration {needed} or a later one, \
             this program's last one is {known}; run Leasehold {version} or newer, or restore a backup from before that migration"
        ));
    }
    let changed = is(MigrationState::Changed).next()?;
    Some(format!(
        "{changed} was applied with a different text than this program's (checksum mismatch); run the build that applied it, or restore a backup from before"
    ))
}

/// A SQL script that applies migrations by hand: one transaction that creates the table of applied migrations if needed and records each migration.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// The statements before the migrations.
    pub before: &'a [&'a str],
    /// The statement that records a migration; number, name, checksum, `compatible_from` and the program's version are parameters 1 to 5.
    pub record: &'a str,
    /// The program's version.
    pub version: &'a str,
    /// The character before the number of a parameter.
    pub mark: char,
}

impl Script<'_> {
    /// Returns the SQL that applies the migrations a database with this status lacks; empty if none.
    pub fn text(&self, migrations: &[Migration], status: &[MigrationStatus]) -> String {
        self.transaction(&self.steps(migrations, status))
    }

    /// Returns the SQL of each migration that a database with this status lacks, in order.
    pub fn steps(&self, migrations: &[Migration], status: &[MigrationStatus]) -> Vec<String> {
        let is_applied = |number| {
            let migrations = status.iter().filter(|s| s.kind == StepKind::Migration);
            let mut of = migrations.filter(|s| s.number == number);
            of.any(|s| s.state != MigrationState::Pending)
        };
        let pending = migrations.iter().filter(|m| !is_applied(m.number));
        pending.map(|m| self.one(m)).collect()
    }

    /// Wraps these steps in one transaction; empty if there are none.
    pub fn transaction(&self, steps: &[String]) -> String {
        if steps.is_empty() {
            return String::new();
        }
        let before: String = self.before.iter().map(|s| self.statement(s, &[])).collect();
        format!("BEGIN;\n\n{before}{}COMMIT;\n", steps.concat())
    }

    /// Formats a statement of the script with these literals in place of its parameters.
    pub fn statement(&self, sql: &str, literals: &[String]) -> String {
        let numbered = (1..).zip(literals);
        let filled = numbered.fold(sql.trim_end().to_owned(), |sql, (number, literal)| {
            sql.replace(&format!("{}{number}", self.mark), literal)
        });
        format!("{filled};\n\n")
    }

    fn one(&self, migration: &Migration) -> String {
        let literals = [
            migration.number.to_string(),
            format!("'{}'", migration.name),
            migration.checksum().to_string(),
            migration.compatible_from.to_string(),
            format!("'{}'", self.version),
        ];
        let (name, sql) = (migration.name, migration.sql.trim_end());
        let record = self.statement(self.record, &literals);
        format!("-- {name}\n\n{sql}\n\n{record}")
    }
}

/// Computes FNV-1a over the text without carriage returns: detects an edit, and is the same on every machine.
pub fn checksum(text: &str) -> i64 {
    let hash = text
        .bytes()
        .filter(|b| *b != b'\r')
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    hash.cast_signed()
}
