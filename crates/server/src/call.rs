//! What a call passes before and after its route: deadline, key, place among the concurrent calls, span, rate, memory. Knows no particular route.
//!
//! One layer does all of it. The router copies every layer for each layer in front of it, so seven layers cost a call dozens of allocations.

use crate::api_error::ApiResult;
use crate::route::RoutePolicy;
use crate::state::State;
use crate::{access, call_memory, call_owner, deadline, load_shed, rate_limit, trace};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State as AxumState};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

type PathParams = Result<RawPathParams, RawPathParamsRejection>;

/// Applies the policy of a route to a call.
pub(crate) async fn guard(
    AxumState((state, policy)): AxumState<(State, RoutePolicy)>,
    params: PathParams,
    request: Request,
    next: Next,
) -> Response {
    let served = admit(state, policy, params, request, next).await;
    served.unwrap_or_else(IntoResponse::into_response)
}

/// Serves the call of a caller that may make it now.
async fn admit(
    state: State,
    policy: RoutePolicy,
    params: PathParams,
    mut request: Request,
    next: Next,
) -> ApiResult<Response> {
    let (timeout, begun) = (
        deadline::call_timeout(policy, &state.options),
        Instant::now(),
    );
    let authorized = access::authorize(&state, policy, params, &mut request);
    let params = deadline::before(timeout, authorized).await?;
    // After authorization: calls are counted by workspace or key.
    let permit = load_shed::admit(&state, policy, &mut request)?;
    let call = permit.map(|permit| permit.call());
    // Boxed because it is large and moves several times until it runs. The place of the call is held until the response is made.
    let answer = Box::pin(async move {
        call_owner::scope(call, traced(&state, policy, params, request, next)).await
    });
    Ok(deadline::apply(timeout, begun, answer).await)
}

/// Serves a call in its span. After authorization, so that only callers with a key create spans.
async fn traced(
    state: &State,
    policy: RoutePolicy,
    params: Option<RawPathParams>,
    mut request: Request,
    next: Next,
) -> Response {
    let span = trace::begin(state, policy, &mut request);
    let mut response = match rate_limit::check(state, params.as_ref(), &request) {
        // Innermost: without the responses of the checks before it.
        Ok(()) => call_memory::hold_response(state, request, next).await,
        Err(error) => error.into_response(),
    };
    if let Some(span) = span {
        trace::end(span, &mut response);
    }
    response
}
