//! The state that `top` shows: the last overview and rates from previous overviews. Pure: no clock, no server, no terminal.

use leasehold_client::api::instance::Instance;
use leasehold_client::api::overview::Overview;
use leasehold_client::api::workspace::RequestCounts;
use leasehold_core::{Timestamp, WorkspaceId};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Window of the rates.
const WINDOW: Duration = Duration::from_secs(10);
/// Length of the sparkline's history; wider than any terminal.
const HISTORY: usize = 512;

/// The state of `top`.
#[derive(Clone, Debug)]
pub struct TopModel {
    pub(crate) server: String,
    pub(crate) overview: Option<Overview>,
    pub(crate) instances: Vec<Instance>,
    pub(crate) outage: Option<ServerOutage>,
    samples: VecDeque<Sample>,
    completions: VecDeque<f64>,
}

/// An outage of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerOutage {
    pub(crate) since: Timestamp,
    /// Time of the last failed poll.
    pub(crate) tried: Timestamp,
    pub(crate) why: String,
}

/// Requests per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Admitted; includes requests that were cancelled while pending.
    pub admitted: f64,
    /// Completed.
    pub completed: f64,
    /// Failed.
    pub failed: f64,
}

#[derive(Clone, Debug)]
struct Sample {
    at: Timestamp,
    all: RequestCounts,
    workspaces: HashMap<WorkspaceId, RequestCounts>,
}

impl TopModel {
    /// Creates an empty model.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            overview: None,
            instances: Vec::new(),
            outage: None,
            samples: VecDeque::new(),
            completions: VecDeque::new(),
        }
    }

    /// Applies a successful poll.
    pub fn update(&mut self, overview: Overview, instances: Vec<Instance>) {
        self.outage = None;
        self.instances = instances;
        let sample = Sample::of(&overview);
        self.overview = Some(overview);
        if let Some(last) = self.samples.back() {
            if sample.at < last.at {
                // Another store, or its clock was set back: drop the incomparable history.
                self.samples.clear();
                self.completions.clear();
            } else if sample.at == last.at {
                return;
            } else {
                let rates = rates([(last.at, last.all), (sample.at, sample.all)]);
                self.completions
                    .push_back(rates.map_or(0.0, |rates| rates.completed));
            }
        }
        self.samples.push_back(sample);
        self.forget();
    }

    /// Records a failed poll.
    pub fn record_failure(&mut self, why: &str, at: Timestamp) {
        let since = self.outage.as_ref().map_or(at, |outage| outage.since);
        self.outage = Some(ServerOutage {
            since,
            tried: at,
            why: why.to_owned(),
        });
    }

    /// Rates of all workspaces; `None` before the second poll.
    pub fn rates(&self) -> Option<Rates> {
        rates(self.samples.iter().map(|sample| (sample.at, sample.all)))
    }

    /// Rates of one workspace.
    pub fn rates_of(&self, workspace: WorkspaceId) -> Option<Rates> {
        let samples = self.samples.iter();
        rates(samples.filter_map(|sample| Some((sample.at, *sample.workspaces.get(&workspace)?))))
    }

    /// Completions per second between polls, oldest first.
    pub(crate) fn completions(&self) -> impl DoubleEndedIterator<Item = f64> {
        self.completions.iter().copied()
    }

    fn forget(&mut self) {
        let Some(newest) = self.samples.back().map(|sample| sample.at) else {
            return;
        };
        // Keeps one sample before the window, so that there are always two to compare.
        while let Some(second) = self.samples.get(1)
            && self.samples.len() > 2
            && seconds(second.at, newest) >= WINDOW.as_secs_f64()
        {
            self.samples.pop_front();
        }
        while self.completions.len() > HISTORY {
            self.completions.pop_front();
        }
    }
}

impl Sample {
    fn of(overview: &Overview) -> Self {
        let states = overview.busiest.iter();
        Self {
            at: overview.at,
            all: overview.requests,
            workspaces: states
                .map(|state| (state.workspace.id, state.requests))
                .collect(),
        }
    }
}

/// Sums the differences between consecutive samples. Pruning lowers the counts; only the step with the pruning is lost.
fn rates(samples: impl IntoIterator<Item = (Timestamp, RequestCounts)>) -> Option<Rates> {
    let mut samples = samples.into_iter();
    let (first, mut before) = samples.next()?;
    let (mut last, mut admitted, mut completed, mut failed) = (first, 0, 0, 0);
    for (at, now) in samples {
        admitted += ever_admitted(&now).saturating_sub(ever_admitted(&before));
        completed += now.completed.saturating_sub(before.completed);
        failed += now.failed.saturating_sub(before.failed);
        (last, before) = (at, now);
    }
    let passed = seconds(first, last);
    let each = |count: u64| count as f64 / passed;
    (passed > 0.0).then(|| Rates {
        admitted: each(admitted),
        completed: each(completed),
        failed: each(failed),
    })
}

fn ever_admitted(counts: &RequestCounts) -> u64 {
    counts.claimed + counts.dispatched + counts.completed + counts.failed
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_client::api::overview::{EngineHealth, EngineState};

    fn overview(seconds: f64, completed: u64, failed: u64, running: u64) -> Overview {
        let start: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        Overview {
            at: start + Duration::from_secs_f64(seconds),
            engine: EngineState {
                name: "embedded".to_owned(),
                state: EngineHealth::Well,
                error: None,
            },
            workspaces: 0,
            requests: RequestCounts {
                dispatched: running,
                completed,
                failed,
                ..RequestCounts::default()
            },
            busiest: Vec::new(),
            queues: Vec::new(),
        }
    }

    fn after(overviews: &[Overview]) -> TopModel {
        let mut model = TopModel::new("here");
        for overview in overviews {
            model.update(overview.clone(), Vec::new());
        }
        model
    }

    #[test]
    fn no_rates_before_the_second_poll() {
        assert_eq!(after(&[]).rates(), None);
        assert_eq!(after(&[overview(0.0, 5, 0, 0)]).rates(), None);
        // The server caches the overview for a second.
        assert_eq!(
            after(&[overview(0.0, 5, 0, 0), overview(0.0, 5, 0, 0)]).rates(),
            None
        );
    }

    #[test]
    fn rates_cover_the_last_ten_seconds() {
        let model = after(&[overview(0.0, 0, 0, 0), overview(2.0, 10, 2, 8)]);
        let rates = model.rates().unwrap();
        assert_eq!(
            (rates.completed, rates.failed, rates.admitted),
            (5.0, 1.0, 10.0)
        );
        let mut overviews = vec![overview(0.0, 0, 0, 0), overview(2.0, 1_000, 0, 0)];
        overviews.extend((2..10).map(|at| overview(f64::from(at) * 2.0, 1_000, 0, 0)));
        assert_eq!(after(&overviews).rates().unwrap().completed, 0.0);
    }

    #[test]
    fn pruning_never_makes_rates_negative_and_hides_one_step() {
        let model = after(&[
            overview(0.0, 500, 9, 0),
            overview(2.0, 520, 9, 0),
            overview(4.0, 100, 0, 0),
        ]);
        let rates = model.rates().unwrap();
        assert_eq!((rates.completed, rates.failed), (5.0, 0.0));
        assert_eq!(model.completions().collect::<Vec<_>>(), [10.0, 0.0]);
    }

    #[test]
    fn clock_set_back_resets_the_rates() {
        let model = after(&[
            overview(100.0, 500, 0, 0),
            overview(102.0, 520, 0, 0),
            overview(50.0, 530, 0, 0),
        ]);
        assert_eq!(model.rates(), None);
        assert_eq!(model.completions().count(), 0);
    }

    #[test]
    fn history_is_bounded() {
        let mut model = TopModel::new("here");
        for second in 0..2_000 {
            model.update(overview(f64::from(second), 0, 0, 0), Vec::new());
        }
        assert!(model.samples.len() <= 12, "{}", model.samples.len());
        assert_eq!(model.completions().count(), HISTORY);
    }

    #[test]
    fn outage_starts_at_the_first_failed_poll() {
        let mut model = after(&[overview(0.0, 0, 0, 0)]);
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        model.record_failure("one", at(10));
        model.record_failure("two", at(20));
        let outage = model.outage.clone().unwrap();
        assert_eq!(
            (outage.since, outage.tried, outage.why.as_str()),
            (at(10), at(20), "two")
        );
        model.update(overview(30.0, 0, 0, 0), Vec::new());
        assert_eq!(model.outage, None);
    }
}
