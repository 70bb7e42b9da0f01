//! `leasehold migrate`: the schema of the store, for those who would rather change it themselves than let `serve` do it.

use crate::place::Place;
use crate::settings::Settings;
use crate::{print, store};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use leasehold_console::{Format, OutputFlags};
use leasehold_store::{MigrationState, MigrationStatus, StepKind};
use serde_json::{Value, json};

/// The flags of `leasehold migrate`.
#[derive(Args)]
pub(crate) struct MigrateCommand {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Subcommand)]
enum Verb {
    /// Brings the schema up to this program's, in one transaction, and says what was applied.
    ///
    /// On SQLite the server must be stopped for it.
    Up {
        #[command(flatten)]
        place: Box<Place>,
    },
    /// Lists every migration and SQL function, and whether it is applied. Changes nothing.
    ///
    /// On SQLite the server must be stopped for it.
    Status {
        #[command(flatten)]
        place: Box<Place>,
    },
    /// Prints the SQL that `up` would run, in one transaction that also records it: psql or sqlite3 can run it. Changes nothing.
    ///
    /// On SQLite the server must be stopped for it.
    Print {
        #[command(flatten)]
        place: Box<Place>,
    },
}

impl MigrateCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let (Verb::Up { place } | Verb::Status { place } | Verb::Print { place }) = &self.verb;
        let settings = place.settings(Vec::new())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("the async runtime cannot be started")?;
        let json = self.output.output == Format::Json;
        runtime.block_on(async {
            match self.verb {
                Verb::Up { .. } => up(&settings, json).await,
                Verb::Status { .. } => status(&settings, json).await,
                Verb::Print { .. } => sql(&settings, json).await,
            }
        })
    }
}

async fn up(settings: &Settings, json: bool) -> Result<()> {
    let store = store::connect(settings)?;
    let applied = store::migrate(&*store, settings).await?;
    if json {
        return print::json(&listed(&applied));
    }
    let shown = store::shown(&settings.store_url());
    if applied.is_empty() {
        return print::text(&format!("{shown} is up to date; nothing to apply\n"));
    }
    print::text(&applied.iter().map(line).collect::<String>())
}

async fn status(settings: &Settings, json: bool) -> Result<()> {
    let all = all(settings).await?;
    if json {
        return print::json(&listed(&all));
    }
    print::text(&all.iter().map(line).collect::<String>())
}

async fn sql(settings: &Settings, json: bool) -> Result<()> {
    let all = all(settings).await?;
    let script = store::script(settings, &all);
    if json {
        return print::json(&json!({ "sql": script }));
    }
    if script.is_empty() {
        let shown = store::shown(&settings.store_url());
        return print::text(&format!("-- {shown} is up to date; nothing to apply\n"));
    }
    print::text(&script)
}

/// Every migration. A SQLite file that is not there stays so.
async fn all(settings: &Settings) -> Result<Vec<MigrationStatus>> {
    if store::sqlite_file(settings).is_some_and(|file| !file.exists()) {
        let known = store::migrations(settings).iter();
        let pending = known.map(|one| MigrationStatus {
            kind: StepKind::Migration,
            number: one.number,
            name: one.name.to_owned(),
            state: MigrationState::Pending,
        });
        return Ok(pending.collect());
    }
    let store = store::connect(settings)?;
    store::status(&*store, settings).await
}

fn listed(all: &[MigrationStatus]) -> Value {
    let each = all.iter().map(|one| {
        let (kind, number) = match one.kind {
            StepKind::Migration => ("migration", "number"),
            StepKind::Function => ("function", "release"),
        };
        json!({ "kind": kind, number: one.number, "name": one.name, "state": word(one.state) })
    });
    each.collect()
}

fn line(one: &MigrationStatus) -> String {
    let state = word(one.state);
    match one.kind {
        StepKind::Migration => format!("{state:<8} {}\n", one.name),
        StepKind::Function => format!("{state:<8} {} release {}\n", one.name, one.number),
    }
}

fn word(state: MigrationState) -> &'static str {
    match state {
        MigrationState::Applied => "applied",
        MigrationState::Pending => "pending",
        MigrationState::Changed => "changed",
        MigrationState::Unknown | MigrationState::Newer => "newer",
    }
}
