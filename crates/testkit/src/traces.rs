//! An OTLP collector for tests: receives and stores spans. Runs on its own runtime and ends with its handle.

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

/// A received span.
#[derive(Clone, Debug)]
pub struct ReceivedSpan {
    /// The name.
    pub name: String,
    /// The trace id, as 32 hexadecimal digits.
    pub trace: String,
    /// The span id, as 16 hexadecimal digits.
    pub id: String,
    /// The parent's span id; empty without a parent.
    pub parent: String,
    /// `internal`, `server` or `client`.
    pub kind: &'static str,
    /// The start time, in nanoseconds since 1970.
    pub from: u64,
    /// The end time, in nanoseconds since 1970.
    pub to: u64,
    /// The linked spans, as trace id and span id.
    pub links: Vec<(String, String)>,
    /// The attributes.
    pub attributes: BTreeMap<String, String>,
    /// The error message, if the span failed.
    pub error: Option<String>,
    /// The attributes of the resource that sent it.
    pub resource: BTreeMap<String, String>,
}

impl ReceivedSpan {
    /// The `traceparent` header of the span, sampled.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.id)
    }
}

/// A collector that stores the spans it receives.
pub struct OtlpReceiver {
    address: SocketAddr,
    spans: SpanStore,
    /// Shut down in the background on drop.
    runtime: Option<Runtime>,
}

#[derive(Clone, Default)]
struct SpanStore(Arc<Mutex<Vec<ReceivedSpan>>>);

impl OtlpReceiver {
    /// Starts on a free loopback port.
    pub fn start() -> Self {
        Self::at("127.0.0.1:0".parse().expect("an address"))
    }

    /// Starts at this address, for example that of an earlier receiver.
    pub fn at(address: SocketAddr) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("failed to start a runtime for the collector");
        let spans = SpanStore::default();
        let address = {
            let _guard = runtime.enter();
            let incoming = TcpIncoming::bind(address).expect("failed to bind the collector's port");
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

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The endpoint URL for an exporter.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All spans received so far.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.spans.lock().clone()
    }

    /// The received spans of one trace.
    pub fn trace(&self, trace: &str) -> Vec<ReceivedSpan> {
        let mut spans = self.spans();
        spans.retain(|span| span.trace == trace);
        spans
    }

    /// Blocks until `enough` returns true for the received spans, and returns them.
    ///
    /// # Panics
    /// With the received spans, when `timeout` passes.
    #[track_caller]
    pub fn wait_for(
        &self,
        timeout: Duration,
        enough: impl Fn(&[ReceivedSpan]) -> bool,
    ) -> Vec<ReceivedSpan> {
        let arrived = wait_until(timeout, || enough(&self.spans()));
        let spans = self.spans();
        assert!(
            arrived,
            "expected spans did not arrive within {timeout:?}; received: {spans:#?}"
        );
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

impl SpanStore {
    fn lock(&self) -> MutexGuard<'_, Vec<ReceivedSpan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl TraceService for SpanStore {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut stored = self.lock();
        for resource_spans in request.into_inner().resource_spans {
            let resource = resource_spans.resource.unwrap_or_default();
            let resource = texts(resource.attributes);
            for scope_spans in resource_spans.scope_spans {
                let spans = scope_spans.spans.into_iter();
                stored.extend(spans.map(|span| received(span, resource.clone())));
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
    texts.map(|pair| (pair.key, text(pair.value))).collect()
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
