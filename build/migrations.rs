//! Build script of the stores: lists the files of `migrations/`, so that a new migration needs only a new file.

#![allow(
    clippy::print_stdout,
    reason = "a build script prints instructions for Cargo"
)]

use std::path::Path;
use std::{env, fs};

/// Number of leading digits in a migration's name.
const DIGITS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("migrations");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut list = String::new();
    let mut last = 0;
    for file in &names {
        let Some((number, name)) = parts(file) else {
            let form =
                "four digits, an underscore, then lower-case letters, digits and underscores";
            return Err(
                format!("migrations/{file}: invalid name; use `NNNN_name.sql`: {form}").into(),
            );
        };
        if number <= last {
            return Err(format!("migrations/{file}: the number {number:04} is used twice").into());
        }
        last = number;
        let path = dir.join(file);
        list += &format!(
            "leasehold_store::Migration::from_file({number}, {name:?}, include_str!({path:?})),\n"
        );
    }
    let written = Path::new(&env::var("OUT_DIR")?).join("migrations.rs");
    fs::write(written, format!("&[\n{list}]\n"))?;
    println!("cargo::rerun-if-changed=migrations");
    Ok(())
}

/// Returns the number and the name of `0001_workspaces.sql`.
fn parts(file: &str) -> Option<(usize, &str)> {
    let name = file.strip_suffix(".sql")?;
    let (number, label) = name.split_once('_')?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_named = !label.is_empty() && label.chars().all(is_plain);
    let is_numbered = number.len() == DIGITS && number.chars().all(|c| c.is_ascii_digit());
    let number = number.parse().ok()?;
    (is_named && is_numbered).then_some((number, name))
}
