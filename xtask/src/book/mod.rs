//! `cargo xtask book`: checks every link of the documentation and builds the book. Knows Markdown and files, nothing of what they say.

mod build;
mod built;
mod links;
mod pages;

use std::fs;

use anyhow::Result;

use crate::{tidy, workspace};
pub(crate) use pages::check;

/// Whether all links lead somewhere, in the files and in the book that was made of them.
pub(crate) fn run() -> Result<bool> {
    let root = workspace::root();
    let findings = check(&tidy::texts(&root)?);
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        println!("book: {} findings; not built", findings.len());
        return Ok(false);
    }
    let folder = workspace::target().join("book");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    build::build(&root, &folder)?;
    let broken = built::check(&folder)?;
    for line in &broken {
        println!("{line}");
    }
    let front = folder.join("index.html");
    println!("book: {}, {} broken links", front.display(), broken.len());
    Ok(broken.is_empty())
}
