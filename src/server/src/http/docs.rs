//! `/docs`: the API's document as a page to read and to try things out on.
//!
//! Swagger UI is built into the binary and loads nothing from elsewhere; the policy below would
//! not let it.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use std::borrow::Cow;
use std::sync::Arc;
use utoipa_swagger_ui::{Config, serve};

use super::error::ApiError;
use super::rate::Rates;

/// Scripts, styles and requests of this host only; images also from within the styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Leads to the page: its files are named relative to a folder.
pub async fn enter() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs/")).finish()
}

/// A file of the page; the page itself when no file is named.
///
/// # Errors
/// 404 for a file that the page does not have, 429 when one address asks too often.
pub async fn file(path: Path<String>, request: HttpRequest, rates: Data<Rates>) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.address(&request))?;
    // The badge of a validator elsewhere would tell it the address of every document.
    let config = Config::new(["/openapi.json"]).validator_url("none").use_base_layout().deep_linking(true);
    let file = serve(&path, Arc::new(config)).map_err(|error| ApiError::Internal(error.to_string()))?;
    let file = file.ok_or(ApiError::NotFound("file"))?;
    let body = match file.bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    let mut response = HttpResponse::Ok();
    response
        .content_type(file.content_type)
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header(("x-robots-tag", "noindex"))
        .insert_header((CACHE_CONTROL, "public, max-age=3600"));
    Ok(response.body(body))
}

#[cfg(test)]
mod tests {
    use crate::live::LiveNode;

    #[actix_web::test]
    async fn the_page_names_only_files_of_its_own_and_all_of_them_are_served() {
        let live = LiveNode::start().await;
        let entered = live.http.get(live.url("/docs")).send().await.unwrap();
        assert_eq!((entered.status().as_u16(), entered.headers()["location"].to_str().unwrap()), (308, "/docs/"));
        let page = live.http.get(live.url("/docs/")).send().await.unwrap();
        let (status, head) = (page.status(), page.headers().clone());
        let html = page.text().await.unwrap();
        assert_eq!((status.as_u16(), head["x-robots-tag"].to_str().unwrap()), (200, "noindex"));
        let policy = head["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("http") && !policy.contains('*'), "{policy}");

        let links = html.split(['"', ' ']).filter(|word| word.contains('.') && !word.contains('<'));
        let files: Vec<&str> = links.filter_map(|word| word.rsplit('/').next()).collect();
        assert!(files.contains(&"swagger-ui-bundle.js") && files.contains(&"swagger-initializer.js"), "{files:?}");
        assert!(!html.contains("://") && !html.contains("=\"//"));
        for file in files {
            let found = live.http.get(live.url(&format!("/docs/{file}"))).send().await.unwrap();
            assert_eq!(found.status(), 200, "{file}");
        }
        let script = live.http.get(live.url("/docs/swagger-initializer.js")).send().await.unwrap().text().await.unwrap();
        assert!(script.contains("\"/openapi.json\"") && script.contains("\"none\"") && !script.contains("://"), "{script}");
        live.stop().await;
    }

    #[actix_web::test]
    async fn a_file_that_the_page_does_not_have_is_a_404() {
        let live = LiveNode::start().await;
        for file in ["nothing.js", "../Cargo.toml", "..%2f..%2fetc%2fpasswd", "a/b"] {
            assert_eq!(live.stranger(&format!("/docs/{file}")).await.0, 404, "{file}");
        }
        live.stop().await;
    }
}
