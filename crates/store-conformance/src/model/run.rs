//! Runs random lists of operations on a store and the model, and prints the shortest list on which they differ.

use super::comparison::{Mismatch, RequestComparison};
use super::graph_comparison::{GraphComparison, graph_op};
use super::job_comparison::{JobComparison, job_op};
use super::op::{Op, op};
use crate::Fixture;
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of lists to run; overrides the number in the adapter's test.
const CASES_VARIABLE: &str = "LEASEHOLD_MODEL_CASES";
/// The maximum number of operations in a list.
const OPS_MAX: usize = 60;
/// The maximum number of shrink steps; each needs a fresh store.
const SHRINK_MAX: u32 = 400;

/// Compares the stores that `fixture` creates with the model, over `cases` random lists of operations each on requests, jobs and graphs. The
/// lists are the same in every run. `LEASEHOLD_MODEL_CASES` in the environment overrides the number, and then the lists are random.
///
/// Call it from an ordinary `#[test]`: it starts its own runtime.
///
/// # Panics
/// When a store and the model differ; the message has the shortest list of operations found.
pub fn model_test<F, Fut>(fixture: F, cases: u32)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Fixture>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("failed to start a runtime");
    search(op(), cases, |ops| {
        runtime.block_on(async { run(fixture().await, ops).await })
    });
    search(job_op(), cases, |ops| {
        runtime.block_on(async {
            let mut comparison = JobComparison::new(fixture().await).await?;
            for (n, op) in ops.iter().enumerate() {
                let step = comparison.step(op).await;
                step.map_err(|what| after(n, op, &what))?;
            }
            comparison.compare_all().await
        })
    });
    search(graph_op(), cases, |ops| {
        runtime.block_on(async {
            let mut comparison = GraphComparison::new(fixture().await).await?;
            for (n, op) in ops.iter().enumerate() {
                let step = comparison.step(op).await;
                step.map_err(|what| after(n, op, &what))?;
            }
            comparison.compare_all().await
        })
    });
}

/// Runs random lists of operations until one fails, then shortens it.
fn search<O: Clone + Debug>(
    op: impl Strategy<Value = O>,
    cases: u32,
    run: impl Fn(&[O]) -> Result<(), Mismatch>,
) {
    let requested: Option<u32> = std::env::var(CASES_VARIABLE)
        .ok()
        .and_then(|n| n.parse().ok());
    let config = Config {
        cases: requested.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: SHRINK_MAX,
        ..Config::default()
    };
    let lists = proptest::collection::vec(op, 1..OPS_MAX);
    let mut runner = match requested {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let outcome = runner.run(&lists, |ops| run(&ops).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, ops)) => {
            let (reason, ops) = shorten(reason.to_string(), ops, run);
            panic!("{reason}\n{}", listing(&ops));
        }
        Err(TestError::Abort(reason)) => panic!("model test aborted: {reason}"),
    }
}

fn after(n: usize, op: &impl Debug, what: &str) -> Mismatch {
    format!("after operation {} ({op:?}): {what}", n + 1)
}

async fn run(fixture: Fixture, ops: &[Op]) -> Result<(), Mismatch> {
    let mut comparison = RequestComparison::new(fixture).await?;
    for (n, op) in ops.iter().enumerate() {
        let step = async {
            comparison.apply(op).await?;
            comparison.compare().await
        };
        step.await.map_err(|what| after(n, op, &what))?;
    }
    comparison.compare_all().await
}

/// Removes every operation without which the list still fails; proptest's shrinking stops before it has tried them all.
fn shorten<O: Clone>(
    mut reason: String,
    mut ops: Vec<O>,
    fails: impl Fn(&[O]) -> Result<(), Mismatch>,
) -> (String, Vec<O>) {
    let mut index = 0;
    while index < ops.len() {
        let mut shorter = ops.clone();
        shorter.remove(index);
        match catch_unwind(AssertUnwindSafe(|| fails(&shorter))) {
            Ok(Ok(())) | Err(_) => index += 1,
            Ok(Err(other)) => {
                (reason, ops, index) = (other, shorter, 0);
            }
        }
    }
    (reason, ops)
}

fn listing(ops: &[impl Debug]) -> String {
    let mut text = String::from("the shortest list of operations found:\n");
    for (n, op) in ops.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:>3}. {op:?}", n + 1);
    }
    text
}
