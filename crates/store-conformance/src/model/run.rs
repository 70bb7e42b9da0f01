//! Runs random lists of operations against a store and its model, and prints the shortest list on which they disagree.

use super::graph_pair::{GraphPair, graph_op};
use super::job_pair::{JobPair, job_op};
use super::op::{Op, op};
use super::pair::{Disagreement, Pair};
use crate::Fixture;
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many lists are tried: overrules what the adapter's test says.
const CASES_VARIABLE: &str = "LEASEHOLD_MODEL_CASES";
/// Operations of one list, at most.
const OPS_MAX: usize = 60;
/// Every try of a shorter list needs a fresh store.
const SHRINK_MAX: u32 = 400;

/// Compares the stores that `fixture` makes with the model, over `cases` random lists of operations on requests, as many on jobs and as many on
/// graphs, the same in every run. `LEASEHOLD_MODEL_CASES` in the environment overrules the number, and then the lists are new ones each time.
///
/// Call it from an ordinary `#[test]`: it brings its own runtime.
///
/// # Panics
/// When a store and the model disagree; the message has the shortest list of operations found.
pub fn model_test<F, Fut>(fixture: F, cases: u32)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Fixture>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    search(op(), cases, |ops| {
        runtime.block_on(async { run(fixture().await, ops).await })
    });
    search(job_op(), cases, |ops| {
        runtime.block_on(async {
            let mut pair = JobPair::new(fixture().await).await?;
            for (n, op) in ops.iter().enumerate() {
                let step = pair.step(op).await;
                step.map_err(|what| after(n, op, &what))?;
            }
            pair.compare_all().await
        })
    });
    search(graph_op(), cases, |ops| {
        runtime.block_on(async {
            let mut pair = GraphPair::new(fixture().await).await?;
            for (n, op) in ops.iter().enumerate() {
                let step = pair.step(op).await;
                step.map_err(|what| after(n, op, &what))?;
            }
            pair.compare_all().await
        })
    });
}

/// Tries random lists of operations until one fails, and then shorter ones.
fn search<O: Clone + Debug>(
    op: impl Strategy<Value = O>,
    cases: u32,
    run: impl Fn(&[O]) -> Result<(), Disagreement>,
) {
    let asked: Option<u32> = std::env::var(CASES_VARIABLE)
        .ok()
        .and_then(|n| n.parse().ok());
    let config = Config {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: SHRINK_MAX,
        ..Config::default()
    };
    let lists = proptest::collection::vec(op, 1..OPS_MAX);
    let mut runner = match asked {
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
        Err(TestError::Abort(reason)) => panic!("the model test was aborted: {reason}"),
    }
}

fn after(n: usize, op: &impl Debug, what: &str) -> Disagreement {
    format!("after operation {} ({op:?}): {what}", n + 1)
}

async fn run(fixture: Fixture, ops: &[Op]) -> Result<(), Disagreement> {
    let mut pair = Pair::new(fixture).await?;
    for (n, op) in ops.iter().enumerate() {
        let step = async {
            pair.apply(op).await?;
            pair.compare().await
        };
        step.await.map_err(|what| after(n, op, &what))?;
    }
    pair.compare_all().await
}

/// Leaves out every single operation without which the list still fails: shrinking stops before it has tried them all.
fn shorten<O: Clone>(
    mut reason: String,
    mut ops: Vec<O>,
    fails: impl Fn(&[O]) -> Result<(), Disagreement>,
) -> (String, Vec<O>) {
    let mut place = 0;
    while place < ops.len() {
        let mut shorter = ops.clone();
        shorter.remove(place);
        match catch_unwind(AssertUnwindSafe(|| fails(&shorter))) {
            Ok(Ok(())) | Err(_) => place += 1,
            Ok(Err(other)) => {
                (reason, ops, place) = (other, shorter, 0);
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
