//! A plain HTTP/1.1 connection, as light as one can be: for load, and for what no proper client would send. Knows no API.

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that is kept open from call to call.
pub struct HttpConnection {
    stream: TcpStream,
    /// What has arrived and was not asked for yet.
    arrived: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The head as it came, names in lower case.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpAnswer {
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
            arrived: Vec::new(),
        })
    }

    /// Sends a call with a JSON body, if any, and waits for its answer.
    pub async fn call(
        &mut self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<&[u8]>,
    ) -> io::Result<HttpAnswer> {
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
        self.answer().await
    }

    /// Sends these bytes, whatever they are.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Waits for the next answer. One without a length is read to the end of the connection.
    pub async fn answer(&mut self) -> io::Result<HttpAnswer> {
        let end = loop {
            if let Some(at) = find(&self.arrived, b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more().await?;
        };
        let head: Vec<u8> = self.arrived.drain(..end).collect();
        let head = lowered(&String::from_utf8_lossy(&head));
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        let mut answer = HttpAnswer {
            status: status.ok_or_else(|| io::Error::other(format!("no status in {head:?}")))?,
            head,
            body: Vec::new(),
        };
        match answer
            .header("content-length")
            .and_then(|text| text.parse().ok())
        {
            Some(length) => {
                while self.arrived.len() < length {
                    self.read_more().await?;
                }
                answer.body = self.arrived.drain(..length).collect();
            }
            None if answer.status == 204 => {}
            None => {
                while self.read_more().await.is_ok() {}
                answer.body = std::mem::take(&mut self.arrived);
            }
        }
        Ok(answer)
    }

    /// Waits until the other side has closed the connection; what it says until then is thrown away.
    pub async fn closed(&mut self) {
        while self.read_more().await.is_ok() {
            self.arrived.clear();
        }
    }

    async fn read_more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.arrived.extend_from_slice(&buffer[..read]);
                Ok(())
            }
        }
    }
}

fn find(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    bytes
        .windows(sought.len())
        .position(|window| window == sought)
}

/// The head with the names of its headers in lower case, and their values as they came.
fn lowered(head: &str) -> String {
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
