//! The chart: linted by Helm, rendered manifests checked by the Kubernetes schemas, and rules for every pod.

use std::collections::BTreeSet;
use std::fs;

use leasehold_testkit::{HELM, KUBERNETES_VALIDATE};
use serde_json::Value;

use crate::documents::{documents, names};
use crate::settings::{seconds, settings};
use crate::{Outcome, path, run, text, with};

const CHART: &str = "packaging/helm/leasehold";
const STORE: &str = "store.existingSecret=store";
/// Values that enable every feature.
const ALL: [&str; 10] = [
    STORE,
    "settings.engine.kind=temporal",
    "settings.temporal.address=temporal:7233",
    "settings.dispatch.batch_size=200",
    "settings.http_nodes.allow={10.0.0.0/8,internal.example}",
    "temporal.apiKeySecret=cloud",
    "worker.existingSecret=worker",
    "tls.existingSecret=certificate",
    "settings.traces.endpoint=http://collector:4317",
    "migrate.existingSecret=owner",
];
/// The oldest supported Kubernetes version and the newest known one.
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
    helm(&["template", "prod"], values).must_succeed()
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

/// The containers of a pod, init containers first.
fn containers(deployment: &Value) -> Vec<&Value> {
    let pod = &deployment["spec"]["template"]["spec"];
    let all = ["initContainers", "containers"].map(|list| pod[list].as_array());
    all.into_iter().flatten().flatten().collect()
}

#[test]
fn helm_accepts_the_chart() {
    helm(&["lint", "--strict"], &[STORE]).must_succeed();
    helm(&["lint", "--strict"], &ALL).must_succeed();
}

#[test]
fn helm_rejects_unknown_values() {
    let lint = |wrong| helm(&["lint", "--strict"], &[STORE, wrong]);
    lint("replcas=3").must_fail_with("property replcas is not allowed");
    lint("settings.dispatsh.batch_size=3").must_fail_with("property dispatsh is not allowed");
    lint("settings.dispatch.batch_size.most=3").must_fail_with("settings.dispatch.batch_size");
}

#[test]
fn rendered_manifests_are_valid() {
    for values in [&[STORE][..], &ALL[..]] {
        let rendered = rendered(values);
        for version in KUBERNETES {
            validate(&rendered, version).must_succeed();
        }
    }
}

#[test]
fn invalid_manifest_is_rejected() {
    let broken = with(&rendered(&[STORE]), "readinessProbe:", "readynessProbe:");
    validate(&broken, KUBERNETES[1]).must_fail_with("'readynessProbe' was unexpected");
}

#[test]
fn required_values_are_named() {
    let template = |values: &[&str]| helm(&["template", "prod"], values);
    template(&[]).must_fail_with("store.existingSecret: name a Secret that holds the URL");
    let elsewhere = [
        ("settings.store.url=postgres://x", "store.existingSecret"),
        ("settings.worker.key=lh_worker_x", "worker.existingSecret"),
        ("settings.temporal.api_key=x", "temporal.apiKeySecret"),
        ("settings.server.listen=0.0.0.0:1", "Service"),
    ];
    for (value, place) in elsewhere {
        template(&[STORE, value]).must_fail_with(place);
    }
}

#[test]
fn values_schema_has_exactly_the_setting_sections() {
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
fn settings_are_rendered_into_the_file() {
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
[traces]
endpoint = \"http://collector:4317\"
";
    assert_eq!(file, expected);
}

#[test]
fn changed_setting_restarts_the_pods() {
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
fn manifests_contain_no_secrets() {
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
fn workers_need_temporal_and_a_key() {
    let kinds = |values: &[&str]| of_kind(&rendered(values), "Deployment").len();
    assert_eq!(kinds(&[STORE]), 1);
    assert_eq!(kinds(&[STORE, "worker.existingSecret=worker"]), 1);
    assert_eq!(kinds(&[STORE, "settings.engine.kind=temporal"]), 1);
    assert_eq!(kinds(&ALL), 2);
}

#[test]
fn migration_runs_before_the_server() {
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
fn termination_grace_exceeds_the_drain_timeout() {
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

/// The network policy of a component.
fn policy(values: &[&str], component: &str) -> Value {
    let mut policies = of_kind(&rendered(values), "NetworkPolicy");
    policies.retain(|policy| {
        let labels = &policy["spec"]["podSelector"]["matchLabels"];
        labels["app.kubernetes.io/component"] == component
    });
    assert_eq!(policies.len(), 1, "{component}");
    policies.remove(0)["spec"].take()
}

/// The rules of an egress policy: TCP ports, and the first peer.
fn egress(policy: &Value) -> Vec<(Vec<u64>, Value)> {
    assert_eq!(
        policy["policyTypes"],
        serde_json::json!(["Ingress", "Egress"])
    );
    let rules = policy["egress"].as_array().unwrap().iter();
    let rule = |rule: &Value| {
        let ports = rule["ports"].as_array().into_iter().flatten();
        let tcp = ports.filter(|port| port["protocol"] == "TCP");
        let ports = tcp.map(|port| port["port"].as_u64().unwrap());
        (ports.collect(), rule["to"][0].clone())
    };
    rules.map(rule).collect()
}

/// Asserts that a rule opens public addresses only.
fn assert_public(peer: &Value) {
    assert_eq!(peer["ipBlock"]["cidr"], "0.0.0.0/0");
    let except = peer["ipBlock"]["except"].as_array().unwrap();
    for private in [
        "10.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "192.168.0.0/16",
    ] {
        assert!(except.contains(&private.into()), "{private}");
    }
}

#[test]
fn pods_connect_only_to_what_they_need() {
    let servers = egress(&policy(&[STORE], "server"));
    let ports: Vec<_> = servers.iter().map(|(ports, _)| ports.as_slice()).collect();
    assert_eq!(ports, [&[53][..], &[5432], &[]]);
    assert_public(&servers[2].1);

    let servers = egress(&policy(&ALL, "server"));
    let ports: Vec<_> = servers.iter().map(|(ports, _)| ports.as_slice()).collect();
    assert_eq!(ports, [&[53][..], &[5432], &[4317], &[7233]], "no calls");
    let workers = egress(&policy(&ALL, "worker"));
    let ports: Vec<_> = workers.iter().map(|(ports, _)| ports.as_slice()).collect();
    assert_eq!(ports, [&[53][..], &[7777], &[7233], &[]]);
    assert!(workers[1].1["podSelector"].is_object(), "the servers only");
    assert_public(&workers[3].1);
}

#[test]
fn egress_can_be_narrowed_extended_and_opened() {
    let narrow = [
        STORE,
        "networkPolicy.egress.postgres.to[0].ipBlock.cidr=10.1.2.3/32",
        "networkPolicy.egress.http.enabled=false",
        "networkPolicy.egress.extra[0].to[0].ipBlock.cidr=10.9.0.0/16",
    ];
    let rules = egress(&policy(&narrow, "server"));
    assert_eq!(rules.len(), 3);
    assert_eq!(rules[1].1["ipBlock"]["cidr"], "10.1.2.3/32");
    assert_eq!(rules[2].1["ipBlock"]["cidr"], "10.9.0.0/16");
    validate(&rendered(&narrow), KUBERNETES[1]).must_succeed();
    let open = policy(&[STORE, "networkPolicy.egress.enabled=false"], "server");
    assert_eq!(open["policyTypes"], serde_json::json!(["Ingress"]));
    assert!(open["egress"].is_null());
    let off = rendered(&[STORE, "networkPolicy.enabled=false"]);
    assert!(of_kind(&off, "NetworkPolicy").is_empty());
}

#[test]
fn servers_accept_the_namespace_or_the_listed_peers() {
    let from = |values: &[&str]| policy(values, "server")["ingress"][0]["from"].clone();
    assert_eq!(from(&[STORE]), serde_json::json!([{ "podSelector": {} }]));
    let listed = [STORE, "networkPolicy.from[0].ipBlock.cidr=192.0.2.0/24"];
    assert_eq!(from(&listed)[0]["ipBlock"]["cidr"], "192.0.2.0/24");
    assert!(from(&[STORE, "service.type=LoadBalancer"]).is_null());
    let workers = policy(&ALL, "worker");
    assert_eq!(workers["ingress"], serde_json::json!([]));
}

#[test]
fn chart_version_equals_the_program_version() {
    let chart = &documents(&text(&format!("{CHART}/Chart.yaml")))[0];
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(chart["appVersion"], version);
    assert_eq!(chart["version"], version);
}
