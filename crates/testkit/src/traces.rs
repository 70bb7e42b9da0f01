//! A collector for tests: takes spans over OTLP and keeps them. It runs on a runtime of its own and ends with its value.

use crate::wait_until;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// A span as it was received.
#[derive(Clone, Debug)]
pub struct ReceivedSpan {
    /// What it is called.
    pub name: String,
    /// Its trace's id, as 32 digits.
    pub trace: String,
    /// Its id, as 16 digits.
    pub id: String,
    /// Its parent's id; empty if it has none.
    pub parent: String,
    /// `internal`, `server` or `client`.
    pub kind: &'static str,
    /// When it began, in nanoseconds since 1970.
    pub from: u64,
    /// When it ended.
    pub to: u64,
    /// The spans it points at, as trace and id.
    pub links: Vec<(String, String)>,
    /// What it says.
    pub attributes: BTreeMap<String, String>,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Who sent it.
    pub resource: BTreeMap<String, String>,
}

impl ReceivedSpan {
    /// Its place, as a `traceparent` that is sampled.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.id)
    }
}

/// A collector that keeps what it gets.
pub struct OtlpReceiver {
    address: SocketAddr,
    spans: Kept,
    /// Gone once it is dropped; waits for nothing.
    runtime: Option<Runtime>,
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<ReceivedSpan>>>);

impl OtlpReceiver {
    /// Begins on a free port of this machine.
    pub fn start() -> Self {
        Self::at("127.0.0.1:0".parse().expect("an address"))
    }

    /// Begins at this address, where one was before.
    pub fn at(address: SocketAddr) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime for the collector");
        let spans = Kept::default();
        let address = {
            let _inside = runtime.enter();
            let incoming = TcpIncoming::bind(address).expect("a port for the collector");
            let address = incoming.local_addr().expect("the collector's address");
            let service = TraceServiceServer::new(spans.clone());
            let server = Server::builder().add_service(service);
            runtime.spawn(server.serve_with_incoming(incoming));
            address
        };
        Self {
            address,
            spans,
            runtime: Some(runtime),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as an exporter wants it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All spans that have come so far.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.spans.held().clone()
    }

    /// Those of one trace.
    pub fn trace(&self, trace: &str) -> Vec<ReceivedSpan> {
        let mut spans = self.spans();
        spans.retain(|span| span.trace == trace);
        spans
    }

    /// Blocks until what has come is enough, and returns it; says what has come instead if that takes too long.
    #[track_caller]
    pub fn wait_for(
        &self,
        timeout: Duration,
        enough: impl Fn(&[ReceivedSpan]) -> bool,
    ) -> Vec<ReceivedSpan> {
        let came = wait_until(timeout, || enough(&self.spans()));
        let spans = self.spans();
        assert!(came, "after {timeout:?} these spans have come: {spans:#?}");
        spans
    }
}

impl Drop for OtlpReceiver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Kept {
    fn held(&self) -> MutexGuard<'_, Vec<ReceivedSpan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl TraceService for Kept {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut held = self.held();
        for of_resource in request.into_inner().resource_spans {
            let resource = of_resource.resource.unwrap_or_default();
            let resource = texts(resource.attributes);
            for of_scope in of_resource.scope_spans {
                let spans = of_scope.spans.into_iter();
                held.extend(spans.map(|span| received(span, resource.clone())));
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn received(span: Span, resource: BTreeMap<String, String>) -> ReceivedSpan {
    let links = span.links.iter();
    let status = span.status.filter(|status| status.code == 2);
    ReceivedSpan {
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        kind: match span.kind {
            1 => "internal",
            2 => "server",
            3 => "client",
            _ => "other",
        },
        from: span.start_time_unix_nano,
        to: span.end_time_unix_nano,
        links: links
            .map(|link| (hex(&link.trace_id), hex(&link.span_id)))
            .collect(),
        attributes: texts(span.attributes),
        error: status.map(|status| status.message),
        resource,
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let texts = attributes.into_iter();
    texts.map(|said| (said.key, text(said.value))).collect()
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(yes)) => yes.to_string(),
        other => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
