//! The workspaces of the demo, their plans, definitions and request rates.

use leasehold_core::Plan;

/// The noisy neighbour.
pub(super) const NOISY: &str = "magpie";
/// A queue with a limit, so that the demo shows waiting jobs.
pub(super) const LIMITED_QUEUE: (&str, u32) = ("reports", 8);

/// A workspace of the demo.
pub(super) struct DemoWorkspace {
    pub(super) name: &'static str,
    pub(super) plan: Plan,
    pub(super) workloads: &'static [Workload],
}

/// A definition and the rate of its requests.
pub(super) struct Workload {
    pub(super) definition: &'static str,
    pub(super) graph: &'static str,
    /// Peak requests per second; 0 for a workload that arrives in bursts only.
    pub(super) rate_per_second: f64,
}

const ORDER: &str = include_str!("graphs/order.json");
const REPORT: &str = include_str!("graphs/report.json");
const IMPORT: &str = include_str!("graphs/import.json");
const POSTCARD: &str = include_str!("graphs/postcard.json");

/// Every workspace of the demo.
pub(super) const DEMO_WORKSPACES: &[DemoWorkspace] = &[
    DemoWorkspace {
        name: "sparrow",
        plan: Plan::Free,
        workloads: &[Workload::new("order", ORDER, 0.35)],
    },
    DemoWorkspace {
        name: "acme",
        plan: Plan::Pro,
        workloads: &[
            Workload::new("order", ORDER, 0.9),
            Workload::new("import", IMPORT, 0.35),
        ],
    },
    DemoWorkspace {
        name: "globex",
        plan: Plan::Enterprise,
        workloads: &[
            Workload::new("order", ORDER, 2.4),
            Workload::new("report", REPORT, 0.5),
            Workload::new("import", IMPORT, 0.4),
        ],
    },
    DemoWorkspace {
        name: NOISY,
        plan: Plan::Pro,
        workloads: &[Workload::new("postcard", POSTCARD, 0.0)],
    },
];

impl Workload {
    const fn new(definition: &'static str, graph: &'static str, rate_per_second: f64) -> Self {
        Self {
            definition,
            graph,
            rate_per_second,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_core::VersionBody;

    #[test]
    fn every_demo_graph_is_valid() {
        for workload in DEMO_WORKSPACES
            .iter()
            .flat_map(|workspace| workspace.workloads)
        {
            let body = format!(r#"{{"graph": {}}}"#, workload.graph);
            let body: VersionBody = serde_json::from_str(&body).unwrap();
            let VersionBody::Graph(graph) = body else {
                panic!("{} is not a graph", workload.definition);
            };
            graph.validate().unwrap();
        }
    }
}
