//! A watched SQLite store with a clock that stands still, a workspace, and what has moved since the last look.

use leasehold_core::{DefinitionId, Plan, VersionBody, WorkspaceId};
use leasehold_store::definition::{NewDefinition, NewVersion};
use leasehold_store::request::{Claim, ClaimOutcome, Claimed, ClaimedRequest, Enqueue, NewRequest};
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Clock, ManualClock, Store, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_telemetry::{Format, ObservedStore, Telemetry};
use leasehold_testkit::{TempDir, temp_dir};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const OWNER: &str = "a dispatcher";
pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) struct Ground {
    pub(crate) store: ObservedStore,
    /// The same, unwatched: what other processes use.
    pub(crate) unwatched: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    pub(crate) workspace: WorkspaceId,
    pub(crate) definition: DefinitionId,
    telemetry: Telemetry,
    last: Mutex<BTreeMap<String, f64>>,
    _folder: TempDir,
}

impl Ground {
    pub(crate) async fn new() -> Self {
        let folder = temp_dir();
        let clock = ManualClock::starting_at("2026-03-01T12:00:00Z".parse().unwrap());
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            ..SqliteOptions::default()
        };
        let real = SqliteStore::open(folder.path().join("test.db"), &options).unwrap();
        let telemetry = Telemetry::default();
        let unwatched: Arc<dyn Store> = Arc::new(real);
        let store = ObservedStore::new(unwatched.clone(), &telemetry);
        store.schema_migrate().await.unwrap();
        let (workspace, definition) = (fresh_id(), fresh_id());
        let new = NewWorkspace {
            id: workspace,
            name: "acme".to_owned(),
            plan: Plan::Pro,
            limit_override: Some(100),
        };
        store.workspace_create(&new).await.unwrap();
        let new = NewDefinition {
            id: definition,
            workspace,
            name: "order".to_owned(),
        };
        store.definition_create(&new).await.unwrap();
        let graph =
            json!({"nodes": [{"type": "task", "id": "only", "queue": "mails"}], "edges": []});
        let new = NewVersion {
            id: fresh_id(),
            workspace,
            definition,
            body: VersionBody::Graph(serde_json::from_value(graph).unwrap()),
            params_schema: None,
            execution_timeout: Some(Duration::from_secs(60)),
        };
        store.version_publish(&new).await.unwrap();
        let ground = Self {
            store,
            unwatched,
            clock,
            workspace,
            definition,
            telemetry,
            last: Mutex::default(),
            _folder: folder,
        };
        ground.moved();
        ground
    }

    pub(crate) fn request(&self) -> NewRequest {
        NewRequest::new(fresh_id(), self.definition, json!({}))
    }

    pub(crate) fn enqueue(&self, requests: Vec<NewRequest>) -> Enqueue {
        Enqueue {
            workspace: self.workspace,
            requests,
            by: "a caller".to_owned(),
        }
    }

    /// Enqueues one, and claims it.
    pub(crate) async fn claimed(&self) -> ClaimedRequest {
        let call = self.enqueue(vec![self.request()]);
        self.store.request_enqueue(&call).await.unwrap();
        let claimed = self.claim().await.requests.remove(0);
        self.moved();
        claimed
    }

    pub(crate) async fn claim(&self) -> Claimed {
        let claim = Claim {
            owner: OWNER.to_owned(),
            batch: 10,
            lease: LEASE,
            lock: None,
        };
        match self.store.request_claim(&claim).await.unwrap() {
            ClaimOutcome::Claimed(claimed) => claimed,
            ClaimOutcome::LockLost => panic!("there is no lock"),
        }
    }

    /// What has moved since the last look, but for calls and their times.
    pub(crate) fn moved(&self) -> BTreeMap<String, f64> {
        let all = self.all();
        let mut last = self.last.lock().unwrap();
        let moved = all.iter().map(|(series, now)| {
            let was = last.get(series).copied().unwrap_or_default();
            (series.clone(), now - was)
        });
        let quiet = |series: &str| {
            let noise = ["process_", "leasehold_store_", "leasehold_build_info"];
            noise.iter().any(|prefix| series.starts_with(prefix))
        };
        let moved = moved
            .filter(|(series, by)| *by != 0.0 && !quiet(series))
            .collect();
        *last = all;
        moved
    }

    /// The value of a series.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.all()[series]
    }

    fn all(&self) -> BTreeMap<String, f64> {
        let text = self.telemetry.metrics.shown(Format::Prometheus).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (series, value) = line.rsplit_once(' ').unwrap();
                (series.to_owned(), value.parse().unwrap())
            })
            .collect()
    }
}

/// What [`Ground::moved`] must say.
pub(crate) fn moves<const N: usize>(moves: [(&str, f64); N]) -> BTreeMap<String, f64> {
    moves.map(|(series, by)| (series.to_owned(), by)).into()
}

/// A request that failed for good.
pub(crate) fn failed(reason: &str) -> BTreeMap<String, f64> {
    let series = format!("queue_items_failed_total{{reason=\"{reason}\"}}");
    moves([
        (&series, 1.0),
        ("leasehold_requests_finished_total{status=\"failed\"}", 1.0),
    ])
}
