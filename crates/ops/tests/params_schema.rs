//! Tests of hostile params schemas: refused when they are published, or stopped when they validate, beside other work.
#![allow(clippy::unwrap_used)]

use crate::enqueue::TestStore;
use leasehold_core::limits::{VALIDATION_MAX_DEPTH, VALIDATION_MAX_STEPS};
use leasehold_ops::{EnqueueError, PublishError};
use leasehold_schema::{SchemaLimit, SchemaProblem, ValidationLimit};
use leasehold_store::definition::DefinitionStore;
use leasehold_store::definition::NewVersion;
use leasehold_store::fresh_id;
use serde_json::{Map, Value, json};
use std::cell::Cell;

/// Each level of the params doubles the work.
fn doubling() -> Value {
    let property = json!({"properties": {"a": {"$ref": "#"}}});
    json!({"allOf": [property.clone(), property]})
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[tokio::test]
async fn schema_that_could_take_too_long_is_refused_with_limit_and_place() {
    let env = TestStore::new().await;
    let mut levels = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        levels.insert(format!("d{level}"), json!({"allOf": [next.clone(), next]}));
    }
    levels.insert("d40".to_owned(), json!({}));
    let schema = json!({"$defs": levels, "$ref": "#/$defs/d0"});
    let error = env.publish(Some(schema)).await.unwrap_err();
    let PublishError::Schema(refused) = &error else {
        panic!("{error}");
    };
    assert_eq!(refused.problem, SchemaProblem::Limit(SchemaLimit::Expanded));
    assert!(error.to_string().contains("at /$defs/d2"), "{error}");
}

#[tokio::test]
async fn validation_that_takes_too_long_is_stopped_while_other_work_goes_on() {
    let env = TestStore::new().await;
    env.publish(Some(doubling())).await.unwrap();
    let (turns, is_done) = (Cell::new(0), Cell::new(false));
    // One thread runs both: turns are possible only while validation runs elsewhere.
    let other_work = async {
        while !is_done.get() {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    let enqueue = async {
        let requests = vec![env.request(json!({})), env.request(nested(60))];
        let refused = env.enqueue(requests).await.unwrap_err();
        is_done.set(true);
        refused
    };
    let (refused, ()) = tokio::join!(enqueue, other_work);
    match &refused {
        EnqueueError::ValidationLimit { index: 1, limit } => {
            assert_eq!(*limit, ValidationLimit::Steps(VALIDATION_MAX_STEPS));
            let text = refused.to_string();
            assert!(
                text.starts_with("requests[1].params: validation took"),
                "{text}"
            );
        }
        // A busy machine reaches the limit of time before the limit of steps.
        EnqueueError::ValidationTime(1) => {}
        other => panic!("{other}"),
    }
    assert!(turns.get() > 1_000, "{} turns", turns.get());
    assert_eq!(env.pending().await, 0);
}

#[tokio::test]
async fn validation_that_nests_too_deep_is_stopped() {
    let env = TestStore::new().await;
    let schema = json!({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]});
    env.publish(Some(schema)).await.unwrap();
    let refused = env.enqueue(vec![env.request(json!(1))]).await.unwrap_err();
    let limit = format!("deeper than {VALIDATION_MAX_DEPTH} schemas");
    assert!(refused.to_string().contains(&limit), "{refused}");
}

#[tokio::test]
async fn version_with_a_schema_that_is_refused_now_accepts_no_request() {
    let env = TestStore::new().await;
    let new = NewVersion {
        params_schema: Some(json!({"pattern": "(a)\\1"})),
        ..env.version(fresh_id())
    };
    // Past the checks of `publish`, like a program with other rules.
    env.store
        .version_publish(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    let refused = env.enqueue(vec![env.request(json!("aa"))]).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("back-references") && refused.contains("publish a corrected version"),
        "{refused}"
    );
    assert_eq!(env.pending().await, 0);
}
