//! `cargo xtask book`: checks every link of the documentation and builds the book. Knows Markdown and files, not their subject.

#[cfg(feature = "book")]
mod build;
#[cfg(any(test, feature = "book"))]
mod built;
mod links;
mod pages;
#[cfg(any(test, feature = "book"))]
mod rewrite;

use anyhow::Result;

use crate::{tidy, workspace};
pub(crate) use pages::check;

/// Returns whether all links are valid, in the sources and in the built book.
pub(crate) fn run() -> Result<bool> {
    let findings = check(&tidy::texts(&workspace::root())?);
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        println!("book: {} findings; not built", findings.len());
        return Ok(false);
    }
    make()
}

#[cfg(feature = "book")]
fn make() -> Result<bool> {
    let folder = workspace::target().join("book");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    build::build(&workspace::root(), &folder)?;
    let broken = built::check(&folder)?;
    for line in &broken {
        println!("{line}");
    }
    let front = folder.join("index.html");
    println!("book: {}, {} broken links", front.display(), broken.len());
    Ok(broken.is_empty())
}

/// Compiles this program again with mdBook and lets it build the book.
#[cfg(not(feature = "book"))]
fn make() -> Result<bool> {
    println!("book: compiling mdBook, which takes a minute the first time");
    let mut command = workspace::cargo();
    command.args(["run", "--quiet", "--locked", "--package", "xtask"]);
    command.args(["--features", "book", "--", "book"]);
    Ok(command.status()?.success())
}
