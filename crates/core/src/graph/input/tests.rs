//! Tests of node inputs and URLs: references, missing values and limits.

use super::super::pointer::ReferencedOutputs;
use super::super::{Edge, Graph, HttpCall, NodeKind, NodeWork};
use super::*;
use crate::{ExecutionId, WorkspaceId};
use serde_json::json;
use uuid::Uuid;

/// Builds the work of a node after `one` and `two`, with the output of `one` only.
fn work(mut node: Node, params: &str, output: &str) -> Result<NodeWork, InputProblem> {
    node.id = "n".into();
    let delay = |id: &str| Node::new(id, NodeKind::Delay { milliseconds: 0 });
    let edge = |from: &str| Edge {
        from: from.into(),
        to: "n".into(),
    };
    let machine = Machine::new(Graph {
        nodes: vec![delay("one"), delay("two"), node],
        edges: vec![edge("one"), edge("two")],
    });
    let context = NodeContext {
        execution: ExecutionId(Uuid::nil()),
        workspace: WorkspaceId(Uuid::nil()),
        params: &JsonText::parse(params).unwrap(),
        outputs: &HashMap::from([(0, JsonText::parse(output).unwrap())]),
    };
    machine.unwrap().work(2, &context)
}

fn post(input: Option<Value>) -> Node {
    Node {
        input,
        ..call("POST", "http://h/")
    }
}

fn call(method: &str, url: &str) -> Node {
    let kind = NodeKind::Http {
        method: method.into(),
        url: url.into(),
        headers: Default::default(),
    };
    Node::new("n", kind)
}

/// Builds the input of a node.
fn input(template: Option<Value>, params: &str, output: &str) -> Result<JsonText, InputProblem> {
    match work(post(template), params, output)? {
        NodeWork::Http {
            call: HttpCall {
                body: Some(body), ..
            },
            ..
        } => Ok(body),
        other => panic!("no body: {other:?}"),
    }
}

fn url(template: &str, params: &str) -> Result<String, InputProblem> {
    match work(call("GET", template), params, "1")? {
        NodeWork::Http { call, .. } => Ok(call.url),
        other => panic!("no call: {other:?}"),
    }
}

fn fill(template: Value) -> Result<Value, InputProblem> {
    let params = r#"{"id": 7, "a/b": [1, {"c": "x"}]}"#;
    Ok(input(Some(template), params, r#"{"sum": 1.50}"#)?
        .read()
        .unwrap())
}

#[test]
fn references_are_replaced_at_any_depth() {
    let cases = [
        (json!({"$from": "/params/id"}), json!(7)),
        (
            json!([{"$from": "/params/a~1b/1/c"}, "plain"]),
            json!(["x", "plain"]),
        ),
        (
            json!({"deep": {"er": {"$from": "/nodes/one/sum"}}}),
            json!({"deep": {"er": 1.5}}),
        ),
        (json!({"$from": "/nodes/two"}), json!(null)),
        (
            json!({"$from": "/params/id", "and": 1}),
            json!({"$from": "/params/id", "and": 1}),
        ),
    ];
    for (template, expected) in cases {
        assert_eq!(fill(template), Ok(expected));
    }
}

#[test]
fn missing_value_is_named() {
    let missing = fill(json!({"a": {"$from": "/params/nothing"}})).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "cannot build the node's input: /params/nothing does not exist"
    );
}

#[test]
fn values_are_passed_on_verbatim() {
    let document = r#"{"b" : 1.0}"#;
    assert_eq!(
        input(None, document, document).unwrap().as_str(),
        r#"{"params":{"b" : 1.0},"nodes":{"one":{"b" : 1.0},"two":null}}"#
    );
    let template =
        json!({"all": {"$from": "/nodes"}, "one": [{"$from": "/params/b"}, "\"", 1.5, {}]});
    assert_eq!(
        input(Some(template), document, document).unwrap().as_str(),
        r#"{"all":{"one":{"b" : 1.0},"two":null},"one":[1.0,"\"",1.5,{}]}"#
    );
}

#[test]
fn template_that_repeats_a_large_reference_is_rejected_before_it_is_filled() {
    let params = json!("x".repeat(100_000)).to_string();
    for pointer in ["/params", "/nodes", "/nodes/one"] {
        let template = Value::Array(vec![json!({"$from": pointer}); 200]);
        let rejected = input(Some(template), &params, &params);
        assert_eq!(rejected, Err(InputProblem::TooLarge), "{pointer}");
    }
}

#[test]
fn only_referenced_outputs_are_needed() {
    let task = |input: Option<Value>| Node {
        input,
        ..Node::new(
            "n",
            NodeKind::Task {
                queue: "q".into(),
                kind: None,
            },
        )
    };
    let cases = [
        (task(None), [true, true]),
        (task(Some(json!({"$from": "/nodes"}))), [true, true]),
        (
            task(Some(
                json!([{"$from": "/nodes/a~1b/x"}, {"$from": "/params/y"}]),
            )),
            [true, false],
        ),
        (task(Some(json!({}))), [false, false]),
        (call("GET", "http://h/{/nodes/c}"), [false, true]),
        (call("GET", "http://h/"), [false, false]),
        (call("POST", "http://h/"), [true, true]),
    ];
    for (node, expected) in cases {
        let referenced = ReferencedOutputs::of(&node);
        assert_eq!(
            ["a/b", "c"].map(|id| referenced.contains(id)),
            expected,
            "{node:?}"
        );
    }
}

#[test]
fn input_may_have_its_maximum_and_not_one_byte_more() {
    let around = r#"{"params":"","nodes":{"one":1,"two":null}}"#.len();
    let of_bytes = |bytes: usize| {
        let params = json!("x".repeat(bytes - around)).to_string();
        input(None, &params, "1").map(|input| input.as_str().len())
    };
    assert_eq!(of_bytes(NODE_INPUT_MAX_BYTES), Ok(NODE_INPUT_MAX_BYTES));
    let rejected = of_bytes(NODE_INPUT_MAX_BYTES + 1);
    assert_eq!(rejected, Err(InputProblem::TooLarge));
}

#[test]
fn too_deep_input_is_rejected() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let of_depth = |levels: usize| input(None, &nested(levels), "1").map(drop);
    assert_eq!(of_depth(JSON_MAX_DEPTH - 3), Ok(()));
    assert_eq!(of_depth(JSON_MAX_DEPTH - 2), Err(InputProblem::TooDeep));
    let template = json!([[{"$from": "/params"}]]);
    let of_depth = |levels: usize| input(Some(template.clone()), &nested(levels), "1").map(drop);
    assert_eq!(of_depth(JSON_MAX_DEPTH - 4), Ok(()));
    assert_eq!(of_depth(JSON_MAX_DEPTH - 3), Err(InputProblem::TooDeep));
}

#[test]
fn url_accepts_only_scalars_and_no_value_leaves_its_segment() {
    let params =
        r#"{"id": "a b/../c?d#e", "n": 5, "no": [1], "up": "..", "none": "", "null": null}"#;
    let filled = |template: &str| url(template, params);
    assert_eq!(
        filled("http://h/{/params/id}/x?n={/params/n}").unwrap(),
        "http://h/a%20b%2F..%2Fc%3Fd%23e/x?n=5"
    );
    for pointer in ["/params/no", "/params/null", "/params", "/nodes"] {
        assert_eq!(
            filled(&format!("http://h/{{{pointer}}}")),
            Err(InputProblem::NotPlain(pointer.into()))
        );
    }
    assert_eq!(
        filled("http://h/{/params/up}/x"),
        Err(InputProblem::NoSegment("/params/up".into()))
    );
    assert_eq!(
        filled("http://h/{/params/none}"),
        Err(InputProblem::NoSegment("/params/none".into()))
    );
    assert_eq!(
        filled("http://h/{/params/gone}"),
        Err(InputProblem::Missing("/params/gone".into()))
    );
}

/// Each placeholder once inserted its value of 256 KiB, three times as large when encoded: 600 MiB for this template.
#[test]
fn url_is_rejected_at_the_first_placeholder_that_exceeds_it() {
    let template = "http://h/".to_owned() + &"{/params}".repeat(200);
    let params = json!("ä".repeat(120_000)).to_string();
    let rejected = url(&template, &params);
    assert_eq!(rejected, Err(InputProblem::UrlTooLong("/params".into())));
    let around = "http://h/".len();
    let of_chars = |chars: usize| {
        let params = json!("%".repeat((chars - around) / 3)).to_string();
        url("http://h/{/params}", &params).map(|url| url.len())
    };
    assert_eq!(of_chars(8_190), Ok(8_190));
    let rejected = of_chars(8_193);
    assert_eq!(rejected, Err(InputProblem::UrlTooLong("/params".into())));
}
