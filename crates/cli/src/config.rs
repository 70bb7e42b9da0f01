//! `leasehold config`: checks settings, prints those in effect, prints a file with all of them. Starts nothing.

mod check;
mod effective;
mod example;

pub(crate) use check::beyond;

use crate::place::Place;
use crate::print;
use anyhow::Result;
use clap::{Args, Subcommand};
use leasehold_console::{Failure, Format, OutputFlags};
use std::path::PathBuf;

/// The flags of `leasehold config`.
#[derive(Args)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Subcommand)]
enum Verb {
    /// Names everything that is wrong with a file of settings and with LEASEHOLD__… variables, and where.
    ///
    /// It also reads the files that settings name: certificates, keys, authorities. It starts nothing and connects to nothing.
    Check {
        /// The file; variables alone are checked if there is none.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The same as FILE.
        #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Prints the settings in effect as TOML, with where each comes from that is not as by default; secrets are hidden.
    Print {
        #[command(flatten)]
        place: Box<Place>,
    },
    /// Prints a file with every setting, what it is for and its default, to begin one's own from.
    Example,
}

impl ConfigCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let json = self.output.output == Format::Json;
        match &self.verb {
            Verb::Check { file, config } => check::run(file.as_ref().or(config.as_ref()), json),
            Verb::Print { place } => {
                let read = place.read(Vec::new());
                let read = read.map_err(|problems| Failure::usage(problems.to_string()))?;
                match json {
                    true => print::json(&effective::json(&read)),
                    false => print::text(&effective::toml(&read)),
                }
            }
            Verb::Example => print::text(&example::text()),
        }
    }
}
