//! Reports of workers about executions.

use leasehold_core::ExecutionId;
use leasehold_core::limits::END_REPORT_INTERVAL_MS;
use leasehold_store::notification::Notification;
use leasehold_store::{Result, Store};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(END_REPORT_INTERVAL_MS);

/// Accepts reports that executions have ended in the engine. They only notify the reconciler, which asks the engine: a report itself ends nothing.
///
/// The execution is not looked up, so a report costs the same and is answered alike whether it exists or not. One notification is for all
/// executions, so reports are coalesced: the first is sent at once, those that follow within `END_REPORT_INTERVAL_MS` as one at its end.
#[derive(Clone, Debug, Default)]
pub struct EndReports(Arc<Mutex<Window>>);

/// The time since the last notification.
#[derive(Debug, Default)]
struct Window {
    sent_at: Option<Instant>,
    is_scheduled: bool,
}

/// What follows from a report.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Notify,
    NotifyAfter(Duration),
    /// A notification is scheduled already.
    Coalesce,
}

impl Window {
    fn report(&mut self, now: Instant) -> Step {
        if self.is_scheduled {
            return Step::Coalesce;
        }
        let elapsed = self.sent_at.map(|at| now.saturating_duration_since(at));
        match elapsed.and_then(|elapsed| INTERVAL.checked_sub(elapsed)) {
            Some(rest) if !rest.is_zero() => {
                self.is_scheduled = true;
                Step::NotifyAfter(rest)
            }
            _ => {
                self.sent_at = Some(now);
                Step::Notify
            }
        }
    }

    fn sent(&mut self, now: Instant) {
        self.is_scheduled = false;
        self.sent_at = Some(now);
    }
}

impl EndReports {
    /// Accepts a report. Must be called in a Tokio runtime.
    ///
    /// # Errors
    /// Fails if the store cannot notify. The reconciler polls, so it finds the end nevertheless.
    pub async fn accept(&self, store: &Arc<dyn Store>, _execution: ExecutionId) -> Result<()> {
        let step = self.with(|window| window.report(Instant::now()));
        match step {
            Step::Coalesce => Ok(()),
            Step::Notify => store.notify(Notification::Ended).await,
            Step::NotifyAfter(delay) => {
                let (reports, store) = (self.clone(), Arc::clone(store));
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    reports.with(|window| window.sent(Instant::now()));
                    if let Err(error) = store.notify(Notification::Ended).await {
                        tracing::debug!(%error, "failed to notify the reconciler of ended executions");
                    }
                });
                Ok(())
            }
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Window) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_within_the_interval_are_coalesced() {
        let mut window = Window::default();
        let start = Instant::now();
        let third = INTERVAL / 3;
        assert_eq!(window.report(start), Step::Notify);
        let later = window.report(start + third);
        assert_eq!(later, Step::NotifyAfter(INTERVAL - third));
        for _ in 0..100 {
            assert_eq!(window.report(start + 2 * third), Step::Coalesce);
        }
        window.sent(start + INTERVAL);
        let next = window.report(start + INTERVAL + third);
        assert_eq!(next, Step::NotifyAfter(INTERVAL - third));
        window.sent(start + 2 * INTERVAL);
        assert_eq!(window.report(start + 3 * INTERVAL), Step::Notify);
    }
}
