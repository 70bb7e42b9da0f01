//! The project rules that neither the compiler nor clippy checks. Walks the files; the rules are pure, one file per topic.

mod dependencies;
mod finding;
mod functions;
mod leftovers;
mod names;
mod routes;
mod rust_text;
mod shape;
mod sleeps;
mod sql_files;
mod sql_strings;
mod threat_model;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::{book, workspace};
pub(crate) use finding::{Finding, line_of};

/// A rule gets a path below the root (with `/`) and the text, and selects its files itself.
type Rule = fn(&str, &str) -> Vec<Finding>;

const RULES: [Rule; 14] = [
    shape::not_too_long,
    shape::opens_with_its_purpose,
    sql_strings::no_sql_in_code,
    sql_files::one_statement,
    sql_files::says_what_it_is_for,
    sql_files::names_its_columns,
    leftovers::nothing_unfinished,
    leftovers::no_path_of_one_machine,
    sleeps::none_in_tests,
    functions::not_too_long,
    dependencies::point_inwards,
    names::say_something,
    routes::only_read_the_store,
    words::not_retired,
];

/// Build output and history; the rules apply to everything else, hidden or not.
const NOT_OURS: [&str; 2] = ["target", ".git"];

/// Returns whether the repository follows the rules; prints every finding.
pub(crate) fn run() -> Result<bool> {
    let texts = texts(&workspace::root())?;
    let mut findings = Vec::new();
    for (path, text) in &texts {
        if let Some(text) = text {
            findings.extend(check(path, text));
        }
    }
    findings.extend(book::check(&texts));
    findings.extend(threat_model::names_existing_tests(&texts));
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", texts.len(), findings.len());
    Ok(findings.is_empty())
}

/// Every text file below the root, by path.
pub(crate) fn texts(root: &Path) -> Result<BTreeMap<String, Option<String>>> {
    let mut paths = Vec::new();
    collect(root, "", &mut paths)?;
    let read = |path: String| {
        let text = String::from_utf8(fs::read(root.join(&path))?).ok();
        Ok((path, text))
    };
    paths.into_iter().map(read).collect()
}

fn check(path: &str, text: &str) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule(path, text)).collect()
}

fn collect(folder: &Path, below: &str, paths: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
            collect(&entry.path(), &format!("{below}{name}/"), paths)?;
        } else if kind.is_file() {
            paths.push(format!("{below}{name}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_files_have_no_findings() {
        let rust = "//! Adds numbers; knows nothing else.\n\n/// SELECT is a word.\nfn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n";
        assert_eq!(check("crates/core/src/add.rs", rust), []);
        let sql = "-- Finds one; it is the newest.\nSELECT ';' AS \"a;b\";\n";
        assert_eq!(check("crates/store-sqlite/sql/one/find.sql", sql), []);
        let manifest = "[package]\nname = \"leasehold-store\"\n\n[dependencies]\nleasehold-core.workspace = true\n";
        assert_eq!(check("crates/store/Cargo.toml", manifest), []);
        assert_eq!(check("README.md", "# Leasehold\n"), []);
    }

    #[test]
    fn violations_of_several_rules_are_found() {
        let findings = check("crates/core/src/helpers.rs", "fn main() {}\n");
        let messages: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].starts_with("crates/core/src/helpers.rs:1: "));
    }
}
