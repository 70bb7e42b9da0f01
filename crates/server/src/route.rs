//! A route and its policy in one row: the handler brings method and path, the row says who may call it, how long it may take and whether it may be shed.
//! Knows no single route.

use crate::access::Access;
use crate::state::State;
use axum::http::Method;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::SecurityRequirement;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter, UtoipaMethodRouterExt};

/// How long a call of a route may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// The request timeout.
    RequestTimeout,
    /// The request timeout on top of the longest wait for a job. The call ends when its caller hangs up.
    LongPoll,
    /// No deadline: the call streams until its caller hangs up.
    Unbounded,
}

/// What the layers in front of a route need to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoutePolicy {
    /// Who may call it.
    pub(crate) access: Access,
    /// How long a call may take.
    pub(crate) deadline: Deadline,
    /// Whether a call is refused while the server is too busy. Routes that monitor the server are not.
    pub(crate) sheddable: bool,
    /// Whether a call starts a trace where its caller has none.
    pub(crate) starts_trace: bool,
}

impl From<Access> for RoutePolicy {
    fn from(access: Access) -> Self {
        Self {
            access,
            deadline: Deadline::RequestTimeout,
            sheddable: true,
            starts_trace: false,
        }
    }
}

impl Access {
    /// The policy of a route with this access and another deadline.
    pub(crate) fn deadline(self, deadline: Deadline) -> RoutePolicy {
        RoutePolicy {
            deadline,
            ..self.into()
        }
    }

    /// The policy of a route with this access that monitors the server.
    pub(crate) fn never_shed(self) -> RoutePolicy {
        RoutePolicy {
            sheddable: false,
            ..self.into()
        }
    }

    /// The policy of a route with this access that starts a trace.
    pub(crate) fn starts_trace(self) -> RoutePolicy {
        RoutePolicy {
            starts_trace: true,
            ..self.into()
        }
    }
}

/// Routes, each with its policy. A route without one cannot be added.
#[derive(Default)]
pub(crate) struct Routes(Vec<Row>);

struct Row {
    route: UtoipaMethodRouter<State>,
    policy: RoutePolicy,
}

impl Routes {
    /// Adds the handler of `routes!(handler)`. Method and path come from its `#[utoipa::path]`.
    pub(crate) fn add(
        mut self,
        mut route: UtoipaMethodRouter<State>,
        policy: impl Into<RoutePolicy>,
    ) -> Self {
        let policy = policy.into();
        if policy.access == Access::Open {
            let items = route.1.paths.values_mut();
            items.for_each(without_key);
        }
        self.0.push(Row { route, policy });
        self
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Adds all routes to a router, each behind the layers that `layered` puts in front of it.
    pub(crate) fn into_router(
        self,
        document: OpenApi,
        layered: impl Fn(MethodRouter<State>, RoutePolicy) -> MethodRouter<State>,
    ) -> OpenApiRouter<State> {
        let router = OpenApiRouter::with_openapi(document);
        self.0.into_iter().fold(router, |router, row| {
            router.routes(row.route.map(|route| layered(route, row.policy)))
        })
    }

    /// Method, path, description and policy of every route.
    pub(crate) fn list(&self) -> impl Iterator<Item = (Method, &str, &Operation, RoutePolicy)> {
        self.0.iter().flat_map(|row| {
            let items = row.route.1.paths.iter();
            items.flat_map(move |(path, item)| {
                let with_row =
                    move |(method, operation)| (method, path.as_str(), operation, row.policy);
                operations(item).map(with_row)
            })
        })
    }
}

fn operations(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    [
        (Method::GET, &item.get),
        (Method::POST, &item.post),
        (Method::PUT, &item.put),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
        (Method::HEAD, &item.head),
        (Method::OPTIONS, &item.options),
        (Method::TRACE, &item.trace),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

/// Describes the item's operations as open to callers without a key.
fn without_key(item: &mut PathItem) {
    let operations = [
        &mut item.get,
        &mut item.post,
        &mut item.put,
        &mut item.patch,
        &mut item.delete,
    ];
    for operation in operations.into_iter().flatten() {
        operation.security = Some(vec![SecurityRequirement::default()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_is_added_once() {
        let mut known = BTreeSet::new();
        for (method, path, ..) in crate::routes::all().list() {
            let route = format!("{method} {path}");
            assert!(known.insert(route.clone()), "{route} is added twice");
        }
        assert!(known.len() > 50, "{known:?}");
    }

    #[test]
    fn access_fits_the_path() {
        for (method, path, _, policy) in crate::routes::all().list() {
            let allowed: &[Access] = if path.contains("{workspace}") {
                &[Access::Workspace, Access::Admin]
            } else if path.contains("{queue}") {
                &[Access::Queue, Access::Admin]
            } else if path.starts_with("/v1/") {
                &[Access::Admin, Access::AnyKey, Access::Jobs]
            } else {
                &[Access::Open, Access::Admin]
            };
            assert!(
                allowed.contains(&policy.access),
                "{method} {path} is declared {:?}; allowed: {allowed:?}",
                policy.access
            );
        }
    }

    #[test]
    fn only_routes_that_monitor_the_server_are_never_shed() {
        let all = crate::routes::all();
        let never_shed = all.list().filter(|(.., policy)| !policy.sheddable);
        let paths: BTreeSet<&str> = never_shed.map(|(_, path, ..)| path).collect();
        assert_eq!(paths, BTreeSet::from(["/healthz", "/metrics", "/readyz"]));
    }
}
