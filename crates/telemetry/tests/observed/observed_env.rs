//! An observed SQLite store with a manual clock and a workspace, and the metrics that changed since the last read.

use leasehold_core::{DefinitionId, Plan, VersionBody, WorkspaceId};
use leasehold_store::request::{Claim, ClaimOutcome, Claimed, ClaimedRequest, Enqueue, NewRequest};
use leasehold_store::{ManualClock, Store, fresh_id};
use leasehold_telemetry::{ExpositionFormat, Telemetry, observe_store};
use leasehold_testbed::{
    BackendKind, BackendOptions, TestBackend, TestWorkspace, WorkspaceOptions,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const OWNER: &str = "a dispatcher";
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// An observed store with a workspace in it, and its metrics.
pub(crate) struct ObservedEnv {
    pub(crate) store: Arc<dyn Store>,
    /// The same store, not observed, as another process uses it.
    pub(crate) unobserved: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    pub(crate) workspace: WorkspaceId,
    pub(crate) definition: DefinitionId,
    telemetry: Telemetry,
    last: Mutex<BTreeMap<String, f64>>,
    _backend: TestBackend,
}

impl ObservedEnv {
    pub(crate) async fn new() -> Self {
        let start = "2026-03-01T12:00:00Z".parse().unwrap();
        let clock = ManualClock::starting_at(start);
        let options = BackendOptions::default().clock(clock.clone());
        let backend = TestBackend::with(BackendKind::Sqlite, options).await;
        let telemetry = Telemetry::default();
        let store = Arc::new(observe_store(backend.store.clone(), &telemetry));
        let graph =
            json!({"nodes": [{"type": "task", "id": "only", "queue": "mails"}], "edges": []});
        let options = WorkspaceOptions {
            plan: Plan::Pro,
            limit: Some(100),
            body: VersionBody::Graph(serde_json::from_value(graph).unwrap()),
            execution_timeout: Some(Duration::from_secs(60)),
        };
        let TestWorkspace {
            workspace,
            definition,
            ..
        } = TestWorkspace::with(&*store, options).await;
        let env = Self {
            store,
            unobserved: backend.store.clone(),
            clock,
            workspace,
            definition,
            telemetry,
            last: Mutex::default(),
            _backend: backend,
        };
        env.changed();
        env
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

    /// Enqueues a request and claims it.
    pub(crate) async fn claimed(&self) -> ClaimedRequest {
        let call = self.enqueue(vec![self.request()]);
        self.store.request_enqueue(&call).await.unwrap();
        let claimed = self.claim().await.requests.remove(0);
        self.changed();
        claimed
    }

    pub(crate) async fn claim(&self) -> Claimed {
        let claim = Claim {
            owner: OWNER.to_owned(),
            batch: 10,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        match self.store.request_claim(&claim).await.unwrap() {
            ClaimOutcome::Claimed(claimed) => claimed,
            ClaimOutcome::LockLost => panic!("there is no lock"),
        }
    }

    /// Returns the series that changed since the last call, without call counts and durations.
    pub(crate) fn changed(&self) -> BTreeMap<String, f64> {
        let all = self.all();
        let mut last = self.last.lock().unwrap();
        let changed = all.iter().map(|(series, now)| {
            let was = last.get(series).copied().unwrap_or_default();
            (series.clone(), now - was)
        });
        let is_ignored = |series: &str| {
            let ignored = ["process_", "leasehold_store_", "leasehold_build_info"];
            ignored.iter().any(|prefix| series.starts_with(prefix))
        };
        let changed = changed
            .filter(|(series, by)| *by != 0.0 && !is_ignored(series))
            .collect();
        *last = all;
        changed
    }

    /// Returns the value of a series.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.all()[series]
    }

    fn all(&self) -> BTreeMap<String, f64> {
        let text = self
            .telemetry
            .metrics
            .render(ExpositionFormat::Prometheus)
            .unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (series, value) = line.rsplit_once(' ').unwrap();
                (series.to_owned(), value.parse().unwrap())
            })
            .collect()
    }
}

/// Returns the expected result of [`ObservedEnv::changed`].
pub(crate) fn changes<const N: usize>(changes: [(&str, f64); N]) -> BTreeMap<String, f64> {
    changes.map(|(series, by)| (series.to_owned(), by)).into()
}

/// Returns the changes for one failed request.
pub(crate) fn failed(reason: &str) -> BTreeMap<String, f64> {
    let series = format!("queue_items_failed_total{{reason=\"{reason}\"}}");
    changes([
        (&series, 1.0),
        ("leasehold_requests_finished_total{status=\"failed\"}", 1.0),
    ])
}
