//! Replays recorded histories with the current workflow code, which must stay deterministic.

use crate::workflow::LeaseholdGraph;
use std::path::{Path, PathBuf};
use temporalio_client::WorkflowHistory;
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};

fn histories() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let entries = std::fs::read_dir(directory).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    files
}

async fn replay(text: &[u8]) -> Result<(), String> {
    let options = WorkflowReplayerOptions::new()
        .register_workflow::<LeaseholdGraph>()
        .unwrap()
        .build();
    let history = WorkflowHistory::from_json(text).unwrap();
    let replayer = WorkflowReplayer::new(options).unwrap();
    let replayed = replayer.replay_workflow(history).await;
    replayed.map_err(|error| error.to_string())
}

#[tokio::test]
async fn recorded_histories_replay() {
    let files = histories();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let text = std::fs::read(&file).unwrap();
        let replayed = replay(&text).await;
        assert_eq!(replayed, Ok(()), "{}", file.display());
    }
}

#[tokio::test]
async fn replay_detects_a_different_history() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let text = std::fs::read_to_string(directory.join("chain_with_delay.json")).unwrap();
    // As if an earlier worker had used another activity id.
    let other = text.replace(r#""activity_id":"last""#, r#""activity_id":"other""#);
    assert_ne!(text, other);
    let error = replay(other.as_bytes()).await.unwrap_err();
    assert!(error.contains("nondeterministic"), "{error}");
}
