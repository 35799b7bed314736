//! `/docs`: the API's document as a page to read, without a script and for everybody.
//!
//! It is made from the same document that `/openapi.json` serves, once per worker. What is tried out is tried out in the portal
//! or with the commands that the portal shows.

mod fields;
mod reference;

use std::cell::OnceCell;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;

use self::reference::{Reference, pieces};
use super::frame::Frame;
use crate::http::error::ApiError;
use crate::http::openapi::Document;
use crate::http::rate::Rates;
use crate::pages::files::DOCS_STYLE;
use crate::pages::render::POLICY;
use crate::service::Service;

/// The page of one worker; it is put together when somebody first asks for it.
#[derive(Debug, Default)]
pub struct Page(OnceCell<Bytes>);

#[derive(Template)]
#[template(path = "portal/docs.html")]
struct Docs {
    frame: Frame,
    style: String,
    reference: Reference,
}

/// Leads a browser to the page.
pub async fn enter() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs")).finish()
}

/// The page.
///
/// # Errors
/// 429 when one address asks too often.
pub async fn show(
    request: HttpRequest,
    service: Data<Service>,
    document: Data<Document>,
    page: Data<Page>,
    rates: Data<Rates>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.address(&request))?;
    let html = match page.0.get() {
        Some(html) => html.clone(),
        None => {
            let docs = Docs {
                frame: Frame::outside(service.agreement.sandbox),
                style: DOCS_STYLE.address(),
                reference: Reference::of(&document.value()),
            };
            let html = docs.render().map_err(|error| ApiError::Internal(error.to_string()))?;
            page.0.get_or_init(|| html.into()).clone()
        }
    };
    let mut response = HttpResponse::Ok();
    response
        .insert_header(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header(("x-robots-tag", "noindex"))
        .insert_header((CACHE_CONTROL, "public, max-age=3600"));
    Ok(response.body(html))
}

#[cfg(test)]
mod tests {
    use crate::live::LiveNode;

    #[actix_rt::test]
    async fn the_page_tells_every_operation_and_loads_nothing_from_elsewhere() {
        let live = LiveNode::start().await;
        let entered = live.http.get(live.url("/docs/")).send().await.unwrap();
        assert_eq!((entered.status().as_u16(), entered.headers()["location"].to_str().unwrap()), (308, "/docs"));
        let page = live.http.get(live.url("/docs")).send().await.unwrap();
        assert_eq!((page.status().as_u16(), page.headers()["x-robots-tag"].to_str().unwrap()), (200, "noindex"));
        assert!(page.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        let html = page.text().await.unwrap();
        let loads = html.split(['<', '>']).filter(|tag| ["link ", "script ", "img "].iter().any(|kind| tag.starts_with(kind)));
        assert!(loads.clone().count() > 0);
        for tag in loads {
            assert!(!tag.contains("://") && !tag.contains("=\"//"), "{tag}");
        }
        let document: serde_json::Value = live.http.get(live.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                let told = format!("<b>{}</b> {path}<", method.to_uppercase());
                assert!(html.contains(&told), "{told}");
            }
        }
        for name in document["webhooks"].as_object().unwrap().keys() {
            assert!(html.contains(&format!("id=\"webhook-{name}\"")), "{name}");
        }
        live.stop().await;
    }

    #[actix_rt::test]
    async fn a_field_is_told_with_its_bounds_its_words_and_where_it_stands() {
        let live = LiveNode::start().await;
        let html = live.http.get(live.url("/docs")).send().await.unwrap().text().await.unwrap();
        let row =
            |field: &str| html.split("<tr>").find(|row| row.contains(&format!("<code>{field}</code>"))).unwrap_or_default().to_owned();
        assert!(
            row("claims").contains("array") && row("claims").contains("1 to 30") && row("claims").contains("required"),
            "{}",
            row("claims")
        );
        assert!(row("channel").contains("web") && row("channel").contains("qr") && row("channel").contains("app"), "{}", row("channel"));
        assert!(row("signerInfo[].signerName").contains("string"), "{}", row("signerInfo[].signerName"));
        live.stop().await;
    }

    #[actix_rt::test]
    async fn there_is_nothing_below_the_page() {
        let live = LiveNode::start().await;
        for file in ["nothing.js", "../Cargo.toml", "..%2f..%2fetc%2fpasswd", "a/b"] {
            assert_eq!(live.stranger(&format!("/docs/{file}")).await.0, 404, "{file}");
        }
        live.stop().await;
    }
}
