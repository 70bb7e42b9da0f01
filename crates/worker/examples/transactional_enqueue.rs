//! Enqueues a job in the transaction that writes the business row: both commit or neither. Needs PostgreSQL.
//!
//! `DATABASE_URL=postgres://… cargo run -p leasehold-worker --example transactional_enqueue`

#![allow(clippy::print_stdout, reason = "an example prints its output")]

use anyhow::{Context, Result};
use leasehold_runtime::StoreSource;
use leasehold_store::Store;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_worker::{JobContext, Worker};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_postgres::{Client, NoTls};

const TABLE: &str = include_str!("sql/order_table.sql");
const INSERT: &str = include_str!("sql/order_insert.sql");
const ENQUEUE: &str = include_str!("sql/job_enqueue.sql");
const COUNT: &str = include_str!("sql/order_count.sql");

/// Inserts an order and enqueues its confirmation. The caller commits or rolls back.
async fn take_order(client: &tokio_postgres::Transaction<'_>, queue: &str, id: i64) -> Result<i64> {
    client.execute(INSERT, &[&id, &"ada"]).await?;
    let payload = serde_json::json!({ "order": id });
    let job = client.query_one(ENQUEUE, &[&queue, &payload]).await?;
    Ok(job.get(0))
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::new(&PostgresOptions::new(&url))?);
    store.schema_migrate().await?;
    let queue = format!("orders-{}", std::process::id());

    let (confirmed, mut confirmations) = mpsc::unbounded_channel();
    let handler = move |payload: serde_json::Value, _: JobContext| {
        let confirmed = confirmed.clone();
        async move {
            confirmed.send(payload["order"].as_i64())?;
            Ok(())
        }
    };
    let worker = Worker::builder(Arc::new(StoreSource::new(store))).queue(&queue);
    let worker = worker.handler("confirm", handler).build()?.start();

    let mut client = connect(&url).await?;
    // A temporary table, so that the example leaves nothing behind.
    client.batch_execute(TABLE).await?;
    let transaction = client.transaction().await?;
    take_order(&transaction, &queue, 1).await?;
    transaction.rollback().await?;
    println!("order 1 was rolled back, and its job with it");

    let transaction = client.transaction().await?;
    let job = take_order(&transaction, &queue, 2).await?;
    transaction.commit().await?;
    println!("order 2 was committed with job {job}");

    let order = confirmations.recv().await.flatten();
    println!("order {} is confirmed", order.context("no order")?);
    let orders: i64 = client.query_one(COUNT, &[]).await?.get(0);
    let stats = worker.stop().await;
    println!("{orders} order, {} job", stats.completed);
    Ok(())
}
