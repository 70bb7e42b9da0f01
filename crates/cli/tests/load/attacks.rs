//! Attacks of one tenant while another one calls, enqueues and runs graphs: the other one's calls stay short, memory stays bounded, and the process survives.

use crate::attack::{self, Attack};
use crate::neighbour::{Measured, Neighbour, short_graph};
use crate::server_process::ServerProcess;
use leasehold_testkit::{TestPostgres, sized, temp_dir};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Attackers that run each attack at once.
const ATTACKERS: usize = 3;
/// The most memory of the server, in MiB.
const MEMORY_MAX: u64 = 1_024;
/// The longest call of the neighbour. On a machine that is busy with something else: twenty times its longest call without an attack.
const CALL_MAX: Duration = Duration::from_secs(2);

fn attack_time() -> Duration {
    Duration::from_secs(sized(2, 30))
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
    let mut server = ServerProcess::start_with(store, dir.path(), &[]);
    let good = server.tenant("good", "ENTERPRISE").await;
    let bad = server.tenant("bad", "FREE").await;
    let worker = attack::worker_of(&bad, &server.worker_key(attack::WORKER_QUEUE).await);
    let definition = good.define("short").await;
    let published = good.publish(&definition, &short_graph()).await.unwrap();
    assert_eq!(published.status, 201, "{}", published.text());

    let neighbour = Neighbour::start(&good, &definition);
    tokio::time::timeout(attack_time(), std::future::pending::<()>())
        .await
        .unwrap_err();
    let quiet = neighbour.stop().await;
    println!("no attack: {}", shown(&quiet));
    let longest = CALL_MAX.max(20 * quiet.slowest());

    for kind in attack::ALL {
        let neighbour = Neighbour::start(&good, &definition);
        let deadline = Instant::now() + attack_time();
        let attackers = (0..ATTACKERS).map(|_| attack::run(kind, &bad, &worker, deadline));
        let statuses = futures::future::join_all(attackers).await.concat();
        let measured = neighbour.stop().await;
        let memory = server.peak_memory();
        println!(
            "{kind:?}: {}, attacker got {:?}, peak memory {memory} MiB",
            shown(&measured),
            counted(&statuses)
        );
        assert!(server.is_running(), "{kind:?}\n{}", server.log());
        assert!(
            measured.slowest() <= longest,
            "{kind:?}: {}",
            shown(&measured)
        );
        assert!(memory <= MEMORY_MAX, "{kind:?}: {memory} MiB");
        assert_answered(kind, &statuses);
    }
    server.stop();
}

/// No call of an attack causes an internal error. The server may close the connection of a body that is too large.
fn assert_answered(kind: Attack, statuses: &[u16]) {
    assert!(!statuses.is_empty(), "{kind:?} made no call");
    let faults = statuses.iter().filter(|status| **status == 500);
    assert_eq!(faults.count(), 0, "{kind:?}: {:?}", counted(statuses));
}

fn counted(statuses: &[u16]) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    for status in statuses {
        *counts.entry(*status).or_default() += 1;
    }
    counts
}

fn shown(measured: &Measured) -> String {
    format!(
        "neighbour ran {} graphs, p99 of its calls {:.0?}, slowest {:.0?}",
        measured.completed,
        measured.p99(),
        measured.slowest()
    )
}
