//! Misbehaving clients, each in its own way.

use crate::server_process::LoadTarget;
use leasehold_testkit::HttpConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{interval, timeout};

/// Timeout of one bad call.
const TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) async fn run(target: Arc<LoadTarget>, number: u32, stopped: Arc<AtomicUsize>) {
    for round in number.. {
        if stopped.load(Ordering::Acquire) == 1 {
            return;
        }
        if let Ok(connection) = HttpConnection::open(target.address).await {
            let _ = timeout(TIMEOUT, send_bad_call(&target, connection, round)).await;
        }
    }
}

async fn send_bad_call(
    target: &LoadTarget,
    mut connection: HttpConnection,
    round: u32,
) -> std::io::Result<()> {
    let (path, key) = (target.requests(), &target.key);
    let head = |length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    match round % 8 {
        // Not HTTP at all.
        0 => connection.send(&noise(round)).await?,
        // Headers that never end.
        1 => {
            connection.send(b"GET / HTTP/1.1\r\n").await?;
            drip(&mut connection, b"x-slow: 1\r\n").await?;
        }
        // Headers that are too long.
        2 => {
            let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(300_000));
            connection.send(long.as_bytes()).await?;
        }
        // A body that arrives byte by byte.
        3 => {
            connection.send(head(10_000).as_bytes()).await?;
            drip(&mut connection, b" ").await?;
        }
        // An announced body that never arrives; the connection closes.
        4 => return connection.send(head(500_000).as_bytes()).await,
        // A body that is too large.
        5 => {
            connection.send(head(1 << 30).as_bytes()).await?;
            connection.send(&vec![b'['; 1 << 20]).await?;
        }
        // Invalid JSON with a valid key, as fast as possible.
        6 => {
            for _ in 0..50 {
                let deep = "[".repeat(50_000);
                let body = Some(deep.as_bytes());
                connection.call("POST", &path, key, body).await?;
            }
            return Ok(());
        }
        // Invalid keys, as fast as possible.
        _ => {
            for _ in 0..200 {
                connection.call("GET", &path, "lh_admin_x", None).await?;
            }
            return Ok(());
        }
    }
    connection.wait_closed().await;
    Ok(())
}

/// Sends a few bytes repeatedly until the server closes the connection.
async fn drip(connection: &mut HttpConnection, drop: &[u8]) -> std::io::Result<()> {
    let mut pace = interval(Duration::from_millis(200));
    loop {
        pace.tick().await;
        connection.send(drop).await?;
    }
}

/// Pseudo-random bytes, reproducible per seed.
fn noise(seed: u32) -> Vec<u8> {
    let mut state = u64::from(seed) | 1;
    (0..4_096)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}
