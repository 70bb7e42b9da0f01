//! A client of the stream that breaks off again and again and goes on after the last id it has, while writers commit out of order:
//! it misses nothing and repeats nothing.

use crate::sse::{PATIENCE, Stream, serve};
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::sync::oneshot;
use tokio_postgres::{Client, NoTls};

const ENQUEUE: &str = include_str!("sql/enqueue.sql");

/// Chance that is the same in every run.
struct Dice(u64);

impl Dice {
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

/// What was seen of each request, in order.
type Seen = BTreeMap<String, Vec<String>>;

/// A listener that breaks off after a few events, mostly in the middle of a page.
struct Listener {
    url: String,
    key: String,
    last_id: Option<String>,
    seen: Seen,
    breaks: usize,
    /// Told when the first change was seen.
    begun: Option<oneshot::Sender<()>>,
}

impl Listener {
    /// Listens until `end` is seen to have failed, which happens last.
    async fn listen(mut self, end: String) -> Self {
        let mut dice = Dice(7);
        loop {
            let mut stream = Stream::open(&self.url, &self.key, self.last_id.as_deref()).await;
            for _ in 0..=dice.below(12) {
                let sent = stream.next().await.expect("the stream goes on");
                self.last_id = sent.id.or(self.last_id);
                if sent.event != "request" {
                    continue;
                }
                let text = |name: &str| sent.data[name].as_str().unwrap().to_owned();
                self.seen
                    .entry(text("request"))
                    .or_default()
                    .push(text("to"));
                self.begun.take().map(|begun| begun.send(()));
                if (text("request"), text("to")) == (end.clone(), "FAILED".to_owned()) {
                    return self;
                }
            }
            self.breaks += 1;
        }
    }
}

/// Several transactions at once, each with requests of both workspaces, ended in another order than they were begun; some are
/// rolled back.
async fn write_out_of_order(ground: &TestServer, own: &KeyedWorkspace, other: &KeyedWorkspace) {
    let mut dice = Dice(3);
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(connect(ground).await);
    }
    for _ in 0..20 {
        for client in &clients {
            client.batch_execute("BEGIN").await.unwrap();
            for _ in 0..=dice.below(4) {
                by_hand(client, own).await;
                by_hand(client, other).await;
            }
        }
        dice.shuffle(&mut clients);
        for (at, client) in clients.iter().enumerate() {
            let end = if at == 2 { "ROLLBACK" } else { "COMMIT" };
            client.batch_execute(end).await.unwrap();
            ground.claim(3).await;
        }
    }
}

async fn connect(ground: &TestServer) -> Client {
    let url = ground.backend.database().url();
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn by_hand(client: &Client, site: &KeyedWorkspace) {
    let params = json!({"by": "hand"});
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&site.workspace.0, &site.definition.0, &params];
    client.query_one(ENQUEUE, &values).await.unwrap();
}

/// Many calls at once; this store has one writer, so the order of commits is the order of ids.
async fn write_at_once(ground: &TestServer, own: &KeyedWorkspace, other: &KeyedWorkspace) {
    for _ in 0..20 {
        let calls = (0..12).map(|n| ground.enqueue(if n % 2 == 0 { own } else { other }));
        futures::future::join_all(calls).await;
        ground.claim(5).await;
    }
}

/// What happened to every request, by the store's own timelines.
async fn happened(ground: &TestServer, workspaces: &[WorkspaceId]) -> Seen {
    let mut all = Seen::new();
    for workspace in workspaces {
        let path = format!("/v1/workspaces/{workspace}/requests");
        for request in ground.all_pages(&path, &ground.admin, 1000).await {
            let id: RequestId = request["id"].as_str().unwrap().parse().unwrap();
            let events = ground.store.request_timeline(*workspace, id).await.unwrap();
            let to = events.iter().map(|event| event.to.to_string()).collect();
            all.insert(id.to_string(), to);
        }
    }
    all
}

/// Writes while one listens to one workspace and one to all, both breaking off again and again, and compares.
async fn nothing_is_missed_or_repeated(on: BackendKind) {
    let ground = TestServer::on(on).await;
    let (own, other) = (ground.workspace(1_000).await, ground.workspace(1_000).await);
    let base = serve(&ground).await;
    // It waits for a time that does not come, so that all that happens to it is that it is enqueued and cancelled.
    let end = ground
        .enqueue_as(&own, json!({"run_at": "2099-01-01T00:00:00Z"}))
        .await;
    let listen = |path: String, key: &str| {
        let (begun, first) = oneshot::channel();
        let listener = Listener {
            url: format!("{base}{path}?from=oldest"),
            key: key.to_owned(),
            last_id: None,
            seen: Seen::new(),
            breaks: 0,
            begun: Some(begun),
        };
        (tokio::spawn(listener.listen(end.clone())), first)
    };
    let (of_own, own_begun) = listen(own.path("/changes"), &own.key);
    let (of_all, all_begun) = listen("/v1/changes".to_owned(), &ground.admin);
    own_begun.await.unwrap();
    all_begun.await.unwrap();
    match on {
        BackendKind::Postgres => write_out_of_order(&ground, &own, &other).await,
        BackendKind::Sqlite | BackendKind::SqliteMemory => {
            write_at_once(&ground, &own, &other).await;
        }
    }
    let cancel = own.path(&format!("/requests/{end}/cancel"));
    ground
        .post(&cancel, &own.key, Value::Null)
        .await
        .expect(200);
    for (listener, workspaces) in [
        (of_own, vec![own.workspace]),
        (of_all, vec![own.workspace, other.workspace]),
    ] {
        let listener = tokio::time::timeout(2 * PATIENCE, listener).await;
        let listener = listener.expect("it sees the end").unwrap();
        assert!(
            listener.breaks > 10,
            "it broke off {} times",
            listener.breaks
        );
        assert_eq!(listener.seen, happened(&ground, &workspaces).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_breaks_off_while_writers_commit_out_of_order_misses_and_repeats_nothing() {
    nothing_is_missed_or_repeated(BackendKind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_breaks_off_while_many_write_at_once_misses_and_repeats_nothing() {
    nothing_is_missed_or_repeated(BackendKind::Sqlite).await;
}
