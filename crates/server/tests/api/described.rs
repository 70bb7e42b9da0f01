//! What the server says of its API is true: schemathesis sends it everything its description allows and forbids, with all checks on.

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
const PATIENCE: Duration = Duration::from_secs(900);

/// What a call may answer that fits the description and still cannot be done: rules that JSON Schema cannot say, like graphs without cycles (422) and
/// cursors that were never handed out (400).
const REFUSALS: &str = "[\"2xx\", \"400\", \"401\", \"403\", \"404\", \"409\", \"422\", \"429\"]";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_description_is_true_on_sqlite() {
    trial(BackendKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_description_is_true_on_postgres() {
    trial(BackendKind::Postgres).await;
}

async fn trial(on: BackendKind) {
    let options = ServerOptions {
        claim_wait_max: Duration::from_millis(20),
        ..ServerOptions::default()
    };
    let ground = TestServer::on_with_options(on, options).await;
    let (address, serving) = ground.serve(None).await;
    let address = format!("http://{address}");
    // First against things that are there and stay there, then with whatever it makes itself.
    let known = known_things(&ground).await;
    // The same handlers answer on both stores: every bound of every field is tried on one of them.
    let coverage = sized(on == BackendKind::Sqlite, true);
    let all = "examples,coverage,fuzzing,stateful";
    let phases = |coverage| if coverage { all } else { "fuzzing" };
    let known_phases = phases(coverage);
    let own_phases = phases(sized(false, true));
    let known_calls = ["--exclude-method", "DELETE", "--phases", known_phases];
    let own_calls = ["--phases", own_phases];
    run(&address, &ground.admin, &known, &known_calls);
    run(&address, &ground.admin, "", &own_calls);
    ground.stop.cancel();
    serving.await.unwrap();
}

/// Ids for the parameters of paths, as schemathesis wants them.
async fn known_things(ground: &TestServer) -> String {
    let site = ground.workspace(5).await;
    let order = site.order();
    let made = ground.post(&site.path("/requests"), &site.key, order).await;
    let request = made.expect(201)["id"].clone();
    let job = NewJob::new("known", "kind", JsonText::default());
    ops::job::enqueue(&*ground.store, &[job]).await.unwrap();
    let versions = ground
        .store
        .version_list(site.workspace, site.definition, Page::first(1));
    let (key, _) = ops::key::create(&*ground.store, "known", KeyScope::Admin)
        .await
        .unwrap();
    let mut text = "[parameters]\n".to_owned();
    for (name, value) in [
        ("workspace", site.workspace.to_string()),
        ("definition", site.definition.to_string()),
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
    let folder = temp_dir();
    let settings = folder.path().join("schemathesis.toml");
    let checks = format!("[checks]\npositive_data_acceptance.expected-statuses = {REFUSALS}\n");
    std::fs::write(&settings, format!("{known}\n{checks}")).unwrap();
    let mut process = Process::spawn(command(address, key, &settings, more));
    let status = tokio::task::block_in_place(|| process.wait(PATIENCE));
    assert!(status.success(), "{status}\n{}", process.log());
}

fn command(address: &str, key: &str, settings: &Path, more: &[&str]) -> Command {
    let library = schemathesis_path().unwrap_or_else(|error| panic!("{error}"));
    // Cases of an operation that are made up, beside those that cover every bound.
    let examples = sized("5", "10");
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", library)
        .args(["-B", "-m", "schemathesis.cli", "--config-file"])
        .arg(settings)
        .args(["run", "--checks", "all", "--max-examples", examples])
        .args(["--no-color", "--seed", "5", "--request-timeout", "20"])
        .arg("--header")
        .arg(format!("Authorization: Bearer {key}"))
        .args(more)
        .arg(format!("{address}/openapi.json"))
        .current_dir(settings.parent().unwrap());
    command
}
