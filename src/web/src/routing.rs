//! Route tables: pattern, method and handler of each route. They add three things to the routes of the framework:
//! `Allow` on a 405, `HEAD` wherever there is `GET`, and metrics by pattern.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::web::ServiceConfig;
use actix_web::{Resource, Route, guard, web};
use metrics::{Counter, Histogram, counter, histogram};
use sakshi_service::ServiceError;

use super::error::ApiError;

/// Metrics of a route. Their handles are resolved once per worker, not per request.
#[derive(Clone)]
pub struct RouteMetrics(Rc<Inner>);

struct Inner {
    pattern: &'static str,
    methods: Vec<(Method, MethodMetrics)>,
    other: MethodMetrics,
}

/// Metrics of a method. They are registered at its first request, so that unused routes are not reported. All status
/// classes are registered together, so that the first failure is an increase.
#[derive(Default)]
struct MethodMetrics(OnceCell<([Counter; 5], Histogram)>);

impl RouteMetrics {
    fn new(pattern: &'static str, methods: &[Method]) -> Self {
        let methods = methods.iter().map(|method| (method.clone(), MethodMetrics::default())).collect();
        Self(Rc::new(Inner { pattern, methods, other: MethodMetrics::default() }))
    }

    /// Builds the metrics of requests that match no route, for the data of the app.
    #[must_use]
    pub fn unmatched() -> Self {
        Self::new("unmatched", &[])
    }

    /// Returns the route's pattern.
    pub(crate) fn pattern(&self) -> &'static str {
        self.0.pattern
    }

    /// Counts one request.
    pub(crate) fn record(&self, method: &Method, status: u16, duration: Duration) {
        const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let pattern = self.0.pattern;
        let known = self.0.methods.iter().find(|(known, _)| known == method);
        let (method, metrics) = known.map_or(("other", &self.0.other), |(known, metrics)| (known.as_str(), metrics));
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        let (counts, time) = metrics.0.get_or_init(|| {
            let count = |status| {
                counter!("sakshi_http_requests_total", "route" => pattern, "method" => method.to_owned(),
                    "status" => status)
            };
            (
                CLASSES.map(count),
                histogram!("sakshi_http_request_seconds", "route" => pattern,
                "method" => method.to_owned()),
            )
        });
        counts[class].increment(1);
        time.record(duration.as_secs_f64());
    }
}

/// The callers of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Client backends, with an API key and an app id.
    Clients,
    /// Anybody; part of the API document.
    Anybody,
    /// Browsers and the identity app; not part of the API document.
    Residents,
    /// Browsers of client developers; not part of the API document.
    Developers,
    /// Operators, connectors and probes, on separate listeners.
    Operators,
}

/// A row of a route table: one method of one path.
#[derive(Clone, Copy)]
pub struct Row {
    /// The method.
    pub method: &'static str,
    /// Pattern of the path.
    pub path: &'static str,
    /// Callers of the route.
    pub audience: Audience,
    /// Builds the route; [`resource`] adds the guard of the method.
    route: fn() -> Route,
}

/// Builds a row of a route table; `route` is made by `web::to`.
#[must_use]
pub const fn row(method: &'static str, path: &'static str, audience: Audience, route: fn() -> Route) -> Row {
    Row { method, path, audience, route }
}

/// Registers the routes of a table. Rows with the same path must be adjacent and have the same audience.
pub fn configure(config: &mut ServiceConfig, table: &[Row]) {
    for rows in table.chunk_by(|one, next| one.path == next.path) {
        let routes = rows
            .iter()
            .filter_map(|row| Some((Method::from_bytes(row.method.as_bytes()).ok()?, (row.route)())))
            .collect();
        config.service(resource(rows[0].path, routes).app_data(rows[0].audience));
    }
}

/// Builds the resource of a path. `GET` also serves `HEAD`.
#[must_use]
pub fn resource(pattern: &'static str, routes: Vec<(Method, Route)>) -> Resource {
    let mut methods: Vec<Method> = routes.iter().map(|(method, _)| method.clone()).collect();
    if methods.contains(&Method::GET) && !methods.contains(&Method::HEAD) {
        methods.push(Method::HEAD);
    }
    let allow = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let mut resource = web::resource(pattern).app_data(RouteMetrics::new(pattern, &methods));
    for (method, route) in routes {
        let route = if method == Method::GET {
            route.guard(guard::Any(guard::Get()).or(guard::Head()))
        } else {
            route.guard(guard::Method(method))
        };
        resource = resource.route(route);
    }
    resource.default_service(web::to(move || {
        let error = ApiError::MethodNotAllowed { allow: allow.clone().into() };
        async move { Err::<actix_web::HttpResponse, ApiError>(error) }
    }))
}

/// Answers an unknown path, for `default_service` of an app.
///
/// # Errors
/// Always [`ServiceError::NotFound`].
pub async fn unknown_path() -> Result<actix_web::HttpResponse, ApiError> {
    Err(ApiError::Service(ServiceError::NotFound("path")))
}
