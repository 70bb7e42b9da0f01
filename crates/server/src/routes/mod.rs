//! The routes, a file for each noun. A route reads its parameters, calls one operation of `ops` or reads the store, and shows the outcome; it decides nothing.

pub(crate) mod about;
mod changes;
mod claims;
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
mod request_acts;
mod requests;
mod shown;
mod shown_jobs;
mod shown_requests;
mod versions;
mod why;
mod workspaces;

pub(crate) use overview::Seen;
pub(crate) use shown_requests::event as shown_event;

use crate::route::Routes;

/// All of them.
pub(crate) fn all() -> Routes {
    Routes::default()
        .merge(about::routes())
        .merge(keys::routes())
        .merge(queues::routes())
        .merge(jobs::routes())
        .merge(claims::routes())
        .merge(locks::routes())
        .merge(workspaces::routes())
        .merge(definitions::routes())
        .merge(versions::routes())
        .merge(requests::routes())
        .merge(request_acts::routes())
        .merge(why::routes())
        .merge(dead_letters::routes())
        .merge(executions::routes())
        .merge(changes::routes())
        .merge(doctor::routes())
        .merge(overview::routes())
}
