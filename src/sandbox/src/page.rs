//! Pages and errors of the sandbox: one style sheet, a strict content security policy, and no caching.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use askama::Template;
use serde_json::{Value, json};

/// Content security policy: no inline content, no other origins, no framing.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Renders a template into a response.
pub(crate) fn render_page(status: StatusCode, template: &impl Template) -> HttpResponse {
    match template.render() {
        Ok(html) => HttpResponse::build(status)
            .insert_header(ContentType::html())
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .insert_header(("x-robots-tag", "noindex"))
            .insert_header((CACHE_CONTROL, "no-store"))
            .body(html),
        Err(error) => {
            tracing::error!(%error, "a page of the sandbox could not be rendered");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// Builds the JSON body of an error.
pub(crate) fn problem_json(status: StatusCode, code: &str, message: &impl ToString) -> Value {
    json!({
        "success": false,
        "error": status.canonical_reason(),
        "message": message.to_string(),
        "code": code,
        "statusCode": status.as_u16(),
    })
}

/// Serves the style sheet.
pub(crate) async fn serve_style_sheet() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/css; charset=utf-8")
        .insert_header((CACHE_CONTROL, "public, max-age=300"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(include_str!("../assets/app.css"))
}
