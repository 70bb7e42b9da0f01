//! One tenant sends generated hostile schemas, templates, graphs and bodies; another one calls as usual and must not notice.
//!
//! Every call has a number, which alone determines its input. `LEASEHOLD_FUZZ_SEED` repeats a run; a failure prints the seed and the number.

mod bodies;
mod grammar;

use crate::server_process::{LoadTarget, ServerProcess};
use fastrand::Rng;
use grammar::HostileCall;
use leasehold_testkit::{HttpConnection, TestPostgres, sized, temp_dir};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Concurrent hostile callers.
const ATTACKERS: u64 = 4;
/// Time between two calls of the innocent tenant.
const PACE: Duration = Duration::from_millis(50);
/// The longest time of a call of the innocent tenant. On a machine that is busy with something else: twenty times its longest call before the attack.
const INNOCENT_MAX: Duration = Duration::from_secs(2);
/// `server.request_timeout`, and a second.
const HOSTILE_MAX: Duration = Duration::from_secs(30 + 1);
/// The memory budget of the server, in MiB.
const MEMORY_MAX: u64 = 1024;
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

/// What all callers share.
struct Run {
    seed: u64,
    next: AtomicU64,
    over: AtomicBool,
    /// The longest time of a call of the innocent tenant.
    innocent_max: Duration,
}

impl Run {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

async fn attack(store: &str) {
    let _alone = crate::ALONE.lock().await;
    let dir = temp_dir();
    let mut server = ServerProcess::start_with(store, dir.path(), &[]);
    let delay = json!({"id": "a", "type": "delay", "milliseconds": 1});
    let graph = json!({"graph": {"nodes": [delay], "edges": []}});
    let hostile = Arc::new(server.target_of("hostile", graph.clone()).await);
    let innocent = Arc::new(server.target_of("innocent", graph).await);
    let run = Arc::new(Run {
        seed: seed(),
        next: AtomicU64::new(0),
        over: AtomicBool::new(false),
        innocent_max: INNOCENT_MAX.max(20 * slowest_quiet_call(&innocent).await),
    });
    println!("{SEED}={}", run.seed);
    let attackers: Vec<_> = (0..ATTACKERS)
        .map(|_| tokio::spawn(call_hostile(hostile.clone(), run.clone())))
        .collect();
    let caller = tokio::spawn(call_innocent(innocent, run.clone()));
    let started = Instant::now();
    let mut ticks = interval(Duration::from_millis(100));
    while started.elapsed() < duration() {
        ticks.tick().await;
        let sent = run.next.load(Ordering::Relaxed);
        let seed = run.seed;
        assert!(
            server.is_running(),
            "{SEED}={seed}: ended before call {sent}\n{}",
            server.log()
        );
    }
    run.over.store(true, Ordering::Release);
    let mut statuses = [0_u64; 6];
    for attacker in attackers {
        let report = attacker.await.unwrap();
        statuses
            .iter_mut()
            .zip(report)
            .for_each(|(all, one)| *all += one);
    }
    let slowest = caller.await.unwrap();
    let memory = server.peak_memory();
    let sent = run.next.load(Ordering::Relaxed);
    println!(
        "{sent} hostile calls (2xx {}, 4xx {}, 5xx {}, closed {}), slowest innocent call {slowest:.0?}, peak memory {memory} MiB",
        statuses[2], statuses[4], statuses[5], statuses[0]
    );
    assert!(statuses[2] > 0 && statuses[4] > 0, "{statuses:?}");
    assert!(memory <= MEMORY_MAX, "{SEED}={}: {memory} MiB", run.seed);
    server.stop();
}

fn seed() -> u64 {
    match std::env::var(SEED) {
        Ok(text) => text.parse().expect("the seed is a number"),
        Err(_) => SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(1, |since| since.as_micros() as u64),
    }
}

/// Sends hostile calls until the run is over. Returns how many got a status of each class; 0 is a closed connection.
async fn call_hostile(target: Arc<LoadTarget>, run: Arc<Run>) -> [u64; 6] {
    let mut statuses = [0; 6];
    let mut connection = HttpConnection::open(target.address).await.ok();
    while !run.is_over() {
        let number = run.next.fetch_add(1, Ordering::Relaxed);
        let mut rng = Rng::with_seed(run.seed.wrapping_add(number));
        let HostileCall { what, path, body } = grammar::call(&mut rng, &target);
        let Some(open) = connection.as_mut() else {
            connection = HttpConnection::open(target.address).await.ok();
            continue;
        };
        let sent = open.call("POST", &path, &target.key, Some(&body));
        match timeout(HOSTILE_MAX, sent).await {
            Ok(Ok(answer)) => {
                let class = usize::from(answer.status / 100).min(5);
                statuses[class] += 1;
                let (failed, seed) = (answer.status == 500, run.seed);
                if class == 5 {
                    println!("call {number} ({what}): {}", answer.text());
                }
                assert!(
                    !failed,
                    "{SEED}={seed}, call {number} ({what}): {}",
                    answer.text()
                );
            }
            Ok(Err(_closed)) => {
                statuses[0] += 1;
                connection = None;
            }
            Err(_) => panic!(
                "{SEED}={}, call {number} ({what}): no answer in {HOSTILE_MAX:?}",
                run.seed
            ),
        }
    }
    statuses
}

/// Returns the time of the slowest of some calls without an attack.
async fn slowest_quiet_call(target: &LoadTarget) -> Duration {
    let mut connection = HttpConnection::open(target.address).await.unwrap();
    let mut slowest = Duration::ZERO;
    for count in 0..10 {
        let body = target.request(&format!("quiet-{count}"));
        let (path, body) = (target.requests(), Some(body.as_bytes()));
        let begun = Instant::now();
        let answer = connection.call("POST", &path, &target.key, body).await;
        assert_eq!(answer.unwrap().status, 201);
        slowest = slowest.max(begun.elapsed());
    }
    slowest
}

/// Enqueues and reads requests at a steady pace; every answer must be quick, and every request completes. Returns the time of the slowest call.
async fn call_innocent(target: Arc<LoadTarget>, run: Arc<Run>) -> Duration {
    let mut connection = HttpConnection::open(target.address).await.unwrap();
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut slowest, mut open) = (Duration::ZERO, Vec::new());
    for count in 0.. {
        pace.tick().await;
        let (method, path, body) = match (count % 3, open.last()) {
            (0, _) if !run.is_over() => {
                let body = target.request(&format!("innocent-{count}"));
                ("POST", target.requests(), Some(body))
            }
            (_, Some(id)) => ("GET", format!("{}/{id}", target.requests()), None),
            (_, None) => ("GET", format!("{}?limit=10", target.requests()), None),
        };
        let begun = Instant::now();
        let body = body.as_deref().map(str::as_bytes);
        let call = connection.call(method, &path, &target.key, body);
        let answer = timeout(run.innocent_max, call).await;
        let answer = answer.unwrap_or_else(|_| {
            let sent = run.next.load(Ordering::Relaxed);
            panic!(
                "{SEED}={}: {method} {path} took over {:?} at call {sent}",
                run.seed, run.innocent_max
            )
        });
        let answer = answer.unwrap();
        assert!(answer.status < 300, "{}", answer.text());
        slowest = slowest.max(begun.elapsed());
        let document: Value = serde_json::from_slice(&answer.body).unwrap();
        if method == "POST" {
            open.push(document["id"].as_str().unwrap().to_owned());
        } else if document["status"] == "COMPLETED" {
            open.pop();
        }
        assert_ne!(document["status"], "FAILED", "{document}");
        if run.is_over() && open.is_empty() {
            return slowest;
        }
    }
    slowest
}
