//! What a migration is, whichever database it is for, and how its text is recognised again.

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

/// A migration as a database sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationStatus {
    /// Its place in the order.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Whether it was applied.
    pub state: MigrationState,
}

/// Whether a migration was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// Applied, and its text is this program's.
    Applied,
    /// Not applied yet.
    Pending,
    /// Applied with another text than this program's.
    Changed,
    /// Applied by a newer program; this one does not know it.
    Unknown,
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
        let kept = |number| {
            let mut of = status.iter().filter(|s| s.number == number);
            of.any(|s| s.state != MigrationState::Pending)
        };
        let pending = migrations.iter().filter(|m| !kept(m.number));
        let pending: Vec<String> = pending.map(|m| self.one(m)).collect();
        if pending.is_empty() {
            return String::new();
        }
        let before: String = self.before.iter().map(|s| statement(s)).collect();
        format!("BEGIN;\n\n{before}{}COMMIT;\n", pending.concat())
    }

    fn one(&self, migration: &Migration) -> String {
        let parameter = |number: u32| format!("{}{number}", self.mark);
        let record = self
            .record
            .replace(&parameter(1), &migration.number.to_string())
            .replace(&parameter(2), &format!("'{}'", migration.name))
            .replace(&parameter(3), &migration.checksum().to_string());
        let (name, sql) = (migration.name, migration.sql.trim_end());
        format!("-- {name}\n\n{sql}\n\n{}", statement(&record))
    }
}

fn statement(sql: &str) -> String {
    format!("{};\n\n", sql.trim_end())
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

/// The migrations of an adapter: `migrations! { 1 => "0001_workspaces", … }` reads `migrations/0001_workspaces.sql`
/// beside the adapter's manifest.
#[macro_export]
macro_rules! migrations {
    ($($number:literal => $name:literal),* $(,)?) => {
        &[$($crate::Migration {
            number: $number,
            name: $name,
            sql: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/", $name, ".sql")),
        }),*]
    };
}
