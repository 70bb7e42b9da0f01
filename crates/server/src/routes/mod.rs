//! The route handlers, one file per noun. A handler reads its parameters, calls one operation of `ops` or reads the store, and converts the result to JSON; it has no business logic.

pub(crate) mod about;
mod audit;
mod changes;
mod claims;
mod convert;
mod convert_jobs;
mod convert_requests;
mod dead_letters;
mod definitions;
mod doctor;
mod executions;
mod jobs;
mod keys;
mod locks;
mod nodes;
mod overview;
mod queues;
mod request_actions;
mod requests;
mod versions;
mod why;
mod workspaces;

pub(crate) use convert_requests::event as convert_event;
pub(crate) use overview::CachedOverview;

use crate::route::Routes;

/// Returns all routes.
pub(crate) fn all() -> Routes {
    Routes::default()
        .merge(about::routes())
        .merge(keys::routes())
        .merge(audit::routes())
        .merge(queues::routes())
        .merge(jobs::routes())
        .merge(claims::routes())
        .merge(locks::routes())
        .merge(workspaces::routes())
        .merge(definitions::routes())
        .merge(versions::routes())
        .merge(requests::routes())
        .merge(request_actions::routes())
        .merge(why::routes())
        .merge(dead_letters::routes())
        .merge(executions::routes())
        .merge(changes::routes())
        .merge(doctor::routes())
        .merge(overview::routes())
}
