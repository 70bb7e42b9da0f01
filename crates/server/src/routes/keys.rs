//! API keys: create, list, show and revoke them. A secret is returned once, when its key is created.

use super::convert;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::{Paging, Path, Query, page_response};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::StatusCode;
use leasehold_api::Page;
use leasehold_api::key::{CreatedKey, Key, NewKey};
use leasehold_core::KeyId;
use leasehold_ops as ops;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(me), Access::AnyKey)
        .add(routes!(list), Access::Admin)
        .add(routes!(create), Access::Admin)
        .add(routes!(get), Access::Admin)
        .add(routes!(revoke), Access::Admin)
}

/// Returns the key of this call.
#[utoipa::path(get, path = "/v1/me", tag = "keys", responses((status = 200, body = Key), CommonResponses))]
async fn me(Extension(caller): Extension<Caller>) -> Json<Key> {
    Json(convert::key(&caller.0))
}

/// Lists all keys, including revoked ones.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", params(Paging),
    responses((status = 200, body = Page<Key>), CommonResponses))]
async fn list(
    AxumState(state): AxumState<State>,
    Query(paging): Query<Paging>,
) -> ApiResult<Json<Page<Key>>> {
    let page = paging.page()?;
    let limit = page.limit;
    let keys = state.store.key_list(None, page).await?;
    let next = |key: &leasehold_store::key::Key| key.id.to_string();
    Ok(Json(page_response(keys, limit, next, |key| {
        convert::key(&key)
    })))
}

/// Creates a key. Its secret is in this response only; the server stores a hash.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = NewKey,
    responses((status = 201, body = CreatedKey), CommonResponses, NotFoundResponse))]
async fn create(
    AxumState(state): AxumState<State>,
    Json(new): Json<NewKey>,
) -> ApiResult<(StatusCode, Json<CreatedKey>)> {
    let scope = convert::scope(new.scope);
    let (key, secret) = ops::key::create(&*state.store, &new.name, scope).await?;
    let created = CreatedKey {
        key: convert::key(&key),
        secret: secret.reveal().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// Returns a key.
#[utoipa::path(get, path = "/v1/keys/{key}", tag = "keys", params(("key" = uuid::Uuid, Path)),
    responses((status = 200, body = Key), CommonResponses, NotFoundResponse))]
async fn get(AxumState(state): AxumState<State>, Path(id): Path<KeyId>) -> ApiResult<Json<Key>> {
    let key = state.store.key_get(id).await?;
    let key = key.ok_or_else(|| ApiError::not_found("key"))?;
    Ok(Json(convert::key(&key)))
}

/// Revokes a key permanently: at once on this instance, within a second on the others. Revoking it again changes nothing.
#[utoipa::path(delete, path = "/v1/keys/{key}", tag = "keys", params(("key" = uuid::Uuid, Path)),
    responses((status = 200, body = Key), CommonResponses, NotFoundResponse))]
async fn revoke(AxumState(state): AxumState<State>, Path(id): Path<KeyId>) -> ApiResult<Json<Key>> {
    let key = ops::key::revoke(&*state.store, id).await?;
    state.keys.invalidate(&key);
    Ok(Json(convert::key(&key)))
}
