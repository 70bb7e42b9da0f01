//! Checks the settings and the commands in the packages with the program. xtask's tests lint the packages themselves.
#![allow(clippy::unwrap_used)]

use leasehold_testkit::{HELM, HttpConnection, Process, TempDir, temp_dir, yaml_as_json};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Environment variables by name.
type Variables = BTreeMap<String, String>;

fn packaging(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("packaging").join(path)
}

fn leasehold(arguments: &[&str], variables: &Variables) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(arguments)
        .env_clear()
        .envs(variables)
        .output()
        .unwrap()
}

/// Asserts that `leasehold config check` accepts the variables; returns its output.
#[track_caller]
fn assert_valid(variables: &Variables) -> String {
    let output = leasehold(&["config", "check"], variables);
    let output_text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{variables:?}: {output_text}");
    String::from_utf8(output.stdout).unwrap()
}

fn documents(yaml: &str) -> Vec<Value> {
    serde_json::from_slice(&yaml_as_json(yaml).unwrap()).unwrap()
}

/// A directory with the files that a package installs elsewhere: the configuration file and a key.
struct PackageEnv {
    dir: TempDir,
}

impl PackageEnv {
    fn new() -> Self {
        let dir = temp_dir();
        let data = dir.path().to_str().unwrap();
        let output = leasehold(&["admin-key", "--data-dir", data], &Variables::new());
        assert!(output.status.success(), "{output:?}");
        Self { dir }
    }

    fn file(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// The variable with paths replaced by files in this directory.
    fn set(&self, name: &str, value: Option<&str>) -> (String, String) {
        let value = match (name, value) {
            ("LEASEHOLD_CONFIG", _) => self.file("leasehold.toml"),
            ("LEASEHOLD__WORKER__KEY_FILE", _) => self.file("admin.key"),
            ("LEASEHOLD__STORE__URL", None) => "postgres://user:password@db/leasehold".to_owned(),
            (_, None) => "from-a-secret".to_owned(),
            (_, Some(value)) => value.to_owned(),
        };
        (name.to_owned(), value)
    }
}

/// Renders the chart with settings of every kind.
fn chart() -> Vec<Value> {
    let mut helm = HELM.command().unwrap();
    helm.arg("template")
        .arg("prod")
        .arg(packaging("helm/leasehold"));
    for value in [
        "store.existingSecret=store",
        "worker.existingSecret=worker",
        "temporal.apiKeySecret=cloud",
        "settings.engine.kind=temporal",
        "settings.temporal.address=https://eu.tmprl.example:7233",
        "settings.dispatch.batch_size=200",
        "settings.store.notify=false",
        "settings.follow.interval=2s",
        "settings.http_nodes.allow={10.0.0.0/8,internal.example}",
    ] {
        helm.args(["--set", value]);
    }
    let output = helm.output().unwrap();
    let output_text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{output_text}");
    documents(&String::from_utf8(output.stdout).unwrap())
}

/// The variables of every container of the chart, by container name.
fn containers(chart: &[Value], env: &PackageEnv) -> BTreeMap<String, Variables> {
    let pods = chart
        .iter()
        .map(|document| &document["spec"]["template"]["spec"]);
    let lists = pods.flat_map(|pod| [&pod["initContainers"], &pod["containers"]]);
    let containers = lists.filter_map(Value::as_array).flatten();
    let named = containers.map(|container| {
        let variables = container["env"].as_array().unwrap().iter();
        let variables = variables.map(|variable| {
            env.set(
                variable["name"].as_str().unwrap(),
                variable["value"].as_str(),
            )
        });
        (
            container["name"].as_str().unwrap().to_owned(),
            variables.collect(),
        )
    });
    named.collect()
}

#[test]
fn chart_settings_are_valid() {
    let env = PackageEnv::new();
    let chart = chart();
    let file = chart
        .iter()
        .find(|document| document["kind"] == "ConfigMap");
    let settings = file.unwrap()["data"]["leasehold.toml"].as_str().unwrap();
    fs::write(env.file("leasehold.toml"), settings).unwrap();
    let containers = containers(&chart, &env);
    let names: Vec<_> = containers.keys().collect();
    assert_eq!(names, ["migrate", "server", "worker"]);
    for variables in containers.values() {
        let output_text = assert_valid(variables);
        assert!(output_text.contains("7 settings and "), "{output_text}");
    }
}

#[test]
fn compose_settings_are_valid() {
    let env = PackageEnv::new();
    let script = env.file("make-secrets.sh");
    fs::copy(packaging("compose/make-secrets.sh"), &script).unwrap();
    assert!(Command::new("sh").arg(&script).status().unwrap().success());
    fs::copy(env.file("secrets/store.toml"), env.file("leasehold.toml")).unwrap();
    let compose = fs::read_to_string(packaging("compose/compose.yaml")).unwrap();
    let services = &documents(&compose)[0]["services"];
    for name in ["server", "worker"] {
        let variables = services[name]["environment"].as_object().unwrap().iter();
        let variables = variables.map(|(name, value)| env.set(name, value.as_str()));
        assert_valid(&variables.collect());
    }
}

/// The service `metrics-key` of the compose file, with the addresses and paths of this machine.
fn metrics_key(server: &str, data: &Path, volume: &Path) -> Output {
    let compose = fs::read_to_string(packaging("compose/compose.yaml")).unwrap();
    let service = &documents(&compose)[0]["services"]["metrics-key"];
    let words = |field: &str| -> Vec<String> {
        let words = service[field].as_array().unwrap().iter();
        words
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    let mut words = [words("entrypoint"), words("command")].concat();
    let script = words.last_mut().unwrap();
    for (there, here) in [
        ("http://server:7777", server),
        ("/run/server", data.to_str().unwrap()),
    ] {
        assert!(script.contains(there), "{script}");
        *script = script.replace(there, here);
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap();
    Command::new(&words[0])
        .args(&words[1..])
        .current_dir(volume)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("LEASEHOLD__DATA_DIR", volume)
        .output()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn compose_creates_a_key_that_opens_the_metrics_and_nothing_else() {
    let (server, volume) = (temp_dir(), temp_dir());
    let data = server.path().join("data");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    serve.args(["serve", "--data-dir", data.to_str().unwrap()]);
    serve.current_dir(server.path()).env_clear();
    serve.env("LEASEHOLD__SERVER__LISTEN", "127.0.0.1:0");
    let serve = Process::spawn(serve);
    serve.wait_for_line(Duration::from_secs(60), |line| {
        line.contains("leasehold is running")
    });
    let url = fs::read_to_string(data.join("address")).unwrap();
    let url = url.trim();
    let create = || metrics_key(url, &data, volume.path());
    let output = create();
    assert!(output.status.success(), "{output:?}");
    let file = volume.path().join("metrics.key");
    let key = fs::read_to_string(&file).unwrap();
    assert!(create().status.success());
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        key,
        "it creates one key only"
    );

    let address = url.trim_start_matches("http://").parse().unwrap();
    let mut connection = HttpConnection::open(address).await.unwrap();
    for (path, status) in [("/metrics", 200), ("/v1/workspaces", 403)] {
        let response = connection
            .call("GET", path, key.trim(), None)
            .await
            .unwrap();
        assert_eq!(response.status, status, "{path}");
    }

    // Without the server, no empty file remains that the next start would keep.
    fs::remove_file(&file).unwrap();
    drop(serve);
    assert!(!create().status.success());
    assert!(!file.exists());
}

#[test]
fn image_settings_are_valid() {
    let dockerfile = fs::read_to_string(packaging("docker/Dockerfile")).unwrap();
    let words = dockerfile.split_whitespace();
    let variables = words.filter_map(|word| word.split_once('='));
    let variables: Variables = variables
        .filter(|(name, _)| name.starts_with("LEASEHOLD__"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(variables.len(), 2);
    assert_valid(&variables);
}

#[test]
fn invalid_setting_is_detected() {
    let name = "LEASEHOLD__SERVER__LISTENS".to_owned();
    let variables = Variables::from([(name.clone(), "0.0.0.0:7777".to_owned())]);
    let output = leasehold(&["config", "check"], &variables);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&name));
}
