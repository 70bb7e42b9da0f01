//! Which workspaces are shown by name: the busiest, so many at most; the others are shown together. Counts nothing itself.

use super::Metrics;
use super::book::Spread;
use super::few::OTHER;
use super::labels::WorkspaceName;
use leasehold_core::WorkspaceId;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The workspaces that have a name now.
pub(super) struct Top {
    most: usize,
    named: RwLock<HashMap<WorkspaceId, Named>>,
}

struct Named {
    name: Arc<str>,
    waits: Spread,
}

impl Top {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            named: RwLock::default(),
        }
    }

    /// How many of the busiest are needed to choose among.
    pub(super) fn wanted(&self) -> usize {
        2 * self.most
    }

    fn named(&self) -> RwLockReadGuard<'_, HashMap<WorkspaceId, Named>> {
        self.named.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a workspace is called: by its name, or as all others.
    pub(super) fn name(&self, id: WorkspaceId) -> Option<Arc<str>> {
        self.named().get(&id).map(|named| named.name.clone())
    }
}

impl Metrics {
    /// A request of a workspace waited so long until it was started.
    pub(crate) fn workspace_waited(&self, id: WorkspaceId, seconds: f64) {
        match self.top.named().get(&id) {
            Some(named) => named.waits.observe(seconds, None, None),
            None => self
                .workspace_wait
                .get_or_create(&others())
                .observe(seconds, None, None),
        }
    }

    /// Chooses who is shown by name from now on, of the busiest, most busy first. Whoever is not any more takes its series along.
    pub(super) fn name_workspaces(&self, busiest: &[(WorkspaceId, &str)]) {
        let top = &self.top;
        // One that is called as all others are is one of them.
        let busiest: Vec<_> = busiest.iter().filter(|(_, name)| *name != OTHER).collect();
        let ranked: Vec<WorkspaceId> = busiest.iter().map(|(id, _)| *id).collect();
        let mut named = top.named.write().unwrap_or_else(PoisonError::into_inner);
        let chosen = chosen(&named.keys().copied().collect(), &ranked, top.most);
        let mut gone: HashSet<Arc<str>> = HashSet::new();
        named.retain(|id, old| {
            let stays = chosen.contains(id);
            if !stays {
                gone.insert(old.name.clone());
            }
            stays
        });
        // A name may have gone from a deleted workspace to a new one.
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
                named.insert(*id, Named { name, waits });
            }
        }
    }
}

fn others() -> WorkspaceName {
    WorkspaceName {
        workspace: OTHER.into(),
    }
}

/// Who is named next. Whoever has a name keeps it while among the busiest it was chosen from, so that names do not come and go; but the
/// busier half of the places is for those that are busiest now.
fn chosen(
    named: &HashSet<WorkspaceId>,
    ranked: &[WorkspaceId],
    most: usize,
) -> HashSet<WorkspaceId> {
    let first = ranked.iter().take(most.div_ceil(2));
    let kept = ranked.iter().take(2 * most).filter(|id| named.contains(id));
    let mut chosen = HashSet::with_capacity(most);
    for id in first.chain(kept).chain(ranked) {
        if chosen.len() < most {
            chosen.insert(*id);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::metrics::Format;
    use leasehold_store::fresh_id;
    use proptest::prelude::*;

    /// What it shows, who is named, who is busy, how many may be named, and who is then.
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
    fn the_busiest_have_names_and_keep_them_while_they_are_busy() {
        let all = ids(20);
        let cases: [Case; 7] = [
            ("nobody is there", &[], &[], 4, &[]),
            ("nobody is named", &[], &[0, 1, 2], 0, &[]),
            (
                "the busiest come first",
                &[],
                &[0, 1, 2, 3, 4, 5],
                4,
                &[0, 1, 2, 3],
            ),
            (
                "a name stays in the second row",
                &[0, 1, 2, 3],
                &[4, 5, 6, 7, 0, 1, 2, 3],
                4,
                &[4, 5, 0, 1],
            ),
            (
                "a name goes beyond it",
                &[0, 1, 2, 3],
                &[4, 5, 6, 7, 8, 9, 10, 11, 0, 1],
                4,
                &[4, 5, 6, 7],
            ),
            (
                "who is gone makes room",
                &[0, 1, 2, 3],
                &[0, 1, 5, 6],
                4,
                &[0, 1, 5, 6],
            ),
            ("one place is the busiest's", &[0], &[1, 0], 1, &[1]),
        ];
        let of = |places: &[usize]| places.iter().map(|at| all[*at]).collect::<Vec<_>>();
        for (what, named, ranked, most, expected) in cases {
            let found = chosen(&set(&of(named)), &of(ranked), most);
            assert_eq!(found, set(&of(expected)), "{what}");
        }
    }

    /// The waits that each name has had, as shown.
    fn waits(metrics: &Metrics) -> HashMap<String, u64> {
        let shown = metrics.shown(Format::Prometheus).unwrap();
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
        fn however_many_workspaces_there_are_few_have_names_and_no_wait_is_lost(
            most in 0usize..5,
            rounds in prop::collection::vec(prop::collection::vec(0usize..30, 0..40), 1..8),
        ) {
            let all = ids(30);
            let names: Vec<String> = (0..all.len()).map(|at| if at == 7 { OTHER.to_owned() } else { format!("w{at}") }).collect();
            let metrics = Metrics::new(most);
            for round in &rounds {
                let before = waits(&metrics);
                for at in round {
                    metrics.workspace_waited(all[*at], 1.0);
                }
                let after = waits(&metrics);
                prop_assert!(after.len() <= most + 1);
                prop_assert_eq!(after.values().sum::<u64>(), before.values().sum::<u64>() + round.len() as u64);
                for (name, count) in &before {
                    prop_assert!(after[name] >= *count, "{} fell", name);
                }
                let mut seen = HashSet::new();
                let busiest: Vec<_> = round.iter().filter(|at| seen.insert(**at)).map(|at| (all[*at], &*names[*at])).collect();
                metrics.name_workspaces(&busiest);
                prop_assert!(waits(&metrics).len() <= most + 1);
            }
        }
    }

    #[test]
    fn a_name_that_went_to_another_workspace_is_counted_anew() {
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
    fn a_name_may_hold_anything() {
        let id = fresh_id();
        let metrics = Metrics::new(1);
        metrics.name_workspaces(&[(id, "a \"b\" \\ # {c} é")]);
        metrics.workspace_waited(id, 1.0);
        let shown = metrics.shown(Format::Prometheus).unwrap();
        assert!(
            shown.contains(
                r#"leasehold_workspace_wait_seconds_count{workspace="a \"b\" \\ # {c} é"} 1"#
            ),
            "{shown}"
        );
    }
}
