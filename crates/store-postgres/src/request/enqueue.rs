//! Enqueues requests: one statement; with idempotency keys a transaction that also finds the holders of the keys.

use crate::job::row::JsonbIn;
use crate::lock_wait::LockWait;
use crate::pool;
use crate::row::micros;
use crate::session::Session;
use crate::store::{PostgresStore, sql};
use crate::transaction::OpenTransaction;
use leasehold_core::json::{DocumentDigest, check_text_shape};
use leasehold_core::{DefinitionId, JsonText, RequestId, Timestamp};
use leasehold_store::request::{Enqueue, Enqueued, EnqueuedRequest, NewRequest};
use leasehold_store::{Error, ErrorKind, Result, Turns, run_off_thread};
use std::collections::{HashMap, HashSet};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

const CONTEXT: &str = "request_enqueue";
/// How often to retry when the holder of a key releases it between two statements.
const MAX_TRIES: usize = 5;

/// The arrays that `request/enqueue.sql` takes, without requests that repeat a key.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<Uuid>,
    definitions: Vec<Uuid>,
    params: Vec<JsonbIn<'a>>,
    priorities: Vec<i16>,
    run_ats: Vec<Option<Timestamp>>,
    keys: Vec<Option<&'a str>>,
    windows: Vec<Option<i64>>,
    traces: Vec<Option<&'a str>>,
    checked: Vec<Option<Uuid>>,
    bytes: Vec<i32>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, new: &'a NewRequest) {
        self.ids.push(new.id.0);
        self.definitions.push(new.definition.0);
        self.params.push(JsonbIn(&new.params));
        self.priorities.push(new.priority);
        self.run_ats.push(new.run_at);
        self.keys
            .push(new.idempotency.as_ref().map(|i| i.key.as_str()));
        self.windows
            .push(new.idempotency.as_ref().and_then(|i| i.window).map(micros));
        self.traces.push(new.trace_context.as_deref());
        self.checked.push(new.checked_against.map(Uuid::from));
        self.bytes
            .push(i32::try_from(new.bytes()).unwrap_or(i32::MAX));
    }

    /// Returns the columns of some of the requests.
    fn only(&self, positions: &[usize]) -> Self {
        fn pick<T: Clone>(column: &[T], positions: &[usize]) -> Vec<T> {
            positions.iter().map(|&at| column[at].clone()).collect()
        }
        Self {
            ids: pick(&self.ids, positions),
            definitions: pick(&self.definitions, positions),
            params: pick(&self.params, positions),
            priorities: pick(&self.priorities, positions),
            run_ats: pick(&self.run_ats, positions),
            keys: pick(&self.keys, positions),
            windows: pick(&self.windows, positions),
            traces: pick(&self.traces, positions),
            checked: pick(&self.checked, positions),
            bytes: pick(&self.bytes, positions),
        }
    }

    fn has_keys(&self) -> bool {
        self.keys.iter().any(Option::is_some)
    }
}

/// Returns for each request the index of the first request with the same key.
fn first_uses(requests: &[NewRequest]) -> Vec<usize> {
    let mut first_use: HashMap<&str, usize> = HashMap::new();
    let positions = requests.iter().enumerate();
    let first = positions.map(|(position, new)| match &new.idempotency {
        Some(idempotency) => *first_use.entry(&idempotency.key).or_insert(position),
        None => position,
    });
    first.collect()
}

/// The digests of params by the index of their request.
type Digests = HashMap<usize, Option<DocumentDigest>>;

/// Returns the digests of params that must be compared: those of a repeated key with another text. Reads many bytes off the serving threads.
async fn repeated_digests(requests: &[NewRequest], first_uses: &[usize]) -> Result<Digests> {
    let mut texts: HashMap<usize, JsonText> = HashMap::new();
    for (position, &first) in first_uses.iter().enumerate() {
        if requests[first].params != requests[position].params {
            for at in [first, position] {
                texts
                    .entry(at)
                    .or_insert_with(|| requests[at].params.clone());
            }
        }
    }
    let bytes: usize = texts.values().map(|text| text.as_str().len()).sum();
    let compute = move || {
        let digests = texts.iter().map(|(at, text)| (*at, text.digest()));
        Ok(digests.collect())
    };
    run_off_thread(CONTEXT, bytes, compute).await
}

/// Returns the columns to insert, or the conflict of a key that is repeated with another definition or other params.
fn columns<'a>(
    requests: &'a [NewRequest],
    first_uses: &[usize],
    digests: &Digests,
) -> std::result::Result<Columns<'a>, Enqueued> {
    let mut columns = Columns::default();
    let digest = |at: usize| digests.get(&at).copied().flatten();
    for (position, (new, &first)) in requests.iter().zip(first_uses).enumerate() {
        let original = &requests[first];
        let is_same = || {
            original.params == new.params
                || digest(first).is_some_and(|held| digest(position) == Some(held))
        };
        if first == position {
            columns.push(new);
        } else if original.definition != new.definition || !is_same() {
            let key = new
                .idempotency
                .as_ref()
                .map(|i| i.key.clone())
                .unwrap_or_default();
            return Err(Enqueued::KeyConflict {
                key,
                held_by: original.id,
            });
        }
    }
    Ok(columns)
}

/// Fails if PostgreSQL cannot read some params.
pub(super) async fn check_params(context: &'static str, requests: &[NewRequest]) -> Result<()> {
    let mut turns = Turns::default();
    for new in requests {
        check_text_shape(new.params.as_str())
            .map_err(|problem| Error::new(context, ErrorKind::Value(problem.to_string())))?;
        turns.count(new.params.as_str().len()).await;
    }
    Ok(())
}

pub(crate) async fn enqueue(store: &PostgresStore, enqueue: &Enqueue) -> Result<Enqueued> {
    check_params(CONTEXT, &enqueue.requests).await?;
    let first_uses = first_uses(&enqueue.requests);
    let digests = repeated_digests(&enqueue.requests, &first_uses).await?;
    let columns = match columns(&enqueue.requests, &first_uses, &digests) {
        Ok(columns) => columns,
        Err(conflict) => return Ok(conflict),
    };
    let outcome = insert_all(store, enqueue, &columns).await?;
    let inserted = match outcome {
        Ok(inserted) => inserted,
        Err(problem) => return Ok(problem),
    };
    // A repeated key refers to its first use, which is the only one inserted.
    let answers = first_uses.iter().enumerate().map(|(position, &first)| {
        let first_id = enqueue.requests[first].id;
        match inserted.get(&first_id) {
            Some(holder) => EnqueuedRequest {
                id: *holder,
                inserted: false,
            },
            None => EnqueuedRequest {
                id: first_id,
                inserted: position == first,
            },
        }
    });
    let answers: Vec<EnqueuedRequest> = answers.collect();
    store
        .notifier
        .wake_for_work(answers.iter().any(|answer| answer.inserted));
    Ok(Enqueued::All(answers))
}

/// The requests that were not inserted, each with the holder of its key; or why nothing was inserted.
type Inserted = std::result::Result<HashMap<RequestId, RequestId>, Enqueued>;

async fn insert(
    store: &PostgresStore,
    session: Session<'_>,
    enqueue: &Enqueue,
    columns: &Columns<'_>,
) -> Result<Vec<Row>> {
    session
        .many(
            sql!("request/enqueue"),
            &[
                &store.given_now(),
                &enqueue.workspace.0,
                &enqueue.by,
                &columns.ids,
                &columns.definitions,
                &columns.params,
                &columns.priorities,
                &columns.run_ats,
                &columns.keys,
                &columns.windows,
                &columns.traces,
                &columns.checked,
                &columns.bytes,
            ],
        )
        .await
}

fn read(rows: &[Row]) -> Inserted {
    let Some(problem) = rows
        .first()
        .and_then(|row| row.get::<_, Option<&str>>("problem"))
    else {
        return Ok(HashMap::new());
    };
    let definition = DefinitionId(
        rows[0]
            .get::<_, Option<Uuid>>("definition_id")
            .unwrap_or_default(),
    );
    Err(match problem {
        "workspace_not_found" => Enqueued::WorkspaceNotFound,
        "definition_not_found" => Enqueued::DefinitionNotFound(definition),
        "definition_forbidden" => Enqueued::DefinitionForbidden(definition),
        "version_moved" => Enqueued::VersionMoved(definition),
        _ => Enqueued::NotPublished(definition),
    })
}

/// Inserts the requests. Waits for what another transaction has locked, such as a key, without holding a connection.
async fn insert_all(
    store: &PostgresStore,
    enqueue: &Enqueue,
    columns: &Columns<'_>,
) -> Result<Inserted> {
    let mut wait = LockWait::begin();
    loop {
        let tried = match columns.has_keys() {
            true => try_with_keys(store, enqueue, columns).await,
            false => try_without_keys(store, enqueue, columns).await,
        };
        match tried {
            Err(error) => wait.pause_after(error).await?,
            inserted => return inserted,
        }
    }
}

async fn try_without_keys(
    store: &PostgresStore,
    enqueue: &Enqueue,
    columns: &Columns<'_>,
) -> Result<Inserted> {
    let client = pool::take(&store.pool, CONTEXT).await?;
    let rows = insert(store, client.session(), enqueue, columns).await?;
    Ok(read(&rows))
}

async fn try_with_keys(
    store: &PostgresStore,
    enqueue: &Enqueue,
    columns: &Columns<'_>,
) -> Result<Inserted> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    for _ in 0..MAX_TRIES {
        let transaction = OpenTransaction::begin(&mut client).await?;
        match insert_or_find(store, &transaction, enqueue, columns).await {
            Ok(Some(Ok(holders))) => {
                transaction.commit().await?;
                return Ok(Ok(holders));
            }
            Ok(Some(Err(rejected))) => return Ok(Err(rejected)),
            Ok(None) => {}
            Err(error) if was_kept_meanwhile(&error) => {}
            Err(error) => return Err(error),
        }
        transaction.rollback().await?;
    }
    let text = "idempotency keys were released repeatedly by concurrent calls".to_owned();
    Err(Error::new(CONTEXT, ErrorKind::Contended(text)))
}

/// Whether a key was kept for its pruned request while the insert waited for that request; the next try finds the kept key.
fn was_kept_meanwhile(error: &Error) -> bool {
    let source = error.source.as_deref();
    let source = source.and_then(|source| source.downcast_ref::<tokio_postgres::Error>());
    let error = source.and_then(tokio_postgres::Error::as_db_error);
    error.is_some_and(|error| {
        *error.code() == SqlState::T_R_SERIALIZATION_FAILURE
            && error.constraint() == Some("request_idempotency_key")
    })
}

/// Inserts requests with free keys and finds the holders of the other keys; none if a key was released meanwhile. Expired keys are
/// cleared only after all other requests are inserted: a transaction that waits for an expired key then holds nothing that another
/// inserting transaction could wait for, so there is no deadlock.
async fn insert_or_find(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    enqueue: &Enqueue,
    columns: &Columns<'_>,
) -> Result<Option<Inserted>> {
    let mut missing: Vec<usize> = (0..columns.ids.len()).collect();
    let mut cleared = false;
    loop {
        let rest = columns.only(&missing);
        let rows = insert(store, transaction.session(), enqueue, &rest).await?;
        if let Err(problem) = read(&rows) {
            return Ok(Some(Err(problem)));
        }
        let inserted: HashSet<Uuid> = rows.iter().map(|row| row.get("id")).collect();
        missing.retain(|&at| !inserted.contains(&columns.ids[at]));
        if missing.is_empty() {
            return Ok(Some(Ok(HashMap::new())));
        }
        let rest = columns.only(&missing);
        let held = holders(store, transaction, enqueue, &rest).await?;
        let expired: Vec<&str> = held
            .iter()
            .filter(|row| row.get("is_expired"))
            .map(|row| row.get("idempotency_key"))
            .collect();
        if expired.is_empty() || cleared {
            return Ok(match_holders(&held, &rest));
        }
        transaction
            .execute(
                sql!("request/expire_keys"),
                &[&store.given_now(), &enqueue.workspace.0, &expired],
            )
            .await?;
        cleared = true;
    }
}

async fn holders(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    enqueue: &Enqueue,
    columns: &Columns<'_>,
) -> Result<Vec<Row>> {
    transaction
        .many(
            sql!("request/holders"),
            &[
                &store.given_now(),
                &enqueue.workspace.0,
                &columns.keys,
                &columns.definitions,
                &columns.params,
            ],
        )
        .await
}

/// Returns the holder of each request's key, or a conflict if a key is held with other params; none if a key has no holder.
fn match_holders(held: &[Row], columns: &Columns<'_>) -> Option<Inserted> {
    let found: HashMap<&str, &Row> = held
        .iter()
        .map(|row| (row.get("idempotency_key"), row))
        .collect();
    let mut holders = HashMap::new();
    for (id, key) in columns.ids.iter().zip(&columns.keys) {
        let key = (*key)?;
        let row = found.get(key)?;
        let holder = RequestId(row.get("id"));
        if !row.get::<_, bool>("same") {
            return Some(Err(Enqueued::KeyConflict {
                key: key.to_owned(),
                held_by: holder,
            }));
        }
        holders.insert(RequestId(*id), holder);
    }
    Some(Ok(holders))
}
