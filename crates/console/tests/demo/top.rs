//! `leasehold top` with a server: what it says when it cannot show anything.

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

/// Runs it as somebody with this key. Standard output of a test is no terminal, so it looks once.
async fn top(server: &str, key: &str) -> Result<(), Failure> {
    let folder = temp_dir();
    let file = folder.path().join("key");
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

async fn key(ground: &DemoServer, scope: Scope) -> String {
    let new = NewKey {
        name: "test".to_owned(),
        scope,
    };
    ground.session.client.key_create(&new).await.unwrap().secret
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_administrator_sees_the_whole_server_and_only_while_it_is_there() {
    let ground = DemoServer::new().await;
    let server = ground.session.server.clone();
    let admin = key(&ground, Scope::Admin).await;
    top(&server, &admin).await.unwrap();
    let queues = vec!["emails".to_owned()];
    let worker = key(&ground, Scope::Worker { queues }).await;
    let refused = top(&server, &worker).await.unwrap_err();
    assert_eq!(refused.exit, Exit::Denied, "{refused}");
    assert!(
        refused.message.contains("use an administrator's key"),
        "{refused}"
    );
    ground.end().await;
    let alone = top(&server, &admin).await.unwrap_err();
    assert_eq!(alone.exit, Exit::Unavailable, "{alone}");
    assert!(alone.message.contains("leasehold serve"), "{alone}");
}
