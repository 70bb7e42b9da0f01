//! Migrations of the schema, for any database: status, checksums and the SQL script to apply them by hand.

use crate::Result;
use crate::store_trait::store_trait;
use std::fmt;

store_trait! {
    /// The schema of the database.
    pub trait SchemaStore, observed by SchemaObserver {
        /// Applies pending migrations and returns what was applied. Safe to call from several processes at once.
        /// Fails if the schema is newer than this program, or if a migration was applied with another text.
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
    /// Its SQL.
    pub sql: &'static str,
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
    /// Applied by a newer program; this one does not know it.
    Unknown,
    /// A function that a newer program applied, in a higher release or under a new name. This program leaves it as it is
    /// and may call it.
    Newer,
}

impl Migration {
    /// Returns the checksum of its text; line endings do not matter.
    pub fn checksum(&self) -> i64 {
        checksum(self.sql)
    }
}

/// A SQL script that applies migrations by hand: one transaction that creates the table of applied migrations if needed and records each migration.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// The statements before the migrations.
    pub before: &'a [&'a str],
    /// The statement that records a migration; number, name and checksum are parameters 1 to 3.
    pub record: &'a str,
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
