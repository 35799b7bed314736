//! `GET /portal`: notices, the figures of today and of thirty days, and the first steps.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::day_figures::{Day, FIGURE_DAYS};
use sakshi_service::Service;
use sakshi_web::query::Query;

use super::attention::{Notice, notices};
use super::error::PortalError;
use super::layout::{Layout, Section, page};
use super::portal_user::PortalUser;
use super::today::{Days, Today};

/// The first steps are shown until a client has opened this many verifications, or has received a webhook.
const BEGINNER_VERIFICATIONS_MAX: u64 = 10;

/// The overview.
#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    layout: Layout,
    app: String,
    notices: Vec<Notice>,
    today: Today,
    days: Days,
    /// First steps that are done: a verification was opened; a webhook has arrived. `None` hides the steps.
    steps: Option<[bool; 2]>,
}

/// Shows the overview.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    Query::parse(request.query_string()).finish()?;
    let app = &user.caller.app;
    let days = Days(service.store.day_figures(app.app_id.clone(), Day::containing(service.clock.now())).await?);
    let sum = days.sum();
    let is_beginner = sum.delivered == 0 && sum.opened < BEGINNER_VERIFICATIONS_MAX;
    let template = Page {
        layout: user.layout(Section::Overview, &service),
        app: app.name.clone(),
        notices: notices(&service, &user.caller, &days.0).await?,
        today: Today(days.0.last().map(|(_, today)| today.clone()).unwrap_or_default()),
        steps: is_beginner.then_some([sum.opened > 0, sum.delivered > 0]),
        days,
    };
    Ok(page(StatusCode::OK, &template))
}
