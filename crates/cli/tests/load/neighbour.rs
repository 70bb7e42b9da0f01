//! A well-behaved tenant beside an attack: it lists, reads changes, enqueues, runs a graph and works on its own queue all the while, and measures each of its calls.

use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document, text};
use leasehold_testkit::HttpResponse;
use serde_json::json;
use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::interval;

/// Between two reads of a running request.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The longest call of the tenant beside an attack, on a machine that does nothing else.
const CALL_MAX: Duration = Duration::from_secs(2);
/// What 99 of 100 calls take at most without an attack on such a machine. On a loaded one, limits are longer in proportion.
const QUIET_P99_MAX: Duration = Duration::from_millis(250);
/// The largest factor: a call that waits for another one's deadline must still be too long. A machine that is slower cannot tell what an attack does.
const LOAD_MAX: f64 = 4.0;

/// What the tenant measured.
#[derive(Default)]
pub(crate) struct Measured {
    calls: Vec<Duration>,
    /// Graphs that ran to their end.
    pub(crate) completed: usize,
}

impl Measured {
    pub(crate) fn slowest(&self) -> Duration {
        self.calls.iter().max().copied().unwrap_or_default()
    }

    pub(crate) fn p99(&self) -> Duration {
        let mut sorted = self.calls.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
        sorted.get(index).copied().unwrap_or_default()
    }

    /// How much longer than usual these calls took without an attack, because other programs use the machine: 1 or more.
    fn load(&self) -> f64 {
        (self.p99().as_secs_f64() / QUIET_P99_MAX.as_secs_f64()).max(1.0)
    }

    /// Returns a limit of time for a machine on which the calls without an attack were these.
    pub(crate) fn allowed(&self, limit: Duration) -> Duration {
        limit.mul_f64(self.load().min(LOAD_MAX))
    }

    /// Asserts that no call took longer than two seconds, or in proportion to the calls without an attack on a loaded machine.
    pub(crate) fn assert_short(&self, quiet: &Self, beside: &str) {
        let allowed = quiet.allowed(CALL_MAX);
        assert!(
            self.slowest() <= allowed,
            "beside {beside}: {self}; allowed {allowed:.1?} (without an attack: {quiet})"
        );
    }
}

impl Display for Measured {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls, {} graphs, p99 {:.0?}, slowest {:.0?}",
            self.calls.len(),
            self.completed,
            self.p99(),
            self.slowest()
        )
    }
}

/// A tenant that works all the while.
#[derive(Clone)]
pub(crate) struct Working {
    tenant: Tenant,
    definition: String,
    /// The key of its worker, and the queue of its graph's task. None: its graph has no task.
    worker: Option<(Tenant, String)>,
    /// The lists that it reads.
    lists: &'static [&'static str],
    /// Whether an engine runs its graphs.
    runs_graphs: bool,
}

impl Working {
    /// Creates a tenant with a graph of delays and a task, and the worker of its queue.
    pub(crate) async fn create(server: &ServerProcess, name: &str) -> Self {
        let tenant = server.tenant(name, "ENTERPRISE").await;
        let (definition, queue) = (tenant.define("short").await, tenant.queue());
        let mut graph = short_graph();
        let task = json!({ "id": "c", "type": "task", "queue": queue });
        let graph_body = &mut graph["body"]["graph"];
        graph_body["nodes"].as_array_mut().unwrap().push(task);
        let edge = json!({ "from": "b", "to": "c" });
        graph_body["edges"].as_array_mut().unwrap().push(edge);
        graph["params_schema"] = json!({ "type": "object", "maxProperties": 10 });
        tenant.must_publish(&definition, &graph).await;
        let worker = server.worker(&queue).await;
        Self {
            tenant,
            definition,
            worker: Some((worker, queue)),
            lists: &["/requests?limit=10", "/changes?limit=10"],
            runs_graphs: true,
        }
    }

    /// The same tenant at another server, whose engine runs nothing.
    pub(crate) fn without_engine(&self, address: SocketAddr) -> Self {
        let mut working = self.clone();
        working.tenant.address = address;
        working.worker = None;
        working.runs_graphs = false;
        working
    }

    pub(crate) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Starts to call until [`Neighbour::stop`].
    pub(crate) fn start(&self) -> Neighbour {
        let stop = Arc::new(AtomicBool::new(false));
        let (working, stopped) = (self.clone(), Arc::clone(&stop));
        let task = tokio::spawn(async move {
            let mut measured = Measured::default();
            // At least one round, however short the attack.
            loop {
                working.run_once(&mut measured).await;
                if stopped.load(Ordering::Acquire) {
                    return measured;
                }
            }
        });
        Neighbour { stop, task }
    }

    /// Measures its calls without an attack: the value that each attack is compared with. A loaded machine is measured twice.
    pub(crate) async fn measure_quiet(&self, time: Duration) -> Measured {
        let mut measured = Measured::default();
        for _ in 0..2 {
            measured = self.measure_beside(pause(time)).await.0;
            println!("no attack: {measured}");
            if measured.load() <= 1.0 {
                return measured;
            }
        }
        assert!(
            measured.load() <= LOAD_MAX,
            "this machine is too slow, or busy with something else: without an attack 99 of 100 calls took up to {:.0?}, \
             more than {LOAD_MAX} times {QUIET_P99_MAX:?}, twice in a row; repeat the test alone",
            measured.p99()
        );
        measured
    }

    /// Measures its calls while something else runs.
    pub(crate) async fn measure_beside<T>(&self, other: impl Future<Output = T>) -> (Measured, T) {
        let neighbour = self.start();
        let result = other.await;
        (neighbour.stop().await, result)
    }

    /// Enqueues a request, lists, and reads the request until it has completed.
    async fn run_once(&self, measured: &mut Measured) {
        let tenant = &self.tenant;
        let enqueued = timed(measured, tenant.enqueue(&self.definition, "{}")).await;
        assert_eq!(enqueued.status, 201, "{}", enqueued.text());
        let id = text(&document(&enqueued)["id"]);
        let mut pace = interval(POLL_INTERVAL);
        loop {
            pace.tick().await;
            for tail in self.lists {
                let list = timed(measured, tenant.call("GET", tail, None)).await;
                assert_eq!(list.status, 200, "{}", list.text());
            }
            if let Some((worker, queue)) = &self.worker {
                work(worker, queue, measured).await;
            }
            let tail = format!("/requests/{id}");
            let read = tenant.call("GET", &tail, None);
            let read = timed(measured, read).await;
            assert_eq!(read.status, 200, "{}", read.text());
            match document(&read)["status"].as_str() {
                _ if !self.runs_graphs => return,
                Some("COMPLETED") => break,
                Some("FAILED") => panic!("the neighbour's request failed: {}", read.text()),
                _ => {}
            }
        }
        measured.completed += 1;
    }
}

/// Claims the jobs that are ready, without waiting, and finishes them.
async fn work(worker: &Tenant, queue: &str, measured: &mut Measured) {
    let claim = json!({ "worker": "w", "max": 10, "lease_ms": 60_000 }).to_string();
    let path = format!("/v1/queues/{queue}/claim");
    let claimed = worker.call_path("POST", &path, Some(claim.as_bytes()));
    let claimed = timed(measured, claimed).await;
    assert_eq!(claimed.status, 200, "{}", claimed.text());
    let claimed = document(&claimed);
    let finish = |job: &serde_json::Value| json!({ "id": job["id"], "token": job["token"], "outcome": "completed", "result": 1 });
    let finishes: Vec<_> = claimed["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(finish)
        .collect();
    if finishes.is_empty() {
        return;
    }
    let body = json!({ "worker": "w", "finishes": finishes }).to_string();
    let finished = worker.call_path("POST", "/v1/jobs/finish", Some(body.as_bytes()));
    let finished = timed(measured, finished).await;
    assert_eq!(finished.status, 200, "{}", finished.text());
    for one in document(&finished)["finished"].as_array().unwrap() {
        assert_eq!(one["state"], "completed", "{one}");
    }
}

/// Waits.
pub(crate) async fn pause(time: Duration) {
    let never = std::future::pending::<()>();
    tokio::time::timeout(time, never).await.unwrap_err();
}

pub(crate) struct Neighbour {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Measured>,
}

impl Neighbour {
    /// Starts to call until [`Self::stop`], with a graph that has no task.
    pub(crate) fn start(tenant: &Tenant, definition: &str) -> Self {
        let working = Working {
            tenant: tenant.clone(),
            definition: definition.to_owned(),
            worker: None,
            lists: &["/requests?limit=10"],
            runs_graphs: true,
        };
        working.start()
    }

    pub(crate) async fn stop(self) -> Measured {
        self.stop.store(true, Ordering::Release);
        self.task.await.unwrap()
    }
}

async fn timed(
    measured: &mut Measured,
    call: impl Future<Output = std::io::Result<HttpResponse>>,
) -> HttpResponse {
    let begun = Instant::now();
    let answer = call.await.unwrap();
    measured.calls.push(begun.elapsed());
    answer
}

/// A graph that takes some milliseconds.
pub(crate) fn short_graph() -> serde_json::Value {
    let delay = |id: &str| json!({ "id": id, "type": "delay", "milliseconds": 5 });
    let graph = json!({ "nodes": [delay("a"), delay("b")], "edges": [{ "from": "a", "to": "b" }] });
    json!({ "body": { "graph": graph } })
}
