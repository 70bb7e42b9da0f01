//! The registry of type-erased handlers by job kind.

use crate::context::JobContext;
use crate::outcome::{self, IntoOutcome, JobError, Outcome};
use futures::future::BoxFuture;
use leasehold_core::job::JobEnd;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::Arc;

type Handler = Arc<dyn Fn(JobContext) -> BoxFuture<'static, JobEnd> + Send + Sync>;

/// The handlers of a worker, by kind.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    by_kind: HashMap<String, Handler>,
    /// The handler of all other kinds.
    default: Option<Handler>,
}

impl Handlers {
    /// Adds a handler. Returns false if the kind had one.
    pub(crate) fn add<T, F, Fut, O>(&mut self, kind: &str, handler: F) -> bool
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, JobError>> + Send + 'static,
        O: IntoOutcome,
    {
        let previous = self.by_kind.insert(kind.to_owned(), erased(handler));
        previous.is_none()
    }

    /// Sets the handler of all other kinds.
    pub(crate) fn set_default<T, F, Fut, O>(&mut self, handler: F)
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, JobError>> + Send + 'static,
        O: IntoOutcome,
    {
        self.default = Some(erased(handler));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_kind.is_empty() && self.default.is_none()
    }

    /// Runs the handler of the kind; none if there is none.
    pub(crate) fn call(
        &self,
        kind: &str,
        context: JobContext,
    ) -> Option<BoxFuture<'static, JobEnd>> {
        let handler = self.by_kind.get(kind).or(self.default.as_ref())?;
        Some(handler(context))
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
                Err(error) => return outcome::failed(invalid_payload(&error)),
            };
            outcome::end(answer.and_then(into_outcome))
        })
    })
}

fn into_outcome<O: IntoOutcome>(answer: O) -> Result<Outcome, JobError> {
    answer.into_outcome()
}

/// A permanent error: a retry would read the same payload. The failed job stays in the store, where an operator can inspect and redrive it.
fn invalid_payload(error: &serde_json::Error) -> JobError {
    JobError::permanent(format!("failed to deserialize the payload: {error}"))
}
