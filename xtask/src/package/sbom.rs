//! The SBOM of the programs as CycloneDX 1.6: every linked crate, from `cargo tree`. Pure.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The format of a line of `cargo tree`: name, version and source, then the licence.
pub(super) const TREE_FORMAT: &str = "{p}|{l}";

/// The crates of a tree, with their licences.
pub(super) fn of(tree: &str, target: &str) -> Result<String> {
    // `cargo tree` marks a crate whose dependencies it has shown before.
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    let crates = lines
        .filter(|line| !line.is_empty())
        .map(|line| parse(line).with_context(|| format!("unexpected line of cargo tree: {line}")));
    let crates: BTreeMap<(&str, &str), &str> = crates.collect::<Result<_>>()?;
    let components: Vec<Value> = crates
        .into_iter()
        .map(|((name, version), license)| component(name, version, license))
        .collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "leasehold",
                "version": env!("CARGO_PKG_VERSION"),
                "properties": [{"name": "target", "value": target}],
            },
        },
        "components": components,
    });
    Ok(serde_json::to_string_pretty(&bill)?)
}

/// `serde v1.0.0|MIT OR Apache-2.0`; crates of the workspace also have a path.
fn parse(line: &str) -> Option<((&str, &str), &str)> {
    let (package, license) = line.split_once('|')?;
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some(((name, version), license))
}

fn component(name: &str, version: &str, license: &str) -> Value {
    let mut component = json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
    });
    if !license.is_empty() {
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_each_crate_once_with_its_licence() {
        let tree = "leasehold v0.2.0 (/x/crates/cli)|MIT\nserde v1.0.0|MIT/Apache-2.0\n\
                    serde v1.0.0|MIT/Apache-2.0 (*)\n\nold v0.1.0|\n";
        let bill: Value =
            serde_json::from_str(&of(tree, "x86_64-unknown-linux-gnu").unwrap()).unwrap();
        let components = bill["components"].as_array().unwrap();
        let names: Vec<_> = components
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["leasehold", "old", "serde"]);
        assert_eq!(components[1].get("licenses"), None);
        assert_eq!(components[2]["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(
            components[2]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert!(of("serde", "x").is_err());
    }
}
