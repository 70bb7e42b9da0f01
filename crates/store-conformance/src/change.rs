//! What a store promises about the stream of changes: it misses none and repeats none, whenever their transactions commit.

use crate::Fixture;
use crate::factory::{LEASE, TestWorkspace, USER, new_request, ok};
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

/// How long an event may take to become readable: other transactions may be open on the same server.
const PATIENCE: Duration = Duration::from_secs(30);

/// A reader that goes on where it stopped.
struct Reader {
    store: Arc<dyn Store>,
    start: ChangeStart,
    workspace: Option<WorkspaceId>,
    seen: Vec<Event>,
    limit: u32,
    /// How many changes of a page it takes before it goes on after the last of these, as one does that loses its connection.
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

    /// Reads one page and says how much came.
    async fn page(&mut self) -> usize {
        let page = self
            .store
            .change_list(&self.start, self.workspace, self.limit);
        let mut page = ok(page.await);
        assert!(
            page.changes.len() <= self.limit as usize,
            "a page holds at most its limit"
        );
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

    /// Reads until `n` events were seen, then asserts that the stream is at its end.
    async fn read(&mut self, n: usize) {
        let reader = tokio::sync::Mutex::new(&mut *self);
        let all = eventually(PATIENCE, || async {
            let mut reader = reader.lock().await;
            while reader.seen.len() < n && reader.page().await > 0 {}
            reader.seen.len() >= n
        })
        .await;
        assert!(all, "{} of {n} events came", self.seen.len());
        assert_eq!(self.page().await, 0, "nothing more happened");
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

async fn some_lives(f: &Fixture, t: &TestWorkspace) -> usize {
    f.completed(t).await;
    f.failed(t).await;
    f.kept(t).await;
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Lost).await;
    4 + 4 + 3 + 3
}

/// From the oldest on, in pages of any size, the stream is every timeline, each in its order.
pub async fn from_the_oldest_is_every_timeline(f: Fixture) {
    let (one, two) = (f.site(5).await, f.site(5).await);
    let n = some_lives(&f, &one).await + some_lives(&f, &two).await;
    for limit in [1, 3, 1_000] {
        let mut reader = Reader::new(&f, ChangeStart::Oldest, limit);
        reader.read(n).await;
        assert_eq!(by_request(&reader.seen), all_timelines(&f).await);
    }
}

/// From now on is what happens from now on, nothing of before.
pub async fn from_now_on_is_what_happens_from_now_on(f: Fixture) {
    let t = f.site(5).await;
    some_lives(&f, &t).await;
    let mut reader = Reader::new(&f, ChangeStart::Now, 10);
    assert_eq!(reader.page().await, 0);
    let id = f.enqueue(&t, 1).await[0];
    reader.read(1).await;
    assert_eq!(reader.seen[0].request, id);
    assert_eq!(
        (reader.seen[0].from, reader.seen[0].to),
        (None, RequestStatus::Pending)
    );
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    reader.read(4).await;
}

/// An empty store has an empty stream, and a cursor from it works.
pub async fn of_an_empty_store_is_empty(f: Fixture) {
    let mut oldest = Reader::new(&f, ChangeStart::Oldest, 10);
    let mut now = Reader::new(&f, ChangeStart::Now, 10);
    assert_eq!((oldest.page().await, now.page().await), (0, 0));
    let t = f.site(5).await;
    f.enqueue(&t, 2).await;
    oldest.read(2).await;
    now.read(2).await;
    assert_eq!(oldest.seen, now.seen);
}

/// A place in the stream can be read from again and again, with the same result.
pub async fn a_cursor_can_be_used_again(f: Fixture) {
    let t = f.site(5).await;
    let n = some_lives(&f, &t).await;
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

/// Each change has its place: whoever goes on after it reads all that comes after it, and nothing else.
pub async fn goes_on_after_any_single_change(f: Fixture) {
    let (one, two) = (f.site(5).await, f.site(5).await);
    let mut reader = Reader::new(&f, ChangeStart::Oldest, 1_000);
    let mut n = some_lives(&f, &one).await;
    reader.read(n).await;
    n += some_lives(&f, &two).await;
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

/// The stream of one workspace is its timelines and nobody else's, from the oldest and from any change of it on.
pub async fn of_one_workspace_is_its_timelines(f: Fixture) {
    let (one, two) = (f.site(5).await, f.site(5).await);
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
        some_lives(&f, &two).await;
        n += some_lives(&f, &one).await;
        some_lives(&f, &two).await;
        let mut own = all_timelines(&f).await;
        own.retain(|_, events| events[0].workspace == one.workspace);
        readers.push(Reader::new(&f, ChangeStart::Oldest, 3).of(one.workspace));
        for reader in &mut readers {
            reader.read(n).await;
            assert_eq!(by_request(&reader.seen), own);
        }
    }
}

/// A reader of a workspace where nothing happens goes on behind what happened elsewhere, and misses nothing for it.
pub async fn a_reader_of_a_quiet_workspace_moves_on(f: Fixture) {
    let (quiet, busy) = (f.site(5).await, f.site(5).await);
    for start in [ChangeStart::Oldest, ChangeStart::Now] {
        let mut reader = Reader::new(&f, start, 2).of(quiet.workspace);
        assert_eq!(reader.page().await, 0);
        let before = reader.start.clone();
        let n = some_lives(&f, &busy).await;
        let moved = tokio::sync::Mutex::new(&mut reader);
        let moved = eventually(PATIENCE, || async {
            let mut reader = moved.lock().await;
            assert_eq!(reader.page().await, 0);
            reader.start != before
        });
        assert!(moved.await, "it stays where it was");
        // What it went past is still there for those who want it.
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

/// What is no cursor of this stream is refused as a value, whatever it looks like.
pub async fn what_is_no_cursor_is_refused(f: Fixture) {
    let t = f.site(5).await;
    some_lives(&f, &t).await;
    let place = ok(f.store.change_list(&ChangeStart::Oldest, None, 3).await).cursor;
    let mut texts: Vec<String> = [
        "",
        " ",
        "-1",
        "1.5",
        "null",
        "oldest",
        "\0",
        "٣",
        "/",
        "///",
        "1/2/3/4",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999",
        "99999999999999999999:1:",
        "1:1:/99999999999999999999:1:/00000000-0000-0000-0000-000000000000/0",
    ]
    .map(str::to_owned)
    .into();
    texts.push("9".repeat(10_000));
    for noise in [" ", "x", "/", ":", "\0"] {
        texts.push(format!("{}{noise}", place.0));
        texts.push(format!("{noise}{}", place.0));
    }
    for text in texts {
        let start = ChangeStart::After(ChangeCursor(text.clone()));
        for workspace in [None, Some(t.workspace)] {
            let answer = f.store.change_list(&start, workspace, 10).await;
            let kind = answer.expect_err("it is no cursor").kind;
            assert!(matches!(kind, ErrorKind::Value(_)), "{text:?}: {kind}");
        }
    }
}

/// One writer's work: enqueue, claim, finish, `rounds` times.
async fn write(store: Arc<dyn Store>, site: TestWorkspace, rounds: usize) {
    for round in 0..rounds {
        let enqueue = Enqueue {
            workspace: site.workspace,
            requests: (0..1 + round % 4).map(|_| new_request(&site)).collect(),
            by: USER.into(),
        };
        ok(store.request_enqueue(&enqueue).await);
        let claim = Claim {
            owner: "dispatcher".into(),
            batch: 3,
            lease: LEASE,
            lock: None,
        };
        let ClaimOutcome::Claimed(claimed) = ok(store.request_claim(&claim).await) else {
            panic!("no lock was asked for");
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

/// Readers that page while many writers commit see, when all is quiet, exactly the timelines: nothing missed, nothing
/// twice, each request in its order; also those that go on in the middle of a page.
pub async fn while_many_write_misses_and_repeats_nothing(f: Fixture) {
    let mut sites = Vec::new();
    for _ in 0..4 {
        sites.push(f.site(10).await);
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
        // The first page fixes where `Now` is, before the first writer begins.
        reader.page().await;
        reading.push(tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                reader.page().await;
                tokio::task::yield_now().await;
            }
            reader
        }));
    }
    let writers = sites
        .iter()
        .cycle()
        .take(8)
        .map(|t| tokio::spawn(write(f.store.clone(), *t, 15)));
    for writer in futures::future::join_all(writers).await {
        writer.expect("the writer ended");
    }
    stop.store(true, Ordering::SeqCst);
    let timelines = all_timelines(&f).await;
    let n = timelines.values().map(Vec::len).sum();
    for reader in reading {
        let mut reader = reader.await.expect("the reader ended");
        reader.read(n).await;
        assert_eq!(by_request(&reader.seen), timelines);
    }
}
