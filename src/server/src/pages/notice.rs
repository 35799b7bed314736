//! Pages that say one thing: how a transaction ended, that there is none, or to wait a moment.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError as _};
use askama::Template;
use sakshi_domain::language::Language;
use url::Url;

use super::render::{Frame, page};
use super::standing::Standing;
use super::text::Texts;
use crate::http::error::ApiError;

/// The way on.
#[derive(Debug)]
struct Link {
    address: String,
    label: String,
    /// Whether the script follows it after a moment.
    followed: bool,
}

#[derive(Template)]
#[template(path = "notice.html")]
struct Notice {
    frame: Frame,
    /// `good`, `bad` or `quiet`.
    tone: &'static str,
    heading: &'static str,
    words: Vec<&'static str>,
    link: Option<Link>,
    /// Seconds after which the page is asked for again.
    retry_s: Option<u64>,
    reference: Option<String>,
}

/// A transaction that is not waiting.
pub(super) fn ended(standing: &Standing, sandbox: bool) -> HttpResponse {
    let texts = Texts::of(standing.opened().map_or(Language::ENGLISH, |opened| opened.terms.language));
    let (status, tone, heading, words) = match standing {
        Standing::Waiting(_) => (StatusCode::OK, "quiet", texts.waiting_heading, vec![texts.waiting]),
        Standing::Verified(_) => (StatusCode::OK, "good", texts.verified_heading, vec![texts.verified]),
        Standing::NotVerified(_, failure) => {
            (StatusCode::OK, "bad", texts.not_verified_heading, vec![texts.reason(failure), texts.start_again])
        }
        Standing::Expired(_) => (StatusCode::GONE, "quiet", texts.expired_heading, vec![texts.expired]),
        Standing::Unknown => (StatusCode::NOT_FOUND, "quiet", texts.unknown_heading, vec![texts.unknown]),
    };
    let followed = matches!(standing, Standing::Verified(_) | Standing::NotVerified(..));
    let link = standing.redirect_url().map(|address| Link {
        address: address.to_owned(),
        label: texts.continue_to.replace("{host}", &host(address)),
        followed,
    });
    let reference = standing.opened().map(|opened| opened.id.to_string());
    let frame = Frame::new(texts, sandbox);
    page(status, None, &Notice { frame, tone, heading, words, link, retry_s: None, reference })
}

/// The service cannot answer now.
pub(super) fn busy(error: &ApiError, path: &str, sandbox: bool) -> HttpResponse {
    if let Some(detail) = error.detail() {
        tracing::error!(error.detail = detail, "a page could not be made");
    }
    let texts = Texts::of(Language::ENGLISH);
    let seconds = error.retry_after().unwrap_or(5);
    let notice = Notice {
        frame: Frame::new(texts, sandbox),
        tone: "quiet",
        heading: texts.busy_heading,
        words: vec![texts.busy],
        link: Some(Link { address: path.to_owned(), label: texts.try_again.to_owned(), followed: false }),
        retry_s: Some(seconds),
        reference: None,
    };
    page(error.status_code(), Some(seconds), &notice)
}

/// The host of an address, as it is written in URLs: lookalike letters stay visible.
fn host(address: &str) -> String {
    Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}
