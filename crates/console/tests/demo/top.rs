//! `leasehold top --once`: errors.

use crate::demo_server::DemoServer;
use clap::Parser;
use leasehold_client::api::key::{NewKey, Scope};
use leasehold_console::{Command, Exit, Failure};
use leasehold_testkit::temp_dir;
use std::fs;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Runs `top --once` with this key.
async fn top(server: &str, key: &str) -> Result<(), Failure> {
    let dir = temp_dir();
    let file = dir.path().join("key");
    fs::write(&file, key).unwrap();
    let file = file.to_str().unwrap();
    let words = [
        "leasehold",
        "top",
        "--once",
        "--server",
        server,
        "--key-file",
        file,
    ];
    Arguments::parse_from(words).command.run().await
}

async fn key(test_server: &DemoServer, scope: Scope) -> String {
    let new = NewKey::full("test", scope);
    test_server
        .session
        .client
        .key_create(&new)
        .await
        .unwrap()
        .secret
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_requires_an_administrator_key_and_a_running_server() {
    let test_server = DemoServer::new().await;
    let server = test_server.session.server.clone();
    let admin = key(&test_server, Scope::Admin).await;
    top(&server, &admin).await.unwrap();
    let queues = vec!["emails".to_owned()];
    let worker = key(&test_server, Scope::Worker { queues }).await;
    let denied = top(&server, &worker).await.unwrap_err();
    assert_eq!(denied.exit, Exit::Denied, "{denied}");
    assert!(
        denied.message.contains("use an administrator key"),
        "{denied}"
    );
    test_server.stop().await;
    let unreachable = top(&server, &admin).await.unwrap_err();
    assert_eq!(unreachable.exit, Exit::Unavailable, "{unreachable}");
    assert!(
        unreachable.message.contains("leasehold serve"),
        "{unreachable}"
    );
}
