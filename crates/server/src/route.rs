//! Routes with their policies: the handler declares method and path, the row declares access, deadline and load shedding.
//! Knows no particular route.

use crate::access::Access;
use crate::state::State;
use axum::http::Method;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::SecurityRequirement;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter, UtoipaMethodRouterExt};

/// The time limit of a route's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// The request timeout, until there is a response. A body that streams has no deadline.
    RequestTimeout,
    /// The request timeout plus the longest wait for a job. The call ends when its caller disconnects.
    LongPoll,
}

/// The policy that the layers in front of a route apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoutePolicy {
    /// The required access.
    pub(crate) access: Access,
    /// The time limit of a call.
    pub(crate) deadline: Deadline,
    /// Whether calls are rejected while the server is overloaded. Monitoring routes are not.
    pub(crate) sheddable: bool,
    /// Whether a call without a caller's trace starts one.
    pub(crate) starts_trace: bool,
    /// Whether the call gives access to payloads in another way than by its response, or is useless without them.
    pub(crate) needs_payloads: bool,
}

impl From<Access> for RoutePolicy {
    fn from(access: Access) -> Self {
        Self {
            access,
            deadline: Deadline::RequestTimeout,
            sheddable: true,
            starts_trace: false,
            needs_payloads: false,
        }
    }
}

impl Access {
    /// Returns the policy with this access and another deadline.
    pub(crate) fn deadline(self, deadline: Deadline) -> RoutePolicy {
        RoutePolicy {
            deadline,
            ..self.into()
        }
    }

    /// Returns the policy of a monitoring route with this access.
    pub(crate) fn never_shed(self) -> RoutePolicy {
        RoutePolicy {
            sheddable: false,
            ..self.into()
        }
    }

    /// Returns the policy with this access of a route that starts a trace.
    pub(crate) fn starts_trace(self) -> RoutePolicy {
        RoutePolicy {
            starts_trace: true,
            ..self.into()
        }
    }
}

impl RoutePolicy {
    /// Returns the policy of a route that rejects keys from which payloads are hidden.
    pub(crate) fn needs_payloads(self) -> Self {
        Self {
            needs_payloads: true,
            ..self
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
    /// Adds the handler of `routes!(handler)`; its `#[utoipa::path]` declares method and path.
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

    /// Returns method, path, OpenAPI operation and policy of every route.
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

/// Marks the item's operations as open to callers without a key.
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
                &[Access::Admin, Access::AnyKey, Access::Jobs, Access::Audit]
            } else {
                &[Access::Open, Access::Metrics]
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
