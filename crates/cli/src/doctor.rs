//! `leasehold doctor`: examines settings, store, engine and what is kept, and prints what to do about what is wrong. Repairs nothing.
//!
//! Where a running server owns the store, it is asked to examine itself.

use crate::data_folder::SafeFile;
use crate::place::Place;
use crate::settings::{Problems, Settings};
use crate::{config, engine, print, store};
use anyhow::{Context, Result, bail};
use clap::Args;
use leasehold_api::doctor::{Finding, Findings, Verdict};
use leasehold_client::{Client, ClientOptions};
use leasehold_console::{Exit, Failure, Format, Output, OutputFlags, clean};
use leasehold_core::Timestamp;
use leasehold_process::logging;
use leasehold_store::{ErrorKind, Store};
use std::sync::Arc;
use std::time::Duration;

/// Somebody waits: a server that does not answer is told soon.
const PATIENCE: Duration = Duration::from_secs(60);
const KEY_VARIABLE: &str = "LEASEHOLD_KEY";
const CA_VARIABLE: &str = "LEASEHOLD_CA_FILE";
/// As it calls itself where an engine asks who calls.
const IDENTITY: &str = "leasehold-doctor";

/// The flags of `leasehold doctor`.
#[derive(Args)]
pub(crate) struct DoctorCommand {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: OutputFlags,
}

impl DoctorCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("the async runtime cannot be started")?;
        let findings = runtime.block_on(self.examine())?;
        let output = Output::new(&self.output);
        if self.output.output == Format::Json {
            print::json(&serde_json::to_value(Findings {
                findings: findings.clone(),
            })?)?;
        } else {
            print::text(&shown(&findings, output.is_terminal()))?;
        }
        let of = |verdict| findings.iter().filter(|one| one.verdict == verdict).count();
        match of(Verdict::Problem) {
            0 => Ok(()),
            1 => bail!(Failure::new(Exit::Failed, "1 problem was found".to_owned())),
            many => bail!(Failure::new(
                Exit::Failed,
                format!("{many} problems were found")
            )),
        }
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        let read = match self.place.read(Vec::new()) {
            Ok(read) => read,
            Err(Problems(problems)) => {
                let told = problems.iter().map(|problem| problem.to_string());
                return Ok(told.map(|says| wrong_settings(&says)).collect());
            }
        };
        logging::start(&read.settings.log.level, read.settings.log.format)?;
        let mut findings: Vec<Finding> = config::beyond(&read)
            .iter()
            .map(|problem| wrong_settings(&problem.to_string()))
            .collect();
        if findings.is_empty() {
            findings.push(finding("settings", Verdict::Ok, "all well", None));
        }
        findings.extend(of_installation(&read.settings).await);
        Ok(findings)
    }
}

fn finding(check: &str, verdict: Verdict, says: impl Into<String>, todo: Option<&str>) -> Finding {
    Finding {
        check: check.to_owned(),
        verdict,
        says: says.into(),
        todo: todo.map(str::to_owned),
    }
}

fn wrong_settings(says: &str) -> Finding {
    let todo = "`leasehold config example` says what each setting is for";
    finding("settings", Verdict::Problem, says, Some(todo))
}

async fn of_installation(settings: &Settings) -> Vec<Finding> {
    let shown = store::shown(&settings.store_url());
    if store::sqlite_file(settings).is_some_and(|file| !file.exists()) {
        let says = format!("there is none yet: {shown}");
        let todo = "`leasehold serve` makes it; if there should be one, name it with --store or --data-dir";
        return vec![finding("store", Verdict::Warning, says, Some(todo))];
    }
    match store::connect(settings) {
        Ok(store) => of_store(settings, store, shown).await,
        Err(error) => {
            let in_use = error
                .downcast_ref::<Failure>()
                .is_some_and(|failure| failure.exit == Exit::InUse);
            if in_use {
                return of_server(settings, &shown).await;
            }
            let todo = "name another with --store, or see that this user may read and write it";
            let says = format!("{error:#}");
            vec![finding("store", Verdict::Problem, says, Some(todo))]
        }
    }
}

/// Examines a store that nobody else owns.
async fn of_store(settings: &Settings, store: Arc<dyn Store>, shown: String) -> Vec<Finding> {
    if let Err(error) = store.schema_status().await
        && matches!(
            error.kind,
            ErrorKind::Unavailable(_) | ErrorKind::Contended(_)
        )
    {
        let says = format!("{shown} does not answer: {}", error.kind);
        let todo = "start it, see that store.url names it, and that this machine may reach it";
        return vec![finding("store", Verdict::Problem, says, Some(todo))];
    }
    let mut findings = vec![finding("store", Verdict::Ok, shown, None)];
    let engine = engine::Prepared::new(settings, IDENTITY);
    let (engine, of_engine) = match engine {
        Ok(engine::Prepared::Temporal(engine)) => (Some(engine), None),
        Ok(engine::Prepared::Embedded(_)) => {
            let says = engine::shown(settings);
            (None, Some(finding("engine", Verdict::Ok, says, None)))
        }
        Err(error) => {
            let todo = "see the settings of the engine: `leasehold config check`";
            let says = format!("{error:#}");
            (
                None,
                Some(finding("engine", Verdict::Problem, says, Some(todo))),
            )
        }
    };
    let found = leasehold_ops::doctor::examine(&*store, engine.as_deref(), Timestamp::now).await;
    findings.extend(found.into_iter().map(Finding::from));
    findings.extend(of_engine);
    findings
}

/// Has the server that owns the store examine itself.
async fn of_server(settings: &Settings, shown: &str) -> Vec<Finding> {
    let says = format!("{shown} is in use by a running server, which was asked");
    let mut findings = vec![finding("store", Verdict::Ok, says, None)];
    match ask(settings).await {
        Ok(found) => findings.extend(found),
        Err(error) => {
            let todo = "see that the server answers at the address in the data folder, and put an administrator's key into LEASEHOLD_KEY; or stop it and ask again";
            let says = format!("cannot be asked: {error:#}");
            findings.push(finding("server", Verdict::Problem, says, Some(todo)));
        }
    }
    findings
}

async fn ask(settings: &Settings) -> Result<Vec<Finding>> {
    let line = |name| -> Result<Option<String>> {
        let text = SafeFile::new(&settings.data_dir, name).read()?;
        Ok(text.map(|text| text.trim().to_owned()))
    };
    let address = line("address")?.context("the data folder does not say where it listens")?;
    let key = match std::env::var(KEY_VARIABLE) {
        Ok(key) if !key.trim().is_empty() => key.trim().to_owned(),
        _ => line("admin.key")?.context("there is no administrator's key in the data folder")?,
    };
    let ca_pem = match std::env::var_os(CA_VARIABLE) {
        Some(file) => Some(engine::read(CA_VARIABLE, file.as_ref())?),
        None => None,
    };
    let options = ClientOptions {
        timeout: PATIENCE,
        tries: 1,
        ca_pem,
        ..ClientOptions::default()
    };
    Ok(Client::with(&address, &key, options)?.doctor().await?)
}

/// A line for each, and beneath it what to do.
fn shown(findings: &[Finding], terminal: bool) -> String {
    let width = findings.iter().map(|one| one.check.len()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for one in findings {
        let mark = match (one.verdict, terminal) {
            (Verdict::Ok, true) => "✓",
            (Verdict::Warning, true) => "!",
            (Verdict::Problem, true) => "✗",
            (Verdict::Ok, false) => "ok     ",
            (Verdict::Warning, false) => "warning",
            (Verdict::Problem, false) => "problem",
        };
        text += &format!("{mark} {:<width$}  {}\n", one.check, clean(&one.says));
        if let Some(todo) = &one.todo {
            let indent = mark.chars().count() + width + 3;
            text += &format!("{:indent$}→ {}\n", "", clean(todo));
        }
    }
    text
}
