//! `leasehold config check`: prints every problem on one line, including those that only a start would find.

use crate::print;
use crate::settings::{
    LoadedSettings, Origin, Origins, SettingKind, SettingProblem, SettingProblems, Settings,
    registry,
};
use crate::{engine, store};
use anyhow::{Result, bail};
use leasehold_client::{Client, ClientOptions};
use leasehold_console::{Failure, clean};
use leasehold_core::key::Secret;
use leasehold_engine_temporal::TemporalEngine;
use leasehold_server::{Tls, TlsError};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(super) fn run(file: Option<&PathBuf>, json: bool) -> Result<()> {
    let found = match Settings::load(file.map(PathBuf::as_path), &[]) {
        Err(SettingProblems(problems)) => Err(problems),
        Ok(loaded) => match deep_check(&loaded) {
            problems if problems.is_empty() => Ok(loaded),
            problems => Err(problems),
        },
    };
    match found {
        Ok(loaded) if json => {
            drop(loaded);
            print::json(&Value::Array(Vec::new()))
        }
        Ok(loaded) => print::text(&format!("{}\n", summary(file, &loaded.origins))),
        Err(problems) => {
            if json {
                print::json(&problems.iter().map(SettingProblem::json).collect())?;
            } else {
                print_problems(&problems);
            }
            let count = problems.len();
            let are = if count == 1 { "problem" } else { "problems" };
            bail!(Failure::usage(format!(
                "{count} {are} in the settings; `leasehold config example` describes every setting"
            )))
        }
    }
}

fn print_problems(problems: &[SettingProblem]) {
    for problem in problems {
        // A closed standard error is not a failure.
        let _ = writeln!(std::io::stderr(), "{}", clean(&problem.to_string()));
    }
}

/// One line about the valid settings.
fn summary(file: Option<&PathBuf>, origins: &Origins) -> String {
    let counted = |count: usize, what: &str| {
        let s = if count == 1 { "" } else { "s" };
        format!("{count} {what}{s}")
    };
    let of_file = |origin: &&Origin| matches!(origin, Origin::File { .. });
    let written = origins.values().filter(of_file).count();
    let variables = origins.len() - written;
    let by_variable = match variables {
        0 => String::new(),
        count => format!(" and {}", counted(count, "variable")),
    };
    match file {
        Some(file) => format!(
            "{}: {}{by_variable}, valid",
            file.display(),
            counted(written, "setting")
        ),
        None if variables == 0 => "no file and no variables; all defaults".to_owned(),
        None => format!("no file{by_variable}, valid"),
    }
}

/// Finds problems that only a start would find: unreadable files, invalid certificates and keys.
pub(crate) fn deep_check(loaded: &LoadedSettings) -> Vec<SettingProblem> {
    let mut checker = SettingsChecker {
        origins: &loaded.origins,
        problems: Vec::new(),
    };
    checker.files(&loaded.settings);
    // Checks the contents only if all files are readable.
    if checker.problems.is_empty() {
        checker.server(&loaded.settings);
        checker.store(&loaded.settings);
        checker.temporal(&loaded.settings);
        checker.worker(&loaded.settings);
    }
    checker.problems
}

struct SettingsChecker<'a> {
    origins: &'a Origins,
    problems: Vec<SettingProblem>,
}

impl SettingsChecker<'_> {
    fn add(&mut self, key: &str, message: String) {
        let problem = SettingProblem::about(self.origins, key, &[], message);
        self.problems.push(problem);
    }

    /// Checks that every file of a setting is readable, and that PEM files look like PEM.
    fn files(&mut self, settings: &Settings) {
        let tree = serde_json::to_value(settings).unwrap_or_default();
        for spec in registry::all() {
            let pointer = tree.pointer(&format!("/{}", spec.key.replace('.', "/")));
            let Some(name) = pointer.and_then(Value::as_str) else {
                continue;
            };
            if !matches!(spec.kind, SettingKind::File) {
                continue;
            }
            let wrong = match spec.key {
                "data_dir" => not_a_directory(Path::new(name)),
                key => file_problem(Path::new(name), key.contains("tls")),
            };
            if let Some(message) = wrong {
                self.add(spec.key, message);
            }
        }
    }

    fn server(&mut self, settings: &Settings) {
        let server = &settings.server;
        let (Some(certificate), Some(key)) = (&server.tls_certificate_file, &server.tls_key_file)
        else {
            return;
        };
        match Tls::read(certificate, key) {
            Ok(_) => {}
            Err(TlsError::File {
                setting,
                file,
                problem,
            }) => self.add(setting, format!("{} {problem}", file.display())),
            Err(TlsError::Pair(error)) => self.add(
                "server.tls_certificate_file",
                format!("must match the key in server.tls_key_file: {error}"),
            ),
        }
    }

    fn store(&mut self, settings: &Settings) {
        if let Some(file) = store::sqlite_file(settings) {
            if file.is_dir() {
                let file = file.display();
                self.add(
                    "store.url",
                    format!("must be a file, {file} is a directory"),
                );
            }
            return;
        }
        if let Err((key, message)) = store::postgres(settings, false) {
            self.add(key, message);
        }
    }

    fn temporal(&mut self, settings: &Settings) {
        let made = engine::temporal_options(&settings.temporal, "leasehold")
            .and_then(|options| Ok(TemporalEngine::new(options)?));
        if let Err(error) = made {
            self.add("temporal.address", format!("{error:#}"));
        }
    }

    fn worker(&mut self, settings: &Settings) {
        let worker = &settings.worker;
        if let Some(file) = &worker.key_file {
            let text = fs::read_to_string(file).unwrap_or_default();
            if Secret::parse(text.trim()).is_none() {
                let file = file.display();
                let must = "must contain only a Leasehold API key";
                self.add("worker.key_file", format!("{must}, {file} does not"));
            }
        }
        // The certificates are checked even without an address.
        let server = worker.server.as_deref().unwrap_or("https://localhost");
        let options = ClientOptions {
            ca_pem: worker
                .tls_ca_file
                .as_ref()
                .and_then(|file| fs::read(file).ok()),
            ..ClientOptions::default()
        };
        if let Err(error) = Client::with(server, "none", ClientOptions::default()) {
            self.add("worker.server", error.to_string());
        } else if let Err(error) = Client::with(server, "none", options) {
            self.add("worker.tls_ca_file", error.to_string());
        }
    }
}

fn not_a_directory(path: &Path) -> Option<String> {
    let there = path.exists() && !path.is_dir();
    there.then(|| format!("must be a directory, {} is a file", path.display()))
}

fn file_problem(path: &Path, pem: bool) -> Option<String> {
    let name = path.display();
    match fs::read(path) {
        Err(error) => Some(format!(
            "must be a readable file: cannot read {name}: {error}"
        )),
        Ok(bytes) if pem && !bytes.windows(BEGIN.len()).any(|part| part == BEGIN) => {
            Some(format!("must be a PEM file, {name} is not"))
        }
        Ok(_) => None,
    }
}

/// The marker of a PEM file.
const BEGIN: &[u8] = b"-----BEGIN ";
