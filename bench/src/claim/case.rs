//! The cases of the claim benchmark: fill, measure, print. Knows no database and no layout.

use super::Options;
use super::measure::{ClaimLoad, ClaimMeasurement, admit, measure};
use super::printer::{Case, ClaimPrinter, Kind};
use crate::backend::{BenchBackend, BlockReason, Fill, HorizonPin, NO_LIMIT};
use anyhow::Result;

/// Maximum number of requests in one measurement.
pub(crate) const MAX_MEASURED: u32 = 5_000;
/// Requests of a measurement before and after a large change.
const SAMPLE: u32 = 1_000;
/// Numbers of workspaces in the cases that vary something else.
const WORKSPACE_COUNTS: [u32; 2] = [10, 1_000];

/// All cases on one store.
pub(crate) struct Cases<'a> {
    backend: &'a mut dyn BenchBackend,
    printer: &'a mut ClaimPrinter,
    options: &'a Options,
}

impl<'a> Cases<'a> {
    pub(crate) fn new(
        backend: &'a mut dyn BenchBackend,
        printer: &'a mut ClaimPrinter,
        options: &'a Options,
    ) -> Self {
        Self {
            backend,
            printer,
            options,
        }
    }

    pub(crate) async fn run(mut self) -> Result<()> {
        self.backlog().await?;
        if self.options.admitted > 0 {
            self.old_snapshot().await?;
        }
        if self.options.blocked > 0 {
            self.blocked().await?;
        }
        Ok(())
    }

    /// Varies the backlog, the workspaces and the claimers.
    async fn backlog(&mut self) -> Result<()> {
        self.heading(Kind::Backlog);
        for &workspaces in &self.options.workspaces {
            for &pending in &self.options.pending {
                let mut left = 0;
                for &claimers in &self.options.claimers {
                    // A large backlog serves several measurements; the first uses up a small one.
                    if left < MAX_MEASURED * 2 {
                        self.fill(&Fill::backlog(pending, workspaces, NO_LIMIT))
                            .await?;
                        left = pending;
                    }
                    let measured = self.measure(claimers, MAX_MEASURED).await?;
                    left = left.saturating_sub(measured.admitted);
                    self.case(Case {
                        claimers,
                        ..Case::new(Kind::Backlog, pending, workspaces, measured)
                    });
                }
            }
        }
        Ok(())
    }

    /// Admits many requests while an old snapshot keeps their dead rows.
    async fn old_snapshot(&mut self) -> Result<()> {
        self.heading(Kind::OldSnapshot);
        let admitted = self.options.admitted;
        for finishing in [false, true] {
            for workspaces in WORKSPACE_COUNTS {
                // A low limit makes claims check running executions often, which is the cost that may grow.
                let limit = if finishing {
                    (4 * SAMPLE / workspaces).max(20)
                } else {
                    NO_LIMIT
                };
                let pending = admitted + 4 * SAMPLE;
                self.fill(&Fill::backlog(pending, workspaces, limit))
                    .await?;
                let before = self.measure(1, SAMPLE).await?;
                let case = Case {
                    finishing: Some(finishing),
                    ..Case::new(Kind::OldSnapshot, pending, workspaces, before)
                };
                self.case(case);
                self.backend.pin(HorizonPin::Reader).await?;
                self.printer.progress(&format!("admitting {admitted} more"));
                let load = self.load(1, admitted);
                admit(self.backend, load, finishing).await?;
                let after = self.measure(1, SAMPLE).await?;
                self.case(Case {
                    admitted,
                    measured: after,
                    base: Some(before),
                    ..case
                });
            }
        }
        Ok(())
    }

    /// Puts many requests that cannot be admitted before a few that can.
    async fn blocked(&mut self) -> Result<()> {
        self.heading(Kind::Blocked);
        let pending = 2 * SAMPLE;
        for workspaces in WORKSPACE_COUNTS {
            let fill = Fill::backlog(pending, workspaces, NO_LIMIT);
            self.fill(&fill).await?;
            let base = self.measure(1, SAMPLE).await?;
            let case = Case::new(Kind::Blocked, pending, workspaces, base);
            self.case(case);
            for reason in BlockReason::ALL {
                let count = self.options.blocked;
                self.fill(&fill.clone().behind_blocked(reason, count))
                    .await?;
                let measured = self.measure(1, SAMPLE).await?;
                self.case(Case {
                    reason: Some((reason, count)),
                    measured,
                    base: Some(base),
                    ..case
                });
            }
        }
        Ok(())
    }

    async fn fill(&mut self, fill: &Fill) -> Result<()> {
        let workspaces: u32 = fill.workspace_groups.iter().map(|group| group.count).sum();
        let requests: u32 = fill.request_groups.iter().map(|line| line.requests).sum();
        self.printer.progress(&format!(
            "inserting {requests} requests in {workspaces} workspaces"
        ));
        self.backend.fill(fill).await
    }

    async fn measure(&mut self, claimers: u32, most: u32) -> Result<ClaimMeasurement> {
        self.printer.progress("measuring");
        let load = self.load(claimers, most);
        measure(self.backend, load).await
    }

    fn load(&self, claimers: u32, most: u32) -> ClaimLoad {
        ClaimLoad {
            claimers,
            batch: self.options.batch,
            most,
        }
    }

    fn heading(&mut self, kind: Kind) {
        self.printer.heading(self.backend, kind);
    }

    fn case(&mut self, case: Case) {
        self.printer.case(self.backend, &case);
    }
}
