//! Reports of workers about executions.

use leasehold_core::key::KeyScope;
use leasehold_core::limits::{END_REPORT_INTERVAL_MS, END_REPORT_VERSIONS_MAX, END_REPORTS_MAX};
use leasehold_core::{ExecutionId, VersionBody};
use leasehold_store::key::Key;
use leasehold_store::notification::Notification;
use leasehold_store::{Result, Store};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(END_REPORT_INTERVAL_MS);

/// Accepts reports that executions have ended in the engine. They only notify the reconciler, which asks the engine: a report itself ends nothing.
///
/// Only a report of an execution that is RUNNING here, by a key that works for it, notifies. The caller does not wait for this check, so a report takes
/// equally long and is answered alike whether the execution exists or not. One notification is for all executions, so the reports that arrive within
/// `END_REPORT_INTERVAL_MS` are checked together, in one statement, and one check runs at a time. Beyond `END_REPORTS_MAX` reports are dropped: the
/// reconciler polls, so it finds those ends a little later.
#[derive(Clone, Debug, Default)]
pub struct EndReports(Arc<Mutex<Window>>);

/// The reports since the last check.
#[derive(Debug, Default)]
struct Window {
    reports: HashMap<ExecutionId, Vec<Arc<Key>>>,
    checked_at: Option<Instant>,
    /// A task checks the reports, or waits until it may.
    has_task: bool,
}

impl Window {
    /// Adds a report. Returns how long a new task must wait before it checks; none if there is a task.
    fn report(&mut self, execution: ExecutionId, key: &Arc<Key>, now: Instant) -> Option<Duration> {
        let is_full = self.reports.values().map(Vec::len).sum::<usize>() >= END_REPORTS_MAX;
        let keys = self.reports.entry(execution).or_default();
        if !is_full && keys.iter().all(|known| known.id != key.id) {
            keys.push(Arc::clone(key));
        }
        if keys.is_empty() {
            self.reports.remove(&execution);
        }
        if std::mem::replace(&mut self.has_task, true) {
            return None;
        }
        let elapsed = self.checked_at.map(|at| now.saturating_duration_since(at));
        let rest = elapsed.and_then(|elapsed| INTERVAL.checked_sub(elapsed));
        Some(rest.unwrap_or_default())
    }

    /// Records a check. Returns whether reports have arrived meanwhile, which the task checks next.
    fn checked(&mut self, now: Instant) -> bool {
        self.checked_at = Some(now);
        self.has_task = !self.reports.is_empty();
        self.has_task
    }
}

impl EndReports {
    /// Accepts a report. Must be called in a Tokio runtime.
    pub fn accept(&self, store: &Arc<dyn Store>, execution: ExecutionId, by: &Arc<Key>) {
        let delay = self.with(|window| window.report(execution, by, Instant::now()));
        if let Some(delay) = delay {
            let (reports, store) = (self.clone(), Arc::clone(store));
            tokio::spawn(async move { reports.check(&*store, delay).await });
        }
    }

    /// Checks reports until there are none.
    async fn check(self, store: &dyn Store, mut delay: Duration) {
        loop {
            tokio::time::sleep(delay).await;
            let reports = self.with(|window| std::mem::take(&mut window.reports));
            if let Err(error) = notify(store, &reports).await {
                tracing::debug!(%error, "failed to notify the reconciler of ended executions");
            }
            if !self.with(|window| window.checked(Instant::now())) {
                return;
            }
            delay = INTERVAL;
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Window) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Notifies the reconciler if one of these executions is RUNNING and was reported by a key that works for it.
async fn notify(store: &dyn Store, reports: &HashMap<ExecutionId, Vec<Arc<Key>>>) -> Result<()> {
    let ids: Vec<ExecutionId> = reports.keys().copied().collect();
    let mut versions = HashSet::new();
    for execution in store.execution_list_running(&ids).await? {
        let keys = reports.get(&execution.id).into_iter().flatten();
        let scopes: Vec<&KeyScope> = keys.map(|key| &key.rights.scope).collect();
        if scopes.contains(&&KeyScope::Admin) {
            return store.notify(Notification::Ended).await;
        }
        versions.insert(execution.version);
        if versions.len() > END_REPORT_VERSIONS_MAX {
            return Ok(());
        }
        let version = store
            .version_get(execution.workspace, execution.version)
            .await?;
        let works = |scope| version.as_ref().is_some_and(|v| works_for(scope, &v.body));
        if scopes.into_iter().any(works) {
            return store.notify(Notification::Ended).await;
        }
    }
    Ok(())
}

/// Whether a key works for executions of this version: it has one of their queues. A graph without task nodes has no queue, so any worker may run it.
fn works_for(scope: &KeyScope, body: &VersionBody) -> bool {
    let (KeyScope::Worker { queues }, VersionBody::Graph(graph)) = (scope, body) else {
        return false;
    };
    let used = graph.task_queues();
    used.is_empty()
        || used
            .iter()
            .any(|queue| queues.iter().any(|own| own == queue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::Timestamp;
    use leasehold_core::key::KeyRights;
    use leasehold_store::fresh_id;
    use serde_json::json;

    fn key() -> Arc<Key> {
        Arc::new(Key {
            id: fresh_id(),
            name: "worker".to_owned(),
            rights: KeyRights::full(KeyScope::Admin),
            hash: [0; 32],
            created_at: Timestamp::UNIX_EPOCH,
            revoked_at: None,
            expires_at: None,
            is_expired: false,
            last_used_at: None,
            successor: None,
        })
    }

    #[test]
    fn reports_within_the_interval_are_checked_together() {
        let (mut window, key, start) = (Window::default(), key(), Instant::now());
        let third = INTERVAL / 3;
        let report = |window: &mut Window, at| window.report(fresh_id(), &key, at);
        assert_eq!(report(&mut window, start), Some(Duration::ZERO));
        assert_eq!(report(&mut window, start), None, "one task");
        window.reports.clear();
        assert!(!window.checked(start));
        let later = report(&mut window, start + third);
        assert_eq!(later, Some(INTERVAL - third));
        for _ in 0..100 {
            assert_eq!(report(&mut window, start + 2 * third), None);
        }
        assert!(window.checked(start + INTERVAL), "the task goes on");
        window.reports.clear();
        assert!(!window.checked(start + 2 * INTERVAL));
        let idle = report(&mut window, start + 4 * INTERVAL);
        assert_eq!(idle, Some(Duration::ZERO));
    }

    #[test]
    fn kept_reports_are_bounded() {
        let (mut window, key, now) = (Window::default(), key(), Instant::now());
        let known = fresh_id();
        for _ in 0..10 {
            window.report(known, &key, now);
        }
        assert_eq!(window.reports[&known].len(), 1);
        for _ in 0..2 * END_REPORTS_MAX {
            window.report(fresh_id(), &key, now);
        }
        assert_eq!(window.reports.len(), END_REPORTS_MAX);
    }

    #[test]
    fn worker_works_for_graphs_with_its_queues() {
        let worker = |queue: &str| KeyScope::Worker {
            queues: vec!["bills".to_owned(), queue.to_owned()],
        };
        let body = |body| serde_json::from_value::<VersionBody>(body).unwrap();
        let task = json!({"id": "a", "type": "task", "queue": "mail"});
        let delay = json!({"id": "b", "type": "delay", "milliseconds": 1});
        let mails = body(json!({"graph": {"nodes": [task, delay]}}));
        let delays = body(json!({"graph": {"nodes": [delay]}}));
        let binding = body(json!({"binding": {"workflow_type": "Order", "task_queue": "mail"}}));
        assert!(works_for(&worker("mail"), &mails));
        assert!(!works_for(&worker("mails"), &mails));
        assert!(works_for(&worker("mails"), &delays));
        assert!(!works_for(&worker("mail"), &binding));
    }
}
