//! The audit log: lists which key made which change.

use super::convert;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::call_memory::{self, rows_bytes};
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::{Query, page_response};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use leasehold_api::Page;
use leasehold_api::audit::AuditEntry;
use leasehold_core::limits::NAME_MAX_CHARS;
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_store::audit::AuditFilter;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

/// Bytes of an entry in a list, about: the names of the key and of what was changed, and the new values. A page with larger entries waits again.
const ENTRY_MAX_BYTES: usize = 3 * 4 * NAME_MAX_CHARS;

pub(super) fn routes() -> Routes {
    Routes::default().add(routes!(list), Access::Audit)
}

/// Filters the audit log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct AuditListQuery {
    /// Only entries of this workspace. Default for a workspace key: its own.
    #[param(value_type = Option<uuid::Uuid>)]
    workspace: Option<WorkspaceId>,
    /// Only changes by this key.
    #[param(value_type = Option<uuid::Uuid>)]
    key: Option<KeyId>,
    /// Only changes of this kind, for example `key_create`.
    action: Option<String>,
    /// Cursor: the `next` of the previous page.
    after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Lists changes to keys, workspaces, limits, queues and definitions, newest first: which key changed what and when.
#[utoipa::path(get, path = "/v1/audit", operation_id = "audit_list", tag = "audit", params(AuditListQuery),
    responses((status = 200, body = Page<AuditEntry>), CommonResponses, NotFoundResponse))]
async fn list(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<AuditListQuery>,
) -> ApiResult<Json<Page<AuditEntry>>> {
    let workspace = visible_workspace(&caller, query.workspace)?;
    let cursors = state.cursors.of("audit_list", workspace).await?;
    let page = cursors.page(query.after.as_deref(), query.limit)?;
    let filter = AuditFilter {
        workspace,
        key: query.key,
        action: query.action,
    };
    let limit = page.limit;
    call_memory::reserve(rows_bytes(limit, ENTRY_MAX_BYTES)).await?;
    let entries = state.store.audit_list(&filter, page).await?;
    let next = |entry: &leasehold_store::audit::AuditEntry| entry.id.to_string();
    Ok(Json(page_response(
        entries,
        limit,
        &cursors,
        next,
        convert::audit_entry,
    )))
}

/// Returns the workspace to list: a workspace key reads only its own.
fn visible_workspace(
    caller: &Caller,
    requested: Option<WorkspaceId>,
) -> ApiResult<Option<WorkspaceId>> {
    match (caller.scope().workspace(), requested) {
        (Some(own), Some(requested)) if own != requested => Err(ApiError::not_found("workspace")),
        (Some(own), _) => Ok(Some(own)),
        (None, requested) => Ok(requested),
    }
}
