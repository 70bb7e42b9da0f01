//! Exports spans to a collector over OTLP, in batches, on a thread of its own. Spans that cannot be exported are dropped and counted; the first
//! failure is logged.

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

/// The batching delay of spans.
const EXPORT_INTERVAL: Duration = Duration::from_secs(1);
/// The most spans in one call to the collector.
const EXPORT_BATCH: usize = 512;
/// The timeout of one export.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How traces are exported.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The URL of the collector's OTLP/gRPC endpoint.
    pub endpoint: String,
    /// How many traces may begin in this process per second; traces begun by callers are not limited.
    pub per_second: u32,
    /// The name of this instance; unique among all instances.
    pub instance: String,
}

/// The trace endpoint is invalid.
#[derive(Debug)]
pub struct InvalidEndpoint(String);

impl fmt::Display for InvalidEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to set up trace export: {}", self.0)
    }
}

impl std::error::Error for InvalidEndpoint {}

pub(super) fn processor(
    options: &TraceOptions,
    metrics: Arc<Metrics>,
    queued: Arc<AtomicUsize>,
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
    let exporter = CountingExporter {
        otlp,
        runtime: Handle::current(),
        endpoint: options.endpoint.clone(),
        metrics,
        queued,
        dropped: AtomicU64::new(0),
    };
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(super::MAX_QUEUED_SPANS)
        .with_max_export_batch_size(EXPORT_BATCH)
        .with_scheduled_delay(EXPORT_INTERVAL)
        .build();
    let mut processor = BatchSpanProcessor::new(exporter, batches);
    processor.set_resource(&resource(options));
    Ok(processor)
}

/// Returns the resource attributes, including those from `OTEL_RESOURCE_ATTRIBUTES`.
fn resource(options: &TraceOptions) -> Resource {
    let attributes = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", options.instance.clone()),
    ];
    let resource = Resource::builder().with_service_name("leasehold");
    resource.with_attributes(attributes).build()
}

/// An exporter that counts spans and logs failures.
struct CountingExporter {
    otlp: Otlp,
    /// The runtime whose timer enforces the timeout; the exporting thread has none.
    runtime: Handle,
    endpoint: String,
    metrics: Arc<Metrics>,
    queued: Arc<AtomicUsize>,
    /// Spans dropped since the collector became unavailable; 0 while it answers.
    dropped: AtomicU64,
}

impl fmt::Debug for CountingExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountingExporter").finish_non_exhaustive()
    }
}

impl CountingExporter {
    /// Applies a timeout to the whole export; the exporter's own timeout starts only after it has connected.
    fn with_timeout(
        &self,
        export: impl Future<Output = OTelSdkResult> + Send,
    ) -> impl Future<Output = OTelSdkResult> + Send {
        let _inside = self.runtime.enter();
        let limited = tokio::time::timeout(TIMEOUT, export);
        async { limited.await.unwrap_or(Err(OTelSdkError::Timeout(TIMEOUT))) }
    }
}

impl SpanExporter for CountingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.queued.fetch_sub(count, Ordering::Relaxed);
        let spans = count as u64;
        let exported = self.with_timeout(self.otlp.export(batch)).await;
        match &exported {
            Ok(()) => {
                self.metrics.spans_exported(spans);
                let dropped = self.dropped.swap(0, Ordering::Relaxed);
                if dropped > 0 {
                    tracing::info!(endpoint = self.endpoint, dropped, "trace export recovered");
                }
            }
            Err(error) => {
                self.metrics.spans_failed(spans);
                if self.dropped.fetch_add(spans, Ordering::Relaxed) == 0 {
                    tracing::warn!(endpoint = self.endpoint, %error,
                        "trace export failed; dropping spans until the collector answers");
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
