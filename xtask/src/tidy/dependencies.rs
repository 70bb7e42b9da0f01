//! The direction of dependencies between the crates, read from their manifests: inwards, never between adapters.

use super::finding::Finding;

const OURS: &str = "leasehold-";
/// What brings IO, a clock or a protocol with it: nothing for the pure core.
const NOT_FOR_CORE: [&str; 8] = [
    "tokio",
    "tokio-postgres",
    "deadpool-postgres",
    "rusqlite",
    "axum",
    "reqwest",
    "temporalio-client",
    "temporalio-sdk",
];
const PORTS: [&str; 2] = ["store", "engine"];
/// They see ports only: the binary brings the adapters.
const BEHIND_PORTS: [&str; 4] = ["ops", "runtime", "server", "client"];
/// For tests only, except among themselves and in the tools.
const DEV_ONLY: [&str; 2] = ["testkit", "store-conformance"];

pub(super) fn point_inwards(path: &str, text: &str) -> Vec<Finding> {
    let Some(room) = path
        .strip_prefix("crates/")
        .and_then(|below| below.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    dependencies(text)
        .into_iter()
        .filter_map(|(line, dependency)| {
            let reason = forbidden(room, &dependency)?;
            let message = format!("{room} must not depend on {dependency}: {reason}");
            Some(Finding::new(path, line, message))
        })
        .collect()
}

/// Why this room may not have that dependency.
fn forbidden(room: &str, dependency: &str) -> Option<&'static str> {
    let Some(other) = dependency.strip_prefix(OURS) else {
        return (room == "core" && NOT_FOR_CORE.contains(&dependency))
            .then_some("the core is pure");
    };
    if room == "core" {
        return Some("the core stands alone");
    }
    if PORTS.contains(&room) && other != "core" {
        return Some("a port sees the core only");
    }
    if is_adapter(room) && other != "core" && !PORTS.contains(&other) {
        return Some("an adapter sees the core and the ports, never another adapter");
    }
    if BEHIND_PORTS.contains(&room) && is_adapter(other) {
        return Some("it sees ports only");
    }
    if DEV_ONLY.contains(&other) && !DEV_ONLY.contains(&room) {
        return Some("that crate is for tests: use [dev-dependencies]");
    }
    None
}

fn is_adapter(room: &str) -> bool {
    !DEV_ONLY.contains(&room) && (room.starts_with("store-") || room.starts_with("engine-"))
}

/// The packages a crate is built with, by line; those for its tests are left out.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
            // [dependencies.name], and the same for one target
            if let Some((before, name)) = section.rsplit_once('.')
                && is_build_section(before)
            {
                found.push((index + 1, name.to_owned()));
            }
        } else if is_build_section(&section)
            && let Some((name, value)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let name = name.split('.').next().unwrap_or(name);
            found.push((index + 1, renamed(value).unwrap_or(name).trim().to_owned()));
        }
    }
    found
}

fn is_build_section(section: &str) -> bool {
    ["dependencies", "build-dependencies"].contains(&section)
        || (section.starts_with("target.") && section.ends_with(".dependencies"))
}

/// The real name in `other = { package = "name" }`.
fn renamed(value: &str) -> Option<&str> {
    let (_, after) = value.split_once("package")?;
    after.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(room: &str, dependency: &str) -> usize {
        let manifest =
            format!("[package]\nname = \"x\"\n[dependencies]\n{dependency}.workspace = true\n");
        point_inwards(&format!("crates/{room}/Cargo.toml"), &manifest).len()
    }

    #[test]
    fn every_wrong_direction_is_found() {
        for dependency in NOT_FOR_CORE {
            assert_eq!(found("core", dependency), 1, "{dependency}");
        }
        for (room, other) in [
            ("core", "store"),
            ("store", "ops"),
            ("engine", "store"),
            ("store-postgres", "store-sqlite"),
            ("engine-temporal", "store-sqlite"),
            ("store-sqlite", "ops"),
            ("ops", "store-postgres"),
            ("runtime", "engine-temporal"),
            ("server", "store-sqlite"),
            ("cli", "testkit"),
            ("ops", "store-conformance"),
        ] {
            assert_eq!(
                found(room, &format!("leasehold-{other}")),
                1,
                "{room} on {other}"
            );
        }
    }

    #[test]
    fn the_right_direction_is_fine() {
        for (room, dependency) in [
            ("core", "uuid"),
            ("store", "leasehold-core"),
            ("store-postgres", "leasehold-store"),
            ("engine-embedded", "leasehold-store"),
            ("ops", "leasehold-engine"),
            ("cli", "leasehold-store-sqlite"),
            ("store-conformance", "leasehold-testkit"),
        ] {
            assert_eq!(found(room, dependency), 0, "{room} on {dependency}");
        }
    }

    #[test]
    fn all_ways_to_write_a_dependency_are_read() {
        let manifest = "[dependencies]\na = \"1\"\nb.workspace = true\nc = { package = \"d\", version = \"1\" }\n# x = 1\n\
             [dependencies.e]\nversion = \"1\"\n[target.'cfg(unix)'.dependencies]\nf = \"1\"\n[dev-dependencies]\ng = \"1\"\n";
        let names: Vec<String> = dependencies(manifest)
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        assert_eq!(names, ["a", "b", "d", "e", "f"]);
    }
}
