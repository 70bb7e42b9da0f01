//! The direction of dependencies between the crates, read from their manifests: inwards, never between adapters.

use super::finding::Finding;

const OURS: &str = "leasehold-";
/// The binary's package, in the crate directory `cli`.
const BINARY: &str = "leasehold";
/// Crates without IO, async and protocols.
const PURE: [&str; 2] = ["core", "schema"];
/// Crates with IO, a clock or a protocol: forbidden in pure crates.
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
/// Temporal's SDK takes minutes to compile: only the worker program uses it.
const SDK: &str = "temporalio-";
const USES_SDK: &str = "temporal-worker";
/// A validator of JSON Schemas that tests compare ours with. It takes a tenth of a release build.
const OTHER_VALIDATOR: &str = "jsonschema";
/// gRPC crates, and the one crate that may use them.
const GRPC: [&str; 2] = ["tonic", "prost"];
const SPEAKS_GRPC: &str = "engine-temporal";
/// The engine that is tested on every store.
const RUNS_IN_STORES: &str = "engine-embedded";
const PORTS: [&str; 2] = ["store", "engine"];
/// The markers that adapters set while they compute the input of a request.
const CRASH_MARKER: &str = "crash-marker";
/// Test-only crates.
const DEV_ONLY: [&str; 4] = [
    "testbed",
    "testkit",
    "store-conformance",
    "engine-conformance",
];

/// Whether a dependency is shipped or test-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Build,
    Test,
}

pub(super) fn point_inwards(path: &str, text: &str) -> Vec<Finding> {
    let Some(crate_name) = path
        .strip_prefix("crates/")
        .and_then(|below| below.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    dependencies(text)
        .into_iter()
        .filter_map(|(line, used, dependency)| {
            let reason = match used {
                Use::Build => forbidden(crate_name, &dependency),
                Use::Test => forbidden_in_tests(crate_name, &dependency),
            }?;
            let message = format!("{crate_name} must not depend on {dependency}: {reason}");
            Some(Finding::new(path, line, message))
        })
        .collect()
}

/// The reason why this crate may not have that dependency.
fn forbidden(crate_name: &str, dependency: &str) -> Option<&'static str> {
    if dependency == BINARY {
        return Some("no crate may depend on the binary");
    }
    if dependency == format!("{OURS}{USES_SDK}") {
        return Some(
            "the worker program is started, not linked, because it contains Temporal's SDK",
        );
    }
    let Some(other) = dependency.strip_prefix(OURS) else {
        return forbidden_of_others(crate_name, dependency);
    };
    if DEV_ONLY.contains(&other) && !DEV_ONLY.contains(&crate_name) {
        return Some("that crate is for tests: use [dev-dependencies]");
    }
    let inwards = other == "core" || PORTS.contains(&other);
    // Adapters compute inputs, so they mark them.
    let inwards = inwards || (is_adapter(crate_name) && other == CRASH_MARKER);
    match crate_name {
        "core" => Some("core depends on no other crate"),
        "testkit" => Some("the testkit knows none of our crates, so that all can use it"),
        "testbed" => (other.ends_with("-conformance") || other.starts_with("engine-")).then_some(
            "the suites and the tests of engines use the test bed, not the other way round",
        ),
        "store" | "engine" => (other != "core").then_some("a port depends on core only"),
        "telemetry" => (!inwards).then_some("it depends on core and the ports only"),
        "ops" => (!inwards && other != "schema")
            .then_some("it depends on core, the ports and schema only"),
        "runtime" => (!inwards && !["service", "telemetry", "worker"].contains(&other))
            .then_some("it depends on core, the ports, telemetry, service and worker only"),
        "worker" => {
            (!["core", "service"].contains(&other)).then_some("it depends on core and service only")
        }
        "api" | "schema" | "service" | CRASH_MARKER => {
            (other != "core").then_some("it depends on core only")
        }
        "client" => (!["api", "core", "worker"].contains(&other))
            .then_some("it depends on api and worker only; it reaches the server over HTTP"),
        "console" => (!["api", "client", "core", "worker"].contains(&other)).then_some(
            "it depends on core, worker and client only; it reaches the server over HTTP",
        ),
        "server" => (!inwards && !["api", "ops", "service", "telemetry"].contains(&other))
            .then_some("it depends on core, the ports, ops, telemetry, service and api only"),
        RUNS_IN_STORES => (!inwards && !["outbound", "worker"].contains(&other))
            .then_some("it depends on core, the ports, worker and outbound only"),
        "process" => Some("it depends on none of our crates"),
        USES_SDK => (![
            "client",
            "core",
            "engine",
            "engine-temporal",
            "outbound",
            "process",
        ]
        .contains(&other))
        .then_some("it depends on core, engine-temporal, client and outbound only"),
        _ if is_adapter(crate_name) => (!inwards)
            .then_some("an adapter depends on core and the ports, never on another adapter"),
        _ => None,
    }
}

/// Dev-dependencies are free, with two exceptions: the testkit, and adapters among each other unless one is tested on the other.
fn forbidden_in_tests(crate_name: &str, dependency: &str) -> Option<&'static str> {
    let other = dependency.strip_prefix(OURS)?;
    if crate_name == "testkit" {
        return Some("the testkit depends on none of our crates, also in its tests");
    }
    let own_ground = crate_name == RUNS_IN_STORES && other.starts_with("store-");
    (is_adapter(crate_name) && is_adapter(other) && !own_ground)
        .then_some("an adapter never depends on another, also in its tests")
}

fn forbidden_of_others(crate_name: &str, dependency: &str) -> Option<&'static str> {
    if PURE.contains(&crate_name) && NOT_FOR_CORE.contains(&dependency) {
        return Some("the crate is pure");
    }
    if dependency == OTHER_VALIDATOR {
        return Some("leasehold-schema validates; that crate is for tests: use [dev-dependencies]");
    }
    if dependency.starts_with(SDK) && crate_name != USES_SDK {
        return Some(
            "only temporal-worker uses Temporal's SDK, because it takes minutes to compile",
        );
    }
    let speaks = GRPC.iter().any(|start| dependency.starts_with(start));
    // The testkit's OTLP receiver uses gRPC too.
    (speaks && ![SPEAKS_GRPC, "testkit"].contains(&crate_name))
        .then_some("only engine-temporal uses gRPC")
}

fn is_adapter(crate_name: &str) -> bool {
    !DEV_ONLY.contains(&crate_name)
        && (crate_name.starts_with("store-") || crate_name.starts_with("engine-"))
}

/// The dependencies of a manifest, by line.
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

    fn found(crate_name: &str, section: &str, dependency: &str) -> usize {
        let manifest =
            format!("[package]\nname = \"x\"\n[{section}]\n{dependency}.workspace = true\n");
        point_inwards(&format!("crates/{crate_name}/Cargo.toml"), &manifest).len()
    }

    #[test]
    fn wrong_dependencies_are_found() {
        for dependency in NOT_FOR_CORE {
            for pure in PURE {
                assert_eq!(found(pure, "dependencies", dependency), 1, "{dependency}");
            }
        }
        for (crate_name, dependency) in [
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
            ("ops", "jsonschema"),
            ("schema", "leasehold-store"),
            ("schema", "jsonschema"),
            ("server", "leasehold-schema"),
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
            let count = found(crate_name, "dependencies", dependency);
            assert_eq!(count, 1, "{crate_name} on {dependency}");
        }
    }

    #[test]
    fn right_dependencies_are_allowed() {
        for (crate_name, dependency) in [
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
            ("ops", "leasehold-schema"),
            ("schema", "leasehold-core"),
            ("schema", "regex"),
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
            let count = found(crate_name, "dependencies", dependency);
            assert_eq!(count, 0, "{crate_name} on {dependency}");
        }
    }

    #[test]
    fn dev_dependencies_are_free_except_adapters_and_testkit() {
        for (crate_name, dependency, count) in [
            ("core", "tokio", 0),
            ("core", "leasehold-testkit", 0),
            ("store-postgres", "leasehold-store-conformance", 0),
            ("store-postgres", "leasehold-testbed", 0),
            ("server", "leasehold-testbed", 0),
            ("runtime", "leasehold-store-postgres", 0),
            ("runtime", "leasehold-engine-temporal", 0),
            ("worker", "leasehold-store-postgres", 0),
            ("ops", "leasehold-store-sqlite", 0),
            ("schema", "jsonschema", 0),
            ("cli", "temporalio-client", 0),
            ("store-sqlite", "leasehold-store-postgres", 1),
            ("engine-temporal", "leasehold-store-postgres", 1),
            ("engine-embedded", "leasehold-store-postgres", 0),
            ("engine-embedded", "leasehold-engine-conformance", 0),
            ("engine-embedded", "leasehold-engine-temporal", 1),
            ("testkit", "leasehold-store", 1),
        ] {
            let seen = found(crate_name, "dev-dependencies", dependency);
            assert_eq!(seen, count, "{crate_name} on {dependency}");
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
