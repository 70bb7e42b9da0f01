//! A TCP listener that records everything that its clients send, and answers like a server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Sent by the test itself, and not recorded.
const CONTROL: &[u8] = b"\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";

/// The listener and its recording.
pub(crate) struct Recorder {
    address: SocketAddr,
    recording: Arc<Mutex<Recording>>,
}

/// What arrived so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    pub(crate) connections: usize,
    pub(crate) text: String,
}

impl Recorder {
    /// Listens on this address; port 0 selects a free port.
    pub(crate) fn listen(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let recorder = Self {
            address: listener.local_addr().unwrap(),
            recording: Arc::default(),
        };
        let recording = recorder.recording.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                record(stream.unwrap(), &recording);
            }
        });
        recorder
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Everything that commands which have ended sent: connections are served in order, so when the test's own is answered, theirs are recorded.
    pub(crate) fn recording(&self) -> Recording {
        let mut control = TcpStream::connect(self.address).unwrap();
        control.write_all(CONTROL).unwrap();
        control.read_to_end(&mut Vec::new()).unwrap();
        self.recording.lock().unwrap().clone()
    }
}

/// Records up to the end of the headers, then answers.
fn record(mut stream: TcpStream, recording: &Mutex<Recording>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(read) => head.extend_from_slice(&chunk[..read]),
        }
    }
    if head != CONTROL {
        let mut recording = recording.lock().unwrap();
        recording.connections += 1;
        recording.text.push_str(&String::from_utf8_lossy(&head));
    }
    // The client may have disconnected.
    let _ = stream.write_all(ANSWER);
}
