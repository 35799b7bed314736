//! How a path is declared: its pattern, its methods and their handlers, and with them what the
//! framework leaves out: `Allow` on a 405, `HEAD` wherever there is `GET`, metrics by pattern.

use actix_web::http::Method;
use actix_web::web::ServiceConfig;
use actix_web::{Resource, Route, guard, web};
use metrics::{Counter, Histogram, counter, histogram};
use sakshi_service::error::ServiceError;
use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use super::error::ApiError;

/// Counts the requests of one route; the handles are resolved once per worker, not per request.
#[derive(Clone)]
pub struct RouteMeter(Rc<Meter>);

struct Meter {
    pattern: &'static str,
    methods: Vec<(Method, MethodMeter)>,
    other: MethodMeter,
}

/// Handles of one method; each is made when it is first needed, so that nothing is reported that
/// never happened.
#[derive(Default)]
struct MethodMeter {
    classes: [OnceCell<Counter>; 5],
    duration: OnceCell<Histogram>,
}

impl RouteMeter {
    fn new(pattern: &'static str, methods: &[Method]) -> Self {
        let methods = methods.iter().map(|method| (method.clone(), MethodMeter::default())).collect();
        Self(Rc::new(Meter { pattern, methods, other: MethodMeter::default() }))
    }

    /// For requests that no route takes; put it into the app's data.
    #[must_use]
    pub fn unmatched() -> Self {
        Self::new("unmatched", &[])
    }

    /// The route's pattern.
    #[must_use]
    pub fn pattern(&self) -> &'static str {
        self.0.pattern
    }

    /// Counts one request.
    pub fn record(&self, method: &Method, status: u16, duration: Duration) {
        const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let pattern = self.0.pattern;
        let known = self.0.methods.iter().find(|(known, _)| known == method);
        let (word, meter) = known.map_or(("other", &self.0.other), |(known, meter)| (known.as_str(), meter));
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        let count = meter.classes[class].get_or_init(
            || counter!("sakshi_http_requests_total", "route" => pattern, "method" => word.to_owned(), "status" => CLASSES[class]),
        );
        count.increment(1);
        let time =
            meter.duration.get_or_init(|| histogram!("sakshi_http_request_seconds", "route" => pattern, "method" => word.to_owned()));
        time.record(duration.as_secs_f64());
    }
}

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Client backends, with key and app id.
    Clients,
    /// Anybody; documented.
    Anybody,
    /// Browsers and the identity app; not part of the API document.
    Residents,
    /// Browsers of people who write or run a client; not part of the API document either.
    Developers,
}

/// One method of one path.
#[derive(Clone, Copy)]
pub struct Row {
    /// The method.
    pub method: &'static str,
    /// The path's pattern.
    pub path: &'static str,
    /// Who may use it.
    pub audience: Audience,
    /// Without a guard of its own: [`resource`] sets it, which lets `HEAD` in where there is `GET`.
    route: fn() -> Route,
}

/// One method of one path, with its handler.
#[must_use]
pub const fn row(method: &'static str, path: &'static str, audience: Audience, route: fn() -> Route) -> Row {
    Row { method, path, audience, route }
}

/// Declares the routes of a table. Rows of one path stand next to each other.
pub fn configure(config: &mut ServiceConfig, table: &[Row]) {
    for rows in table.chunk_by(|one, next| one.path == next.path) {
        let routes = rows.iter().filter_map(|row| Some((Method::from_bytes(row.method.as_bytes()).ok()?, (row.route)()))).collect();
        config.service(resource(rows[0].path, routes));
    }
}

/// A path with its methods, each with a route made by `web::to`. `GET` answers `HEAD` too.
#[must_use]
pub fn resource(pattern: &'static str, routes: Vec<(Method, Route)>) -> Resource {
    let mut methods: Vec<Method> = routes.iter().map(|(method, _)| method.clone()).collect();
    if methods.contains(&Method::GET) && !methods.contains(&Method::HEAD) {
        methods.push(Method::HEAD);
    }
    let allow = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let mut resource = web::resource(pattern).app_data(RouteMeter::new(pattern, &methods));
    for (method, route) in routes {
        let route = if method == Method::GET {
            route.guard(guard::Any(guard::Get()).or(guard::Head()))
        } else {
            route.guard(guard::Method(method))
        };
        resource = resource.route(route);
    }
    resource.default_service(web::to(move || {
        let refusal = ApiError::MethodNotAllowed { allow: allow.clone().into() };
        async move { Err::<actix_web::HttpResponse, ApiError>(refusal) }
    }))
}

/// What a path that nobody declared answers; for `default_service` of an app.
///
/// # Errors
/// Always [`ServiceError::NotFound`].
pub async fn unknown_path() -> Result<actix_web::HttpResponse, ApiError> {
    Err(ApiError::Service(ServiceError::NotFound("path")))
}
