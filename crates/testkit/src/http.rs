//! A minimal HTTP/1.1 connection for load and for invalid requests. Knows no API.

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A keep-alive connection.
pub struct HttpConnection {
    stream: TcpStream,
    /// Received bytes that no response has consumed yet.
    buffer: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Status line and headers, header names in lower case.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// A header's value; its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found == name).then(|| value.trim())
        })
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl HttpConnection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends a request with an optional JSON body and reads the response.
    pub async fn call(
        &mut self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<&[u8]>,
    ) -> io::Result<HttpResponse> {
        let mut call = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n"
        )
        .into_bytes();
        if let Some(body) = body {
            let length = body.len();
            call.extend(
                format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n")
                    .bytes(),
            );
            call.extend_from_slice(body);
        } else {
            call.extend_from_slice(b"\r\n");
        }
        self.send(&call).await?;
        self.read_response().await
    }

    /// Sends raw bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads the next response. A response without a length ends with the connection.
    pub async fn read_response(&mut self) -> io::Result<HttpResponse> {
        let end = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more().await?;
        };
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let head = lower_header_names(&String::from_utf8_lossy(&head));
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        let mut response = HttpResponse {
            status: status.ok_or_else(|| io::Error::other(format!("no status in {head:?}")))?,
            head,
            body: Vec::new(),
        };
        match response
            .header("content-length")
            .and_then(|text| text.parse().ok())
        {
            Some(length) => {
                while self.buffer.len() < length {
                    self.read_more().await?;
                }
                response.body = self.buffer.drain(..length).collect();
            }
            None if response.status == 204 => {}
            None => {
                while self.read_more().await.is_ok() {}
                response.body = std::mem::take(&mut self.buffer);
            }
        }
        Ok(response)
    }

    /// Closes the connection with a reset, as a caller that disappears, and discards what the server sends.
    pub fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    /// Waits until the server has closed the connection, and discards what it sends until then.
    pub async fn wait_closed(&mut self) {
        while self.read_more().await.is_ok() {
            self.buffer.clear();
        }
    }

    async fn read_more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.buffer.extend_from_slice(&chunk[..read]);
                Ok(())
            }
        }
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}

/// Converts the header names to lower case and leaves the values unchanged.
fn lower_header_names(head: &str) -> String {
    let mut lines = String::with_capacity(head.len());
    for line in head.lines() {
        match line.split_once(':') {
            Some((name, value)) => {
                lines.push_str(&name.to_ascii_lowercase());
                lines.push(':');
                lines.push_str(value);
            }
            None => lines.push_str(line),
        }
        lines.push('\n');
    }
    lines
}
