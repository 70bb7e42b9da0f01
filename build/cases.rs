//! Build script of the conformance suites: finds the cases in the sources, so that a new case is a new function and nothing else.
//!
//! A case is a `pub async fn` that takes one fixture by value. It belongs to the file or folder of `src/` that it stands in. What is written
//! is a macro `cases!` that hands all of them to an arm of `suite!`.

#![allow(
    clippy::print_stdout,
    reason = "a build script tells Cargo what to do by printing it"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut nouns: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in inside(&Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("src"))? {
        let noun = path.file_stem().unwrap_or_default().to_string_lossy();
        find(&path, nouns.entry(noun.into_owned()).or_default())?;
    }
    let mut list = String::new();
    for (noun, cases) in nouns.iter().filter(|(_, cases)| !cases.is_empty()) {
        list += &format!("            {noun} {{ {} }}\n", cases.join(" "));
    }
    let text = format!(
        "#[doc(hidden)]\n#[macro_export]\nmacro_rules! cases {{\n    ($to:ident $fixture:path) => {{\n        \
         $crate::suite! {{ @$to $fixture;\n{list}        }}\n    }};\n}}\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("cases.rs"), text)?;
    println!("cargo::rerun-if-changed=src");
    Ok(())
}

/// The files and folders in a folder, by name.
fn inside(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Adds the names of the cases in a file, or in all files below a folder.
fn find(path: &Path, cases: &mut Vec<String>) -> io::Result<()> {
    if path.is_dir() {
        return inside(path)?.iter().try_for_each(|path| find(path, cases));
    }
    let text = fs::read_to_string(path)?;
    cases.extend(text.lines().filter_map(case).map(str::to_owned));
    Ok(())
}

/// The name of the case whose first line this is.
fn case(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("pub async fn ")?.split_once('(')?;
    let (parameter, _) = rest.split_once(')')?;
    let (_, kind) = parameter.split_once(": ")?;
    let is_fixture = kind.ends_with("Fixture") && kind.chars().all(char::is_alphanumeric);
    is_fixture.then_some(name)
}
