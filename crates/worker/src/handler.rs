//! Handlers by kind of job, with their types erased: payload in, end out.

use crate::context::JobContext;
use crate::outcome::{self, IntoOutcome, JobError, Outcome};
use futures::future::BoxFuture;
use leasehold_core::job::JobEnd;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::Arc;

type Handler = Arc<dyn Fn(JobContext) -> BoxFuture<'static, JobEnd> + Send + Sync>;

/// Which handler works on which kind.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    by_kind: HashMap<String, Handler>,
    /// For every kind that has none of its own.
    other: Option<Handler>,
}

impl Handlers {
    /// Adds a handler; false if the kind has one.
    pub(crate) fn add<T, F, Fut, O>(&mut self, kind: &str, handler: F) -> bool
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, JobError>> + Send + 'static,
        O: IntoOutcome,
    {
        let earlier = self.by_kind.insert(kind.to_owned(), erased(handler));
        earlier.is_none()
    }

    /// Sets the handler of all other kinds.
    pub(crate) fn set_other<T, F, Fut, O>(&mut self, handler: F)
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, JobError>> + Send + 'static,
        O: IntoOutcome,
    {
        self.other = Some(erased(handler));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_kind.is_empty() && self.other.is_none()
    }

    /// Works on the job.
    pub(crate) fn call(&self, kind: &str, context: JobContext) -> BoxFuture<'static, JobEnd> {
        match self.by_kind.get(kind).or(self.other.as_ref()) {
            Some(handler) => handler(context),
            None => Box::pin(std::future::ready(outcome::failed(unknown(kind)))),
        }
    }
}

fn erased<T, F, Fut, O>(handler: F) -> Handler
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, JobError>> + Send + 'static,
    O: IntoOutcome,
{
    let handler = Arc::new(handler);
    Arc::new(move |context| {
        let handler = handler.clone();
        Box::pin(async move {
            let answer = match context.payload::<T>() {
                Ok(payload) => handler(payload, context).await,
                Err(error) => return outcome::failed(unreadable(&error)),
            };
            outcome::end(answer.and_then(into_outcome))
        })
    })
}

fn into_outcome<O: IntoOutcome>(answer: O) -> Result<Outcome, JobError> {
    answer.into_outcome()
}

/// For good: the payload never changes, so neither would the answer. The job stays to be looked at, and can be enqueued anew.
fn unreadable(error: &serde_json::Error) -> JobError {
    JobError::permanent(format!("the payload cannot be read: {error}"))
}

/// Tried again: while workers are replaced one by one, some know a kind and some do not yet.
fn unknown(kind: &str) -> JobError {
    JobError::new(format!("this worker has no handler for the kind `{kind}`"))
}
