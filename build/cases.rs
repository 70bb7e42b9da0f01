//! Build script of the conformance suites: finds the test cases in the sources, so that a new case needs only a new function.
//!
//! A case is a `pub async fn` that takes one fixture by value. Its group is the file or directory of `src/` that contains it. The script
//! writes a macro `cases!` that passes all cases to an arm of `suite!`.

#![allow(
    clippy::print_stdout,
    reason = "a build script prints instructions for Cargo"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in entries(&Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("src"))? {
        let group = path.file_stem().unwrap_or_default().to_string_lossy();
        find(&path, groups.entry(group.into_owned()).or_default())?;
    }
    let mut list = String::new();
    for (group, cases) in groups.iter().filter(|(_, cases)| !cases.is_empty()) {
        list += &format!("            {group} {{ {} }}\n", cases.join(" "));
    }
    let text = format!(
        "#[doc(hidden)]\n#[macro_export]\nmacro_rules! cases {{\n    ($to:ident $fixture:path) => {{\n        \
         $crate::suite! {{ @$to $fixture;\n{list}        }}\n    }};\n}}\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("cases.rs"), text)?;
    println!("cargo::rerun-if-changed=src");
    Ok(())
}

/// Lists the files and directories in a directory, by name.
fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Adds the names of the cases in a file, or in all files below a directory.
fn find(path: &Path, cases: &mut Vec<String>) -> io::Result<()> {
    if path.is_dir() {
        return entries(path)?.iter().try_for_each(|path| find(path, cases));
    }
    let text = fs::read_to_string(path)?;
    cases.extend(text.lines().filter_map(case).map(str::to_owned));
    Ok(())
}

/// Returns the case's name if this line declares one.
fn case(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("pub async fn ")?.split_once('(')?;
    let (parameter, _) = rest.split_once(')')?;
    let (_, kind) = parameter.split_once(": ")?;
    let is_fixture = kind.ends_with("Fixture") && kind.chars().all(char::is_alphanumeric);
    is_fixture.then_some(name)
}
