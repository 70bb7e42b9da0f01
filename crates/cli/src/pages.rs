//! `leasehold completions` and `leasehold man`: files that a package installs beside the program.

use crate::arguments::Arguments;
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::PathBuf;

const NAME: &str = "leasehold";

/// Flags of `leasehold completions`.
#[derive(Args)]
pub(crate) struct Completions {
    /// Shell.
    shell: Shell,
}

/// Flags of `leasehold man`.
#[derive(Args)]
pub(crate) struct Man {
    /// Write one page per command to this directory, instead of printing the first.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), NAME, &mut script);
        print(&script)
    }
}

impl Man {
    pub(crate) fn run(&self) -> Result<()> {
        let command = Arguments::command();
        match &self.dir {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                print(&page)
            }
            Some(dir) => std::fs::create_dir_all(dir)
                .and_then(|()| clap_mangen::generate_to(command, dir))
                .with_context(|| format!("cannot write to {}", dir.display())),
        }
    }
}

/// Prints the text; a closed reader is not an error.
fn print(text: &[u8]) -> Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("cannot write to standard output"),
    }
}
