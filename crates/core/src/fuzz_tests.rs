//! Fuzz tests of the parsers of outside input in the core: JSON, graphs with their templates, keys, trace contexts, names.

use crate::graph::{GraphEvent, Machine, NodeContext, NodeKind, NodeWork};
use crate::json::{self, JsonProblemKind};
use crate::key::{KeyScope, Secret};
use crate::limits::{JSON_MAX_DEPTH, NODE_INPUT_MAX_BYTES, URL_MAX_CHARS};
use crate::{ExecutionId, JsonText, TraceContext, VersionBody, WorkspaceId, text};
use leasehold_testkit::Fuzzer;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use uuid::Uuid;

const JSON: &[&str] = &[
    r#"{"a":[1,-2.5e3,"x\"9",18446744073709551615,true,null]}"#,
    r#"[[[{"a/b~c":"\u00e4\ud83d\ude00"}]], 1e30, -0]"#,
    "\"\\u0000\"",
];
const JSON_TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\",
    "\\u0000",
    "\\ud800",
    "-",
    "0",
    "9",
    "e",
    ".",
    "null",
    "1e400",
    "18446744073709551616",
    " ",
    "\u{e4}",
    "\0",
];

#[test]
fn json_documents() {
    const MAX: usize = 1_000;
    Fuzzer::new(JSON).tokens(JSON_TOKENS).run(|input| {
        let lossy = String::from_utf8_lossy(input);
        let streamed = json::check_text(&lossy, MAX);
        let _ = json::check_written_out(&lossy, MAX);
        let _ = json::tree_bytes(input);
        let parsed = json::parse(input, MAX);
        let value = parsed.map_err(|problem| discriminant(&problem.kind))?;
        assert_eq!(json::check(&value, MAX), Ok(()));
        assert_eq!(json::scan(input), Ok(()));
        assert_eq!(streamed, Ok(()));
        let text = str::from_utf8(input).expect("JSON is UTF-8");
        let mut stripped = JsonText::trusted(text.to_owned());
        stripped.strip_whitespace();
        assert_eq!(stripped.read::<Value>().ok().as_ref(), Some(&value));
        let depth = json::depth(text);
        assert!(depth <= JSON_MAX_DEPTH, "{depth}");
        let kept = JsonText::parse(text).expect("it is JSON");
        assert_eq!(kept.read::<Value>().ok().as_ref(), Some(&value));
        Ok::<_, Discriminant<JsonProblemKind>>(depth)
    });
}

/// The scan of brackets must not report less than the parser finds: it guards against deep documents before they are parsed.
#[test]
fn depth_of_malformed_json() {
    Fuzzer::new(JSON).tokens(JSON_TOKENS).run(|input| {
        let text = String::from_utf8_lossy(input);
        let is_too_deep = |kind: &JsonProblemKind| *kind == JsonProblemKind::TooDeep;
        let parsed = json::parse(text.as_bytes(), usize::MAX);
        let refused = parsed.is_err_and(|problem| is_too_deep(&problem.kind));
        let depth = json::depth(&text);
        // Scalars inside the brackets are one level more.
        assert!(!refused || depth >= JSON_MAX_DEPTH, "{depth}");
        (depth.min(200), refused)
    });
}

const GRAPHS: &[&str] = &[
    r#"{"graph":{"nodes":[{"id":"a","type":"delay","milliseconds":1},{"id":"b","type":"task","queue":"q","kind":"k","timeout_ms":5,
        "retry":{"max_attempts":2,"base_ms":1,"factor":1.5,"max_ms":9,"jitter":0.5},"input":{"x":{"$from":"/nodes/a"},"y":[{"$from":"/params/list/0"}]}},
        {"id":"c","type":"http","method":"POST","url":"https://example.com/o/{/params/id}?q={/nodes/b/x}","headers":{"x-a":"b"}}],
        "edges":[{"from":"a","to":"b"},{"from":"b","to":"c"}]}}"#,
    r#"{"graph":{"$schema":"x","nodes":[{"id":"a","type":"http","url":"http://user@example.com:80/{/params/id}/x"}]}}"#,
    r#"{"binding":{"workflow_type":"Order","task_queue":"orders"}}"#,
];
const GRAPH_TOKENS: &[&str] = &[
    r#"{"id":"d","type":"task","queue":"q"},"#,
    r#"{"from":"a","to":"c"},"#,
    r#"{"$from":"/params"}"#,
    r#"{"$from":"/nodes"}"#,
    "{/params/id}",
    "{/params/list/1}",
    "{/nodes/a}",
    "{",
    "}",
    "/params/~0~1",
    "/nodes/b/",
    "https://",
    "http://",
    "@",
    "?",
    "#",
    "..",
    "\\",
    "leasehold:",
    "\"input\":null,",
    "\"headers\":{},",
    "-1",
    "1e9",
    "null",
    "\\u0000",
    "\\n",
    "[",
    "]",
    "\"",
];

#[test]
fn graphs_and_templates() {
    let params = r#"{"id":"../a b/ä@x","list":["..",7,{"deep":[]}],"x":"https://evil.test"}"#;
    let params = JsonText::trusted(params.to_owned());
    Fuzzer::new(GRAPHS).tokens(GRAPH_TOKENS).run(|input| {
        let body = serde_json::from_slice::<VersionBody>(input);
        let body = body.map_err(|error| error.classify() as u8)?;
        if let Err(problem) = body.validate() {
            assert!(problem.pointer().starts_with('/'));
            return Err(problem.to_string().len() as u8);
        }
        let text = serde_json::to_string(&body).expect("it is JSON");
        let again: VersionBody = serde_json::from_str(&text).expect("it parses again");
        assert_eq!(again.validate(), Ok(()));
        match body {
            VersionBody::Graph(graph) => {
                let machine = Machine::new(graph).expect("it is valid");
                Ok(run(&machine, &params))
            }
            VersionBody::Binding { .. } => Ok(0),
        }
    });
}

/// The same with params that take a large part of what an input, a URL or a step may have.
#[test]
fn graphs_with_large_params() {
    let text = |chars: usize| "x\u{e4}".repeat(chars / 2);
    let params =
        json!({"id": text(2_000), "list": [text(40_000), 7, vec![0; 20_000]], "x": text(30_000)});
    let params = JsonText::from(&params);
    Fuzzer::new(GRAPHS).tokens(GRAPH_TOKENS).run(|input| {
        let body = serde_json::from_slice::<VersionBody>(input).ok()?;
        let VersionBody::Graph(graph) = body else {
            return None;
        };
        let machine = Machine::new(graph).ok()?;
        Some(run(&machine, &params))
    });
}

/// Runs a graph to its end, with an output for every node. Returns the number of nodes that were started.
fn run(machine: &Machine, params: &JsonText) -> usize {
    let output = JsonText::trusted(r#"{"x":{"y":1},"list":[null]}"#.to_owned());
    let all = 0..machine.graph().nodes.len();
    let outputs: HashMap<usize, JsonText> = all.map(|at| (at, output.clone())).collect();
    let context = NodeContext {
        execution: ExecutionId(Uuid::nil()),
        workspace: WorkspaceId(Uuid::nil()),
        params,
        outputs: &outputs,
    };
    let (mut state, mut step) = machine.begin();
    let mut running = Vec::new();
    let mut started = 0;
    loop {
        let needs = machine.needs(&step.begin);
        assert!(needs.len() <= machine.graph().nodes.len());
        let prepared = machine.prepare(&mut state, step, &context);
        for (at, work) in prepared.begin {
            check_work(machine, at, &work);
            running.push(at);
            started += 1;
        }
        let Some(at) = running.pop().filter(|_| prepared.end.is_none()) else {
            assert!(
                state.end().is_some(),
                "the graph neither runs nor has ended"
            );
            return started;
        };
        let completed = machine.apply(&mut state, GraphEvent::Completed(at));
        step = completed.expect("the node runs");
    }
}

/// Checks that params cannot change the host that a call goes to, and that inputs keep their limits.
fn check_work(machine: &Machine, at: usize, work: &NodeWork) {
    match (work, &machine.node(at).kind) {
        (NodeWork::Http { call, .. }, NodeKind::Http { url: template, .. }) => {
            let literal = template.split('{').next().unwrap_or_default();
            let rest = call.url.strip_prefix(literal);
            let rest = rest.unwrap_or_else(|| panic!("{} from {template}", call.url));
            let host = literal.split_once("://").map_or("", |(_, host)| host);
            assert!(rest.is_empty() || host.contains(['/', '?']), "{}", call.url);
            assert!(!call.url.contains(char::is_whitespace), "{}", call.url);
            let body = call.body.as_ref().map_or(0, |body| body.as_str().len());
            assert!(body <= NODE_INPUT_MAX_BYTES);
            assert!(call.url.len() <= URL_MAX_CHARS);
        }
        (NodeWork::Task { payload, .. }, NodeKind::Task { .. }) => {
            assert!(payload.is_readable());
            assert!(json::depth(payload.as_str()) <= JSON_MAX_DEPTH);
        }
        (NodeWork::Delay(_), NodeKind::Delay { .. }) => {}
        (work, kind) => panic!("{work:?} for {kind:?}"),
    }
}

#[test]
fn keys() {
    let key = Secret::new(&KeyScope::Admin, &[7; 32]);
    let worker = Secret::new(&KeyScope::Worker { queues: Vec::new() }, &[0; 32]);
    let tokens = [
        "lh_",
        "admin",
        "metrics",
        "worker",
        "workspace",
        "_",
        "=",
        "A",
        "-",
    ];
    let examples = [key.reveal(), worker.reveal()];
    Fuzzer::new(&examples).tokens(&tokens).run(|input| {
        let text = String::from_utf8_lossy(input);
        let parsed = Secret::parse(&text)?;
        assert_eq!(parsed.reveal(), text);
        // Other random bytes would need their checksum.
        let known = [&key, &worker].map(|key| key.reveal().rsplit('_').next());
        assert!(known.contains(&text.rsplit('_').next()), "{text}");
        Some(text.len())
    });
}

#[test]
fn trace_contexts() {
    let example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let tokens = ["-", "00", "ff", "0000000000000000", "A", "+", "cc-"];
    Fuzzer::new(&[example]).tokens(&tokens).run(|input| {
        let text = String::from_utf8_lossy(input);
        let context: TraceContext = text.parse().ok()?;
        assert_eq!(context.to_string().parse(), Ok(context));
        assert!(context.trace != 0 && context.span != 0);
        Some((context.sampled, text.len()))
    });
}

#[test]
fn names() {
    let tokens = ["\0", "\u{7f}", "\u{85}", "\u{202e}", " ", "\u{e4}", "\r\n"];
    Fuzzer::new(&["Käse & Söhne", " "])
        .tokens(&tokens)
        .run(|input| {
            const MAX: usize = 20;
            let name = String::from_utf8_lossy(input);
            let checked = text::check(&name, MAX);
            if checked.is_ok() {
                assert!(!name.contains(char::is_control) && name.chars().count() <= MAX);
            }
            let clipped = text::clip(&name, MAX);
            assert!(!clipped.contains('\0') && clipped.chars().count() <= MAX);
            checked.map_err(|problem| discriminant(&problem))
        });
}
