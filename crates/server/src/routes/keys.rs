//! Keys: making, showing and revoking them. A secret is answered once, when it is made.

use super::shown;
use crate::access::{Access, Caller};
use crate::body::Json;
use crate::openapi::{Common, Unknown};
use crate::params::{Paging, Path, Query, answered};
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as Reached;
use axum::http::StatusCode;
use leasehold_api::Page;
use leasehold_api::key::{Key, MadeKey, NewKey};
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

/// The key this call was made with.
#[utoipa::path(get, path = "/v1/me", tag = "keys", responses((status = 200, body = Key), Common))]
async fn me(Extension(caller): Extension<Caller>) -> Json<Key> {
    Json(shown::key(&caller.0))
}

/// All keys, revoked ones too.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", params(Paging),
    responses((status = 200, body = Page<Key>), Common))]
async fn list(
    Reached(state): Reached<State>,
    Query(paging): Query<Paging>,
) -> Outcome<Json<Page<Key>>> {
    let page = paging.page()?;
    let limit = page.limit;
    let keys = state.store.key_list(None, page).await?;
    let next = |key: &leasehold_store::key::Key| key.id.to_string();
    Ok(Json(answered(keys, limit, next, |key| shown::key(&key))))
}

/// Makes a key. Its secret is in the answer, and nowhere else.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = NewKey,
    responses((status = 201, body = MadeKey), Common, Unknown))]
async fn create(
    Reached(state): Reached<State>,
    Json(new): Json<NewKey>,
) -> Outcome<(StatusCode, Json<MadeKey>)> {
    let scope = shown::scope(new.scope);
    let (key, secret) = ops::key::create(&*state.store, &new.name, scope).await?;
    let made = MadeKey {
        key: shown::key(&key),
        secret: secret.reveal().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// A key.
#[utoipa::path(get, path = "/v1/keys/{key}", tag = "keys", params(("key" = uuid::Uuid, Path)),
    responses((status = 200, body = Key), Common, Unknown))]
async fn get(Reached(state): Reached<State>, Path(id): Path<KeyId>) -> Outcome<Json<Key>> {
    let key = state.store.key_get(id).await?;
    let key = key.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::key(&key)))
}

/// Revokes a key for good: at once here, within a second on other instances. A second time changes nothing.
#[utoipa::path(delete, path = "/v1/keys/{key}", tag = "keys", params(("key" = uuid::Uuid, Path)),
    responses((status = 200, body = Key), Common, Unknown))]
async fn revoke(Reached(state): Reached<State>, Path(id): Path<KeyId>) -> Outcome<Json<Key>> {
    let key = ops::key::revoke(&*state.store, id).await?;
    state.keys.forget(&key);
    Ok(Json(shown::key(&key)))
}
