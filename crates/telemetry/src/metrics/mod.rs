//! Every metric there is: its name, its labels, what it says. `docs/reference/metrics.md` is made from this file.

mod book;
mod dispatch;
mod drift;
mod few;
mod format;
mod http;
mod known;
mod labels;
mod locks;
mod process;
mod series;
mod sight;
mod top;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use book::Level;
use book::{Book, Rising, Sometimes, Spread, by, plain};
pub use dispatch::DispatchFailure;
use few::Few;
pub use format::Format;
pub use labels::Route;
use labels::{
    Answer, EngineAnswer, EngineCall, LockName, QueueName, QueueStatus, StoreAnswer, StoreCall,
    WorkspaceName, WorkspaceStatus,
};
pub(crate) use labels::{Kind, Outcome, Reason, Status};
use locks::LockSeries;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use series::QueueSeries;
pub(crate) use series::{EngineSeries, StoreSeries};
pub use sight::Sight;
use top::Top;

/// Seconds, from a read out of memory to a long poll.
const SECONDS: &[f64] = &[
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0,
];
/// Seconds of waiting, from at once to a day.
const WAITS: &[f64] = &[
    0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 86_400.0,
];
/// Seconds of waiting, for series that are many.
const FEW_WAITS: &[f64] = &[0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0];
const SIZES: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0,
];
const ATTEMPTS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 50.0];

/// Workspaces that are shown by name, unless told otherwise.
const WORKSPACES: usize = 50;

/// Makes the struct from the table below, which is all of it.
macro_rules! define {
    ($($section:literal { $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $kind:ident($($given:expr),*);)* })*) => {
        /// What a process counts.
        pub struct Metrics {
            book: Book,
            /// The workspaces that are shown by name.
            top: Top,
            /// The locks that were asked for.
            locks: Few<LockSeries>,
            /// The queues that jobs go through here.
            queues: Few<QueueSeries>,
            $($($(#[$doc])* $vis $field: $type,)*)*
        }

        impl Metrics {
            fn defined(workspaces: usize) -> Self {
                let mut book = Book::default();
                $(
                    book.section($section);
                    $(let $field = book.$kind($($given),*);)*
                )*
                Self {
                    book,
                    top: Top::new(workspaces),
                    locks: Few::default(),
                    queues: Few::default(),
                    $($($field,)*)*
                }
            }
        }
    };
}

define! {
    "Requests and dispatch" {
        pub(crate) batch_size: Spread = histogram(plain("queue_processing_batch_size", "Requests that a claim brought; claims that brought none do not count"), SIZES);
        pub(crate) batch_seconds: Spread = histogram(plain("queue_processing_duration_seconds", "From the claim of a batch until what became of its last request was written down"), SECONDS);
        pub(crate) dispatched: Counter = counter(plain("queue_items_dispatched_total", "Requests whose execution was started in the engine"));
        pub(crate) at_capacity: Counter = counter(plain("queue_items_at_capacity_total", "Workspaces that became full while requests of theirs were waiting"));
        pub(crate) failed: Family<Reason, Counter> = counters(by(&["reason"], "queue_items_failed_total", "Requests that failed for good, by reason"));
        pub(crate) recovered: Rising = rising(plain("queue_stale_recovery_count", "Requests taken back from dispatchers that died or stood still"));
        pub(crate) cycles: Counter = counter(plain("leasehold_dispatch_cycles_total", "Times that the dispatcher looked for requests to admit"));
        pub(crate) dispatch_failures: Family<Reason, Counter> = counters(by(&["reason"], "leasehold_dispatch_failures_total", "Starts that failed and are tried again: `refused` by the engine, `unknown` whether it has started, or `not_sent`"));
        pub(crate) attempts: Spread = histogram(plain("leasehold_dispatch_attempts", "Attempts that requests took until they were started, or failed for good before that"), ATTEMPTS);
        pub(crate) enqueued: Counter = counter(plain("leasehold_requests_enqueued_total", "Requests enqueued through this process; those that SQL enqueues are not seen"));
        pub(crate) finished: Family<Status, Counter> = counters(by(&["status"], "leasehold_requests_finished_total", "Requests that ended, `completed` or `failed`"));
        pub(crate) wait: Spread = histogram(plain("leasehold_request_wait_seconds", "From enqueueing a request, or the time it was to run, until its execution was started"), WAITS);
        pub(crate) requests: Family<Status, Level> = gauges(by(&["status"], "leasehold_requests", "Requests in each status, in all workspaces"));
        pub(crate) oldest: Family<Status, Level> = gauges(by(&["status"], "leasehold_requests_oldest_seconds", "Age of the oldest request in a status: since it could have been claimed if `pending`, since it was claimed or dispatched otherwise"));
        pub(crate) startable: Sometimes = sometimes(plain("leasehold_requests_startable_oldest_seconds", "How long the first in a line has been due whose workspace has room and is not paused; 0 if there is none"));
    }
    "Workspaces" {
        pub(crate) workspaces: Sometimes = sometimes(plain("leasehold_workspaces", "Workspaces that are not deleted"));
        pub(crate) workspace_wait: Family<WorkspaceName, Spread> = histograms(by(&["workspace"], "leasehold_workspace_wait_seconds", "As `leasehold_request_wait_seconds`, of the busiest workspaces by name and of all others together"), || Spread::new(FEW_WAITS.iter().copied()));
        pub(crate) workspace_requests: Family<WorkspaceStatus, Level> = gauges(by(&["workspace", "status"], "leasehold_workspace_requests", "Requests of a workspace that are not at their end, of the busiest by name and of all others together"));
        pub(crate) workspace_slots_in_use: Family<WorkspaceName, Level> = gauges(by(&["workspace"], "leasehold_workspace_slots_in_use", "Executions that hold a slot of the workspace, of the busiest by name"));
        pub(crate) workspace_slots: Family<WorkspaceName, Level> = gauges(by(&["workspace"], "leasehold_workspace_slots", "Slots that the workspace has, of the busiest by name"));
    }
    "Drift" {
        pub(crate) drift: Family<Kind, Level> = gauges(by(&["kind"], "capacity_drift", "Differences between slots, executions, requests and the engine's word that the last check saw and did not repair; must be 0"));
        pub(crate) drift_repaired: Family<Kind, Counter> = counters(by(&["kind"], "leasehold_capacity_drift_repaired_total", "Differences that were repaired"));
        pub(crate) drift_checked: Level = gauge(plain("leasehold_capacity_drift_checked_timestamp_seconds", "When this process last checked, by the clock of its machine; 0 if another one does"));
    }
    "Leases and locks" {
        pub(crate) lock_refused: Family<LockName, Rising> = risings(by(&["lock"], "shedlock_acquisition_failures", "Times that a lock was not got, since another process has it"));
        pub(crate) lock_lost: Family<LockName, Counter> = counters(by(&["lock"], "leasehold_lock_losses_total", "Locks that were lost before they were given back"));
        pub(crate) lock_held: Family<LockName, Level> = gauges(by(&["lock"], "leasehold_lock_held", "1 if this process holds the lock"));
        pub(crate) renewed: Family<Kind, Counter> = counters(by(&["kind"], "leasehold_lease_renewals_total", "Leases that were renewed, of a `request` or a `job`"));
        pub(crate) lost: Family<Kind, Counter> = counters(by(&["kind"], "leasehold_lease_losses_total", "Leases that their holder found it has no more: a dispatcher at any time, a worker when it ends a job"));
        pub(crate) expired: Family<Kind, Counter> = counters(by(&["kind"], "leasehold_lease_expiries_total", "Leases that ran out and were taken back by this process; a claim of jobs may take some back by itself, which is not seen"));
    }
    "Jobs" {
        pub(crate) jobs_enqueued: Family<QueueName, Counter> = counters(by(&["queue"], "leasehold_jobs_enqueued_total", "Jobs enqueued through this process; those of graphs and those that SQL enqueues are not seen"));
        pub(crate) jobs_claimed: Family<QueueName, Counter> = counters(by(&["queue"], "leasehold_jobs_claimed_total", "Jobs that workers took"));
        pub(crate) jobs_finished: Family<Outcome, Counter> = counters(by(&["outcome"], "leasehold_jobs_finished_total", "What became of claimed jobs: `completed`, `failed`, `queued` again, or `lease_lost`"));
        pub(crate) queue_jobs: Family<QueueStatus, Level> = gauges(by(&["queue", "status"], "leasehold_queue_jobs", "Jobs of the busiest queues: `waiting`, counted up to 10,000, or `running`"));
        pub(crate) queue_limit: Family<QueueName, Level> = gauges(by(&["queue"], "leasehold_queue_limit", "How many jobs of a queue may run at once, where there is a limit"));
    }
    "Engine" {
        pub(crate) engine_up: Sometimes = sometimes(plain("leasehold_engine_up", "1 while this process starts executions in the engine, 0 while it is down and none are; left out where the process does not dispatch"));
        pub(crate) engine_allowance: Sometimes = sometimes(plain("leasehold_engine_allowance", "Starts that may be under way at once; fewer than set while the engine comes back"));
        pub(crate) engine_calls: Family<EngineAnswer, Counter> = counters(by(&["engine", "call", "outcome"], "leasehold_engine_calls_total", "Calls of the engine and what came of them"));
        pub(crate) engine_seconds: Family<EngineCall, Spread> = histograms(by(&["engine", "call"], "leasehold_engine_call_duration_seconds", "How long calls of the engine took"), || Spread::new(SECONDS.iter().copied()));
    }
    "Store" {
        pub(crate) store_up: Level = gauge(plain("leasehold_store_up", "1 if the store answered when somebody scraped, 0 if it did not within 2 seconds; then what it would have said is left out"));
        pub(crate) store_calls: Family<StoreAnswer, Counter> = counters(by(&["call", "outcome"], "leasehold_store_calls_total", "Calls of the store: `ok`, `unavailable` if it is worth trying again, or `error`"));
        pub(crate) store_seconds: Family<StoreCall, Spread> = histograms(by(&["call"], "leasehold_store_call_duration_seconds", "How long calls of the store took"), || Spread::new(SECONDS.iter().copied()));
    }
    "HTTP" {
        pub(crate) http_requests: Family<Answer, Counter> = counters(by(&["method", "route", "status"], "leasehold_http_requests_total", "Calls answered"));
        pub(crate) http_seconds: Family<Route, Spread> = histograms(by(&["method", "route"], "leasehold_http_request_duration_seconds", "From the head of a call to the head of its answer"), || Spread::new(SECONDS.iter().copied()));
        /// Connections that are open.
        pub open_connections: Level = gauge(plain("leasehold_http_open_connections", "Connections that are open"));
        /// Connections that were refused.
        pub refused_connections: Counter = counter(plain("leasehold_http_refused_connections_total", "Connections that were refused because too many were open"));
        /// Streams of changes that are open.
        pub open_streams: Level = gauge(plain("leasehold_http_open_streams", "Streams of changes that are open"));
    }
    "Traces" {
        pub(crate) spans: Family<Outcome, Counter> = counters(by(&["outcome"], "leasehold_trace_spans_total", "Spans given to the collector: `exported`, or `failed`"));
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(WORKSPACES)
    }
}

impl Metrics {
    /// None of which has moved yet; so many workspaces are shown by name.
    pub fn new(workspaces: usize) -> Self {
        let mut metrics = Self::defined(workspaces);
        process::define(&mut metrics.book);
        metrics.begin();
        metrics
    }
}
