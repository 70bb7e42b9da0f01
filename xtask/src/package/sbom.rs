//! The SBOM of the programs as CycloneDX 1.6: every linked crate, from `cargo metadata`. Pure.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The crates that these programs are made of, with their licences. Crates that only tests or build scripts use are left out.
pub(super) fn of(metadata: &[u8], programs: &[&str], target: &str) -> Result<String> {
    let metadata: Value = serde_json::from_slice(metadata)?;
    let packages = list(&metadata["packages"])?;
    let by_id: BTreeMap<&str, &Value> = packages
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])?
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let is_program = |package: &&&Value| programs.iter().any(|name| package["name"] == **name);
    let mut open: Vec<&str> = by_id
        .values()
        .filter(is_program)
        .filter_map(|package| package["id"].as_str())
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let dependencies = nodes.get(id).and_then(|node| node["deps"].as_array());
        for dependency in dependencies
            .into_iter()
            .flatten()
            .filter(|one| is_built_in(one))
        {
            open.extend(dependency["pkg"].as_str());
        }
    }
    let components: Vec<Value> = seen
        .iter()
        .filter_map(|id| by_id.get(id))
        .map(|package| component(package))
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

fn list(value: &Value) -> Result<&Vec<Value>> {
    value
        .as_array()
        .context("unexpected format of cargo metadata")
}

/// A normal dependency has kind null.
fn is_built_in(dependency: &Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array();
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn component(package: &Value) -> Value {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let mut component = json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
    });
    if let Some(license) = package["license"].as_str() {
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_linked_crates_without_dev_dependencies() {
        let package = |id: &str| json!({"id": id, "name": id, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let dependency = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let packages = ["leasehold", "serde", "proptest", "stranger"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": {"nodes": [
                {"id": "leasehold", "deps": [dependency("serde", Value::Null), dependency("proptest", json!("dev"))]},
                {"id": "serde", "deps": []},
            ]},
        });
        let bill = of(
            metadata.to_string().as_bytes(),
            &["leasehold"],
            "x86_64-unknown-linux-gnu",
        )
        .unwrap();
        let bill: Value = serde_json::from_str(&bill).unwrap();
        let components = bill["components"].as_array().unwrap();
        let names: Vec<_> = components
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["leasehold", "serde"]);
        assert_eq!(components[1]["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(
            components[1]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
    }
}
