//! The SQL functions, one file each in `sql/functions/`: compares the releases of the database with those of this program, and applies
//! pending ones. docs/adr/0009-sql-functions.md explains why they are not migrations.

#[cfg(test)]
mod tests;

use crate::error::schema_record;
use crate::param::Params;
use crate::session::Session;
use crate::transaction::OpenTransaction;
use leasehold_store::sql;
use leasehold_store::{
    MigrationState, MigrationStatus, Result, Script, StepKind, checksum, header_number,
};

const DELETE_RECORD: &str = sql!("migration/delete_function_record");
const GUARD: &str = sql!("migration/guard_function");
const REVOKE: &str = sql!("migration/revoke_function");
const RECORD: &str = sql!("migration/record_function");
const CHECK_BODIES: &str = sql!("migration/check_bodies");

/// A SQL function and its release.
#[derive(Clone, Copy, Debug)]
pub struct SqlFunction {
    /// The name of the function and of its file.
    pub name: &'static str,
    /// The release of the body; every change of the body raises it.
    pub release: u32,
    text: &'static str,
}

impl SqlFunction {
    const fn from_file(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            release: release(text),
            text,
        }
    }

    /// Returns a checksum of the statement, without the comments at the top of the file.
    pub fn checksum(&self) -> i64 {
        checksum(self.statement())
    }

    fn statement(&self) -> &'static str {
        let mut rest = self.text;
        while rest.starts_with("--") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
        rest
    }

    /// Returns the name and the argument types, which distinguish overloads: `leasehold_promote_due(timestamptz, integer)`.
    fn signature(&self) -> String {
        let statement = self.statement();
        let arguments = statement.split_once('(').map_or("", |(_, rest)| rest);
        let types = arguments_of(arguments).into_iter().map(|argument| {
            let argument = argument.split(" DEFAULT ").next().unwrap_or(argument);
            let (_name, of_type) = argument.split_once(' ').unwrap_or(("", argument));
            of_type
        });
        format!("{}({})", self.name, types.collect::<Vec<_>>().join(", "))
    }

    /// Returns the SQL that applies the function, unless a newer release is applied.
    fn step(&self, script: &Script<'_>) -> String {
        let name = format!("'{}'", self.name);
        let identity = [name.clone(), format!("'{}'", self.signature())];
        let literals = [name, self.release.to_string(), self.checksum().to_string()];
        format!(
            "-- {} release {}\n\n{}{}{}{}{}",
            self.name,
            self.release,
            script.statement(DELETE_RECORD, &identity),
            script.statement(GUARD, &literals),
            script.statement(self.statement(), &[]),
            script.statement(REVOKE, &identity),
            script.statement(RECORD, &literals),
        )
    }
}

/// Splits the argument list of a function; `text` begins after the opening parenthesis.
fn arguments_of(text: &str) -> Vec<&str> {
    let (mut arguments, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(text[from..at].trim());
                from = at + 1;
            }
            ')' => {
                arguments.push(text[from..at].trim());
                break;
            }
            _ => {}
        }
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

/// Parses the second line of a function's file, `-- release: 1`. A file without it does not compile.
const fn release(text: &str) -> u32 {
    let release = header_number(text, "-- release: ");
    assert!(release > 0, "the release must be at least 1");
    release
}

macro_rules! functions {
    ($($name:literal),* $(,)?) => {
        &[$(SqlFunction::from_file(
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/functions/", $name, ".sql")),
        )),*]
    };
}

/// The functions of a program, in the order of application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions<'a> {
    /// Functions that triggers and column defaults call: migrations need them. PostgreSQL does not check their bodies on creation,
    /// because their tables may not exist yet.
    pub(crate) before_migrations: &'a [SqlFunction],
    /// All other functions. A function in language SQL comes after those that it calls.
    pub(crate) after_migrations: &'a [SqlFunction],
}

/// The functions of this program.
pub(crate) const FUNCTIONS: Functions<'static> = Functions {
    before_migrations: functions![
        "leasehold_refuse",
        "leasehold_workspace_sync_turn",
        "leasehold_workspace_turn_once",
        "leasehold_workspace_turn_limit",
        "leasehold_check_shortcuts",
        "leasehold_execution_inserted",
        "leasehold_execution_updated",
        "leasehold_shedlock_token",
        "leasehold_check_kept_key",
        "leasehold_check_request",
        "leasehold_event_tables",
    ],
    after_migrations: functions![
        "leasehold_count_running",
        "leasehold_take_slots",
        "leasehold_hide_self",
        "leasehold_fold",
        "leasehold_recount",
        "leasehold_rebuild",
        "leasehold_event_advance",
        "leasehold_promote_due",
        "leasehold_prune_requests",
        "leasehold_uuid7",
        "leasehold_is_readable",
        "leasehold_check_options",
        "leasehold_notify",
        "leasehold_check_epoch",
        "leasehold_check_quota",
        "leasehold_enqueue",
        "leasehold_job_notify",
        "leasehold_job_expire",
        "leasehold_job_claim",
        "leasehold_job_finish",
        "leasehold_job_renew",
        "leasehold_job_progress",
        "leasehold_job_cancel",
        "leasehold_job_enqueue",
        "leasehold_event_adopt",
        "leasehold_epoch_open",
        "leasehold_begin",
    ],
};

/// Returns every SQL function of this program, in the order of application.
pub fn functions() -> impl Iterator<Item = &'static SqlFunction> {
    FUNCTIONS.all()
}

/// A function that the database records as applied.
pub(crate) struct AppliedFunction {
    name: String,
    release: i32,
    checksum: i64,
}

impl<'a> Functions<'a> {
    fn all(self) -> impl Iterator<Item = &'a SqlFunction> {
        self.before_migrations.iter().chain(self.after_migrations)
    }

    /// Compares the applied functions with these. Covers every function that this program or the database knows.
    pub(crate) fn compare(self, applied: &[AppliedFunction]) -> Vec<MigrationStatus> {
        let status = |name: &str, number, state| MigrationStatus {
            kind: StepKind::Function,
            number,
            name: name.to_owned(),
            state,
            compatible_from: None,
            applied_by: None,
        };
        let known = self.all().map(|function| {
            let SqlFunction { name, release, .. } = *function;
            let found = applied.iter().find(|a| a.name == name);
            let found = found.map(|a| (a.release.unsigned_abs(), a.checksum));
            match found {
                Some((found, _)) if found > release => status(name, found, MigrationState::Newer),
                Some((found, sum)) if found == release => {
                    let same = sum == function.checksum();
                    let changed = MigrationState::Changed;
                    status(
                        name,
                        release,
                        if same {
                            MigrationState::Applied
                        } else {
                            changed
                        },
                    )
                }
                _ => status(name, release, MigrationState::Pending),
            }
        });
        let unknown = applied
            .iter()
            .filter(|a| self.all().all(|function| function.name != a.name))
            .map(|a| status(&a.name, a.release.unsigned_abs(), MigrationState::Newer));
        known.chain(unknown).collect()
    }

    /// Returns the SQL that applies the pending functions of this status, around these migrations.
    pub(crate) fn steps(
        self,
        script: &Script<'_>,
        status: &[MigrationStatus],
        migrations: Vec<String>,
    ) -> Vec<String> {
        let steps = |functions: &'a [SqlFunction]| {
            let pending = functions.iter().filter(|f| is_pending(f, status));
            pending.map(|f| f.step(script)).collect::<Vec<_>>()
        };
        let mut before = steps(self.before_migrations);
        if !before.is_empty() {
            before.insert(0, check_bodies(script, "off"));
            before.push(check_bodies(script, "on"));
        }
        [before, migrations, steps(self.after_migrations)].concat()
    }
}

/// Applies the pending ones of these functions. The caller must hold the migration lock.
pub(crate) async fn apply(
    transaction: &OpenTransaction<'_>,
    script: &Script<'_>,
    functions: &[SqlFunction],
    pending: &[MigrationStatus],
) -> Result<()> {
    let named = |name| move |s: &MigrationStatus| s.kind == StepKind::Function && s.name == name;
    for function in functions
        .iter()
        .filter(|f| pending.iter().any(named(f.name)))
    {
        let step = function.step(script);
        transaction.script(function.name, &step).await?;
    }
    Ok(())
}

fn is_pending(function: &SqlFunction, status: &[MigrationStatus]) -> bool {
    let functions = status.iter().filter(|s| s.kind == StepKind::Function);
    let mut of = functions.filter(|s| s.name == function.name);
    of.all(|s| s.state == MigrationState::Pending)
}

/// Returns the statement that turns the check of function bodies `on` or `off`.
pub(crate) fn check_bodies(script: &Script<'_>, switch: &str) -> String {
    script.statement(CHECK_BODIES, &[format!("'{switch}'")])
}

/// Reads the functions that the database records as applied. Those in `functions` must also match in signature.
pub(crate) async fn applied(
    session: Session<'_>,
    functions: Functions<'_>,
) -> Result<Vec<AppliedFunction>> {
    let names: Vec<&str> = functions.all().map(|function| function.name).collect();
    let signatures: Vec<String> = functions.all().map(SqlFunction::signature).collect();
    let params: &Params<'_> = &[&names, &signatures];
    let rows = session.many(sql!("migration/list_function"), params).await;
    let rows = rows.map_err(schema_record)?;
    let row = |row: &tokio_postgres::Row| AppliedFunction {
        name: row.get("name"),
        release: row.get("release"),
        checksum: row.get("checksum"),
    };
    Ok(rows.iter().map(row).collect())
}
