//! `leasehold migrate`: migrates the store's schema by hand instead of at the start of `serve`.

use crate::settings::Settings;
use crate::settings_flags::StoreFlags;
use crate::{print, store};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use leasehold_console::{OutputFlags, OutputFormat};
use leasehold_store::{MigrationState, MigrationStatus, StepKind, compare_migrations};
use serde_json::{Value, json};

/// Flags of `leasehold migrate`.
#[derive(Args)]
pub(crate) struct MigrateCommand {
    #[command(subcommand)]
    action: MigrateAction,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Subcommand)]
enum MigrateAction {
    /// Apply pending migrations in one transaction and list them.
    ///
    /// With SQLite, stop the server first.
    Up {
        #[command(flatten)]
        flags: Box<StoreFlags>,
    },
    /// List every migration and SQL function and its state; read-only.
    ///
    /// With SQLite, stop the server first.
    Status {
        #[command(flatten)]
        flags: Box<StoreFlags>,
    },
    /// Print the SQL that `up` would run, as a script for psql or sqlite3; read-only.
    ///
    /// With SQLite, stop the server first.
    Print {
        #[command(flatten)]
        flags: Box<StoreFlags>,
    },
}

impl MigrateCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let (MigrateAction::Up { flags }
        | MigrateAction::Status { flags }
        | MigrateAction::Print { flags }) = &self.action;
        let settings = flags.settings(Vec::new())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the async runtime")?;
        let json = self.output.output == OutputFormat::Json;
        runtime.block_on(async {
            match self.action {
                MigrateAction::Up { .. } => up(&settings, json).await,
                MigrateAction::Status { .. } => status(&settings, json).await,
                MigrateAction::Print { .. } => sql(&settings, json).await,
            }
        })
    }
}

async fn up(settings: &Settings, json: bool) -> Result<()> {
    let store = store::connect(settings)?;
    let applied = store::migrate(&*store, settings).await?;
    if json {
        return print::json(&to_json(&applied));
    }
    let url = store::redacted_url(&settings.store_url());
    if applied.is_empty() {
        return print::text(&format!("{url} is up to date; nothing to apply\n"));
    }
    print::text(&applied.iter().map(line).collect::<String>())
}

async fn status(settings: &Settings, json: bool) -> Result<()> {
    let all = all(settings).await?;
    if json {
        return print::json(&to_json(&all));
    }
    print::text(&all.iter().map(line).collect::<String>())
}

async fn sql(settings: &Settings, json: bool) -> Result<()> {
    let all = all(settings).await?;
    let script = store::script(settings, &all)?;
    if json {
        return print::json(&json!({ "sql": script }));
    }
    if script.is_empty() {
        let url = store::redacted_url(&settings.store_url());
        return print::text(&format!("-- {url} is up to date; nothing to apply\n"));
    }
    print::text(&script)
}

/// Every migration. Does not create a missing SQLite file.
async fn all(settings: &Settings) -> Result<Vec<MigrationStatus>> {
    if store::sqlite_file(settings).is_some_and(|file| !file.exists()) {
        return Ok(compare_migrations(store::migrations(settings), &[]));
    }
    let store = store::connect(settings)?;
    store::status(&*store, settings).await
}

fn to_json(all: &[MigrationStatus]) -> Value {
    let each = all.iter().map(|one| {
        let (kind, number) = match one.kind {
            StepKind::Migration => ("migration", "number"),
            StepKind::Function => ("function", "release"),
        };
        json!({ "kind": kind, number: one.number, "name": one.name, "state": state_word(one.state) })
    });
    each.collect()
}

fn line(one: &MigrationStatus) -> String {
    let state = state_word(one.state);
    match one.kind {
        StepKind::Migration => format!("{state:<8} {}\n", one.name),
        StepKind::Function => format!("{state:<8} {} release {}\n", one.name, one.number),
    }
}

fn state_word(state: MigrationState) -> &'static str {
    match state {
        MigrationState::Applied => "applied",
        MigrationState::Pending => "pending",
        MigrationState::Changed => "changed",
        MigrationState::Newer => "newer",
        MigrationState::Incompatible => "too_new",
    }
}
