//! Runs today's workflow over histories that earlier ones left: what it does must still be what it did then.

use crate::workflow::LeaseholdGraph;
use std::path::{Path, PathBuf};
use temporalio_client::WorkflowHistory;
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};

fn histories() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let entries = std::fs::read_dir(folder).unwrap();
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
async fn every_history_is_repeated_as_it_was() {
    let files = histories();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let text = std::fs::read(&file).unwrap();
        let replayed = replay(&text).await;
        assert_eq!(replayed, Ok(()), "{}", file.display());
    }
}

#[tokio::test]
async fn a_history_of_something_else_is_noticed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let text = std::fs::read_to_string(folder.join("chain_with_delay.json")).unwrap();
    // As if an earlier worker had known the nodes by other names.
    let other = text.replace(r#""activity_id":"last""#, r#""activity_id":"other""#);
    assert_ne!(text, other);
    let said = replay(other.as_bytes()).await.unwrap_err();
    assert!(said.contains("nondeterministic"), "{said}");
}
