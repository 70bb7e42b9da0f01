//! `leasehold config`: checks settings, prints the effective settings, prints an example file. Starts nothing.

mod check;
mod effective;
mod example;

pub(crate) use check::deep_check;

use crate::print;
use crate::settings_flags::StoreFlags;
use anyhow::Result;
use clap::{Args, Subcommand};
use leasehold_console::{Failure, OutputFlags, OutputFormat};
use std::path::PathBuf;

/// Flags of `leasehold config`.
#[derive(Args)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    action: ConfigAction,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Subcommand)]
enum ConfigAction {
    /// List every problem in a configuration file and the LEASEHOLD__… variables, with its location.
    ///
    /// Also reads the files that settings refer to: certificates and keys. Starts nothing and connects to nothing.
    Check {
        /// Configuration file [default: check only the variables].
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Same as FILE.
        #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Print the effective settings as TOML, with the source of every non-default value; secrets are hidden.
    Print {
        #[command(flatten)]
        flags: Box<StoreFlags>,
    },
    /// Print an example file with every setting, its description and default.
    Example,
}

impl ConfigCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let json = self.output.output == OutputFormat::Json;
        match &self.action {
            ConfigAction::Check { file, config } => {
                check::run(file.as_ref().or(config.as_ref()), json)
            }
            ConfigAction::Print { flags } => {
                let loaded = flags.load(Vec::new());
                let loaded = loaded.map_err(|problems| Failure::usage(problems.to_string()))?;
                match json {
                    true => print::json(&effective::json(&loaded)),
                    false => print::text(&effective::toml(&loaded)),
                }
            }
            ConfigAction::Example => print::text(&example::text()),
        }
    }
}
