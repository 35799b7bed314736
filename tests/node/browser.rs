//! Forms of a browser, and the responses to it.

use actix_web::body::MessageBody;
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{LOCATION, ORIGIN, SET_COOKIE};
use actix_web::test::TestRequest;
use url::form_urlencoded;

use crate::pages_fixture::text;

/// A response to a browser.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) location: String,
    pub(crate) cookie: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) html: String,
}

impl Answer {
    pub(crate) async fn receive(response: ServiceResponse<impl MessageBody>) -> Self {
        let header = |name| response.headers().get(&name).map(|value| value.to_str().unwrap().to_owned());
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let (status, location, cookie) =
            (response.status().as_u16(), header(LOCATION).unwrap_or_default(), header(SET_COOKIE));
        Self { status, location, cookie, headers, html: text(response).await }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn redirects_to(&self, path: &str) -> bool {
        self.status == 303 && self.location.starts_with(path)
    }

    /// Returns the value of a hidden field.
    pub(crate) fn hidden_field(&self, name: &str) -> String {
        let (_, rest) = self
            .html
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap_or_else(|| panic!("{name}: {}", self.html));
        rest.split('"').next().unwrap().to_owned()
    }
}

/// Builds the request that sends a form unchanged, from a page of this origin.
pub(crate) fn form_request(origin: &str, path: &str, pairs: &[(&str, &str)]) -> TestRequest {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let request = TestRequest::post().uri(path).insert_header((ORIGIN, origin));
    request.insert_header(("content-type", "application/x-www-form-urlencoded")).set_payload(body)
}
