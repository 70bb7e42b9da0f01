//! One process owns a file; its committed writes survive a crash, its lock does not.
//!
//! The second process is this test binary: the test `other_process` runs when the environment variable is set.
#![allow(clippy::unwrap_used)]

use leasehold_core::{Plan, RequestId, VersionBody};
use leasehold_store::definition::{DefinitionStore, NewDefinition, NewVersion, Publisher};
use leasehold_store::request::{Enqueue, NewRequest, RequestFilter, RequestStore};
use leasehold_store::workspace::{NewWorkspace, WorkspaceStore};
use leasehold_store::{ErrorKind, Page, SchemaStore, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const FILE_VARIABLE: &str = "LEASEHOLD_TEST_OTHER_PROCESS_FILE";
/// Prefix of the lines for the parent process; the test runner prints lines of its own.
const PREFIX: &str = "answered ";

fn open(file: &Path) -> leasehold_store::Result<SqliteStore> {
    SqliteStore::open(file, &SqliteOptions::default())
}

fn owned_error(file: &Path) -> String {
    match open(file).err().map(|error| error.kind) {
        Some(ErrorKind::Owned(text)) => text,
        other => panic!("expected an Owned error: {other:?}"),
    }
}

/// Enqueues in a loop and prints each id once it is committed.
#[tokio::test]
async fn other_process() {
    let Some(file) = std::env::var_os(FILE_VARIABLE) else {
        return;
    };
    let store = open(Path::new(&file)).unwrap();
    store.schema_migrate().await.unwrap();
    let (workspace, definition) = (fresh_id(), fresh_id());
    let new = NewWorkspace {
        id: workspace,
        name: "other".into(),
        plan: Plan::Free,
        limit_override: None,
    };
    store
        .workspace_create(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    let new = NewDefinition {
        id: definition,
        workspace,
        name: "other".into(),
    };
    store
        .definition_create(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    let new = NewVersion {
        id: fresh_id(),
        workspace,
        definition,
        body: VersionBody::Graph(leasehold_core::graph::Graph::default()),
        params_schema: None,
        execution_timeout: None,
        publisher: Publisher::Administrator,
    };
    store
        .version_publish(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    loop {
        let id: RequestId = fresh_id();
        let enqueue = Enqueue {
            workspace,
            requests: vec![NewRequest::new(id, definition, Value::from(1))],
            by: "other".into(),
        };
        store.request_enqueue(&enqueue).await.unwrap();
        println!("\n{PREFIX}{id}");
        // Stops when the parent has exited.
        if std::io::stdout().flush().is_err() {
            return;
        }
    }
}

struct OtherProcess {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start(file: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["file_lock::other_process", "--exact", "--nocapture"])
            .env(FILE_VARIABLE, file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// Returns the next committed id; none once the process has ended.
    fn next(&mut self) -> Option<RequestId> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Ignores a line that the kill truncated.
            if let Some(id) = line.strip_prefix(PREFIX)
                && line.ends_with('\n')
            {
                return Some(id.trim().parse().unwrap());
            }
        }
    }

    /// Kills the process (SIGKILL).
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // Usually the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn second_open_of_a_file_is_rejected() {
    let dir = leasehold_testkit::temp_dir();
    let file = dir.path().join("leasehold.db");
    let owner = open(&file).unwrap();
    let text = owned_error(&file);
    assert!(text.contains("leasehold.db"), "{text}");
    assert!(text.contains(&format!("process {}", std::process::id())));
    assert!(text.contains("stop that process"), "{text}");
    drop(owner);
    drop(open(&file).unwrap());
}

#[cfg(unix)]
#[tokio::test]
async fn symlink_to_an_open_file_is_rejected() {
    let dir = leasehold_testkit::temp_dir();
    let (file, link) = (dir.path().join("leasehold.db"), dir.path().join("link.db"));
    let owner = open(&file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(owned_error(&link).contains("leasehold.db"));
    drop(owner);
}

#[cfg(unix)]
fn mode(file: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    let data = std::fs::metadata(file);
    let data = data.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    data.permissions().mode() & 0o777
}

#[cfg(unix)]
#[tokio::test]
async fn new_files_have_mode_0600() {
    let dir = leasehold_testkit::temp_dir();
    let store = open(&dir.path().join("leasehold.db")).unwrap();
    store.schema_migrate().await.unwrap();
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let file = dir.path().join(format!("leasehold.db{suffix}"));
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn file_created_through_a_dangling_symlink_has_mode_0600() {
    let dir = leasehold_testkit::temp_dir();
    let (file, link) = (dir.path().join("leasehold.db"), dir.path().join("link.db"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    drop(open(&link).unwrap());
    assert_eq!(mode(&file), 0o600);
}

#[cfg(unix)]
#[tokio::test]
async fn existing_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let dir = leasehold_testkit::temp_dir();
    let file = dir.path().join("leasehold.db");
    drop(open(&file).unwrap());
    let shared = std::fs::Permissions::from_mode(0o640);
    for name in ["leasehold.db", "leasehold.db.lock"] {
        std::fs::set_permissions(dir.path().join(name), shared.clone()).unwrap();
    }
    drop(open(&file).unwrap());
    for name in ["leasehold.db", "leasehold.db.lock"] {
        assert_eq!(mode(&dir.path().join(name)), 0o640, "{name}");
    }
}

#[tokio::test]
async fn missing_directory_and_foreign_file_are_reported() {
    let dir = leasehold_testkit::temp_dir();
    let nowhere = open(&dir.path().join("nowhere/leasehold.db"));
    assert!(matches!(
        nowhere.err().unwrap().kind,
        ErrorKind::Unavailable(_)
    ));
    let file = dir.path().join("letter.txt");
    std::fs::write(&file, "Dear Sir or Madam, ".repeat(100)).unwrap();
    assert!(matches!(
        open(&file).err().unwrap().kind,
        ErrorKind::Broken(_)
    ));
}

#[tokio::test]
async fn killed_owner_leaves_committed_writes_and_no_lock() {
    let dir = leasehold_testkit::temp_dir();
    let file = dir.path().join("leasehold.db");
    let mut other = OtherProcess::start(&file);
    let mut answered: BTreeSet<RequestId> = (0..50).map(|_| other.next().unwrap()).collect();
    let text = owned_error(&file);
    assert!(
        text.contains(&format!("process {}", other.process.id())),
        "{text}"
    );
    other.kill();
    while let Some(id) = other.next() {
        answered.insert(id);
    }
    let store = open(&file).unwrap();
    let mut stored = BTreeSet::new();
    let mut page = Page::first(1_000);
    loop {
        let rows = store.request_list(&RequestFilter::default(), page).await;
        let rows = rows.unwrap();
        let Some(last) = rows.last() else { break };
        page = Page::after(last.id, 1_000);
        stored.extend(rows.iter().map(|request| request.id));
    }
    assert!(answered.len() >= 50);
    assert_eq!(answered.difference(&stored).count(), 0);
    let workspaces = store.workspace_list(Page::first(10)).await.unwrap();
    let counts = store.request_counts(workspaces[0].id).await.unwrap();
    assert_eq!(counts.pending, u64::try_from(stored.len()).unwrap());
}
