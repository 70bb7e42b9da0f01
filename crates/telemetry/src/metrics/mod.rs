//! Defines every metric: name, labels and help text. `docs/reference/metrics.md` is generated from this file.

mod bounded_series;
mod busiest_workspaces;
mod catalog;
mod dispatch;
mod drift;
mod format;
mod http;
mod initial_series;
mod labels;
mod locks;
mod process;
mod series;
mod store_snapshot;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use bounded_series::BoundedSeries;
use busiest_workspaces::BusiestWorkspaces;
pub use catalog::FloatGauge;
use catalog::{ExemplarHistogram, MetricCatalog, OptionalGauge, UntypedCounter, labelled, plain};
pub use dispatch::DispatchFailure;
pub use format::ExpositionFormat;
pub use labels::Route;
use labels::{
    EngineCall, EngineOutcome, LockName, QueueName, QueueStatus, RouteStatus, StoreCall,
    StoreOutcome, TaskName, WorkspaceName, WorkspaceStatus,
};
pub(crate) use labels::{Kind, Outcome, Reason, Status};
use locks::LockSeries;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use series::QueueSeries;
pub(crate) use series::{EngineSeries, StoreSeries};
pub use store_snapshot::{EngineSnapshot, StoreSnapshot};

/// Buckets in seconds, from a read from memory to a long poll.
const SECONDS: &[f64] = &[
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0,
];
/// Buckets of waiting times in seconds, up to a day.
const WAITS: &[f64] = &[
    0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 86_400.0,
];
/// Coarse buckets of waiting times in seconds, for metrics with many series.
const COARSE_WAITS: &[f64] = &[0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0];
const SIZES: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0,
];
const ATTEMPTS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 50.0];

/// The default number of workspaces with their own series.
const DEFAULT_NAMED_WORKSPACES: usize = 50;

/// Generates the struct `Metrics` from the table below.
macro_rules! define {
    ($($section:literal { $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $kind:ident($($given:expr),*);)* })*) => {
        /// All metrics of a process.
        pub struct Metrics {
            catalog: MetricCatalog,
            /// The workspaces with their own series.
            busiest: BusiestWorkspaces,
            /// The locks this process has tried to acquire.
            locks: BoundedSeries<LockSeries>,
            /// The queues of the jobs that pass through this process.
            queues: BoundedSeries<QueueSeries>,
            $($($(#[$doc])* $vis $field: $type,)*)*
        }

        impl Metrics {
            fn defined(workspaces: usize) -> Self {
                let mut catalog = MetricCatalog::default();
                $(
                    catalog.section($section);
                    $(let $field = catalog.$kind($($given),*);)*
                )*
                Self {
                    catalog,
                    busiest: BusiestWorkspaces::new(workspaces),
                    locks: BoundedSeries::default(),
                    queues: BoundedSeries::default(),
                    $($($field,)*)*
                }
            }
        }
    };
}

define! {
    "Requests and dispatch" {
        pub(crate) batch_size: ExemplarHistogram = histogram(plain("queue_processing_batch_size", "Requests per claim; empty claims are not counted"), SIZES);
        pub(crate) batch_seconds: ExemplarHistogram = histogram(plain("queue_processing_duration_seconds", "Time from the claim of a batch until the outcome of its last request was written"), SECONDS);
        pub(crate) dispatched: Counter = counter(plain("queue_items_dispatched_total", "Requests whose execution was started in the engine"));
        pub(crate) at_capacity: Counter = counter(plain("queue_items_at_capacity_total", "Times a workspace reached its limit while its requests were waiting"));
        pub(crate) failed: Family<Reason, Counter> = counters(labelled(&["reason"], "queue_items_failed_total", "Requests that failed permanently, by reason"));
        pub(crate) recovered: UntypedCounter = untyped_counter(plain("queue_stale_recovery_count", "Claims recovered from dispatchers that died or stalled"));
        pub(crate) cycles: Counter = counter(plain("leasehold_dispatch_cycles_total", "Claims sent by the dispatcher, including empty ones"));
        pub(crate) dispatch_failures: Family<Reason, Counter> = counters(labelled(&["reason"], "leasehold_dispatch_failures_total", "Failed starts that will be retried: `refused` by the engine, `unknown` whether it started, or `not_sent`"));
        pub(crate) task_panics: Family<TaskName, Counter> = counters(labelled(&["task"], "leasehold_task_panics_total", "Panics in a step of the dispatcher (`claim`, `start`, `flush`, `renew`, `arm`, `extend_lock`) or in a round of a service; the step or round has failed and is repeated"));
        pub(crate) attempts: ExemplarHistogram = histogram(plain("leasehold_dispatch_attempts", "Attempts per request until it was started or failed permanently"), ATTEMPTS);
        pub(crate) enqueued: Counter = counter(plain("leasehold_requests_enqueued_total", "Requests enqueued through this process; requests enqueued with SQL are not counted"));
        pub(crate) finished: Family<Status, Counter> = counters(labelled(&["status"], "leasehold_requests_finished_total", "Requests that finished, `completed` or `failed`"));
        pub(crate) wait: ExemplarHistogram = histogram(plain("leasehold_request_wait_seconds", "Time from enqueueing a request, or from its `run_at`, until its execution was started"), WAITS);
        pub(crate) requests: Family<Status, FloatGauge> = gauges(labelled(&["status"], "leasehold_requests", "Requests by status, over all workspaces"));
        pub(crate) oldest: Family<Status, FloatGauge> = gauges(labelled(&["status"], "leasehold_requests_oldest_seconds", "Age of the oldest request by status: for `pending` since it became due, otherwise since it was claimed or dispatched"));
        pub(crate) startable: OptionalGauge = optional_gauge(plain("leasehold_requests_startable_oldest_seconds", "Longest wait of the first due request of a workspace that has a free slot and is not paused; 0 if there is none"));
    }
    "Workspaces" {
        pub(crate) workspaces: OptionalGauge = optional_gauge(plain("leasehold_workspaces", "Workspaces that are not deleted"));
        pub(crate) workspace_wait: Family<WorkspaceName, ExemplarHistogram> = histograms(labelled(&["workspace"], "leasehold_workspace_wait_seconds", "Like `leasehold_request_wait_seconds`, for each of the busiest workspaces; `other` is all the rest"), || ExemplarHistogram::new(COARSE_WAITS.iter().copied()));
        pub(crate) workspace_requests: Family<WorkspaceStatus, FloatGauge> = gauges(labelled(&["workspace", "status"], "leasehold_workspace_requests", "Unfinished requests of each of the busiest workspaces; `other` is all the rest"));
        pub(crate) workspace_slots_in_use: Family<WorkspaceName, FloatGauge> = gauges(labelled(&["workspace"], "leasehold_workspace_slots_in_use", "Slots in use, for each of the busiest workspaces"));
        pub(crate) workspace_slots: Family<WorkspaceName, FloatGauge> = gauges(labelled(&["workspace"], "leasehold_workspace_slots", "Slot limit, for each of the busiest workspaces"));
    }
    "Drift" {
        pub(crate) drift: Family<Kind, FloatGauge> = gauges(labelled(&["kind"], "capacity_drift", "Differences between slots, executions, requests and the engine that the last check found and did not repair; must be 0"));
        pub(crate) drift_repaired: Family<Kind, Counter> = counters(labelled(&["kind"], "leasehold_capacity_drift_repaired_total", "Differences that were repaired"));
        pub(crate) drift_checked: FloatGauge = gauge(plain("leasehold_capacity_drift_checked_timestamp_seconds", "Time of this process's last drift check, by its own clock; 0 if another process checks"));
    }
    "Leases and locks" {
        pub(crate) lock_refused: Family<LockName, UntypedCounter> = untyped_counters(labelled(&["lock"], "shedlock_acquisition_failures", "Failed attempts to acquire a lock because another process holds it"));
        pub(crate) lock_lost: Family<LockName, Counter> = counters(labelled(&["lock"], "leasehold_lock_losses_total", "Locks lost before they were released"));
        pub(crate) lock_held: Family<LockName, FloatGauge> = gauges(labelled(&["lock"], "leasehold_lock_held", "1 if this process holds the lock"));
        pub(crate) renewed: Family<Kind, Counter> = counters(labelled(&["kind"], "leasehold_lease_renewals_total", "Leases renewed, of a `request` or a `job`"));
        pub(crate) lost: Family<Kind, Counter> = counters(labelled(&["kind"], "leasehold_lease_losses_total", "Leases found lost by their holder: a dispatcher at any time, a worker when it renews a lease, reports progress or finishes a job"));
        pub(crate) expired: Family<Kind, Counter> = counters(labelled(&["kind"], "leasehold_lease_expiries_total", "Expired leases recovered by this process; jobs that a claim requeues itself are not counted"));
    }
    "Jobs" {
        pub(crate) jobs_enqueued: Family<QueueName, Counter> = counters(labelled(&["queue"], "leasehold_jobs_enqueued_total", "Jobs enqueued through this process; jobs of graphs and jobs enqueued with SQL are not counted"));
        pub(crate) jobs_claimed: Family<QueueName, Counter> = counters(labelled(&["queue"], "leasehold_jobs_claimed_total", "Jobs claimed by workers"));
        pub(crate) jobs_finished: Family<Outcome, Counter> = counters(labelled(&["outcome"], "leasehold_jobs_finished_total", "Outcomes of claimed jobs: `completed`, `failed`, `queued` again, or `lease_lost`"));
        pub(crate) queue_jobs: Family<QueueStatus, FloatGauge> = gauges(labelled(&["queue", "status"], "leasehold_queue_jobs", "Jobs of the busiest queues: `waiting` (counted up to 10,000) or `running`"));
        pub(crate) queue_limit: Family<QueueName, FloatGauge> = gauges(labelled(&["queue"], "leasehold_queue_limit", "Concurrency limit of a queue, where one is set"));
    }
    "Engine" {
        pub(crate) engine_up: OptionalGauge = optional_gauge(plain("leasehold_engine_up", "1 if the engine's last health check succeeded, otherwise 0; absent if this process does not dispatch"));
        pub(crate) engine_breaker: Family<Status, FloatGauge> = gauges(labelled(&["status"], "leasehold_engine_breaker", "1 for the status of the circuit breaker: `closed`, `open` (nothing is started) or `recovering`; absent if this process does not dispatch"));
        pub(crate) start_failing: OptionalGauge = optional_gauge(plain("leasehold_requests_start_failing", "Requests whose last three starts or more failed or got no answer, as this process saw; absent if it does not dispatch"));
        pub(crate) engine_allowance: OptionalGauge = optional_gauge(plain("leasehold_engine_allowance", "Starts allowed in flight at once; reduced while the engine recovers"));
        pub(crate) engine_calls: Family<EngineOutcome, Counter> = counters(labelled(&["engine", "call", "outcome"], "leasehold_engine_calls_total", "Calls to the engine, by outcome"));
        pub(crate) engine_seconds: Family<EngineCall, ExemplarHistogram> = histograms(labelled(&["engine", "call"], "leasehold_engine_call_duration_seconds", "Duration of calls to the engine"), || ExemplarHistogram::new(SECONDS.iter().copied()));
    }
    "Store" {
        pub(crate) store_up: FloatGauge = gauge(plain("leasehold_store_up", "1 if the store answered this scrape within 2 seconds, otherwise 0; then the gauges read from the store are absent"));
        pub(crate) store_calls: Family<StoreOutcome, Counter> = counters(labelled(&["call", "outcome"], "leasehold_store_calls_total", "Calls to the store: `ok`, `unavailable` if a retry may succeed, or `error`"));
        pub(crate) store_seconds: Family<StoreCall, ExemplarHistogram> = histograms(labelled(&["call"], "leasehold_store_call_duration_seconds", "Duration of calls to the store"), || ExemplarHistogram::new(SECONDS.iter().copied()));
    }
    "HTTP" {
        pub(crate) http_requests: Family<RouteStatus, Counter> = counters(labelled(&["method", "route", "status"], "leasehold_http_requests_total", "HTTP requests answered"));
        pub(crate) http_seconds: Family<Route, ExemplarHistogram> = histograms(labelled(&["method", "route"], "leasehold_http_request_duration_seconds", "Time from the head of a request to the head of its response"), || ExemplarHistogram::new(SECONDS.iter().copied()));
        /// Open connections.
        pub open_connections: FloatGauge = gauge(plain("leasehold_http_open_connections", "Open connections"));
        /// Refused connections.
        pub refused_connections: Counter = counter(plain("leasehold_http_refused_connections_total", "Connections refused because too many were open"));
        /// Open change streams.
        pub open_streams: FloatGauge = gauge(plain("leasehold_http_open_streams", "Open change streams"));
    }
    "Traces" {
        pub(crate) spans: Family<Outcome, Counter> = counters(labelled(&["outcome"], "leasehold_trace_spans_total", "Spans sent to the collector: `exported` or `failed`"));
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(DEFAULT_NAMED_WORKSPACES)
    }
}

impl Metrics {
    /// Creates all metrics at zero; at most this many workspaces get their own series.
    pub fn new(workspaces: usize) -> Self {
        let mut metrics = Self::defined(workspaces);
        process::define(&mut metrics.catalog);
        metrics.create_known_series();
        metrics
    }
}
