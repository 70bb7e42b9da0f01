//! One process owns a file, what it answered survives it, and nothing of its ownership does.
//!
//! The other process is this program started again: the test `other_process` does what the environment tells it.
#![allow(clippy::unwrap_used)]

use leasehold_core::{Plan, RequestId, VersionBody};
use leasehold_store::definition::{DefinitionStore, NewDefinition, NewVersion};
use leasehold_store::request::{Enqueue, NewRequest, RequestFilter, RequestStore};
use leasehold_store::workspace::{NewWorkspace, WorkspaceStore};
use leasehold_store::{ErrorKind, Page, SchemaStore, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const FILE_VARIABLE: &str = "LEASEHOLD_TEST_OTHER_PROCESS_FILE";
/// Begins every line that the other process means for its parent; the test runner prints lines of its own.
const MARK: &str = "answered ";

fn open(file: &Path) -> leasehold_store::Result<SqliteStore> {
    SqliteStore::open(file, &SqliteOptions::default())
}

fn refusal(file: &Path) -> String {
    match open(file).err().map(|error| error.kind) {
        Some(ErrorKind::Owned(text)) => text,
        other => panic!("not refused as owned: {other:?}"),
    }
}

/// Enqueues without end and says each id as soon as it was answered.
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
    store.workspace_create(&new).await.unwrap();
    let new = NewDefinition {
        id: definition,
        workspace,
        name: "other".into(),
    };
    store.definition_create(&new).await.unwrap();
    let new = NewVersion {
        id: fresh_id(),
        workspace,
        definition,
        body: VersionBody::Graph(leasehold_core::graph::Graph::default()),
        params_schema: None,
        execution_timeout: None,
    };
    store.version_publish(&new).await.unwrap();
    loop {
        let id: RequestId = fresh_id();
        let enqueue = Enqueue {
            workspace,
            requests: vec![NewRequest::new(id, definition, 1.into())],
            by: "other".into(),
        };
        store.request_enqueue(&enqueue).await.unwrap();
        println!("\n{MARK}{id}");
        // A parent that is gone ends this too.
        if std::io::stdout().flush().is_err() {
            return;
        }
    }
}

struct Other {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Other {
    fn start(file: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["owner::other_process", "--exact", "--nocapture"])
            .env(FILE_VARIABLE, file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Self { process, said }
    }

    /// The next id it was answered, none once it has ended.
    fn next(&mut self) -> Option<RequestId> {
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // What was cut off by the end of the process was not said.
            if let Some(id) = line.strip_prefix(MARK)
                && line.ends_with('\n')
            {
                return Some(id.trim().parse().unwrap());
            }
        }
    }

    /// Ends it as `kill -9` does.
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Already gone in the ordinary case.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_file_has_one_owner_at_a_time() {
    let folder = leasehold_testkit::temp_dir();
    let file = folder.path().join("leasehold.db");
    let owner = open(&file).unwrap();
    let text = refusal(&file);
    assert!(text.contains("leasehold.db"), "{text}");
    assert!(text.contains(&format!("process {}", std::process::id())));
    assert!(text.contains("stop that process"), "{text}");
    drop(owner);
    drop(open(&file).unwrap());
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_is_not_another_file() {
    let folder = leasehold_testkit::temp_dir();
    let (file, link) = (
        folder.path().join("leasehold.db"),
        folder.path().join("link.db"),
    );
    let owner = open(&file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(refusal(&link).contains("leasehold.db"));
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
async fn what_is_made_is_for_its_owner_only() {
    let folder = leasehold_testkit::temp_dir();
    let store = open(&folder.path().join("leasehold.db")).unwrap();
    store.schema_migrate().await.unwrap();
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let file = folder.path().join(format!("leasehold.db{suffix}"));
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_link_that_leads_nowhere_yet_makes_is_for_its_owner_only_too() {
    let folder = leasehold_testkit::temp_dir();
    let (file, link) = (
        folder.path().join("leasehold.db"),
        folder.path().join("link.db"),
    );
    std::os::unix::fs::symlink(&file, &link).unwrap();
    drop(open(&link).unwrap());
    assert_eq!(mode(&file), 0o600);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_there_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let folder = leasehold_testkit::temp_dir();
    let file = folder.path().join("leasehold.db");
    drop(open(&file).unwrap());
    let shared = std::fs::Permissions::from_mode(0o640);
    for name in ["leasehold.db", "leasehold.db.lock"] {
        std::fs::set_permissions(folder.path().join(name), shared.clone()).unwrap();
    }
    drop(open(&file).unwrap());
    for name in ["leasehold.db", "leasehold.db.lock"] {
        assert_eq!(mode(&folder.path().join(name)), 0o640, "{name}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_or_is_no_database_is_told_apart() {
    let folder = leasehold_testkit::temp_dir();
    let nowhere = open(&folder.path().join("nowhere/leasehold.db"));
    assert!(matches!(
        nowhere.err().unwrap().kind,
        ErrorKind::Unavailable(_)
    ));
    let file = folder.path().join("letter.txt");
    std::fs::write(&file, "Dear Sir or Madam, ".repeat(100)).unwrap();
    assert!(matches!(
        open(&file).err().unwrap().kind,
        ErrorKind::Broken(_)
    ));
}

#[tokio::test]
async fn a_killed_owner_leaves_all_it_answered_and_no_lock() {
    let folder = leasehold_testkit::temp_dir();
    let file = folder.path().join("leasehold.db");
    let mut other = Other::start(&file);
    let mut answered: BTreeSet<RequestId> = (0..50).map(|_| other.next().unwrap()).collect();
    let text = refusal(&file);
    assert!(
        text.contains(&format!("process {}", other.process.id())),
        "{text}"
    );
    other.kill();
    while let Some(id) = other.next() {
        answered.insert(id);
    }
    let store = open(&file).unwrap();
    let mut kept = BTreeSet::new();
    let mut page = Page::first(1_000);
    loop {
        let rows = store.request_list(&RequestFilter::default(), page).await;
        let rows = rows.unwrap();
        let Some(last) = rows.last() else { break };
        page = Page::after(last.id, 1_000);
        kept.extend(rows.iter().map(|request| request.id));
    }
    assert!(answered.len() >= 50);
    assert_eq!(answered.difference(&kept).count(), 0);
    let workspaces = store.workspace_list(Page::first(10)).await.unwrap();
    let counts = store.request_counts(workspaces[0].id).await.unwrap();
    assert_eq!(counts.pending, u64::try_from(kept.len()).unwrap());
}
