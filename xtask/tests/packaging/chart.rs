//! The chart: judged by Helm, and what it renders to by the schemas of Kubernetes; and what must hold of every pod.

use std::collections::BTreeSet;
use std::fs;

use leasehold_testkit::{HELM, KUBERNETES_VALIDATE};
use serde_json::Value;

use crate::documents::{documents, names};
use crate::settings::{seconds, settings};
use crate::{Outcome, path, run, text, with};

const CHART: &str = "packaging/helm/leasehold";
const STORE: &str = "store.existingSecret=store";
/// Everything that can be asked for, at once.
const ALL: [&str; 10] = [
    STORE,
    "settings.engine.kind=temporal",
    "settings.temporal.address=temporal:7233",
    "settings.dispatch.batch_size=200",
    "settings.http_nodes.allow={10.0.0.0/8,internal.example}",
    "temporal.apiKeySecret=cloud",
    "worker.existingSecret=worker",
    "tls.existingSecret=certificate",
    "networkPolicy.enabled=true",
    "migrate.existingSecret=owner",
];
/// The oldest that the chart claims, and the newest that is known.
const KUBERNETES: [&str; 2] = ["1.25", "1.37"];

fn helm(verb: &[&str], values: &[&str]) -> Outcome {
    let mut command = HELM.command().unwrap();
    command.args(verb).arg(path(CHART));
    for value in values {
        command.args(["--set", value]);
    }
    run(&mut command)
}

fn rendered(values: &[&str]) -> String {
    helm(&["template", "prod"], values).must_be_well()
}

fn validate(rendered: &str, version: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rendered.yaml");
    fs::write(&file, rendered).unwrap();
    let mut command = KUBERNETES_VALIDATE.command().unwrap();
    run(command.args(["--strict", "-k", version]).arg(&file))
}

/// The documents of one kind.
fn of_kind(rendered: &str, kind: &str) -> Vec<Value> {
    let mut documents = documents(rendered);
    documents.retain(|document| document["kind"] == kind);
    documents
}

/// Every container of a pod, first those that prepare it.
fn containers(deployment: &Value) -> Vec<&Value> {
    let pod = &deployment["spec"]["template"]["spec"];
    let all = ["initContainers", "containers"].map(|list| pod[list].as_array());
    all.into_iter().flatten().flatten().collect()
}

#[test]
fn helm_accepts_the_chart() {
    helm(&["lint", "--strict"], &[STORE]).must_be_well();
    helm(&["lint", "--strict"], &ALL).must_be_well();
}

#[test]
fn helm_refuses_a_value_or_a_section_that_does_not_exist() {
    let lint = |wrong| helm(&["lint", "--strict"], &[STORE, wrong]);
    lint("replcas=3").must_be_refused("property replcas is not allowed");
    lint("settings.dispatsh.batch_size=3").must_be_refused("property dispatsh is not allowed");
    lint("settings.dispatch.batch_size.most=3").must_be_refused("settings.dispatch.batch_size");
}

#[test]
fn kubernetes_accepts_what_it_renders_to() {
    for values in [&[STORE][..], &ALL[..]] {
        let rendered = rendered(values);
        for version in KUBERNETES {
            validate(&rendered, version).must_be_well();
        }
    }
}

#[test]
fn kubernetes_refuses_a_broken_manifest() {
    let broken = with(&rendered(&[STORE]), "readinessProbe:", "readynessProbe:");
    validate(&broken, KUBERNETES[1]).must_be_refused("'readynessProbe' was unexpected");
}

#[test]
fn what_it_cannot_do_without_is_asked_for_by_name() {
    let template = |values: &[&str]| helm(&["template", "prod"], values);
    template(&[]).must_be_refused("store.existingSecret: name a Secret that holds the URL");
    let elsewhere = [
        ("settings.store.url=postgres://x", "store.existingSecret"),
        ("settings.worker.key=lh_worker_x", "worker.existingSecret"),
        ("settings.temporal.api_key=x", "temporal.apiKeySecret"),
        ("settings.server.listen=0.0.0.0:1", "Service"),
    ];
    for (value, place) in elsewhere {
        template(&[STORE, value]).must_be_refused(place);
    }
}

#[test]
fn every_section_has_its_name_in_the_schema_of_values_and_no_other_has() {
    let schema: Value =
        serde_json::from_str(&text(&format!("{CHART}/values.schema.json"))).unwrap();
    let sections = names(&schema["properties"]["settings"]["properties"]);
    let known: BTreeSet<String> = sections.into_iter().map(str::to_owned).collect();
    let documented = settings().into_keys();
    // `data_dir` is the only one outside a section; the chart sets it.
    let sections = documented.filter_map(|name| Some(name.split_once('.')?.0.to_owned()));
    assert_eq!(known, sections.collect());
}

#[test]
fn settings_reach_the_file_as_they_were_given() {
    let maps = of_kind(&rendered(&ALL), "ConfigMap");
    let file = maps[0]["data"]["leasehold.toml"].as_str().unwrap();
    let expected = "\
[dispatch]
batch_size = 200
[engine]
kind = \"temporal\"
[http_nodes]
allow = [\"10.0.0.0/8\",\"internal.example\"]
[log]
format = \"json\"
[temporal]
address = \"temporal:7233\"
";
    assert_eq!(file, expected);
}

#[test]
fn a_changed_setting_replaces_the_pods() {
    let sum = |values: &[&str]| {
        let deployments = of_kind(&rendered(values), "Deployment");
        let annotations = &deployments[0]["spec"]["template"]["metadata"]["annotations"];
        annotations["checksum/settings"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_ne!(sum(&[STORE]), sum(&[STORE, "settings.sweep.rate=10"]));
    assert_eq!(sum(&[STORE]), sum(&[STORE, "replicas=5"]));
}

#[test]
fn no_pod_runs_as_root_or_writes_to_its_image() {
    let deployments = of_kind(&rendered(&ALL), "Deployment");
    assert_eq!(deployments.len(), 2);
    let mut seen = 0;
    for deployment in &deployments {
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["automountServiceAccountToken"], false);
        for container in containers(deployment) {
            seen += 1;
            let security = &container["securityContext"];
            assert_eq!(security["readOnlyRootFilesystem"], true, "{container}");
            assert_eq!(security["allowPrivilegeEscalation"], false, "{container}");
            assert_eq!(security["capabilities"]["drop"][0], "ALL", "{container}");
            assert!(container["resources"]["limits"]["memory"].is_string());
        }
    }
    assert_eq!(seen, 3, "migrate, server and worker");
}

#[test]
fn no_secret_is_written_into_a_manifest() {
    for document in documents(&rendered(&ALL)) {
        assert_ne!(document["kind"], "Secret");
        if document["kind"] != "Deployment" {
            continue;
        }
        for container in containers(&document) {
            for variable in container["env"].as_array().unwrap() {
                let name = variable["name"].as_str().unwrap();
                let secret = ["URL", "API_KEY"].iter().any(|end| name.ends_with(end));
                let referred = variable["valueFrom"]["secretKeyRef"].is_object();
                assert_eq!(referred, secret, "{variable}");
            }
        }
    }
}

#[test]
fn workers_come_with_temporal_and_their_key_alone() {
    let kinds = |values: &[&str]| of_kind(&rendered(values), "Deployment").len();
    assert_eq!(kinds(&[STORE]), 1);
    assert_eq!(kinds(&[STORE, "worker.existingSecret=worker"]), 1);
    assert_eq!(kinds(&[STORE, "settings.engine.kind=temporal"]), 1);
    assert_eq!(kinds(&ALL), 2);
}

#[test]
fn the_schema_is_changed_before_a_server_starts_and_never_by_it() {
    let server = |values: &[&str]| of_kind(&rendered(values), "Deployment").remove(0);
    let migrating = server(&[STORE, "migrate.existingSecret=owner"]);
    let containers = containers(&migrating);
    assert_eq!(containers[0]["args"], serde_json::json!(["migrate", "up"]));
    assert!(containers[0].to_string().contains("\"owner\""));
    assert!(!containers[1].to_string().contains("\"owner\""));
    let env = containers[1]["env"].as_array().unwrap();
    let migrate = env
        .iter()
        .find(|v| v["name"] == "LEASEHOLD__STORE__MIGRATE");
    assert_eq!(migrate.unwrap()["value"], "false");
    let without = server(&[STORE, "migrate.enabled=false"]);
    assert!(without["spec"]["template"]["spec"]["initContainers"].is_null());
}

#[test]
fn kubernetes_waits_longer_than_the_program_drains() {
    let values = &documents(&text(&format!("{CHART}/values.yaml")))[0];
    let pause = values["preStopSeconds"].as_u64().unwrap();
    let waits = values["terminationGracePeriodSeconds"].as_u64().unwrap();
    for (setting, last_words) in [
        ("server.drain_timeout", 5),
        ("dispatch.drain_timeout", 5),
        ("embedded.drain_timeout", 10),
    ] {
        assert!(
            waits > pause + seconds(setting).as_secs() + last_words,
            "{setting}"
        );
    }
    let waits = values["worker"]["terminationGracePeriodSeconds"]
        .as_u64()
        .unwrap();
    assert!(waits > seconds("worker.drain_timeout").as_secs() + 10);
}

#[test]
fn the_chart_is_of_the_version_of_the_program() {
    let chart = &documents(&text(&format!("{CHART}/Chart.yaml")))[0];
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(chart["appVersion"], version);
    assert_eq!(chart["version"], version);
}
