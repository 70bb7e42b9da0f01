//! Attacks of one tenant while another one calls, enqueues and runs graphs: the other one's calls stay short, memory stays bounded, and the process survives.

use crate::attack::{self, Attack, Attacker, Attackers, Record};
use crate::neighbour::{Measured, Working};
use crate::server_process::ServerProcess;
use leasehold_testkit::{TestPostgres, sized, temp_dir};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// Attackers that run each attack at once.
const ATTACKERS: usize = 3;
/// The most memory of the server, in MiB.
pub(crate) const MEMORY_MAX: u64 = 1_024;

fn attack_time() -> Duration {
    Duration::from_millis(sized(1_000, 30_000))
}

/// A full run has the default settings. An attack of a second needs a small quota and a short time to reach them.
fn settings() -> &'static [(&'static str, &'static str)] {
    const SMALL: &[(&str, &str)] = &[
        (
            "LEASEHOLD__SERVER__KEY_MAX_OPEN_BYTES",
            attack::KEY_MAX_OPEN_BYTES,
        ),
        ("LEASEHOLD__SERVER__WRITE_TIMEOUT", "10s"),
    ];
    sized(SMALL, &[])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_of_one_tenant_do_not_disturb_another_on_sqlite() {
    let dir = temp_dir();
    let store = format!("sqlite:{}", dir.path().join("attacks.db").display());
    run_attacks(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_of_one_tenant_do_not_disturb_another_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    run_attacks(database.url()).await;
}

async fn run_attacks(store: &str) {
    let _alone = crate::ALONE.lock().await;
    let dir = temp_dir();
    let mut server = ServerProcess::start_with(store, dir.path(), settings());
    let good = Working::create(&server, "good").await;
    let attackers = Attackers::create(&server, good.tenant()).await;
    let mut all = Vec::new();
    for kind in attack::ALL {
        all.push((kind, attackers.of(kind).await));
    }
    drop(attackers);
    let quiet = good.measure_quiet(attack_time()).await;
    let mut peers = Vec::new();
    for (kind, attacker) in &all {
        let record = run_attack(&mut server, &good, &quiet, *kind, attacker).await;
        peers.extend(record.cut_off);
    }
    for peer in peers {
        assert!(peer.await.unwrap(), "a peer that does not read stays");
    }
    server.stop();
}

/// Runs an attack, and asserts what it may do to the server and the other tenant.
async fn run_attack(
    server: &mut ServerProcess,
    good: &Working,
    quiet: &Measured,
    kind: Attack,
    attacker: &Attacker,
) -> Record {
    let deadline = Instant::now() + attack_time() * kind.duration_factor();
    let attack = (0..ATTACKERS).map(|_| attack::run(kind, attacker, deadline));
    let attack = futures::future::join_all(attack);
    let (measured, records) = good.measure_beside(attack).await;
    let mut record = Record::default();
    records.into_iter().for_each(|one| record.merge(one));
    let memory = server.peak_memory();
    println!(
        "{kind:?}: {measured} (quiet p99 {:.0?}), peak memory {memory} MiB; attacker: {}",
        quiet.p99(),
        record.shown()
    );
    assert!(server.is_running(), "{kind:?}\n{}", server.log());
    measured.assert_short(quiet, &format!("{kind:?}"));
    assert!(memory <= MEMORY_MAX, "{kind:?}: {memory} MiB");
    attack::assert_expected(kind, &record);
    record
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graph_reads_beside_a_hanging_engine_do_not_disturb_another_tenant_on_sqlite() {
    let dir = temp_dir();
    let store = format!("sqlite:{}", dir.path().join("graphs.db").display());
    read_graphs_beside_a_hanging_engine(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graph_reads_beside_a_hanging_engine_do_not_disturb_another_tenant_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    read_graphs_beside_a_hanging_engine(database.url()).await;
}

/// Runs a graph to its end; then starts a server on the same store whose engine accepts connections and never answers.
async fn read_graphs_beside_a_hanging_engine(store: &str) {
    let _alone = crate::ALONE.lock().await;
    let dir = temp_dir();
    let mut server = ServerProcess::start_with(store, dir.path(), &[]);
    let good = Working::create(&server, "good").await;
    let attacker = Attacker::with_ended_graph(&server).await;
    server.stop();
    let engine = HangingEngine::start().await;
    let settings = [
        ("LEASEHOLD__ENGINE__KIND", "temporal"),
        ("LEASEHOLD__TEMPORAL__ADDRESS", engine.address.as_str()),
        ("LEASEHOLD__TEMPORAL__CONNECT_TIMEOUT", "500ms"),
        ("LEASEHOLD__TEMPORAL__CALL_TIMEOUT", "500ms"),
    ];
    let mut server = ServerProcess::start_with(store, dir.path(), &settings);
    let attacker = attacker.at(server.address());
    let good = good.without_engine(server.address());
    let quiet = good.measure_quiet(attack_time()).await;
    let kind = Attack::GraphReads;
    run_attack(&mut server, &good, &quiet, kind, &attacker).await;
    server.stop();
}

/// A listener whose connections get no byte.
struct HangingEngine {
    address: String,
    accepting: AbortHandle,
}

impl HangingEngine {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let accepting = tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                open.push(connection);
            }
        });
        Self {
            address,
            accepting: accepting.abort_handle(),
        }
    }
}

impl Drop for HangingEngine {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
