//! The OpenAPI document is correct: schemathesis sends valid and invalid calls generated from it, with all checks enabled.

use leasehold_core::JsonText;
use leasehold_core::key::KeyScope;
use leasehold_ops as ops;
use leasehold_server::ServerOptions;
use leasehold_store::Page;
use leasehold_store::job::NewJob;
use leasehold_testbed::{BackendKind, TestServer};
use leasehold_testkit::{Process, schemathesis_path, sized, temp_dir};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Long enough for a slow machine.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Statuses allowed for calls that match the document: some rules cannot be expressed in JSON Schema, such as graphs without cycles (422) and
/// cursors that were never issued (400).
const ALLOWED_STATUSES: &str =
    "[\"2xx\", \"400\", \"401\", \"403\", \"404\", \"409\", \"422\", \"429\"]";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_document_is_correct_on_sqlite() {
    run_schemathesis(BackendKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_document_is_correct_on_postgres() {
    run_schemathesis(BackendKind::Postgres).await;
}

async fn run_schemathesis(on: BackendKind) {
    let options = ServerOptions {
        claim_wait_max: Duration::from_millis(20),
        ..ServerOptions::default()
    };
    let server = TestServer::on_with_options(on, options).await;
    let (address, serving) = server.serve(None).await;
    let address = format!("http://{address}");
    // First with existing objects that are never deleted, then with objects that schemathesis creates.
    let known = known_ids(&server).await;
    // Both stores use the same handlers, so the bounds of every field and the created objects are tested on one of them.
    let is_thorough = sized(on == BackendKind::Sqlite, true);
    let all = "examples,coverage,fuzzing,stateful";
    let known_phases = if is_thorough { all } else { "fuzzing" };
    // What is created can also be deleted. The other methods were called before, with objects that exist.
    let own_calls: &[&str] = match sized(false, true) {
        false => &["--include-method", "DELETE", "--phases", "fuzzing"],
        true => &["--phases", all],
    };
    let known_calls = ["--exclude-method", "DELETE", "--phases", known_phases];
    run(&address, &server.admin, &known, &known_calls);
    if is_thorough {
        run(&address, &server.admin, "", own_calls);
    }
    server.stop.cancel();
    serving.await.unwrap();
}

/// Returns values for path parameters in schemathesis' configuration format.
async fn known_ids(server: &TestServer) -> String {
    let workspace = server.workspace(5).await;
    let order = workspace.order();
    let made = server
        .post(&workspace.path("/requests"), &workspace.key, order)
        .await;
    let request = made.expect(201)["id"].clone();
    let job = NewJob::new("known", "kind", JsonText::default());
    ops::job::enqueue(&*server.store, &[job]).await.unwrap();
    let versions =
        server
            .store
            .version_list(workspace.workspace, workspace.definition, Page::first(1));
    let spec = ops::key::KeySpec::full("known", KeyScope::Admin);
    let (key, _) = ops::key::create(&*server.store, &spec, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    let mut text = "[parameters]\n".to_owned();
    for (name, value) in [
        ("workspace", workspace.workspace.to_string()),
        ("definition", workspace.definition.to_string()),
        ("version", versions.await.unwrap()[0].id.to_string()),
        ("request", request.as_str().unwrap().to_owned()),
        ("queue", "known".to_owned()),
        ("key", key.id.to_string()),
        ("code", "not_found".to_owned()),
    ] {
        writeln!(text, "\"path.{name}\" = \"{value}\"").unwrap();
    }
    text
}

fn run(address: &str, key: &str, known: &str, more: &[&str]) {
    let directory = temp_dir();
    let settings = directory.path().join("schemathesis.toml");
    let checks =
        format!("[checks]\npositive_data_acceptance.expected-statuses = {ALLOWED_STATUSES}\n");
    std::fs::write(&settings, format!("{known}\n{checks}")).unwrap();
    let mut process = Process::spawn(command(address, key, &settings, more));
    let status = tokio::task::block_in_place(|| process.wait(TIMEOUT));
    assert!(status.success(), "{status}\n{}", process.log());
}

fn command(address: &str, key: &str, settings: &Path, more: &[&str]) -> Command {
    let library = schemathesis_path().unwrap_or_else(|error| panic!("{error}"));
    // Random cases per operation, in addition to those that cover every bound.
    let examples = sized("5", "10");
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", library)
        .args(["-B", "-m", "schemathesis.cli", "--config-file"])
        .arg(settings)
        .args(["run", "--checks", "all", "--max-examples", examples])
        .args(["--no-color", "--seed", "5", "--request-timeout", "20"])
        // On a busy machine the generator itself is slow, which says nothing about the API.
        .args(["--suppress-health-check", "too_slow"])
        .arg("--header")
        .arg(format!("Authorization: Bearer {key}"))
        .args(more)
        .arg(format!("{address}/openapi.json"))
        .current_dir(settings.parent().unwrap());
    command
}
