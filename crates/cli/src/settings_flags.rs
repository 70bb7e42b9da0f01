//! The flags for settings, store and log that several commands share, and how they load the settings.

use crate::settings::{Flag, LoadedSettings, SettingProblems, Settings};
use anyhow::Result;
use clap::Args;
use leasehold_console::Failure;
use leasehold_process::logging::{self, LogFormat};
use std::path::PathBuf;

/// Flags for the configuration file and the log.
#[derive(Args)]
pub(crate) struct ConfigFlags {
    /// TOML configuration file; `leasehold config example` prints one with all settings.
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
    /// Log level: error, warn, info, debug, trace, or a filter [default: info].
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Log format [default: text].
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
}

/// The same flags plus data directory and store.
#[derive(Args)]
pub(crate) struct StoreFlags {
    #[command(flatten)]
    config_flags: ConfigFlags,
    /// Data directory: the administrator key and, by default, the SQLite store [default: leasehold-data].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Store URL: `sqlite:FILE` or `postgres://user:password@host/database` [default: a file in the data directory].
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

impl ConfigFlags {
    /// Loads the settings; these flags and `more` override every other source.
    fn load(&self, more: Vec<Flag>) -> Result<LoadedSettings, SettingProblems> {
        let format = self.log_format.map(|format| match format {
            LogFormat::Text => "text".to_owned(),
            LogFormat::Json => "json".to_owned(),
        });
        let mut flags = vec![
            ("--log-level", "log.level", self.log_level.clone()),
            ("--log-format", "log.format", format),
        ];
        flags.extend(more);
        Settings::load(self.config.as_deref(), &flags)
    }

    /// Loads the settings and starts logging.
    pub(crate) fn settings(&self, more: Vec<Flag>) -> Result<LoadedSettings> {
        start_logging(self.load(more))
    }
}

impl StoreFlags {
    /// Loads the settings; these flags and `more` override every other source.
    pub(crate) fn load(&self, mut more: Vec<Flag>) -> Result<LoadedSettings, SettingProblems> {
        more.extend([
            ("--data-dir", "data_dir", self.data_dir.clone()),
            ("--store", "store.url", self.store.clone()),
        ]);
        self.config_flags.load(more)
    }

    /// Loads the settings and starts logging.
    pub(crate) fn settings(&self, more: Vec<Flag>) -> Result<Settings> {
        Ok(start_logging(self.load(more))?.settings)
    }
}

fn start_logging(loaded: Result<LoadedSettings, SettingProblems>) -> Result<LoadedSettings> {
    let loaded = loaded.map_err(|problems| Failure::usage(problems.to_string()))?;
    let log = &loaded.settings.log;
    logging::start(&log.level, log.format)?;
    Ok(loaded)
}
