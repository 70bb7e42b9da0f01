//! Gives spans to a collector over OTLP, many at a time, on a thread of its own. What cannot be given is dropped, counted, and said once.

use crate::metrics::Metrics;
use opentelemetry::KeyValue;
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{RetryPolicy, SpanExporter as Otlp, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a span waits for company.
const EVERY: Duration = Duration::from_secs(1);
/// Spans in one call of the collector.
const AT_ONCE: usize = 512;
/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How traces are exported.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Where the collector takes OTLP over gRPC, as a URL.
    pub endpoint: String,
    /// How many traces may begin here in a second; those that callers began are not counted.
    pub per_second: u32,
    /// Who exports them; unique among all instances.
    pub instance: String,
}

/// The endpoint cannot be used.
#[derive(Debug)]
pub struct InvalidEndpoint(String);

impl fmt::Display for InvalidEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "traces cannot be exported: {}", self.0)
    }
}

impl std::error::Error for InvalidEndpoint {}

pub(super) fn processor(
    options: &TraceOptions,
    metrics: Arc<Metrics>,
    waiting: Arc<AtomicUsize>,
) -> Result<BatchSpanProcessor, InvalidEndpoint> {
    let mut builder = Otlp::builder()
        .with_tonic()
        .with_endpoint(&options.endpoint)
        .with_timeout(TIMEOUT)
        .with_retry_policy(RetryPolicy::recommended().with_max_retries(1));
    if options.endpoint.starts_with("https:") {
        builder = builder.with_tls_config(ClientTlsConfig::new().with_enabled_roots());
    }
    let otlp = builder
        .build()
        .map_err(|error| InvalidEndpoint(error.to_string()))?;
    let watched = Watched {
        otlp,
        runtime: Handle::current(),
        endpoint: options.endpoint.clone(),
        metrics,
        waiting,
        dropped: AtomicU64::new(0),
    };
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(super::WAITING_MAX)
        .with_max_export_batch_size(AT_ONCE)
        .with_scheduled_delay(EVERY)
        .build();
    let mut processor = BatchSpanProcessor::new(watched, batches);
    processor.set_resource(&resource(options));
    Ok(processor)
}

/// Who exports. What `OTEL_RESOURCE_ATTRIBUTES` says is added.
fn resource(options: &TraceOptions) -> Resource {
    let about = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", options.instance.clone()),
    ];
    let resource = Resource::builder().with_service_name("leasehold");
    resource.with_attributes(about).build()
}

/// An exporter that says how it fares.
struct Watched {
    otlp: Otlp,
    /// Whose clock ends what takes too long: the exporting thread has none.
    runtime: Handle,
    endpoint: String,
    metrics: Arc<Metrics>,
    waiting: Arc<AtomicUsize>,
    /// Since the collector went away; 0 while it is there.
    dropped: AtomicU64,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Watched {
    /// The exporter's own timeout begins when it has a connection, so there is one for all of it.
    fn in_time(
        &self,
        export: impl Future<Output = OTelSdkResult> + Send,
    ) -> impl Future<Output = OTelSdkResult> + Send {
        let _inside = self.runtime.enter();
        let limited = tokio::time::timeout(TIMEOUT, export);
        async { limited.await.unwrap_or(Err(OTelSdkError::Timeout(TIMEOUT))) }
    }
}

impl SpanExporter for Watched {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.waiting.fetch_sub(count, Ordering::Relaxed);
        let spans = count as u64;
        let exported = self.in_time(self.otlp.export(batch)).await;
        match &exported {
            Ok(()) => {
                self.metrics.spans_exported(spans);
                let dropped = self.dropped.swap(0, Ordering::Relaxed);
                if dropped > 0 {
                    tracing::info!(
                        endpoint = self.endpoint,
                        dropped,
                        "traces are exported again"
                    );
                }
            }
            Err(error) => {
                self.metrics.spans_failed(spans);
                if self.dropped.fetch_add(spans, Ordering::Relaxed) == 0 {
                    tracing::warn!(endpoint = self.endpoint, %error,
                        "traces cannot be exported; spans are dropped until the collector answers");
                }
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
