//! Compares verdicts with those of the `jsonschema` crate on generated schemas and values.

use crate::generate::{document, value};
use crate::support::*;
use leasehold_schema::{Schema, SchemaProblem, ValidationError};
use leasehold_testkit::sized;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use std::cell::Cell;

/// How many values were compared.
#[derive(Default)]
struct Tally {
    valid: Cell<u32>,
    invalid: Cell<u32>,
}

/// The other crate lets `contains` evaluate items in draft 2019-09 too; the specification says so only since 2020-12.
fn is_known_difference(document: &Value) -> bool {
    let text = document.to_string();
    document["$schema"] == DRAFT_2019
        && text.contains("contains")
        && text.contains("unevaluatedItems")
}

fn compare(document: &Value, values: &[Value], tally: &Tally) -> Result<(), TestCaseError> {
    if is_known_difference(document) {
        return Ok(());
    }
    let ours = match Schema::compile(document) {
        Ok(schema) => schema,
        Err(error) if error.problem == SchemaProblem::Loop => return Ok(()),
        Err(error) => return Err(TestCaseError::fail(format!("{document}: {error}"))),
    };
    let theirs = jsonschema::validator_for(document)
        .map_err(|error| TestCaseError::fail(format!("{document}: theirs: {error}")))?;
    for value in values {
        let verdict = match ours.validate(value, LIMITS) {
            Ok(()) => true,
            Err(ValidationError::Mismatch(_)) => false,
            Err(ValidationError::LimitExceeded(limit)) => {
                return Err(TestCaseError::fail(format!("{document} {value}: {limit}")));
            }
        };
        prop_assert_eq!(verdict, theirs.is_valid(value), "{} {}", document, value);
        let count = if verdict {
            &tally.valid
        } else {
            &tally.invalid
        };
        count.set(count.get() + 1);
    }
    Ok(())
}

#[test]
fn verdicts_agree_with_another_validator() {
    let cases = sized(200, 20_000);
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 5_000,
        ..ProptestConfig::default()
    });
    let tally = Tally::default();
    let inputs = (document(), prop::collection::vec(value(), 1..8));
    let run = runner.run(&inputs, |(document, values)| {
        compare(&document, &values, &tally)
    });
    if let Err(failure) = run {
        panic!("{failure}");
    }
    // Schemas that accept everything or nothing would compare little.
    let (valid, invalid) = (tally.valid.get(), tally.invalid.get());
    assert!(
        valid > cases / 2 && invalid > cases / 2,
        "{valid} valid, {invalid} invalid"
    );
    println!("{valid} valid, {invalid} invalid");
}
