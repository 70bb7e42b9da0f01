//! `leasehold config check`: all that is wrong, one a line, also what only a start would find.

use crate::print;
use crate::settings::{Kind, Origin, Origins, Problem, Problems, Read, Settings, known};
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
    let found = match Settings::read(file.map(PathBuf::as_path), &[]) {
        Err(Problems(problems)) => Err(problems),
        Ok(read) => match beyond(&read) {
            problems if problems.is_empty() => Ok(read),
            problems => Err(problems),
        },
    };
    match found {
        Ok(read) if json => {
            drop(read);
            print::json(&Value::Array(Vec::new()))
        }
        Ok(read) => print::text(&format!("{}\n", well(file, &read.origins))),
        Err(problems) => {
            if json {
                print::json(&problems.iter().map(Problem::json).collect())?;
            } else {
                tell(&problems);
            }
            let count = problems.len();
            let are = if count == 1 { "problem" } else { "problems" };
            bail!(Failure::usage(format!(
                "{count} {are} in the settings; `leasehold config example` says what each setting is for"
            )))
        }
    }
}

fn tell(problems: &[Problem]) {
    for problem in problems {
        // Whoever closed it does not want to know.
        let _ = writeln!(std::io::stderr(), "{}", clean(&problem.to_string()));
    }
}

/// What was read, in a line.
fn well(file: Option<&PathBuf>, origins: &Origins) -> String {
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
            "{}: {}{by_variable}, all well",
            file.display(),
            counted(written, "setting")
        ),
        None if variables == 0 => {
            "no file and no variables: everything is as by default".to_owned()
        }
        None => format!("no file{by_variable}, all well"),
    }
}

/// What only a start would find: files that cannot be read, texts that cannot be used.
pub(crate) fn beyond(read: &Read) -> Vec<Problem> {
    let mut found = Found {
        origins: &read.origins,
        problems: Vec::new(),
    };
    found.files(&read.settings);
    // What rests on files is looked at only if they are there.
    if found.problems.is_empty() {
        found.server(&read.settings);
        found.store(&read.settings);
        found.temporal(&read.settings);
        found.worker(&read.settings);
    }
    found.problems
}

struct Found<'a> {
    origins: &'a Origins,
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn wrong(&mut self, key: &str, message: String) {
        let problem = Problem::about(self.origins, key, &[], message);
        self.problems.push(problem);
    }

    /// Every file that a setting names can be read; what should be PEM looks like it.
    fn files(&mut self, settings: &Settings) {
        let tree = serde_json::to_value(settings).unwrap_or_default();
        for known in known::all() {
            let place = tree.pointer(&format!("/{}", known.key.replace('.', "/")));
            let Some(name) = place.and_then(Value::as_str) else {
                continue;
            };
            if !matches!(known.kind, Kind::File) {
                continue;
            }
            let wrong = match known.key {
                "data_dir" => not_a_folder(Path::new(name)),
                key => unreadable(Path::new(name), key.contains("tls")),
            };
            if let Some(message) = wrong {
                self.wrong(known.key, message);
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
            }) => self.wrong(setting, format!("{} {problem}", file.display())),
            Err(TlsError::Pair(error)) => self.wrong(
                "server.tls_certificate_file",
                format!("must go with the key in server.tls_key_file: {error}"),
            ),
        }
    }

    fn store(&mut self, settings: &Settings) {
        if let Some(file) = store::sqlite_file(settings) {
            if file.is_dir() {
                let file = file.display();
                self.wrong("store.url", format!("must name a file, {file} is a folder"));
            }
            return;
        }
        if let Err((key, message)) = store::postgres(settings) {
            self.wrong(key, message);
        }
    }

    fn temporal(&mut self, settings: &Settings) {
        let made = engine::temporal_options(&settings.temporal, "leasehold")
            .and_then(|options| Ok(TemporalEngine::new(options)?));
        if let Err(error) = made {
            self.wrong("temporal.address", format!("{error:#}"));
        }
    }

    fn worker(&mut self, settings: &Settings) {
        let worker = &settings.worker;
        if let Some(file) = &worker.key_file {
            let text = fs::read_to_string(file).unwrap_or_default();
            if Secret::parse(text.trim()).is_none() {
                let file = file.display();
                let must = "must hold a key of Leasehold's and nothing else";
                self.wrong("worker.key_file", format!("{must}, {file} does not"));
            }
        }
        let options = ClientOptions {
            ca_pem: worker
                .tls_ca_file
                .as_ref()
                .and_then(|file| fs::read(file).ok()),
            ..ClientOptions::default()
        };
        if let Err(error) = Client::with(&worker.server, "none", ClientOptions::default()) {
            self.wrong("worker.server", error.to_string());
        } else if let Err(error) = Client::with(&worker.server, "none", options) {
            self.wrong("worker.tls_ca_file", error.to_string());
        }
    }
}

fn not_a_folder(path: &Path) -> Option<String> {
    let there = path.exists() && !path.is_dir();
    there.then(|| format!("must be a folder, {} is a file", path.display()))
}

fn unreadable(path: &Path, pem: bool) -> Option<String> {
    let shown = path.display();
    match fs::read(path) {
        Err(error) => Some(format!(
            "must name a file that can be read, {shown} cannot: {error}"
        )),
        Ok(bytes) if pem && !bytes.windows(BEGIN.len()).any(|part| part == BEGIN) => Some(format!(
            "must name a PEM file, {shown} holds something else"
        )),
        Ok(_) => None,
    }
}

/// What every PEM file has.
const BEGIN: &[u8] = b"-----BEGIN ";
