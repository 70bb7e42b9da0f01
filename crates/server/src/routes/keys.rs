//! API keys: create, list, show, rotate and revoke them. A secret is returned once, when its key is created or rotated.

use super::convert;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::{Json, OptionalJson};
use crate::openapi::{CommonResponses, ConflictResponse, NotFoundResponse};
use crate::params::{Paging, Path, Query, page_response};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::StatusCode;
use leasehold_api::Page;
use leasehold_api::key::{CreatedKey, Key, NewKey, RotatedKey, RotationOptions};
use leasehold_core::KeyId;
use leasehold_core::limits::KEY_OVERLAP_DEFAULT_HOURS;
use leasehold_ops as ops;
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(me), Access::AnyKey)
        .add(routes!(list), Access::Admin)
        .add(routes!(create), Access::Admin)
        .add(routes!(get), Access::Admin)
        .add(routes!(revoke), Access::Admin)
        .add(routes!(rotate), Access::Admin)
}

/// Returns the key of this call.
#[utoipa::path(get, path = "/v1/me", tag = "keys", responses((status = 200, body = Key), CommonResponses))]
async fn me(Extension(caller): Extension<Caller>) -> Json<Key> {
    Json(convert::key(&caller.0))
}

/// Lists all keys, including revoked and expired ones.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", params(Paging),
    responses((status = 200, body = Page<Key>), CommonResponses))]
async fn list(
    AxumState(state): AxumState<State>,
    Query(paging): Query<Paging>,
) -> ApiResult<Json<Page<Key>>> {
    let cursors = state.cursors.of("key_list", None).await?;
    let page = paging.page(&cursors)?;
    let limit = page.limit;
    let keys = state.store.key_list(None, page).await?;
    let next = |key: &leasehold_store::key::Key| key.id.to_string();
    Ok(Json(page_response(keys, limit, &cursors, next, |key| {
        convert::key(&key)
    })))
}

/// Creates a key. Its secret is in this response only; the server stores a hash. A key cannot create a key with more rights than its own.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = NewKey,
    responses((status = 201, body = CreatedKey), CommonResponses, NotFoundResponse))]
async fn create(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Json(new): Json<NewKey>,
) -> ApiResult<(StatusCode, Json<CreatedKey>)> {
    let spec = convert::key_spec(new);
    let (key, secret) = ops::key::create_by(&*state.store, &spec, &caller.0).await?;
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

/// The query of a revocation.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Revocation {
    /// Revoke even the last administrator key; default: false.
    #[serde(default)]
    force: bool,
}

/// Revokes a key permanently: at once on this instance, within a second on the others. Revoking it again changes nothing. The last administrator key needs `force`.
#[utoipa::path(delete, path = "/v1/keys/{key}", tag = "keys", params(("key" = uuid::Uuid, Path), Revocation),
    responses((status = 200, body = Key), CommonResponses, NotFoundResponse, ConflictResponse))]
async fn revoke(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<KeyId>,
    Query(revocation): Query<Revocation>,
) -> ApiResult<Json<Key>> {
    let key = ops::key::revoke_by(&*state.store, id, revocation.force, &caller.0).await?;
    state.keys.invalidate(&key);
    Ok(Json(convert::key(&key)))
}

/// Rotates a key: creates a successor with the same name, scope, access and payloads, and lets the old key expire after the overlap. The secret of the
/// successor is in this response only. A key can be rotated once; after that, rotate its successor.
#[utoipa::path(post, path = "/v1/keys/{key}/rotate", operation_id = "key_rotate", tag = "keys", params(("key" = uuid::Uuid, Path)),
    request_body = Option<RotationOptions>,
    responses((status = 201, body = RotatedKey), CommonResponses, NotFoundResponse, ConflictResponse))]
async fn rotate(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<KeyId>,
    OptionalJson(options): OptionalJson<RotationOptions>,
) -> ApiResult<(StatusCode, Json<RotatedKey>)> {
    let default = Duration::from_secs(u64::from(KEY_OVERLAP_DEFAULT_HOURS) * 3_600);
    let spec = ops::key::RotationSpec {
        id,
        overlap: options.overlap_ms.map_or(default, Duration::from_millis),
        expires_in: options.expires_in_ms.map(Duration::from_millis),
    };
    let rotated = ops::key::rotate(&*state.store, spec, &caller.0).await?;
    state.keys.invalidate(&rotated.old);
    let rotated = RotatedKey {
        old: convert::key(&rotated.old),
        key: convert::key(&rotated.successor),
        secret: rotated.secret.reveal().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(rotated)))
}
