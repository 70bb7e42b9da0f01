//! What is known of the server: the last look at it, and how fast things went since the looks before. Pure: no clock, no server, no terminal.

use leasehold_client::api::instance::Instance;
use leasehold_client::api::overview::Overview;
use leasehold_client::api::workspace::RequestCounts;
use leasehold_core::{Timestamp, WorkspaceId};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Rates are told over so long: shorter jumps about, longer hides what changed.
const WINDOW: Duration = Duration::from_secs(10);
/// More of the past than any terminal is wide.
const HISTORY: usize = 512;

/// What is known.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) server: String,
    pub(crate) overview: Option<Overview>,
    pub(crate) instances: Vec<Instance>,
    pub(crate) away: Option<Away>,
    samples: VecDeque<Sample>,
    completions: VecDeque<f64>,
}

/// A server that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Away {
    pub(crate) since: Timestamp,
    /// The last time it was tried.
    pub(crate) tried: Timestamp,
    pub(crate) why: String,
}

/// How many a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Admitted. Those that were cancelled before their turn are in it too: the counts do not tell them apart.
    pub admitted: f64,
    /// Ended well.
    pub completed: f64,
    /// Ended otherwise.
    pub failed: f64,
}

#[derive(Clone, Debug)]
struct Sample {
    at: Timestamp,
    all: RequestCounts,
    workspaces: HashMap<WorkspaceId, RequestCounts>,
}

impl Model {
    /// Nothing is known yet.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            overview: None,
            instances: Vec::new(),
            away: None,
            samples: VecDeque::new(),
            completions: VecDeque::new(),
        }
    }

    /// The server answered.
    pub fn take(&mut self, overview: Overview, instances: Vec<Instance>) {
        self.away = None;
        self.instances = instances;
        let sample = Sample::of(&overview);
        self.overview = Some(overview);
        if let Some(last) = self.samples.back() {
            if sample.at < last.at {
                // Another store, or its clock was set back: nothing before can be compared.
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

    /// The server did not answer.
    pub fn lost(&mut self, why: &str, at: Timestamp) {
        let since = self.away.as_ref().map_or(at, |away| away.since);
        self.away = Some(Away {
            since,
            tried: at,
            why: why.to_owned(),
        });
    }

    /// How fast requests of all workspaces go; none before the second look.
    pub fn rates(&self) -> Option<Rates> {
        rates(self.samples.iter().map(|sample| (sample.at, sample.all)))
    }

    /// The same of one workspace.
    pub fn rates_of(&self, workspace: WorkspaceId) -> Option<Rates> {
        let samples = self.samples.iter();
        rates(samples.filter_map(|sample| Some((sample.at, *sample.workspaces.get(&workspace)?))))
    }

    /// Completions a second between looks, oldest first.
    pub(crate) fn completions(&self) -> impl DoubleEndedIterator<Item = f64> {
        self.completions.iter().copied()
    }

    fn forget(&mut self) {
        let Some(newest) = self.samples.back().map(|sample| sample.at) else {
            return;
        };
        // One look before the window is kept, so that there are always two to compare.
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

/// Steps are added up one by one: pruning takes from the counts, and only the step in which it did is lost.
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

    fn look(seconds: f64, completed: u64, failed: u64, running: u64) -> Overview {
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

    fn after(looks: &[Overview]) -> Model {
        let mut model = Model::new("here");
        for look in looks {
            model.take(look.clone(), Vec::new());
        }
        model
    }

    #[test]
    fn there_are_no_rates_before_the_second_look() {
        assert_eq!(after(&[]).rates(), None);
        assert_eq!(after(&[look(0.0, 5, 0, 0)]).rates(), None);
        // The server answers with the same look for a second.
        assert_eq!(
            after(&[look(0.0, 5, 0, 0), look(0.0, 5, 0, 0)]).rates(),
            None
        );
    }

    #[test]
    fn rates_are_of_the_last_ten_seconds() {
        let model = after(&[look(0.0, 0, 0, 0), look(2.0, 10, 2, 8)]);
        let rates = model.rates().unwrap();
        assert_eq!(
            (rates.completed, rates.failed, rates.admitted),
            (5.0, 1.0, 10.0)
        );
        let mut looks = vec![look(0.0, 0, 0, 0), look(2.0, 1_000, 0, 0)];
        looks.extend((2..10).map(|at| look(f64::from(at) * 2.0, 1_000, 0, 0)));
        assert_eq!(after(&looks).rates().unwrap().completed, 0.0);
    }

    #[test]
    fn pruning_makes_no_rate_negative_and_hides_one_step_only() {
        let model = after(&[
            look(0.0, 500, 9, 0),
            look(2.0, 520, 9, 0),
            look(4.0, 100, 0, 0),
        ]);
        let rates = model.rates().unwrap();
        assert_eq!((rates.completed, rates.failed), (5.0, 0.0));
        assert_eq!(model.completions().collect::<Vec<_>>(), [10.0, 0.0]);
    }

    #[test]
    fn a_clock_that_was_set_back_begins_anew() {
        let model = after(&[
            look(100.0, 500, 0, 0),
            look(102.0, 520, 0, 0),
            look(50.0, 530, 0, 0),
        ]);
        assert_eq!(model.rates(), None);
        assert_eq!(model.completions().count(), 0);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut model = Model::new("here");
        for second in 0..2_000 {
            model.take(look(f64::from(second), 0, 0, 0), Vec::new());
        }
        assert!(model.samples.len() <= 12, "{}", model.samples.len());
        assert_eq!(model.completions().count(), HISTORY);
    }

    #[test]
    fn a_server_is_away_since_the_first_look_that_failed() {
        let mut model = after(&[look(0.0, 0, 0, 0)]);
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        model.lost("one", at(10));
        model.lost("two", at(20));
        let away = model.away.clone().unwrap();
        assert_eq!(
            (away.since, away.tried, away.why.as_str()),
            (at(10), at(20), "two")
        );
        model.take(look(30.0, 0, 0, 0), Vec::new());
        assert_eq!(model.away, None);
    }
}
