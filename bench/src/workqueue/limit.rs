//! The database's own limit: plain rows with the same columns and plain statements. PostgreSQL only.

use super::enqueue::EnqueueMode;
use super::jobs::{KIND, payload};
use super::latency::{Delays, PAUSE, WARM_UPS};
use super::run::{Run, RunMeter};
use crate::backend::{BenchBackend, Fill, connect};
use anyhow::{Context, Result};
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, NoTls};

const TABLE: &str = include_str!("../../sql/postgres/limit_table.sql");
const INDEX: &str = include_str!("../../sql/postgres/limit_index.sql");
const INSERT: &str = include_str!("../../sql/postgres/limit_insert.sql");
const COPY: &str = include_str!("../../sql/postgres/limit_copy.sql");
const NOTIFY: &str = include_str!("../../sql/postgres/limit_notify.sql");
const LISTEN: &str = include_str!("../../sql/postgres/limit_listen.sql");
const TAKE: &str = include_str!("../../sql/postgres/limit_take.sql");

const QUEUE_ID: i32 = 1;

pub(super) async fn measure(
    backend: &mut dyn BenchBackend,
    mode: EnqueueMode,
    jobs: u32,
) -> Result<Run> {
    let url = plain_table(backend).await?;
    let begun = RunMeter::new(backend).await?;
    let used = match mode {
        EnqueueMode::Singles { connections } => {
            let mut clients = Vec::new();
            for _ in 0..connections {
                clients.push(connect(&url).await?);
            }
            let clients = insert(clients, 4 * connections).await?;
            let usage = begun.usage().await?;
            let _clients = insert(clients, jobs).await?;
            usage.end().await?
        }
        EnqueueMode::Bulk { batch } => {
            let client = connect(&url).await?;
            copy(&client, 100, 100).await?;
            let usage = begun.usage().await?;
            copy(&client, jobs, batch).await?;
            usage.end().await?
        }
    };
    begun.end(backend, jobs, used).await
}

async fn plain_table(backend: &mut dyn BenchBackend) -> Result<String> {
    backend.fill(&Fill::default()).await?;
    let url = backend.address().context("the backend has no server")?;
    let client = connect(&url).await?;
    client.batch_execute(TABLE).await?;
    client.batch_execute(INDEX).await?;
    Ok(url)
}

async fn insert(clients: Vec<Client>, rows: u32) -> Result<Vec<Client>> {
    let next = Arc::new(AtomicU32::new(0));
    let callers = clients.into_iter().map(|client| {
        let next = next.clone();
        tokio::spawn(async move {
            let statement = client.prepare(INSERT).await?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= rows {
                    return anyhow::Ok(client);
                }
                let payload = payload(u64::from(number));
                client
                    .execute(&statement, &[&QUEUE_ID, &KIND, &payload])
                    .await?;
            }
        })
    });
    let mut clients = Vec::new();
    for caller in futures::future::join_all(callers).await {
        clients.push(caller??);
    }
    Ok(clients)
}

async fn copy(client: &Client, rows: u32, batch: u32) -> Result<()> {
    let mut number = 0;
    while number < rows {
        let end = rows.min(number + batch);
        let sink = client.copy_in(COPY).await?;
        // JSON has the wire format of text.
        let writer = BinaryCopyInWriter::new(sink, &[Type::INT4, Type::TEXT, Type::TEXT]);
        let mut writer = std::pin::pin!(writer);
        for number in number..end {
            let payload = payload(u64::from(number));
            writer.as_mut().write(&[&QUEUE_ID, &KIND, &payload]).await?;
        }
        writer.finish().await?;
        number = end;
    }
    Ok(())
}

/// Inserts rows with NOTIFY and measures until a listener on another connection deletes them.
pub(super) async fn delays(backend: &mut dyn BenchBackend, jobs: u32) -> Result<Delays> {
    let url = plain_table(backend).await?;
    let (listener, mut connection) = tokio_postgres::connect(&url, NoTls).await?;
    let (notified, mut notifications) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages =
            futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if matches!(message, AsyncMessage::Notification(_)) {
                let _ = notified.send(());
            }
        }
    });
    listener.batch_execute(LISTEN).await?;
    let take = listener.prepare(TAKE).await?;
    let (taken, mut took) = mpsc::unbounded_channel();
    let taker = tokio::spawn(async move {
        while notifications.recv().await.is_some() {
            listener.query_one(&take, &[]).await?;
            if taken.send(Instant::now()).is_err() {
                break;
            }
        }
        anyhow::Ok(())
    });
    let client = connect(&url).await?;
    let notify = client.prepare(NOTIFY).await?;
    let mut delays = Delays::default();
    for number in 0..jobs + WARM_UPS {
        let payload = payload(u64::from(number));
        let called = Instant::now();
        client
            .execute(&notify, &[&QUEUE_ID, &KIND, &payload])
            .await?;
        let committed = Instant::now();
        let started = took
            .recv()
            .await
            .context("the listener did not delete the row")?;
        if number >= WARM_UPS {
            delays.add(called, committed, started);
        }
        sleep(PAUSE).await;
    }
    drop(took);
    taker.abort();
    Ok(delays)
}
