//! The cases of the bench, one after the other: fill, measure, show. Knows no database and no layout.

use super::Options;
use super::measure::{Measured, Pace, admit, measure};
use super::show::{Case, Kind, Show};
use crate::backend::{BenchBackend, Fill, NO_LIMIT, Obstacle, Pin};
use anyhow::Result;

/// A rate is taken over so many requests at most.
pub(crate) const MEASURED_AT_MOST: u32 = 5_000;
/// Before and after many others, a few tell enough.
const FEW: u32 = 1_000;
/// Workspaces of the cases that vary something else.
const CROWDS: [u32; 2] = [10, 1_000];

/// Everything to measure on one store.
pub(crate) struct Cases<'a> {
    backend: &'a mut dyn BenchBackend,
    show: &'a mut Show,
    options: &'a Options,
}

impl<'a> Cases<'a> {
    pub(crate) fn new(
        backend: &'a mut dyn BenchBackend,
        show: &'a mut Show,
        options: &'a Options,
    ) -> Self {
        Self {
            backend,
            show,
            options,
        }
    }

    pub(crate) async fn run(mut self) -> Result<()> {
        self.backlog().await?;
        if self.options.admitted > 0 {
            self.after().await?;
        }
        if self.options.in_the_way > 0 {
            self.in_the_way().await?;
        }
        Ok(())
    }

    /// How much waits, in how many workspaces, with how many claimers.
    async fn backlog(&mut self) -> Result<()> {
        self.heading(Kind::Backlog);
        for &workspaces in &self.options.workspaces {
            for &pending in &self.options.pending {
                let mut left = 0;
                for &claimers in &self.options.claimers {
                    // A large store serves several measurements; a small one is used up by the first.
                    if left < MEASURED_AT_MOST * 2 {
                        self.fill(&Fill::backlog(pending, workspaces, NO_LIMIT))
                            .await?;
                        left = pending;
                    }
                    let measured = self.measure(claimers, MEASURED_AT_MOST).await?;
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

    /// Many admitted while an old snapshot keeps all that they leave behind.
    async fn after(&mut self) -> Result<()> {
        self.heading(Kind::After);
        let admitted = self.options.admitted;
        for finishing in [false, true] {
            for workspaces in CROWDS {
                // With little room, running executions are counted again and again, which is what may grow.
                let limit = if finishing {
                    (4 * FEW / workspaces).max(20)
                } else {
                    NO_LIMIT
                };
                let pending = admitted + 4 * FEW;
                self.fill(&Fill::backlog(pending, workspaces, limit))
                    .await?;
                let before = self.measure(1, FEW).await?;
                let case = Case {
                    finishing: Some(finishing),
                    ..Case::new(Kind::After, pending, workspaces, before)
                };
                self.case(case);
                self.backend.pin(Pin::Reader).await?;
                self.show.progress(&format!("admitting {admitted} more"));
                let pace = self.pace(1, admitted);
                admit(self.backend, pace, finishing).await?;
                let after = self.measure(1, FEW).await?;
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

    /// Many that wait but cannot be admitted, before the few that can.
    async fn in_the_way(&mut self) -> Result<()> {
        self.heading(Kind::InTheWay);
        let pending = 2 * FEW;
        for workspaces in CROWDS {
            let fill = Fill::backlog(pending, workspaces, NO_LIMIT);
            self.fill(&fill).await?;
            let base = self.measure(1, FEW).await?;
            let case = Case::new(Kind::InTheWay, pending, workspaces, base);
            self.case(case);
            for obstacle in Obstacle::ALL {
                let count = self.options.in_the_way;
                self.fill(&fill.clone().behind(obstacle, count)).await?;
                let measured = self.measure(1, FEW).await?;
                self.case(Case {
                    obstacle: Some((obstacle, count)),
                    measured,
                    base: Some(base),
                    ..case
                });
            }
        }
        Ok(())
    }

    async fn fill(&mut self, fill: &Fill) -> Result<()> {
        let workspaces: u32 = fill.crowds.iter().map(|crowd| crowd.count).sum();
        let requests: u32 = fill.lines.iter().map(|line| line.requests).sum();
        self.show.progress(&format!(
            "filling in {requests} requests of {workspaces} workspaces"
        ));
        self.backend.fill(fill).await
    }

    async fn measure(&mut self, claimers: u32, most: u32) -> Result<Measured> {
        self.show.progress("measuring");
        let pace = self.pace(claimers, most);
        measure(self.backend, pace).await
    }

    fn pace(&self, claimers: u32, most: u32) -> Pace {
        Pace {
            claimers,
            batch: self.options.batch,
            most,
        }
    }

    fn heading(&mut self, kind: Kind) {
        self.show.heading(self.backend, kind);
    }

    fn case(&mut self, case: Case) {
        self.show.case(self.backend, &case);
    }
}
