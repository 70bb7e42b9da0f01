//! Tests of node inputs: references, missing values and limits.

use super::*;
use serde_json::json;

fn fill(template: Value) -> Result<Value, InputProblem> {
    let mut node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
    node.input = Some(template);
    let params = JsonText::parse(r#"{"id": 7, "a/b": [1, {"c": "x"}]}"#).unwrap();
    let output = JsonText::parse(r#"{"sum": 1.50}"#).unwrap();
    let sources = Sources {
        documents: &ParsedDocuments::default(),
        params: &params,
        nodes: vec![("one", Some(&output)), ("two", None)],
    };
    Ok(input(&node, &sources)?.read().unwrap())
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
fn outputs_are_passed_on_verbatim() {
    let node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
    let params = JsonText::parse(r#"{"b" : 1.0}"#).unwrap();
    let sources = Sources {
        documents: &ParsedDocuments::default(),
        params: &params,
        nodes: vec![("one", Some(&params)), ("two", None)],
    };
    let text = input(&node, &sources).unwrap();
    assert_eq!(
        text.as_str(),
        r#"{"params":{"b" : 1.0},"nodes":{"one":{"b" : 1.0},"two":null}}"#
    );
}

#[test]
fn template_that_repeats_a_large_reference_is_rejected_before_it_is_filled() {
    let params = JsonText::of(&"x".repeat(100_000)).unwrap();
    let mut node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
    node.input = Some(Value::Array(vec![json!({"$from": "/params"}); 10_000]));
    let sources = Sources {
        documents: &ParsedDocuments::default(),
        params: &params,
        nodes: Vec::new(),
    };
    let rejected = input(&node, &sources);
    assert_eq!(rejected, Err(InputProblem::TooLarge(300_006)));
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
    let call = |method: &str, url: &str| {
        let kind = NodeKind::Http {
            method: method.into(),
            url: url.into(),
            headers: Default::default(),
        };
        Node::new("n", kind)
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
fn too_large_input_is_rejected() {
    let node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
    let params = JsonText::of(&"x".repeat(NODE_INPUT_MAX_BYTES)).unwrap();
    let sources = Sources {
        documents: &ParsedDocuments::default(),
        params: &params,
        nodes: Vec::new(),
    };
    assert!(matches!(
        input(&node, &sources),
        Err(InputProblem::TooLarge(_))
    ));
}

#[test]
fn too_deep_input_is_rejected() {
    let node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
    let nested = |levels: usize| {
        let text = "[".repeat(levels) + &"]".repeat(levels);
        let params = JsonText::parse(&text).unwrap();
        let sources = Sources {
            documents: &ParsedDocuments::default(),
            params: &params,
            nodes: Vec::new(),
        };
        input(&node, &sources).map(|_| ())
    };
    assert_eq!(nested(JSON_MAX_DEPTH - 3), Ok(()));
    assert_eq!(nested(JSON_MAX_DEPTH - 2), Err(InputProblem::TooDeep));
}

#[test]
fn url_accepts_only_scalars_and_no_value_leaves_its_segment() {
    let params =
        JsonText::parse(r#"{"id": "a b/../c?d#e", "n": 5, "no": [1], "up": "..", "none": ""}"#)
            .unwrap();
    let sources = Sources {
        documents: &ParsedDocuments::default(),
        params: &params,
        nodes: Vec::new(),
    };
    let filled = |template: &str| url(template, &sources);
    assert_eq!(
        filled("http://h/{/params/id}/x?n={/params/n}").unwrap(),
        "http://h/a%20b%2F..%2Fc%3Fd%23e/x?n=5"
    );
    assert_eq!(
        filled("http://h/{/params/no}"),
        Err(InputProblem::NotPlain("/params/no".into()))
    );
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
