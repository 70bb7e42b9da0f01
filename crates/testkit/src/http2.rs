//! A raw HTTP/2 client that sends frames and never reads, as a peer that wants to make a server keep its responses.

use crate::eventually;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM_AND_HEADERS: u8 = 0x5;
/// The setting for the window of new streams.
const INITIAL_WINDOW_SIZE: u16 = 4;
/// The largest window.
const WINDOW_MAX: u32 = 0x7fff_ffff;
/// The window of a connection without an update.
const WINDOW_DEFAULT: u32 = 65_535;

/// A connection whose peer never reads.
pub struct UnreadHttp2 {
    stream: TcpStream,
    next_stream: u32,
}

impl UnreadHttp2 {
    /// Connects. With `wide` windows the server may send everything at once; without, 64 KiB.
    pub async fn open(address: SocketAddr, wide: bool) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(PREFACE).await?;
        let mut settings = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        let window = if wide { WINDOW_MAX } else { WINDOW_DEFAULT };
        settings.extend(window.to_be_bytes());
        stream.write_all(&frame(SETTINGS, 0, 0, &settings)).await?;
        if wide {
            let more = (WINDOW_MAX - WINDOW_DEFAULT).to_be_bytes();
            stream.write_all(&frame(WINDOW_UPDATE, 0, 0, &more)).await?;
        }
        Ok(Self {
            stream,
            next_stream: 1,
        })
    }

    /// Sends a GET request on a new stream.
    pub async fn get(&mut self, path: &str, key: &str) -> io::Result<()> {
        let mut block = Vec::new();
        for (name, value) in [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "localhost"),
            (":path", path),
            ("authorization", &format!("Bearer {key}")),
        ] {
            // A literal header that is not indexed.
            block.push(0);
            for text in [name, value] {
                let length = u8::try_from(text.len()).map_err(io::Error::other)?;
                assert!(length < 127, "a longer text needs another encoding");
                block.push(length);
                block.extend(text.bytes());
            }
        }
        let headers = frame(HEADERS, END_STREAM_AND_HEADERS, self.next_stream, &block);
        self.next_stream += 2;
        self.stream.write_all(&headers).await
    }

    /// Sends PING frames until the server has closed the connection; returns false if it has not in time.
    pub async fn is_cut_off(self, timeout: Duration) -> bool {
        let peer = Mutex::new(self);
        eventually(timeout, || async {
            peer.lock().await.ping().await.is_err()
        })
        .await
    }

    async fn ping(&mut self) -> io::Result<()> {
        self.stream.write_all(&frame(PING, 0, 0, &[7; 8])).await
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
