//! A client of the change stream that reconnects repeatedly and resumes after its last id, while writers commit out of order:
//! it receives every change exactly once.

use crate::sse::{Stream, TIMEOUT, serve};
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::sync::oneshot;
use tokio_postgres::{Client, NoTls};

const ENQUEUE: &str = include_str!("sql/enqueue.sql");

/// Random numbers that are the same in every run.
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The transitions of each request, in order.
type Transitions = BTreeMap<String, Vec<String>>;

/// A client that disconnects after a few events, mostly in the middle of a page.
struct ReconnectingClient {
    url: String,
    key: String,
    last_id: Option<String>,
    transitions: Transitions,
    reconnects: usize,
    /// Notified when the first change was received.
    started: Option<oneshot::Sender<()>>,
}

impl ReconnectingClient {
    /// Reads until the request `end` has failed, which happens last.
    async fn run(mut self, end: String) -> Self {
        let mut rng = SeededRng(7);
        loop {
            let mut stream = Stream::open(&self.url, &self.key, self.last_id.as_deref()).await;
            for _ in 0..=rng.below(12) {
                let sent = stream.next().await.expect("the stream continues");
                self.last_id = sent.id.or(self.last_id);
                if sent.event != "request" {
                    continue;
                }
                let text = |name: &str| sent.data[name].as_str().unwrap().to_owned();
                self.transitions
                    .entry(text("request"))
                    .or_default()
                    .push(text("to"));
                self.started.take().map(|started| started.send(()));
                if (text("request"), text("to")) == (end.clone(), "FAILED".to_owned()) {
                    return self;
                }
            }
            self.reconnects += 1;
        }
    }
}

/// Several transactions at once, each with requests of both workspaces, ended in another order than they were begun; some are
/// rolled back.
async fn write_out_of_order(server: &TestServer, own: &KeyedWorkspace, other: &KeyedWorkspace) {
    let mut rng = SeededRng(3);
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(connect(server).await);
    }
    for _ in 0..20 {
        for client in &clients {
            client.batch_execute("BEGIN").await.unwrap();
            for _ in 0..=rng.below(4) {
                enqueue_by_sql(client, own).await;
                enqueue_by_sql(client, other).await;
            }
        }
        rng.shuffle(&mut clients);
        for (at, client) in clients.iter().enumerate() {
            let end = if at == 2 { "ROLLBACK" } else { "COMMIT" };
            client.batch_execute(end).await.unwrap();
            server.claim(3).await;
        }
    }
}

async fn connect(server: &TestServer) -> Client {
    let url = server.backend.database().url_in("leasehold");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn enqueue_by_sql(client: &Client, workspace: &KeyedWorkspace) {
    let params = json!({"by": "hand"});
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&workspace.workspace.0, &workspace.definition.0, &params];
    client.query_one(ENQUEUE, &values).await.unwrap();
}

/// Many calls at once; this store has one writer, so the order of commits is the order of ids.
async fn write_concurrently(server: &TestServer, own: &KeyedWorkspace, other: &KeyedWorkspace) {
    for _ in 0..20 {
        let calls = (0..12).map(|n| server.enqueue(if n % 2 == 0 { own } else { other }));
        futures::future::join_all(calls).await;
        server.claim(5).await;
    }
}

/// Returns the transitions of every request from the store's timelines.
async fn all_transitions(server: &TestServer, workspaces: &[WorkspaceId]) -> Transitions {
    let mut all = Transitions::new();
    for workspace in workspaces {
        let path = format!("/v1/workspaces/{workspace}/requests");
        for request in server.all_pages(&path, &server.admin, 1000).await {
            let id: RequestId = request["id"].as_str().unwrap().parse().unwrap();
            let events = server.store.request_timeline(*workspace, id).await.unwrap();
            let to = events.iter().map(|event| event.to.to_string()).collect();
            all.insert(id.to_string(), to);
        }
    }
    all
}

/// Writes while one client reads one workspace and one reads all, both reconnecting repeatedly; compares what they received with the store.
async fn reconnecting_client_gets_every_change_once(on: BackendKind) {
    let server = TestServer::on(on).await;
    let (own, other) = (server.workspace(1_000).await, server.workspace(1_000).await);
    let base = serve(&server).await;
    // Never due, so that its only transitions are its enqueue and its cancellation.
    let end = server
        .enqueue_as(&own, json!({"run_at": "2099-01-01T00:00:00Z"}))
        .await;
    let listen = |path: String, key: &str| {
        let (started, first) = oneshot::channel();
        let client = ReconnectingClient {
            url: format!("{base}{path}?from=oldest"),
            key: key.to_owned(),
            last_id: None,
            transitions: Transitions::new(),
            reconnects: 0,
            started: Some(started),
        };
        (tokio::spawn(client.run(end.clone())), first)
    };
    let (of_own, own_begun) = listen(own.path("/changes"), &own.key);
    let (of_all, all_begun) = listen("/v1/changes".to_owned(), &server.admin);
    own_begun.await.unwrap();
    all_begun.await.unwrap();
    match on {
        BackendKind::Postgres => write_out_of_order(&server, &own, &other).await,
        BackendKind::Sqlite | BackendKind::SqliteMemory => {
            write_concurrently(&server, &own, &other).await;
        }
    }
    let cancel = own.path(&format!("/requests/{end}/cancel"));
    server
        .post(&cancel, &own.key, Value::Null)
        .await
        .expect(200);
    for (client, workspaces) in [
        (of_own, vec![own.workspace]),
        (of_all, vec![own.workspace, other.workspace]),
    ] {
        let client = tokio::time::timeout(2 * TIMEOUT, client).await;
        let client = client
            .expect("the client receives the last change")
            .unwrap();
        assert!(
            client.reconnects > 10,
            "the client reconnected {} times",
            client.reconnects
        );
        assert_eq!(
            client.transitions,
            all_transitions(&server, &workspaces).await
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnecting_client_gets_every_change_once_on_postgres() {
    reconnecting_client_gets_every_change_once(BackendKind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnecting_client_gets_every_change_once_on_sqlite() {
    reconnecting_client_gets_every_change_once(BackendKind::Sqlite).await;
}
