//! How a path is declared: its pattern, its methods and their handlers, and with them what the
//! framework leaves out: `Allow` on a 405, `HEAD` wherever there is `GET`, metrics by pattern.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::{Resource, Route, guard, web};
use metrics::{Counter, Histogram, counter, histogram};

use super::error::ApiError;

/// Counts the requests of one route; the handles are resolved once per worker, not per request.
#[derive(Clone)]
pub struct RouteMeter(Rc<Meter>);

struct Meter {
    pattern: &'static str,
    methods: Vec<(Method, MethodMeter)>,
    other: MethodMeter,
}

struct MethodMeter {
    classes: [Counter; 5],
    duration: Histogram,
}

impl MethodMeter {
    fn new(pattern: &'static str, method: &str) -> Self {
        let method = method.to_owned();
        let class =
            |class: &'static str| counter!("sakshi_http_requests_total", "route" => pattern, "method" => method.clone(), "status" => class);
        Self {
            classes: ["1xx", "2xx", "3xx", "4xx", "5xx"].map(class),
            duration: histogram!("sakshi_http_request_seconds", "route" => pattern, "method" => method.clone()),
        }
    }
}

impl RouteMeter {
    fn new(pattern: &'static str, methods: &[Method]) -> Self {
        let one = |method: &Method| (method.clone(), MethodMeter::new(pattern, method.as_str()));
        Self(Rc::new(Meter { pattern, methods: methods.iter().map(one).collect(), other: MethodMeter::new(pattern, "other") }))
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
        let meter = self.0.methods.iter().find(|(known, _)| known == method).map_or(&self.0.other, |(_, meter)| meter);
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        meter.classes[class].increment(1);
        meter.duration.record(duration.as_secs_f64());
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
/// Always [`ApiError::NotFound`].
pub async fn unknown_path() -> Result<actix_web::HttpResponse, ApiError> {
    Err(ApiError::NotFound("path"))
}
