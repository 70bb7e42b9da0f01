//! The direction of dependencies between the crates, read from their manifests: inwards, never between adapters.

use super::finding::Finding;

const OURS: &str = "leasehold-";
/// The binary's package, in the room `cli`; it has no room's name.
const BINARY: &str = "leasehold";
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
/// Temporal's SDK takes minutes to compile: it is in the worker's program alone.
const SDK: &str = "temporalio-";
const USES_SDK: &str = "temporal-worker";
/// What speaks gRPC, and the one room that does.
const GRPC: [&str; 2] = ["tonic", "prost"];
const SPEAKS_GRPC: &str = "engine-temporal";
/// The engine that is tested over every store.
const RUNS_IN_STORES: &str = "engine-embedded";
const PORTS: [&str; 2] = ["store", "engine"];
/// For tests only, except among themselves and in the tools.
const DEV_ONLY: [&str; 4] = [
    "testbed",
    "testkit",
    "store-conformance",
    "engine-conformance",
];

/// Whether a dependency is built into what is shipped, or only into tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Build,
    Test,
}

pub(super) fn point_inwards(path: &str, text: &str) -> Vec<Finding> {
    let Some(room) = path
        .strip_prefix("crates/")
        .and_then(|below| below.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    dependencies(text)
        .into_iter()
        .filter_map(|(line, used, dependency)| {
            let reason = match used {
                Use::Build => forbidden(room, &dependency),
                Use::Test => forbidden_in_tests(room, &dependency),
            }?;
            let message = format!("{room} must not depend on {dependency}: {reason}");
            Some(Finding::new(path, line, message))
        })
        .collect()
}

/// Why this room may not have that dependency.
fn forbidden(room: &str, dependency: &str) -> Option<&'static str> {
    if dependency == BINARY {
        return Some("the binary sees everything, and nobody sees it");
    }
    if dependency == format!("{OURS}{USES_SDK}") {
        return Some("the worker's program is started, not linked: it brings Temporal's SDK");
    }
    let Some(other) = dependency.strip_prefix(OURS) else {
        return forbidden_of_others(room, dependency);
    };
    if DEV_ONLY.contains(&other) && !DEV_ONLY.contains(&room) {
        return Some("that crate is for tests: use [dev-dependencies]");
    }
    let inwards = other == "core" || PORTS.contains(&other);
    match room {
        "core" => Some("the core stands alone"),
        "testkit" => Some("the testkit knows none of our crates, so that all can use it"),
        "testbed" => (other.ends_with("-conformance") || other.starts_with("engine-"))
            .then_some("the suites and the tests of engines use the test bed, not the other way round"),
        "store" | "engine" => (other != "core").then_some("a port sees the core only"),
        "ops" | "telemetry" => (!inwards).then_some("it sees the core and the ports only"),
        "runtime" => (!inwards && !["service", "telemetry", "worker"].contains(&other))
            .then_some("it sees the core, the ports, the telemetry, and the shapes of services and workers only"),
        "worker" => (!["core", "service"].contains(&other))
            .then_some("it sees the core and the shape of a service only"),
        "api" | "service" => (other != "core").then_some("it sees the core only"),
        "client" => (!["api", "core", "worker"].contains(&other))
            .then_some("it sees the API's JSON and the worker, and the server by HTTP only"),
        "console" => (!["api", "client", "core", "worker"].contains(&other))
            .then_some("it sees the core, the worker and the client, and the server by HTTP only"),
        "server" => (!inwards && !["api", "ops", "service", "telemetry"].contains(&other))
            .then_some("it sees the core, the ports, ops, the telemetry, the shape of a service and the API's JSON only"),
        RUNS_IN_STORES => (!inwards && !["outbound", "worker"].contains(&other))
            .then_some("it sees the core, the ports, and what works on its nodes: the worker and the calls"),
        "process" => Some("it sees none of our crates"),
        USES_SDK => (!["client", "core", "engine", "engine-temporal", "outbound", "process"].contains(&other))
            .then_some("it sees the core, the engine it works for, and what its activities call: the server by HTTP and the world"),
        _ if is_adapter(room) => {
            (!inwards).then_some("an adapter sees the core and the ports, never another adapter")
        }
        _ => None,
    }
}

/// Tests are free to bring what they need, with two exceptions: the testkit, and adapters beside each other, unless one is the other's ground.
fn forbidden_in_tests(room: &str, dependency: &str) -> Option<&'static str> {
    let other = dependency.strip_prefix(OURS)?;
    if room == "testkit" {
        return Some("the testkit knows none of our crates, also not in its tests");
    }
    let own_ground = room == RUNS_IN_STORES && other.starts_with("store-");
    (is_adapter(room) && is_adapter(other) && !own_ground)
        .then_some("an adapter never sees another, also not in its tests")
}

fn forbidden_of_others(room: &str, dependency: &str) -> Option<&'static str> {
    if room == "core" && NOT_FOR_CORE.contains(&dependency) {
        return Some("the core is pure");
    }
    if dependency.starts_with(SDK) && room != USES_SDK {
        return Some(
            "temporal-worker alone uses Temporal's SDK, so that nothing else waits for it to compile",
        );
    }
    let speaks = GRPC.iter().any(|start| dependency.starts_with(start));
    // The testkit's receiver of traces speaks gRPC too.
    (speaks && ![SPEAKS_GRPC, "testkit"].contains(&room))
        .then_some("engine-temporal alone speaks gRPC")
}

fn is_adapter(room: &str) -> bool {
    !DEV_ONLY.contains(&room) && (room.starts_with("store-") || room.starts_with("engine-"))
}

/// The packages a crate is built and tested with, by line.
fn dependencies(manifest: &str) -> Vec<(usize, Use, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
            // [dependencies.name], and the same for one target
            if let Some((before, name)) = section.rsplit_once('.')
                && let Some(used) = section_use(before)
            {
                found.push((index + 1, used, name.to_owned()));
            }
        } else if let Some(used) = section_use(&section)
            && let Some((name, value)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let name = name.split('.').next().unwrap_or(name);
            let name = renamed(value).unwrap_or(name).trim();
            found.push((index + 1, used, name.to_owned()));
        }
    }
    found
}

fn section_use(section: &str) -> Option<Use> {
    let kind = match section.rsplit_once('.') {
        Some((target, kind)) if target.starts_with("target.") => kind,
        _ => section,
    };
    match kind {
        "dependencies" | "build-dependencies" => Some(Use::Build),
        "dev-dependencies" => Some(Use::Test),
        _ => None,
    }
}

/// The real name in `other = { package = "name" }`.
fn renamed(value: &str) -> Option<&str> {
    let (_, after) = value.split_once("package")?;
    after.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(room: &str, section: &str, dependency: &str) -> usize {
        let manifest =
            format!("[package]\nname = \"x\"\n[{section}]\n{dependency}.workspace = true\n");
        point_inwards(&format!("crates/{room}/Cargo.toml"), &manifest).len()
    }

    #[test]
    fn every_wrong_direction_is_found() {
        for dependency in NOT_FOR_CORE {
            assert_eq!(found("core", "dependencies", dependency), 1, "{dependency}");
        }
        for (room, dependency) in [
            ("core", "leasehold-store"),
            ("store", "leasehold-ops"),
            ("engine", "leasehold-store"),
            ("store-postgres", "leasehold-store-sqlite"),
            ("engine-temporal", "leasehold-store-sqlite"),
            ("engine-temporal", "leasehold-runtime"),
            ("engine-temporal", "leasehold-client"),
            ("engine-temporal", "temporalio-client"),
            ("temporal-worker", "leasehold-store"),
            ("temporal-worker", "tonic"),
            ("cli", "leasehold-temporal-worker"),
            ("process", "leasehold-core"),
            ("engine-embedded", "leasehold-runtime"),
            ("engine-embedded", "leasehold-store-sqlite"),
            ("engine-embedded", "leasehold-engine-conformance"),
            ("store-sqlite", "leasehold-ops"),
            ("ops", "leasehold-store-postgres"),
            ("ops", "leasehold-runtime"),
            ("runtime", "leasehold-engine-temporal"),
            ("runtime", "leasehold-ops"),
            ("runtime", "temporalio-client"),
            ("runtime", "leasehold-client"),
            ("service", "leasehold-store"),
            ("worker", "leasehold-store"),
            ("worker", "leasehold-store-sqlite"),
            ("worker", "leasehold-runtime"),
            ("worker", "leasehold-engine"),
            ("worker", "leasehold-telemetry"),
            ("telemetry", "leasehold-runtime"),
            ("telemetry", "leasehold-store-sqlite"),
            ("ops", "leasehold-telemetry"),
            ("cli", "temporalio-common"),
            ("server", "tonic"),
            ("server", "leasehold-store-sqlite"),
            ("server", "leasehold-runtime"),
            ("server", "leasehold"),
            ("client", "leasehold-server"),
            ("server", "leasehold-client"),
            ("client", "leasehold-ops"),
            ("client", "leasehold-store"),
            ("api", "leasehold-store"),
            ("cli", "leasehold-testkit"),
            ("ops", "leasehold-store-conformance"),
            ("server", "leasehold-testbed"),
            ("testbed", "leasehold-store-conformance"),
            ("testbed", "leasehold-engine-embedded"),
            ("testkit", "leasehold-testbed"),
            ("testkit", "leasehold-core"),
        ] {
            let count = found(room, "dependencies", dependency);
            assert_eq!(count, 1, "{room} on {dependency}");
        }
    }

    #[test]
    fn the_right_direction_is_fine() {
        for (room, dependency) in [
            ("core", "uuid"),
            ("store", "leasehold-core"),
            ("engine", "leasehold-core"),
            ("store-postgres", "leasehold-store"),
            ("engine-embedded", "leasehold-store"),
            ("engine-embedded", "leasehold-worker"),
            ("engine-embedded", "leasehold-outbound"),
            ("engine-conformance", "leasehold-worker"),
            ("engine-conformance", "leasehold-testkit"),
            ("engine-temporal", "leasehold-engine"),
            ("engine-temporal", "tonic"),
            ("temporal-worker", "temporalio-sdk"),
            ("temporal-worker", "leasehold-engine-temporal"),
            ("temporal-worker", "leasehold-process"),
            ("cli", "leasehold-process"),
            ("ops", "leasehold-engine"),
            ("runtime", "leasehold-store"),
            ("runtime", "leasehold-telemetry"),
            ("server", "leasehold-telemetry"),
            ("telemetry", "leasehold-engine"),
            ("testkit", "tonic"),
            ("runtime", "leasehold-worker"),
            ("runtime", "leasehold-service"),
            ("service", "leasehold-core"),
            ("worker", "leasehold-service"),
            ("cli", "leasehold-worker"),
            ("server", "leasehold-ops"),
            ("server", "leasehold-api"),
            ("client", "leasehold-worker"),
            ("cli", "leasehold-store-sqlite"),
            ("cli", "leasehold-runtime"),
            ("store-conformance", "leasehold-testkit"),
            ("store-conformance", "leasehold-testbed"),
            ("engine-conformance", "leasehold-testbed"),
            ("testbed", "leasehold-testkit"),
            ("testbed", "leasehold-store-postgres"),
            ("testbed", "leasehold-server"),
            ("testbed", "leasehold-client"),
        ] {
            let count = found(room, "dependencies", dependency);
            assert_eq!(count, 0, "{room} on {dependency}");
        }
    }

    #[test]
    fn tests_are_free_except_that_adapters_and_the_testkit_stay_apart() {
        for (room, dependency, count) in [
            ("core", "tokio", 0),
            ("core", "leasehold-testkit", 0),
            ("store-postgres", "leasehold-store-conformance", 0),
            ("store-postgres", "leasehold-testbed", 0),
            ("server", "leasehold-testbed", 0),
            ("runtime", "leasehold-store-postgres", 0),
            ("runtime", "leasehold-engine-temporal", 0),
            ("worker", "leasehold-store-postgres", 0),
            ("ops", "leasehold-store-sqlite", 0),
            ("cli", "temporalio-client", 0),
            ("store-sqlite", "leasehold-store-postgres", 1),
            ("engine-temporal", "leasehold-store-postgres", 1),
            ("engine-embedded", "leasehold-store-postgres", 0),
            ("engine-embedded", "leasehold-engine-conformance", 0),
            ("engine-embedded", "leasehold-engine-temporal", 1),
            ("testkit", "leasehold-store", 1),
        ] {
            let seen = found(room, "dev-dependencies", dependency);
            assert_eq!(seen, count, "{room} on {dependency}");
        }
    }

    #[test]
    fn all_ways_to_write_a_dependency_are_read() {
        let manifest = "[dependencies]\na = \"1\"\nb.workspace = true\nc = { package = \"d\", version = \"1\" }\n# x = 1\n\
             [dependencies.e]\nversion = \"1\"\n[target.'cfg(unix)'.dependencies]\nf = \"1\"\n[dev-dependencies]\ng = \"1\"\n";
        let names: Vec<(Use, String)> = dependencies(manifest)
            .into_iter()
            .map(|(_, used, name)| (used, name))
            .collect();
        let build = ["a", "b", "d", "e", "f"].map(|name| (Use::Build, name.to_owned()));
        let test = [(Use::Test, "g".to_owned())];
        assert_eq!(names, [&build[..], &test].concat());
    }
}
