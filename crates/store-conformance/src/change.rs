//! The stream of changes: no change is missed or repeated, in whatever order transactions commit.

use crate::Fixture;
use crate::factory::{LEASE, TestWorkspace, USER, new_request, ok};
use leasehold_core::limits::CHANGE_SCAN_MAX;
use leasehold_core::{ExecutionEnd, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::{ChangeCursor, ChangeStart, Event};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{Claim, ClaimOutcome, Enqueue, RequestFilter};
use leasehold_store::{ErrorKind, Store};
use leasehold_testkit::eventually;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an event may take to become readable, because of other open transactions on the server.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// A reader that resumes where it stopped.
struct Reader {
    store: Arc<dyn Store>,
    start: ChangeStart,
    workspace: Option<WorkspaceId>,
    seen: Vec<Event>,
    limit: u32,
    /// Whether the last page said that more may follow.
    more: bool,
    /// How many changes of a page it uses before it resumes after the last of them, like a client that loses its connection.
    takes: usize,
}

impl Reader {
    fn new(f: &Fixture, start: ChangeStart, limit: u32) -> Self {
        Self {
            store: f.store.clone(),
            start,
            workspace: None,
            seen: Vec::new(),
            limit,
            more: false,
            takes: usize::MAX,
        }
    }

    fn of(self, workspace: WorkspaceId) -> Self {
        Self {
            workspace: Some(workspace),
            ..self
        }
    }

    fn taking(self, takes: usize) -> Self {
        Self { takes, ..self }
    }

    /// Reads one page and returns the number of changes.
    async fn page(&mut self) -> usize {
        let page = self
            .store
            .change_list(&self.start, self.workspace, self.limit);
        let mut page = ok(page.await);
        assert!(
            page.changes.len() <= self.limit as usize,
            "the page exceeds its limit"
        );
        self.more = page.more;
        if page.changes.len() > self.takes {
            page.changes.truncate(self.takes);
            page.cursor = page.changes[self.takes - 1].cursor.clone();
        }
        self.start = ChangeStart::After(page.cursor);
        let came = page.changes.len();
        self.seen
            .extend(page.changes.into_iter().map(|change| change.event));
        came
    }

    /// Reads `n` events, then asserts that the stream has no more.
    async fn read(&mut self, n: usize) {
        let reader = tokio::sync::Mutex::new(&mut *self);
        let all = eventually(READ_TIMEOUT, || async {
            let mut reader = reader.lock().await;
            while reader.seen.len() < n && (reader.page().await > 0 || reader.more) {}
            reader.seen.len() >= n
        })
        .await;
        assert!(all, "read {} of {n} events", self.seen.len());
        while self.more {
            assert_eq!(self.page().await, 0, "the stream has no more changes");
        }
        assert_eq!(self.page().await, 0, "the stream has no more changes");
        assert_eq!(self.seen.len(), n);
    }
}

async fn all_timelines(f: &Fixture) -> BTreeMap<RequestId, Vec<Event>> {
    let mut timelines = BTreeMap::new();
    for request in f.list_all(&RequestFilter::default(), 100).await {
        timelines.insert(request.id, f.timeline(request.workspace, request.id).await);
    }
    timelines
}

fn by_request(events: &[Event]) -> BTreeMap<RequestId, Vec<Event>> {
    let mut timelines: BTreeMap<RequestId, Vec<Event>> = BTreeMap::new();
    for event in events {
        timelines
            .entry(event.request)
            .or_default()
            .push(event.clone());
    }
    timelines
}

/// Creates four requests that end in different ways, and returns the number of their changes.
async fn create_timelines(f: &Fixture, t: &TestWorkspace) -> usize {
    f.enqueue_completed(t).await;
    f.enqueue_failed(t).await;
    f.enqueue_unknown(t).await;
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Lost).await;
    4 + 4 + 3 + 3
}

/// Read from the oldest change on, in pages of any size, the stream has every timeline, each in order.
pub async fn from_oldest_has_every_timeline(f: Fixture) {
    let (one, two) = (f.workspace(5).await, f.workspace(5).await);
    let n = create_timelines(&f, &one).await + create_timelines(&f, &two).await;
    for limit in [1, 3, 1_000] {
        let mut reader = Reader::new(&f, ChangeStart::Oldest, limit);
        reader.read(n).await;
        assert_eq!(by_request(&reader.seen), all_timelines(&f).await);
    }
}

/// Read from now on, the stream has only later changes.
pub async fn from_now_has_only_later_changes(f: Fixture) {
    let t = f.workspace(5).await;
    create_timelines(&f, &t).await;
    let mut reader = Reader::new(&f, ChangeStart::Now, 10);
    assert_eq!(reader.page().await, 0);
    let id = f.enqueue(&t, 1).await[0];
    reader.read(1).await;
    assert_eq!(reader.seen[0].request, id);
    assert_eq!(reader.seen[0].from, None);
    assert_eq!(reader.seen[0].to, RequestStatus::Pending);
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    reader.read(4).await;
}

/// An empty store has an empty stream, and its cursor is valid.
pub async fn empty_store_has_an_empty_stream(f: Fixture) {
    let mut oldest = Reader::new(&f, ChangeStart::Oldest, 10);
    let mut now = Reader::new(&f, ChangeStart::Now, 10);
    assert_eq!((oldest.page().await, now.page().await), (0, 0));
    let t = f.workspace(5).await;
    f.enqueue(&t, 2).await;
    oldest.read(2).await;
    now.read(2).await;
    assert_eq!(oldest.seen, now.seen);
}

/// Reading from the same cursor twice returns the same changes.
pub async fn cursor_can_be_reused(f: Fixture) {
    let t = f.workspace(5).await;
    let n = create_timelines(&f, &t).await;
    let mut reader = Reader::new(&f, ChangeStart::Oldest, 5);
    reader.read(n).await;
    let first = ok(f.store.change_list(&ChangeStart::Oldest, None, 5).await);
    let cursor: ChangeCursor = first.cursor;
    for _ in 0..2 {
        let mut again = Reader::new(&f, ChangeStart::After(cursor.clone()), 5);
        again.read(n - 5).await;
        assert_eq!(again.seen, reader.seen[5..]);
    }
}

/// Reading after the cursor of any change returns exactly the changes after it.
pub async fn stream_resumes_after_any_change(f: Fixture) {
    let (one, two) = (f.workspace(5).await, f.workspace(5).await);
    let mut reader = Reader::new(&f, ChangeStart::Oldest, 1_000);
    let mut n = create_timelines(&f, &one).await;
    reader.read(n).await;
    n += create_timelines(&f, &two).await;
    let timelines = all_timelines(&f).await;
    for start in [ChangeStart::Oldest, reader.start.clone()] {
        let page = ok(f.store.change_list(&start, None, 1_000).await);
        let before = n - page.changes.len();
        assert_eq!(
            before,
            if start == ChangeStart::Oldest {
                0
            } else {
                n / 2
            }
        );
        for (taken, change) in (1..).zip(&page.changes) {
            let mut rest = Reader::new(&f, ChangeStart::After(change.cursor.clone()), 6);
            rest.seen.extend(reader.seen[..before].iter().cloned());
            let first = page.changes[..taken].iter();
            rest.seen.extend(first.map(|change| change.event.clone()));
            rest.read(n).await;
            assert_eq!(by_request(&rest.seen), timelines);
        }
    }
}

/// The stream of one workspace has only its timelines, from the oldest and after any of its changes.
pub async fn stream_of_one_workspace_has_only_its_timelines(f: Fixture) {
    let (one, two) = (f.workspace(5).await, f.workspace(5).await);
    let mut readers = Vec::new();
    for (limit, takes) in [(1, 1), (4, 4), (5, 2), (1_000, 1_000)] {
        for start in [ChangeStart::Oldest, ChangeStart::Now] {
            let reader = Reader::new(&f, start, limit).of(one.workspace);
            let mut reader = reader.taking(takes);
            assert_eq!(reader.page().await, 0);
            readers.push(reader);
        }
    }
    let mut n = 0;
    for _ in 0..2 {
        create_timelines(&f, &two).await;
        n += create_timelines(&f, &one).await;
        create_timelines(&f, &two).await;
        let mut own = all_timelines(&f).await;
        own.retain(|_, events| events[0].workspace == one.workspace);
        readers.push(Reader::new(&f, ChangeStart::Oldest, 3).of(one.workspace));
        for reader in &mut readers {
            reader.read(n).await;
            assert_eq!(by_request(&reader.seen), own);
        }
    }
}

/// A reader of a workspace without changes advances past the changes of other workspaces and misses nothing.
pub async fn cursor_advances_past_changes_of_other_workspaces(f: Fixture) {
    let (quiet, busy) = (f.workspace(5).await, f.workspace(5).await);
    for start in [ChangeStart::Oldest, ChangeStart::Now] {
        let mut reader = Reader::new(&f, start, 2).of(quiet.workspace);
        assert_eq!(reader.page().await, 0);
        let before = reader.start.clone();
        let n = create_timelines(&f, &busy).await;
        let moved = tokio::sync::Mutex::new(&mut reader);
        let moved = eventually(READ_TIMEOUT, || async {
            let mut reader = moved.lock().await;
            assert_eq!(reader.page().await, 0);
            reader.start != before
        });
        assert!(moved.await, "the cursor is unchanged");
        // The skipped changes are still in the stream.
        let mut all = Reader::new(&f, before, 1_000);
        all.read(n).await;
        let id = f.enqueue(&quiet, 1).await[0];
        reader.read(1).await;
        assert_eq!(reader.seen[0].request, id);
        f.cancel(quiet.workspace, id).await;
        reader.read(2).await;
        reader.seen.clear();
    }
}

/// An invalid cursor is rejected as an invalid value, or as one of a history that the store does not know.
pub async fn invalid_cursor_is_rejected(f: Fixture) {
    let t = f.workspace(5).await;
    create_timelines(&f, &t).await;
    let cursor = ok(f.store.change_list(&ChangeStart::Oldest, None, 3).await).cursor;
    let good = &cursor.0;
    let mut all: Vec<Vec<u8>> = vec![vec![0xff; 8], vec![0x7f; 8]];
    all.extend(["", "1", "oldest", "9223372036854775807"].map(|text| text.as_bytes().to_vec()));
    all.push(vec![b'9'; 10_000]);
    // Bytes removed and added, at both ends.
    all.extend((0..good.len()).map(|length| good[..length].to_vec()));
    all.extend([0, 1, 0x80, 0xff].map(|byte| [good, &[byte][..]].concat()));
    all.extend([0, 1, 0x80, 0xff].map(|byte| [&[byte][..], good].concat()));
    for bytes in all {
        let start = ChangeStart::After(ChangeCursor(bytes.clone()));
        for workspace in [None, Some(t.workspace)] {
            let answer = f.store.change_list(&start, workspace, 10).await;
            let kind = answer.expect_err("the cursor is invalid").kind;
            let is_refused = matches!(kind, ErrorKind::Value(_) | ErrorKind::Gone(_));
            assert!(is_refused, "{bytes:?}: {kind}");
        }
    }
}

/// Enqueues requests of a workspace in calls of 1,000 until more events exist than one read scans.
async fn exceed_scan(f: &Fixture, t: &TestWorkspace) -> usize {
    let calls = CHANGE_SCAN_MAX.div_ceil(1_000) + 2;
    for _ in 0..calls {
        f.enqueue(t, 1_000).await;
    }
    calls as usize * 1_000
}

/// A read stops after a bounded number of events of other workspaces, says so, and its cursor continues there: nothing is missed.
pub async fn read_is_bounded_and_continues(f: Fixture) {
    let (quiet, busy) = (f.workspace(5).await, f.workspace(5).await);
    let now = ok(f.store.change_list(&ChangeStart::Now, None, 1).await).cursor;
    let n = exceed_scan(&f, &busy).await;
    let id = f.enqueue(&quiet, 1).await[0];
    for start in [ChangeStart::Oldest, ChangeStart::After(now)] {
        let mut reader = Reader::new(&f, start.clone(), 10).of(quiet.workspace);
        reader.read(1).await;
        assert_eq!(reader.seen[0].request, id);
        let mut all = Reader::new(&f, start, 1_000);
        all.read(n + 1).await;
        assert_eq!(by_request(&all.seen).len(), n + 1);
    }
}

/// Enqueues, claims and finishes requests, `rounds` times.
async fn write(store: Arc<dyn Store>, workspace: TestWorkspace, rounds: usize) {
    for round in 0..rounds {
        let enqueue = Enqueue {
            workspace: workspace.workspace,
            requests: (0..1 + round % 4)
                .map(|_| new_request(&workspace))
                .collect(),
            by: USER.into(),
        };
        ok(store.request_enqueue(&enqueue).await);
        let claim = Claim {
            owner: "dispatcher".into(),
            batch: 3,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        let ClaimOutcome::Claimed(claimed) = ok(store.request_claim(&claim).await) else {
            panic!("the claim has no lock");
        };
        let finishes: Vec<ExecutionFinish> = claimed
            .requests
            .iter()
            .map(|c| ExecutionFinish {
                execution: c.execution,
                end: ExecutionEnd::Completed,
                error: None,
            })
            .collect();
        ok(store.execution_finish("engine", &finishes).await);
    }
}

/// Readers that page during concurrent writes see exactly the timelines, each request in order, also when they resume in the middle of a page.
pub async fn concurrent_writers_cause_no_gaps_or_repeats(f: Fixture) {
    let mut workspaces = Vec::new();
    for _ in 0..4 {
        workspaces.push(f.workspace(10).await);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut reading = Vec::new();
    for (start, limit, takes) in [
        (ChangeStart::Oldest, 1, 1),
        (ChangeStart::Now, 7, 7),
        (ChangeStart::Oldest, 64, 64),
        (ChangeStart::Oldest, 20, 1),
        (ChangeStart::Now, 9, 2),
    ] {
        let mut reader = Reader::new(&f, start, limit).taking(takes);
        let stop = stop.clone();
        // The first page fixes the position of `Now` before the first writer starts.
        reader.page().await;
        reading.push(tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                reader.page().await;
                tokio::task::yield_now().await;
            }
            reader
        }));
    }
    let writers = workspaces
        .iter()
        .cycle()
        .take(8)
        .map(|t| tokio::spawn(write(f.store.clone(), *t, 15)));
    for writer in futures::future::join_all(writers).await {
        writer.expect("the writer did not panic");
    }
    stop.store(true, Ordering::SeqCst);
    let timelines = all_timelines(&f).await;
    let n = timelines.values().map(Vec::len).sum();
    for reader in reading {
        let mut reader = reader.await.expect("the reader did not panic");
        reader.read(n).await;
        assert_eq!(by_request(&reader.seen), timelines);
    }
}
