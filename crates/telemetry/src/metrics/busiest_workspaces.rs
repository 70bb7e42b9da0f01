//! Chooses the workspaces that get their own series: the busiest ones, up to a bound; all others share one series. Counts nothing itself.

use super::Metrics;
use super::bounded_series::OTHER;
use super::catalog::ExemplarHistogram;
use super::labels::WorkspaceName;
use leasehold_core::WorkspaceId;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The workspaces that have their own series now.
pub(super) struct BusiestWorkspaces {
    max: usize,
    named: RwLock<HashMap<WorkspaceId, NamedWorkspace>>,
}

struct NamedWorkspace {
    name: Arc<str>,
    waits: ExemplarHistogram,
}

impl BusiestWorkspaces {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            named: RwLock::default(),
        }
    }

    /// Returns how many of the busiest workspaces to choose from.
    pub(super) fn candidates(&self) -> usize {
        2 * self.max
    }

    fn named(&self) -> RwLockReadGuard<'_, HashMap<WorkspaceId, NamedWorkspace>> {
        self.named.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of a workspace that has its own series.
    pub(super) fn name(&self, id: WorkspaceId) -> Option<Arc<str>> {
        self.named().get(&id).map(|named| named.name.clone())
    }
}

impl Metrics {
    /// Records how long a request of a workspace waited until it was started.
    pub(crate) fn workspace_waited(&self, id: WorkspaceId, seconds: f64) {
        match self.busiest.named().get(&id) {
            Some(named) => named.waits.observe(seconds, None, None),
            None => self
                .workspace_wait
                .get_or_create(&others())
                .observe(seconds, None, None),
        }
    }

    /// Chooses which of the busiest workspaces get their own series, busiest first. Removes the series of workspaces that no longer have one.
    pub(super) fn name_workspaces(&self, busiest: &[(WorkspaceId, &str)]) {
        let all = &self.busiest;
        // A workspace named like the shared series belongs to it.
        let busiest: Vec<_> = busiest.iter().filter(|(_, name)| *name != OTHER).collect();
        let ranked: Vec<WorkspaceId> = busiest.iter().map(|(id, _)| *id).collect();
        let mut named = all.named.write().unwrap_or_else(PoisonError::into_inner);
        let chosen = choose(&named.keys().copied().collect(), &ranked, all.max);
        let mut gone: HashSet<Arc<str>> = HashSet::new();
        named.retain(|id, old| {
            let stays = chosen.contains(id);
            if !stays {
                gone.insert(old.name.clone());
            }
            stays
        });
        // A new workspace may reuse the name of a deleted one, so removals come first.
        for name in &gone {
            let workspace = name.clone();
            self.workspace_wait.remove(&WorkspaceName { workspace });
        }
        for (id, name) in busiest {
            if chosen.contains(id) && !named.contains_key(id) {
                let name: Arc<str> = (*name).into();
                let label = WorkspaceName {
                    workspace: name.clone(),
                };
                let waits = self.workspace_wait.get_or_create_owned(&label);
                named.insert(*id, NamedWorkspace { name, waits });
            }
        }
    }
}

fn others() -> WorkspaceName {
    WorkspaceName {
        workspace: OTHER.into(),
    }
}

/// Chooses the workspaces with their own series. A workspace keeps its series while it is among the candidates, so that series do not come and
/// go; but half of the series belong to the currently busiest workspaces.
fn choose(
    named: &HashSet<WorkspaceId>,
    ranked: &[WorkspaceId],
    max: usize,
) -> HashSet<WorkspaceId> {
    let first = ranked.iter().take(max.div_ceil(2));
    let kept = ranked.iter().take(2 * max).filter(|id| named.contains(id));
    let mut chosen = HashSet::with_capacity(max);
    for id in first.chain(kept).chain(ranked) {
        if chosen.len() < max {
            chosen.insert(*id);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::metrics::ExpositionFormat;
    use leasehold_store::fresh_id;
    use proptest::prelude::*;

    /// Description, workspaces named before, busiest workspaces, bound, expected workspaces.
    type Case = (
        &'static str,
        &'static [usize],
        &'static [usize],
        usize,
        &'static [usize],
    );

    fn ids(count: usize) -> Vec<WorkspaceId> {
        (0..count).map(|_| fresh_id()).collect()
    }

    fn set(ids: &[WorkspaceId]) -> HashSet<WorkspaceId> {
        ids.iter().copied().collect()
    }

    #[test]
    fn busiest_workspaces_keep_their_series_while_they_are_candidates() {
        let all = ids(20);
        let cases: [Case; 7] = [
            ("no workspace", &[], &[], 4, &[]),
            ("bound of zero", &[], &[0, 1, 2], 0, &[]),
            ("busiest first", &[], &[0, 1, 2, 3, 4, 5], 4, &[0, 1, 2, 3]),
            (
                "kept while a candidate",
                &[0, 1, 2, 3],
                &[4, 5, 6, 7, 0, 1, 2, 3],
                4,
                &[4, 5, 0, 1],
            ),
            (
                "dropped when no longer a candidate",
                &[0, 1, 2, 3],
                &[4, 5, 6, 7, 8, 9, 10, 11, 0, 1],
                4,
                &[4, 5, 6, 7],
            ),
            (
                "a vanished workspace is replaced",
                &[0, 1, 2, 3],
                &[0, 1, 5, 6],
                4,
                &[0, 1, 5, 6],
            ),
            ("a bound of one goes to the busiest", &[0], &[1, 0], 1, &[1]),
        ];
        let of = |indexes: &[usize]| indexes.iter().map(|at| all[*at]).collect::<Vec<_>>();
        for (what, named, ranked, max, expected) in cases {
            let found = choose(&set(&of(named)), &of(ranked), max);
            assert_eq!(found, set(&of(expected)), "{what}");
        }
    }

    /// Returns the count of waits of each series.
    fn waits(metrics: &Metrics) -> HashMap<String, u64> {
        let shown = metrics.render(ExpositionFormat::Prometheus).unwrap();
        let counts = shown.lines().filter_map(|line| {
            line.strip_prefix("leasehold_workspace_wait_seconds_count{workspace=\"")
        });
        counts
            .map(|rest| {
                let (name, count) = rest.split_once("\"} ").unwrap();
                (name.to_owned(), count.parse().unwrap())
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn number_of_series_is_bounded_and_no_wait_is_lost(
            max in 0usize..5,
            rounds in prop::collection::vec(prop::collection::vec(0usize..30, 0..40), 1..8),
        ) {
            let all = ids(30);
            let names: Vec<String> = (0..all.len()).map(|at| if at == 7 { OTHER.to_owned() } else { format!("w{at}") }).collect();
            let metrics = Metrics::new(max);
            for round in &rounds {
                let before = waits(&metrics);
                for at in round {
                    metrics.workspace_waited(all[*at], 1.0);
                }
                let after = waits(&metrics);
                prop_assert!(after.len() <= max + 1);
                prop_assert_eq!(after.values().sum::<u64>(), before.values().sum::<u64>() + round.len() as u64);
                for (name, count) in &before {
                    prop_assert!(after[name] >= *count, "{} fell", name);
                }
                let mut seen = HashSet::new();
                let busiest: Vec<_> = round.iter().filter(|at| seen.insert(**at)).map(|at| (all[*at], &*names[*at])).collect();
                metrics.name_workspaces(&busiest);
                prop_assert!(waits(&metrics).len() <= max + 1);
            }
        }
    }

    #[test]
    fn reused_name_starts_a_new_series() {
        let (old, new) = (fresh_id(), fresh_id());
        let metrics = Metrics::new(2);
        metrics.name_workspaces(&[(old, "acme")]);
        metrics.workspace_waited(old, 1.0);
        metrics.name_workspaces(&[(new, "acme")]);
        metrics.workspace_waited(old, 1.0);
        metrics.workspace_waited(new, 1.0);
        assert_eq!(
            waits(&metrics),
            HashMap::from([("acme".to_owned(), 1), (OTHER.to_owned(), 1)])
        );
    }

    #[test]
    fn name_may_contain_special_characters() {
        let id = fresh_id();
        let metrics = Metrics::new(1);
        metrics.name_workspaces(&[(id, "a \"b\" \\ # {c} é")]);
        metrics.workspace_waited(id, 1.0);
        let shown = metrics.render(ExpositionFormat::Prometheus).unwrap();
        assert!(
            shown.contains(
                r#"leasehold_workspace_wait_seconds_count{workspace="a \"b\" \\ # {c} é"} 1"#
            ),
            "{shown}"
        );
    }
}
