//! `leasehold doctor`: checks settings, store, engine and stored data, and prints fixes. Repairs nothing.
//!
//! If a running server owns the store, the command asks that server.

use crate::settings::{SettingProblems, Settings};
use crate::settings_flags::StoreFlags;
use crate::{config, engine, print, store};
use anyhow::{Context, Result, bail};
use clap::Args;
use leasehold_api::doctor::{Finding, Findings, Verdict};
use leasehold_client::ClientOptions;
use leasehold_console::{Exit, Failure, Output, OutputFlags, OutputFormat, clean, local_client};
use leasehold_core::Timestamp;
use leasehold_crash_marker::CrashMarkers;
use leasehold_process::logging;
use leasehold_store::{ErrorKind, Store};
use std::sync::Arc;
use std::time::Duration;

/// Timeout of the call to the running server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(60);
/// Identity of this client in Temporal.
const IDENTITY: &str = "leasehold-doctor";

/// Flags of `leasehold doctor`.
#[derive(Args)]
pub(crate) struct DoctorCommand {
    #[command(flatten)]
    flags: StoreFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl DoctorCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the async runtime")?;
        let findings = runtime.block_on(self.examine())?;
        let output = Output::new(&self.output);
        if self.output.output == OutputFormat::Json {
            print::json(&serde_json::to_value(Findings {
                findings: findings.clone(),
            })?)?;
        } else {
            print::text(&render(&findings, output.is_terminal()))?;
        }
        let of = |verdict| findings.iter().filter(|one| one.verdict == verdict).count();
        match of(Verdict::Problem) {
            0 => Ok(()),
            1 => bail!(Failure::new(Exit::Failed, "1 problem found".to_owned())),
            many => bail!(Failure::new(Exit::Failed, format!("{many} problems found"))),
        }
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        let loaded = match self.flags.load(Vec::new()) {
            Ok(loaded) => loaded,
            Err(SettingProblems(problems)) => {
                let messages = problems.iter().map(|problem| problem.to_string());
                return Ok(messages.map(|says| settings_problem(&says)).collect());
            }
        };
        logging::start(&loaded.settings.log.level, loaded.settings.log.format)?;
        let mut findings: Vec<Finding> = config::deep_check(&loaded)
            .iter()
            .map(|problem| settings_problem(&problem.to_string()))
            .collect();
        if findings.is_empty() {
            findings.push(finding("settings", Verdict::Ok, "valid", None));
        }
        findings.extend(check_installation(&loaded.settings).await);
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

fn settings_problem(says: &str) -> Finding {
    let todo = "`leasehold config example` describes every setting";
    finding("settings", Verdict::Problem, says, Some(todo))
}

async fn check_installation(settings: &Settings) -> Vec<Finding> {
    let url = store::redacted_url(&settings.store_url());
    if store::sqlite_file(settings).is_some_and(|file| !file.exists()) {
        let says = format!("{url} does not exist yet");
        let todo = "`leasehold serve` creates it; if it should exist, check --store or --data-dir";
        return vec![finding("store", Verdict::Warning, says, Some(todo))];
    }
    match store::connect(settings) {
        Ok(store) => check_store(settings, store, url).await,
        Err(error) => {
            let in_use = error
                .downcast_ref::<Failure>()
                .is_some_and(|failure| failure.exit == Exit::InUse);
            if in_use {
                return check_via_server(settings, &url).await;
            }
            let todo = "check --store, and that this user can read and write the file";
            let says = format!("{error:#}");
            vec![finding("store", Verdict::Problem, says, Some(todo))]
        }
    }
}

/// Checks a store that no other process owns.
async fn check_store(settings: &Settings, store: Arc<dyn Store>, url: String) -> Vec<Finding> {
    if let Err(error) = store.schema_status().await
        && matches!(
            error.kind,
            ErrorKind::Unavailable(_) | ErrorKind::Contended(_)
        )
    {
        let says = format!("cannot reach {url}: {}", error.kind);
        let todo = "start the database, and check store.url and the network";
        return vec![finding("store", Verdict::Problem, says, Some(todo))];
    }
    let mut findings = vec![finding("store", Verdict::Ok, url, None)];
    let engine = engine::EngineBuilder::new(settings, IDENTITY, &CrashMarkers::default());
    let (engine, engine_finding) = match engine {
        Ok(engine::EngineBuilder::Temporal(engine)) => (Some(engine), None),
        Ok(engine::EngineBuilder::Embedded(_)) => {
            let says = engine::describe(settings);
            (None, Some(finding("engine", Verdict::Ok, says, None)))
        }
        Err(error) => {
            let todo = "check the engine settings with `leasehold config check`";
            let says = format!("{error:#}");
            (
                None,
                Some(finding("engine", Verdict::Problem, says, Some(todo))),
            )
        }
    };
    let found = leasehold_ops::doctor::examine(&*store, engine.as_deref(), Timestamp::now).await;
    findings.extend(found.into_iter().map(Finding::from));
    findings.extend(engine_finding);
    findings
}

/// Asks the server that owns the store.
async fn check_via_server(settings: &Settings, url: &str) -> Vec<Finding> {
    let says = format!("{url} is in use by a running server; asked that server");
    let mut findings = vec![finding("store", Verdict::Ok, says, None)];
    match fetch_findings(settings).await {
        Ok(found) => findings.extend(found),
        Err(error) => {
            let todo = "check that the server has a socket (server.local_socket) and an administrator key in its data directory; or stop the server and retry";
            let says = format!("cannot query the running server: {error:#}");
            findings.push(finding("server", Verdict::Problem, says, Some(todo)));
        }
    }
    findings
}

/// Uses the socket and the key of the data directory: the server that owns the store runs there.
async fn fetch_findings(settings: &Settings) -> Result<Vec<Finding>> {
    let options = ClientOptions {
        timeout: SERVER_TIMEOUT,
        max_attempts: 1,
        ..ClientOptions::default()
    };
    Ok(local_client(&settings.data_dir, options)?.doctor().await?)
}

/// One line per finding, followed by the suggested fix.
fn render(findings: &[Finding], terminal: bool) -> String {
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
