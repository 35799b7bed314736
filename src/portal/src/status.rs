//! `GET /portal/status`: the authority, the upstreams, the app's webhooks, and its limits.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_service::Service;
use sakshi_service::status::{Status, status};
use sakshi_web::query::Query;
use sakshi_web::rate_limit::{LimitState, RateLimits};

use super::error::PortalError;
use super::layout::{Layout, Section, page};
use super::portal_user::PortalUser;
use super::when::When;

/// The status page.
#[derive(Template)]
#[template(path = "status.html")]
struct Page {
    layout: Layout,
    status: Status,
    last_answer: Option<When>,
    limits: Vec<Limit>,
}

/// A limit as a line of a table.
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    pub(crate) allowed: String,
    /// The kind of caller that has a quota of its own, such as an address.
    pub(crate) counted_per: &'static str,
}

/// Returns the limits of this installation.
pub(crate) fn limits(rates: &RateLimits) -> Vec<Limit> {
    let limit = |(LimitState { name, quota, window, .. }, counted_per): (LimitState, &'static str)| {
        let time = if window.as_secs() == 1 { "second".to_owned() } else { format!("{} seconds", window.as_secs()) };
        Limit { name, allowed: format!("{quota} in a {time}").replace("in a 60 seconds", "in a minute"), counted_per }
    };
    rates.policies().into_iter().map(limit).collect()
}

/// Shows the status page.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, PortalError> {
    Query::parse(request.query_string()).finish()?;
    let status = status(&service, &user.caller).await?;
    let mut limits = limits(&rates);
    if let Some(quota) = user.caller.limits.requests_per_second {
        limits.insert(0, Limit { name: "client", allowed: format!("{quota} in a second"), counted_per: "client" });
    }
    let last_answer = status.authority.last_at.map(When::minute);
    let template = Page { layout: user.layout(Section::Status, &service), last_answer, limits, status };
    Ok(page(StatusCode::OK, &template))
}
