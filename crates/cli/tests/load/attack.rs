//! Attacks of a tenant with an ordinary workspace key, or of a worker with an ordinary worker key. Each repeats until a deadline and records what it got.

mod compute;
mod expected;
mod prepare;
mod reads;
mod tasks;
mod worker;

use crate::tenant::Tenant;
use leasehold_testkit::HttpResponse;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;
use tokio::task::JoinHandle;

pub(crate) use expected::assert_expected;
pub(crate) use prepare::Attackers;
pub(crate) use worker::KEY_MAX_OPEN_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    /// HTTP/2 peers that ask for large lists and never read.
    UnreadResponses,
    /// Forty levels of `allOf` with two references to the next level: 2^40 comparisons.
    DoublingSchema,
    /// A chain of 1,131 references with `unevaluatedProperties`, which overflowed the stack.
    ChainedSchema,
    /// Sixty patterns of sixty letter classes each, and back-references.
    Patterns,
    /// Params that use up the steps of a validation, for an accepted schema.
    CostlyValidation,
    /// URLs and inputs with hundreds of copies of 256 KiB of params.
    Templates,
    /// Batches of 4 MiB, in a full run 16 MiB, that consist of tiny objects.
    TinyObjects,
    /// Lists of many versions of 0.8 MB each.
    VersionLists,
    /// Five requests of 31 KiB for a graph of 999 tasks, and one call that is rejected.
    WideGraph,
    /// Sixty lists of 4 MiB at once.
    ManyLists,
    /// Lists with cursors that are forged, cut off, or another tenant's.
    ForgedCursors,
    /// Lists and batches whose callers disconnect in the middle.
    Disconnects,
    /// Pages and streams of changes, and claims, whose callers disconnect in the middle: these calls end with their connection.
    DisconnectedWaits,
    /// Reads of the changes of an empty workspace from the oldest, and from before thousands of others.
    OldChanges,
    /// Redrives of all failed requests at once, each of 100 KB.
    BulkRedrive,
    /// A worker key that stores jobs of 250 KiB beyond its quota, and claims a thousand of them.
    LargeJobs,
    /// Graphs and schemas of 14 MiB, which are refused only after they were parsed.
    LargePublish,
    /// Calls that finish jobs with results of 4 MiB, in a full run 15 MiB, that consist of tiny objects.
    LargeFinish,
    /// Graphs whose last node reads many outputs of 250 KiB.
    FanIn,
    /// Reports of ended executions with invented ids.
    EndReports,
    /// Reads of a graph while the engine does not answer.
    GraphReads,
}

/// All attacks on a server whose engine runs.
pub(crate) const ALL: [Attack; 20] = [
    // First: the server has ten seconds to disconnect the peers while the other attacks run.
    Attack::UnreadResponses,
    Attack::DoublingSchema,
    Attack::ChainedSchema,
    Attack::Patterns,
    Attack::CostlyValidation,
    Attack::Templates,
    Attack::TinyObjects,
    Attack::VersionLists,
    Attack::WideGraph,
    Attack::ManyLists,
    Attack::ForgedCursors,
    Attack::Disconnects,
    Attack::DisconnectedWaits,
    Attack::OldChanges,
    Attack::BulkRedrive,
    Attack::LargeJobs,
    Attack::LargePublish,
    Attack::LargeFinish,
    Attack::FanIn,
    Attack::EndReports,
];

impl Attack {
    /// How many times as long as others it takes: work that is left behind by callers adds up.
    pub(crate) fn duration_factor(self) -> u32 {
        match self {
            Self::DisconnectedWaits => 4,
            _ => 1,
        }
    }
}

/// What an attack uses.
#[derive(Clone)]
pub(crate) struct Attacker {
    tenant: Tenant,
    /// The key of a worker.
    worker: Tenant,
    definition: String,
    /// A second definition.
    other: String,
    /// A cursor: of another tenant's list, or of the changes before thousands of others.
    cursor: String,
}

impl Attacker {
    /// The same attacker at another server of the store.
    pub(crate) fn at(mut self, address: SocketAddr) -> Self {
        self.tenant.address = address;
        self
    }
}

/// The statuses that the calls of an attack got: by name of the call and status; 0 is a closed connection.
#[derive(Default)]
pub(crate) struct Record {
    counts: BTreeMap<(&'static str, u16), usize>,
    /// Whether the server disconnected each peer that does not read.
    pub(crate) cut_off: Vec<JoinHandle<bool>>,
}

type Answer = io::Result<HttpResponse>;

fn status(answer: &Answer) -> u16 {
    answer.as_ref().map_or(0, |answer| answer.status)
}

impl Record {
    fn count(&mut self, call: &'static str, status: u16) {
        *self.counts.entry((call, status)).or_default() += 1;
    }

    /// Counts the response to a call, which must not be an internal error.
    fn add(&mut self, call: &'static str, answer: &Answer) {
        if let Ok(answer) = answer {
            assert_ne!(answer.status, 500, "{call}: {}", answer.text());
        }
        self.count(call, status(answer));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (key, count) in other.counts {
            *self.counts.entry(key).or_default() += count;
        }
        self.cut_off.extend(other.cut_off);
    }

    pub(crate) fn shown(&self) -> String {
        let counts = self.counts.iter();
        let counts = counts.map(|((call, status), count)| format!("{call} {status} × {count}"));
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// Repeats an attack until the deadline, at least once.
pub(crate) async fn run(attack: Attack, attacker: &Attacker, deadline: Instant) -> Record {
    let mut record = Record::default();
    loop {
        run_once(attack, attacker, &mut record).await;
        if Instant::now() >= deadline {
            return record;
        }
        if attack == Attack::UnreadResponses {
            crate::neighbour::pause(deadline.saturating_duration_since(Instant::now())).await;
            return record;
        }
    }
}

async fn run_once(attack: Attack, attacker: &Attacker, record: &mut Record) {
    match attack {
        Attack::UnreadResponses => reads::leave_responses_unread(attacker, record).await,
        Attack::DoublingSchema => {
            let schema = compute::doubling(40);
            compute::publish_schema("publish", attacker, schema, record).await;
        }
        Attack::ChainedSchema => {
            let schema = compute::chained(1_131);
            compute::publish_schema("publish", attacker, schema, record).await;
        }
        Attack::Patterns => {
            let schema = compute::large_patterns();
            compute::publish_schema("publish classes", attacker, schema, record).await;
            let schema = compute::back_reference();
            compute::publish_schema("publish back-reference", attacker, schema, record).await;
        }
        Attack::CostlyValidation => compute::enqueue_costly_params(attacker, record).await,
        Attack::Templates => compute::run_templates(attacker, record).await,
        Attack::TinyObjects => compute::enqueue_tiny_objects(attacker, record).await,
        Attack::VersionLists => reads::list_versions(attacker, record).await,
        Attack::WideGraph => compute::run_wide_graph(attacker, record).await,
        Attack::ManyLists => reads::list_at_once(attacker, record).await,
        Attack::ForgedCursors => reads::forge_cursors(attacker, record).await,
        Attack::Disconnects => reads::disconnect_calls(attacker, record).await,
        Attack::DisconnectedWaits => reads::disconnect_waits(attacker, record).await,
        Attack::OldChanges => reads::read_old_changes(attacker, record).await,
        Attack::BulkRedrive => worker::redrive_all(attacker, record).await,
        Attack::LargeJobs => worker::store_and_claim_jobs(attacker, record).await,
        Attack::LargePublish => compute::publish_large(attacker, record).await,
        Attack::LargeFinish => tasks::finish_large_jobs(attacker, record).await,
        Attack::FanIn => tasks::run_fan_in(attacker, record).await,
        Attack::EndReports => worker::report_ends(attacker, record).await,
        Attack::GraphReads => reads::read_graphs(attacker, record).await,
    }
}
