//! `leasehold completions` and `leasehold man`: what a package installs beside the program.

use crate::arguments::Arguments;
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::PathBuf;

const NAME: &str = "leasehold";

/// The flags of `leasehold completions`.
#[derive(Args)]
pub(crate) struct Completions {
    /// Which shell.
    shell: Shell,
}

/// The flags of `leasehold man`.
#[derive(Args)]
pub(crate) struct Man {
    /// Write one page a command into this folder, instead of printing the first.
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
            Some(folder) => std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(command, folder))
                .with_context(|| format!("{} cannot be written", folder.display())),
        }
    }
}

/// Whoever stops reading has read enough.
fn print(text: &[u8]) -> Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("standard output cannot be written"),
    }
}
