//! The other job queues with the best configuration found for each. `bench/peers` contains their drivers.

use super::driver;
use super::install::NpmInstall;
use crate::backend::{BenchBackend, Fill};
use crate::workqueue::leasehold::{PAUSE, WARM_UPS};
use crate::workqueue::{Delays, EnqueueMode, Run};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::{Value, json};

/// Jobs a call when a queue is filled before it is drained.
const FILL: u32 = 5_000;

/// Another job queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Peer {
    /// graphile-worker, for Node
    GraphileWorker,
    /// pg-boss, for Node
    PgBoss,
}

impl Peer {
    pub(super) const ALL: [Self; 2] = [Self::GraphileWorker, Self::PgBoss];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::GraphileWorker => "graphile_worker",
            Self::PgBoss => "pg_boss",
        }
    }

    pub(super) fn ratio_name(self) -> &'static str {
        match self {
            Self::GraphileWorker => "ratio_to_graphile_worker",
            Self::PgBoss => "ratio_to_pg_boss",
        }
    }

    /// What npm installs.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::GraphileWorker => "graphile-worker@0.17.3",
            Self::PgBoss => "pg-boss@12.35.0",
        }
    }

    /// What becomes of completed jobs.
    pub(super) fn keeps(self) -> &'static str {
        match self {
            Self::GraphileWorker => "discard",
            Self::PgBoss => "keep",
        }
    }

    /// Our program that calls it.
    pub(super) fn driver(self) -> (&'static str, &'static str) {
        match self {
            Self::GraphileWorker => (
                "graphile_worker.mjs",
                include_str!("../../peers/graphile_worker.mjs"),
            ),
            Self::PgBoss => ("pg_boss.mjs", include_str!("../../peers/pg_boss.mjs")),
        }
    }

    pub(super) async fn enqueue(
        self,
        installed: &NpmInstall,
        backend: &mut dyn BenchBackend,
        mode: EnqueueMode,
        jobs: u32,
    ) -> Result<Run> {
        let (what, arguments) = match mode {
            EnqueueMode::Singles { connections } => {
                ("singles", json!({"jobs": jobs, "connections": connections}))
            }
            EnqueueMode::Bulk { batch } => ("bulk", json!({"jobs": jobs, "batch": batch})),
        };
        let found = self.measure(installed, backend, what, arguments, jobs);
        Ok(found.await?.0)
    }

    pub(super) async fn drain(
        self,
        installed: &NpmInstall,
        backend: &mut dyn BenchBackend,
        jobs: u32,
    ) -> Result<Run> {
        // graphile-worker: a local queue and completions that are batched at once. pg-boss: several workers with large batches that ask again
        // at once while batches are full.
        let (concurrency, local) = match self {
            Self::GraphileWorker => (10, 1_000),
            Self::PgBoss => (4, 1_000),
        };
        let arguments = json!({
            "jobs": jobs, "batch": FILL, "connections": 10, "concurrency": concurrency, "local": local,
        });
        let found = self.measure(installed, backend, "drain", arguments, jobs);
        Ok(found.await?.0)
    }

    pub(super) async fn latency(
        self,
        installed: &NpmInstall,
        backend: &mut dyn BenchBackend,
        jobs: u32,
    ) -> Result<Delays> {
        let arguments = json!({
            "jobs": jobs, "warmUps": WARM_UPS, "pause": PAUSE.as_millis() as u64, "concurrency": 1,
        });
        let found = self.measure(installed, backend, "latency", arguments, jobs);
        Ok(found.await?.1)
    }

    async fn measure(
        self,
        installed: &NpmInstall,
        backend: &mut dyn BenchBackend,
        what: &str,
        mut arguments: Value,
        jobs: u32,
    ) -> Result<(Run, Delays)> {
        backend.fill(&Fill::default()).await?;
        arguments["url"] = backend.address().context("a server")?.into();
        driver::measure(
            installed,
            backend,
            (self.driver().0, what),
            &arguments,
            jobs,
        )
        .await
        .with_context(|| format!("{what} of {}", self.name()))
    }
}
