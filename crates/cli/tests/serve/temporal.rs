//! Reads workflows from Temporal through its CLI. Knows no store.

use crate::{TIMEOUT, blocking};
use leasehold_core::{ExecutionId, Timestamp, WorkspaceId};
use leasehold_testkit::{Process, TestTemporal, eventually, python_worker};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use std::future::ready;
use std::path::Path;

/// A Temporal namespace.
pub(crate) struct Namespace<'a> {
    pub(crate) server: &'a TestTemporal,
    pub(crate) name: String,
}

/// A run of a workflow, as Temporal lists it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) execution: Ids,
    #[serde(rename = "type")]
    pub(crate) workflow_type: Name,
    pub(crate) start_time: Timestamp,
    pub(crate) close_time: Option<Timestamp>,
    pub(crate) status: String,
    pub(crate) memo: Memo,
    pub(crate) task_queue: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ids {
    pub(crate) workflow_id: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Name {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Memo {
    pub(crate) fields: Value,
}

pub(crate) fn workflow_id(execution: ExecutionId) -> String {
    format!("execution-{execution}")
}

impl Namespace<'static> {
    /// Creates a namespace on the shared server.
    pub(crate) fn fresh() -> Self {
        Self::on(blocking(TestTemporal::shared))
    }
}

impl<'a> Namespace<'a> {
    /// Creates a namespace on this server.
    pub(crate) fn on(server: &'a TestTemporal) -> Self {
        let name = blocking(|| server.fresh_namespace());
        Self { server, name }
    }

    /// An existing namespace.
    pub(crate) fn named(server: &'a TestTemporal, name: &str) -> Self {
        let name = name.to_owned();
        Self { server, name }
    }

    pub(crate) fn address(&self) -> &'a str {
        self.server.address()
    }

    fn cli(&self, arguments: &[&str]) -> std::io::Result<String> {
        let arguments = [arguments, &["--namespace", &self.name]].concat();
        blocking(|| self.server.cli(&arguments))
    }

    /// Every run of every workflow.
    pub(crate) fn runs(&self) -> Vec<Run> {
        let printed = self
            .cli(&["workflow", "list", "--output", "jsonl"])
            .unwrap();
        let lines = printed.lines().filter(|line| !line.trim().is_empty());
        lines
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// All runs, once `count` have closed; the list lags slightly.
    pub(crate) async fn closed_runs(&self, count: usize) -> Vec<Run> {
        self.runs_when(count, |run| run.close_time.is_some()).await
    }

    /// All runs, once there are `count`.
    pub(crate) async fn all_runs(&self, count: usize) -> Vec<Run> {
        self.runs_when(count, |_| true).await
    }

    async fn runs_when(&self, count: usize, fits: impl Fn(&Run) -> bool) -> Vec<Run> {
        let mut runs = Vec::new();
        let complete = eventually(TIMEOUT, || {
            runs = self.runs();
            ready(runs.iter().filter(|run| fits(run)).count() >= count)
        });
        assert!(complete.await, "not {count} runs: {runs:?}");
        runs
    }

    /// Whether Temporal knows the execution; by id, so it need not be listed yet.
    pub(crate) fn knows(&self, execution: ExecutionId) -> bool {
        let id = workflow_id(execution);
        let answer = self.cli(&["workflow", "describe", "--workflow-id", &id]);
        match answer {
            Ok(_) => true,
            Err(error) if error.to_string().contains("not found") => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// The trace context in the header of a workflow's first event.
    pub(crate) fn trace_context_of(&self, execution: ExecutionId) -> Value {
        let id = workflow_id(execution);
        let show = ["workflow", "show", "--workflow-id", &id, "--output", "json"];
        let history: Value = serde_json::from_str(&self.cli(&show).unwrap()).unwrap();
        let started = &history["events"][0]["workflowExecutionStartedEventAttributes"];
        let payload = &started["header"]["fields"]["_tracer-data"];
        let data = payload["data"].as_str();
        let data = data.unwrap_or_else(|| panic!("no trace context in {started}"));
        serde_json::from_slice::<Value>(&from_base64(data)).unwrap()["traceparent"].clone()
    }

    pub(crate) fn terminate(&self, execution: ExecutionId, reason: &str) {
        let id = workflow_id(execution);
        let order = ["workflow", "terminate", "--workflow-id", &id];
        self.cli(&[&order[..], &["--reason", reason]].concat())
            .unwrap();
    }

    pub(crate) fn cancel(&self, execution: ExecutionId) {
        let id = workflow_id(execution);
        self.cli(&["workflow", "cancel", "--workflow-id", &id])
            .unwrap();
    }

    /// Starts a worker with Temporal's Python SDK.
    pub(crate) fn worker(&self) -> Process {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = dir.join("tests/serve/worker.py");
        let worker = python_worker(&script, &[self.address(), &self.name]);
        blocking(|| worker.wait_for_line(TIMEOUT, |line| line == "ready"));
        worker
    }
}

/// Decodes base64 payloads of the CLI.
fn from_base64(text: &str) -> Vec<u8> {
    let alphabet: Vec<char> = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(['+', '/'])
        .collect();
    let (mut bits, mut bit_count, mut bytes) = (0u32, 0u32, Vec::new());
    for letter in text.trim_end_matches('=').chars() {
        let value = alphabet.iter().position(|known| *known == letter).unwrap();
        bits = (bits << 6) | u32::try_from(value).unwrap();
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push(u8::try_from((bits >> bit_count) & 0xff).unwrap());
        }
    }
    bytes
}

/// Asserts exactly one run per execution.
pub(crate) fn assert_one_run_each(
    runs: &[Run],
    executions: impl IntoIterator<Item = Option<ExecutionId>>,
) {
    let expected: HashSet<String> = executions
        .into_iter()
        .map(|execution| workflow_id(execution.expect("every request has an execution")))
        .collect();
    let ids = runs.iter().map(|run| run.execution.workflow_id.clone());
    let found: HashSet<String> = ids.collect();
    assert_eq!(found, expected);
    assert_eq!(runs.len(), expected.len(), "a workflow ran twice: {runs:?}");
}

/// The maximum number of concurrently open workflows of a workspace, by Temporal's timestamps.
pub(crate) fn max_open(runs: &[Run], workspace: WorkspaceId) -> usize {
    let workspace = Value::String(workspace.to_string());
    let mut changes = Vec::new();
    for run in runs {
        if run.memo.fields["workspaceId"] == workspace {
            changes.push((run.start_time, 1));
            changes.extend(run.close_time.map(|at| (at, -1)));
        }
    }
    // At equal times, closing sorts before starting.
    changes.sort();
    let mut open = 0i64;
    let counts = changes.into_iter().map(|(_, change)| {
        open += change;
        open
    });
    usize::try_from(counts.max().unwrap_or(0)).unwrap()
}
