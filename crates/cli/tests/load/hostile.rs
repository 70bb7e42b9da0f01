//! One tenant sends generated hostile schemas, templates, graphs and bodies, and a worker of it claims and finishes jobs; another tenant works as usual and must not notice.
//!
//! Every call has a number, which alone determines its input. `LEASEHOLD_FUZZ_SEED` repeats a run; a failure prints the seed and the number.

mod bodies;
mod grammar;
mod graphs;
mod schemas;
mod worker;

use crate::attacks::MEMORY_MAX;
use crate::neighbour::Working;
use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document};
use fastrand::Rng;
use futures::future::join_all;
use leasehold_testkit::{TestPostgres, sized, temp_dir};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Concurrent hostile callers, beside the worker.
const CALLERS: usize = 4;
/// The longest time that one hostile workspace is used: its quotas are full then, and what it sends would only be refused.
const ROUND: Duration = Duration::from_secs(20);
/// The deadline of a call.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long after its deadline a call may end, on a machine that does nothing else.
const LATE_MAX: Duration = Duration::from_secs(1);
/// Bytes that a hostile workspace may have open.
const MAX_OPEN_BYTES: u64 = 64 * 1024 * 1024;
/// The name under which the ends of executions are counted.
const EXECUTION: &str = "execution";
/// The variable of the seed, as for fuzz tests.
const SEED: &str = "LEASEHOLD_FUZZ_SEED";

fn duration() -> Duration {
    Duration::from_secs(sized(10, 600))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_input_does_not_disturb_another_tenant_on_sqlite() {
    let dir = temp_dir();
    let store = format!("sqlite:{}", dir.path().join("hostile.db").display());
    attack(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_input_does_not_disturb_another_tenant_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    attack(database.url()).await;
}

/// A workspace that hostile calls are sent to.
struct HostileTarget {
    tenant: Tenant,
    /// The key of the worker of the queue.
    worker: Tenant,
    queue: String,
    /// The definition that gets versions with schemas.
    schemas: String,
    /// The definition that gets graphs.
    graphs: String,
    /// A definition whose graph accepts all params.
    bodies: String,
}

impl HostileTarget {
    async fn create(server: &ServerProcess, number: usize) -> Self {
        let tenant = server.tenant(&format!("hostile-{number}"), "PRO").await;
        let limits = json!({ "max_open_bytes": MAX_OPEN_BYTES, "max_concurrent_executions": 20 });
        server.change(&tenant, limits).await;
        let queue = tenant.queue();
        let target = Self {
            worker: server.worker(&queue).await,
            schemas: tenant.define("schemas").await,
            graphs: tenant.define("graphs").await,
            bodies: tenant.define("bodies").await,
            tenant,
            queue,
        };
        let task = json!({ "id": "a", "type": "task", "queue": target.queue, "input": {} });
        let version = json!({ "body": { "graph": { "nodes": [task] } } });
        for definition in [&target.schemas, &target.graphs, &target.bodies] {
            target.tenant.must_publish(definition, &version).await;
        }
        target
    }
}

/// What all callers share.
struct Run {
    seed: u64,
    /// The longest hostile call.
    longest: Duration,
    next: AtomicU64,
}

/// The next call: its number, and the random numbers that determine it.
struct Turn {
    seed: u64,
    longest: Duration,
    number: u64,
    rng: Rng,
}

impl Run {
    fn turn(&self) -> Turn {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let rng = Rng::with_seed(self.seed.wrapping_add(number));
        Turn {
            seed: self.seed,
            longest: self.longest,
            number,
            rng,
        }
    }
}

/// The responses by production of the grammar and class of status; 0 is a closed connection.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, [u64; 6]>);

impl Tally {
    /// Sends a call and counts its response, which must be in time and no internal error. Returns the document of a 2xx.
    async fn send(
        &mut self,
        turn: &Turn,
        what: &'static str,
        key: &Tenant,
        path: &str,
        body: &[u8],
    ) -> Option<Value> {
        let begun = Instant::now();
        let answer = key.call_path("POST", path, Some(body)).await;
        let (took, place) = (
            begun.elapsed(),
            format!("{SEED}={}, call {} ({what})", turn.seed, turn.number),
        );
        assert!(took <= turn.longest, "{place} took {took:?}");
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        self.0.entry(what).or_default()[usize::from(status / 100).min(5)] += 1;
        let answer = answer.ok()?;
        assert_ne!(status, 500, "{place}: {}", answer.text());
        (status < 300).then(|| document(&answer))
    }

    fn add(&mut self, other: Self) {
        for (what, counts) in other.0 {
            let all = self.0.entry(what).or_default();
            all.iter_mut()
                .zip(counts)
                .for_each(|(all, one)| *all += one);
        }
    }

    /// Counts the executions of a workspace that have ended: completed ones as accepted, failed ones as refused.
    async fn count_ended(&mut self, tenant: &Tenant) {
        let state = tenant.call("GET", "", None).await.unwrap();
        assert_eq!(state.status, 200, "{}", state.text());
        let requests = &document(&state)["requests"];
        let counts = self.0.entry(EXECUTION).or_default();
        counts[2] += requests["completed"].as_u64().unwrap();
        counts[4] += requests["failed"].as_u64().unwrap();
    }

    /// Asserts that the server has accepted some calls of each production, and refused some of each that can be invalid.
    fn assert_covers_the_grammar(&self) {
        let accepted = grammar::VALID_SOMETIMES.iter().chain(&worker::ANSWERED);
        for what in accepted.chain([&EXECUTION]) {
            let accepted = self.0.get(what).is_some_and(|counts| counts[2] > 0);
            assert!(accepted, "no {what} was accepted: {self}");
        }
        for what in grammar::INVALID_SOMETIMES.iter().chain([&EXECUTION]) {
            let refused = self.0.get(what).is_some_and(|counts| counts[4] > 0);
            assert!(refused, "no {what} was refused: {self}");
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (what, [closed, _, accepted, _, refused, failed]) in &self.0 {
            write!(
                f,
                "{what}: 2xx {accepted}, 4xx {refused}, 5xx {failed}, closed {closed}; "
            )?;
        }
        Ok(())
    }
}

async fn attack(store: &str) {
    let _alone = crate::ALONE.lock().await;
    let dir = temp_dir();
    let deadline = format!("{}s", DEADLINE.as_secs());
    let settings = [("LEASEHOLD__SERVER__REQUEST_TIMEOUT", deadline.as_str())];
    let mut server = ServerProcess::start_with(store, dir.path(), &settings);
    let innocent = Working::create(&server, "innocent").await;
    let quiet = innocent.measure_quiet(Duration::from_secs(1)).await;
    let run = Arc::new(Run {
        seed: seed(),
        longest: DEADLINE + quiet.allowed(LATE_MAX),
        next: AtomicU64::new(0),
    });
    println!("{SEED}={}", run.seed);
    let mut tally = Tally::default();
    let end = Instant::now() + duration();
    let rounds = async {
        for number in 0.. {
            let target = HostileTarget::create(&server, number).await;
            let tenant = target.tenant.clone();
            tally.add(run_round(&run, target, end).await);
            tally.count_ended(&tenant).await;
            if Instant::now() >= end {
                return;
            }
        }
    };
    let (measured, ()) = innocent.measure_beside(rounds).await;
    let (seed, memory) = (run.seed, server.peak_memory());
    let sent = run.next.load(Ordering::Relaxed);
    println!(
        "{sent} hostile calls, innocent tenant: {measured} (quiet p99 {:.0?}), peak memory {memory} MiB; {tally}",
        quiet.p99()
    );
    assert!(server.is_running(), "{SEED}={seed}\n{}", server.log());
    measured.assert_short(&quiet, &format!("hostile input, {SEED}={seed}"));
    assert!(memory <= MEMORY_MAX, "{SEED}={seed}: {memory} MiB");
    tally.assert_covers_the_grammar();
    server.stop();
}

/// Sends hostile calls to one workspace until the end, or until its quotas are full.
async fn run_round(run: &Arc<Run>, target: HostileTarget, end: Instant) -> Tally {
    let end = end.min(Instant::now() + ROUND);
    let target = Arc::new(target);
    let mut tasks: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(call(Arc::clone(run), Arc::clone(&target), end)))
        .collect();
    tasks.push(tokio::spawn(worker::work(Arc::clone(run), target, end)));
    let mut all = Tally::default();
    for tally in join_all(tasks).await {
        all.add(tally.unwrap());
    }
    all
}

/// Sends hostile calls until the end.
async fn call(run: Arc<Run>, target: Arc<HostileTarget>, end: Instant) -> Tally {
    let mut tally = Tally::default();
    while Instant::now() < end {
        let mut turn = run.turn();
        let call = grammar::call(&mut turn.rng, &target);
        let key = match call.is_of_worker {
            true => &target.worker,
            false => &target.tenant,
        };
        tally
            .send(&turn, call.what, key, &call.path, &call.body)
            .await;
    }
    tally
}

fn seed() -> u64 {
    match std::env::var(SEED) {
        Ok(text) => text.parse().expect("the seed is a number"),
        Err(_) => SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(1, |since| since.as_micros() as u64),
    }
}
