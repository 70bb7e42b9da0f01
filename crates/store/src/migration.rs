//! What a migration is, whichever database it is for, and how its text is recognised again.

use crate::Result;
use crate::store_trait::store_trait;
use std::fmt;

store_trait! {
    /// The schema of the database.
    pub trait SchemaStore, observed by SchemaObserver {
        /// Brings the schema up to this program's, and says what was applied. Safe from many processes at once.
        /// Refuses a schema that is newer or that was applied with another text.
        async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>>;

        /// Every migration this program or the database knows. Changes nothing.
        async fn schema_status(&self) -> Result<Vec<MigrationStatus>>;
    }
}

/// One numbered step of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its place in the order, from 1.
    pub number: u32,
    /// Its name, the same on every store.
    pub name: &'static str,
    /// Its SQL.
    pub sql: &'static str,
}

/// A migration or a function as a database sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationStatus {
    /// Which of the two it is.
    pub kind: StepKind,
    /// Its place in the order; of a function, its release.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Whether it was applied.
    pub state: MigrationState,
}

/// What a step towards a schema is.
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
    /// Applied, and its text is this program's.
    Applied,
    /// Not applied yet; of a function also: applied in a lower release.
    Pending,
    /// Applied with another text than this program's.
    Changed,
    /// Applied by a newer program; this one does not know it.
    Unknown,
    /// A function that a newer program applied, in a higher release or under a new name. This program leaves it as it is
    /// and may use it.
    Newer,
}

impl Migration {
    /// What its text is recognised by; line endings do not matter.
    pub fn checksum(&self) -> i64 {
        checksum(self.sql)
    }
}

/// How migrations are run by hand: one transaction that first sees to the table of applied migrations, and records each.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// What comes before the migrations, a statement each.
    pub before: &'a [&'a str],
    /// What records a migration: its number, name and checksum are parameters 1 to 3.
    pub record: &'a str,
    /// What stands before the number of a parameter.
    pub mark: char,
}

impl Script<'_> {
    /// The SQL that brings a database with this status up to these migrations; empty if it has them all.
    pub fn text(&self, migrations: &[Migration], status: &[MigrationStatus]) -> String {
        self.transaction(&self.steps(migrations, status))
    }

    /// The SQL of each migration that a database with this status lacks, in order.
    pub fn steps(&self, migrations: &[Migration], status: &[MigrationStatus]) -> Vec<String> {
        let kept = |number| {
            let migrations = status.iter().filter(|s| s.kind == StepKind::Migration);
            let mut of = migrations.filter(|s| s.number == number);
            of.any(|s| s.state != MigrationState::Pending)
        };
        let pending = migrations.iter().filter(|m| !kept(m.number));
        pending.map(|m| self.one(m)).collect()
    }

    /// One transaction of these steps; empty if there is none.
    pub fn transaction(&self, steps: &[String]) -> String {
        if steps.is_empty() {
            return String::new();
        }
        let before: String = self.before.iter().map(|s| self.statement(s, &[])).collect();
        format!("BEGIN;\n\n{before}{}COMMIT;\n", steps.concat())
    }

    /// A statement of the script, with these literals in place of its parameters.
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

/// FNV-1a over the text without carriage returns: enough to notice an edit, and the same on every machine.
pub fn checksum(text: &str) -> i64 {
    let hash = text
        .bytes()
        .filter(|b| *b != b'\r')
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    hash.cast_signed()
}
