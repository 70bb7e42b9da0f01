//! The flags that say where things are, which several commands have, and how all settings are read.

use crate::settings::{Flag, Problems, Read, Settings};
use anyhow::Result;
use clap::Args;
use leasehold_console::Failure;
use leasehold_process::logging::{self, LogFormat};
use std::path::PathBuf;

/// Where settings are read from, and how it is logged.
#[derive(Args)]
pub(crate) struct Basics {
    /// A TOML file with settings; `leasehold config example` prints one with all of them.
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
    /// What to log: error, warn, info, debug, trace, or a filter.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// How log lines look.
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
}

/// The same for what has a store.
#[derive(Args)]
pub(crate) struct Place {
    #[command(flatten)]
    basics: Basics,
    /// The folder for the administrator's key and, unless another store is named, for everything [default: leasehold-data].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Where everything is kept: `sqlite:FILE` or `postgres://user:password@host/database` [default: a file in the data folder].
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

impl Basics {
    /// All settings and where they come from, with what these flags and the given ones say before all else.
    fn read(&self, more: Vec<Flag>) -> Result<Read, Problems> {
        let format = self.log_format.map(|format| match format {
            LogFormat::Text => "text".to_owned(),
            LogFormat::Json => "json".to_owned(),
        });
        let mut flags = vec![
            ("--log-level", "log.level", self.log_level.clone()),
            ("--log-format", "log.format", format),
        ];
        flags.extend(more);
        Settings::read(self.config.as_deref(), &flags)
    }

    /// The settings, and the log is started.
    pub(crate) fn settings(&self, more: Vec<Flag>) -> Result<Settings> {
        start(self.read(more))
    }
}

impl Place {
    /// The same with where everything is.
    pub(crate) fn read(&self, mut more: Vec<Flag>) -> Result<Read, Problems> {
        more.extend([
            ("--data-dir", "data_dir", self.data_dir.clone()),
            ("--store", "store.url", self.store.clone()),
        ]);
        self.basics.read(more)
    }

    /// The settings, and the log is started.
    pub(crate) fn settings(&self, more: Vec<Flag>) -> Result<Settings> {
        start(self.read(more))
    }
}

fn start(read: Result<Read, Problems>) -> Result<Settings> {
    let settings = read
        .map_err(|problems| Failure::usage(problems.to_string()))?
        .settings;
    logging::start(&settings.log.level, settings.log.format)?;
    Ok(settings)
}
