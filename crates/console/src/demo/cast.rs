//! Who is in the demo: workspaces with their plans, what each runs, and how often it asks for it.

use leasehold_core::Plan;

/// The noisy neighbour.
pub(super) const NOISY: &str = "magpie";
/// A queue with a limit, so that its jobs are seen to wait.
pub(super) const LIMITED_QUEUE: (&str, u32) = ("reports", 8);

/// A workspace of the demo.
pub(super) struct Resident {
    pub(super) name: &'static str,
    pub(super) plan: Plan,
    pub(super) runs: &'static [Habit],
}

/// A definition, and how often its workspace asks for it by day.
pub(super) struct Habit {
    pub(super) definition: &'static str,
    pub(super) graph: &'static str,
    /// Requests a second at noon; none of what comes in bursts only.
    pub(super) each_second: f64,
}

const ORDER: &str = include_str!("graphs/order.json");
const REPORT: &str = include_str!("graphs/report.json");
const IMPORT: &str = include_str!("graphs/import.json");
const POSTCARD: &str = include_str!("graphs/postcard.json");

/// All of them.
pub(super) const RESIDENTS: &[Resident] = &[
    Resident {
        name: "sparrow",
        plan: Plan::Free,
        runs: &[Habit::new("order", ORDER, 0.35)],
    },
    Resident {
        name: "acme",
        plan: Plan::Pro,
        runs: &[
            Habit::new("order", ORDER, 0.9),
            Habit::new("import", IMPORT, 0.35),
        ],
    },
    Resident {
        name: "globex",
        plan: Plan::Enterprise,
        runs: &[
            Habit::new("order", ORDER, 2.4),
            Habit::new("report", REPORT, 0.5),
            Habit::new("import", IMPORT, 0.4),
        ],
    },
    Resident {
        name: NOISY,
        plan: Plan::Pro,
        runs: &[Habit::new("postcard", POSTCARD, 0.0)],
    },
];

impl Habit {
    const fn new(definition: &'static str, graph: &'static str, each_second: f64) -> Self {
        Self {
            definition,
            graph,
            each_second,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_core::VersionBody;

    #[test]
    fn every_graph_of_the_demo_can_be_run() {
        for habit in RESIDENTS.iter().flat_map(|resident| resident.runs) {
            let body = format!(r#"{{"graph": {}}}"#, habit.graph);
            let body: VersionBody = serde_json::from_str(&body).unwrap();
            let VersionBody::Graph(graph) = body else {
                panic!("{} is no graph", habit.definition);
            };
            graph.validate().unwrap();
        }
    }
}
