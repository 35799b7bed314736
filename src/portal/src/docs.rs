//! `/docs`: what a client's developer reads, without a script and for everybody.
//!
//! Its pages are the documents of the repository, with this installation's address in their commands, and a reference made from the
//! document that `/openapi.json` serves. Each is also served as Markdown. They are put together once, when somebody first asks.

mod asyncapi;
mod codes;
mod fields;
mod links;
mod markdown;
mod plain;
mod postman;
mod reference;
mod search;
mod site;
mod tabs;

use std::sync::{Arc, OnceLock};

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_service::{Service, ServiceError};
use sakshi_web::api_document::{ApiDocument, open_to_every_origin};
use sakshi_web::compressed::Compressed;
use sakshi_web::error::ApiError;
use sakshi_web::html::PAGE_CSP;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;

use self::codes::Entry;
use self::reference::{Reference, Section, pieces};
use self::search::{Hit, Index};
use self::site::{PAGES, Page, Source, page_at};
use super::layout::Layout;
use super::status::{Limit, limits};
use crate::files::{DOCS, DOCS_SCRIPT};

/// The pages of this process. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct DocsPages(Arc<Cache>);

#[derive(Debug)]
struct Cache {
    reference: OnceLock<Reference>,
    html: [OnceLock<Compressed>; PAGES_COUNT],
    markdown: [OnceLock<Compressed>; PAGES_COUNT],
    list: OnceLock<Compressed>,
    index: OnceLock<Compressed>,
    postman: OnceLock<Compressed>,
    asyncapi: OnceLock<Compressed>,
}

const PAGES_COUNT: usize = PAGES.len();

impl Default for Cache {
    fn default() -> Self {
        let [html, markdown] = [(); 2].map(|()| std::array::from_fn(|_| OnceLock::new()));
        let [list, index, postman, asyncapi] = [(); 4].map(|()| OnceLock::new());
        Self { reference: OnceLock::new(), html, markdown, list, index, postman, asyncapi }
    }
}

/// The rail, and the links to the neighbours, of every page.
struct Frame {
    style: String,
    script: String,
    /// The page's path.
    current: &'static str,
}

impl Frame {
    fn new(current: &'static str) -> Self {
        Self { style: DOCS.url(), script: DOCS_SCRIPT.url(), current }
    }

    /// The rail: its parts with their pages.
    fn rail(&self) -> Vec<(&'static str, Vec<&'static Page>)> {
        PAGES.chunk_by(|one, next| one.part == next.part).map(|pages| (pages[0].part, pages.iter().collect())).collect()
    }

    /// The pages before and after this one.
    fn neighbours(&self) -> [Option<&'static Page>; 2] {
        let Some((at, _)) = page_at(self.current) else { return [None, None] };
        [at.checked_sub(1).and_then(|before| PAGES.get(before)), PAGES.get(at + 1)]
    }
}

#[derive(Template)]
#[template(path = "guide.html")]
struct Guide {
    layout: Layout,
    frame: Frame,
    title: String,
    html: String,
}

/// The limits of this installation, below the page of limits.
#[derive(Template)]
#[template(path = "limits_here.html")]
struct Here {
    limits: Vec<Limit>,
}

#[derive(Template)]
#[template(path = "errors.html")]
struct Codes {
    layout: Layout,
    frame: Frame,
    entries: Vec<Entry>,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview<'a> {
    layout: Layout,
    frame: Frame,
    reference: &'a Reference,
}

impl Overview<'_> {
    /// The sections with their pages.
    fn sections(&self) -> impl Iterator<Item = (&'static Page, &Section)> {
        PAGES.iter().filter_map(|page| match page.source {
            Source::Section(anchor) => Some((page, self.reference.section(anchor)?)),
            _ => None,
        })
    }
}

#[derive(Template)]
#[template(path = "section.html")]
struct Operations<'a> {
    layout: Layout,
    frame: Frame,
    title: &'static str,
    section: &'a Section,
}

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    layout: Layout,
    frame: Frame,
    words: String,
    hits: Vec<Hit>,
}

/// Leads a browser to the first page.
pub async fn enter() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs")).finish()
}

/// The page at the request's path, as HTML or as Markdown.
///
/// # Errors
/// 404 when there is none; 429 when one address asks too often.
pub async fn show(
    request: HttpRequest,
    service: Data<Service>,
    document: Data<ApiDocument>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let (path, is_markdown) = request.path().strip_suffix(".md").map_or((request.path(), false), |path| (path, true));
    let (at, page) = page_at(path).ok_or(ServiceError::NotFound("path"))?;
    let kept = &pages.0;
    let reference = kept.reference.get_or_init(|| Reference::of(&document.value()));
    if is_markdown {
        let text = kept.markdown[at].get_or_init(|| Compressed::new(plain::page(page, reference, &service.authority.public_base)));
        return Ok(published(&request, text, "text/markdown; charset=utf-8"));
    }
    let html = match kept.html[at].get() {
        Some(html) => html,
        None => {
            let html = rendered(page, reference, &service, &rates).map_err(ApiError::internal)?;
            kept.html[at].get_or_init(|| Compressed::new(html))
        }
    };
    Ok(published(&request, html, HTML))
}

const HTML: &str = "text/html; charset=utf-8";

fn rendered(page: &'static Page, reference: &Reference, service: &Service, rates: &RateLimits) -> askama::Result<String> {
    let (layout, frame) = (Layout::public(service.authority.sandbox), Frame::new(page.path));
    match &page.source {
        Source::Document(document) => {
            let mut html = markdown::rendered(document, &service.authority.public_base);
            if page.path == "/docs/limits" {
                html += &Here { limits: limits(rates) }.render()?;
            }
            Guide { layout, frame, title: page.title(), html }.render()
        }
        Source::Codes(document) => Codes { layout, frame, entries: codes::entries(document) }.render(),
        Source::Overview => Overview { layout, frame, reference }.render(),
        Source::Section(anchor) => match reference.section(anchor) {
            Some(section) => Operations { layout, frame, title: page.label, section }.render(),
            None => Err(askama::Error::Custom(format!("the API has no section {anchor}").into())),
        },
    }
}

/// Searches headings, operations and codes for the words in `q`.
///
/// # Errors
/// 400 for other parameters; 429 when one address asks too often.
pub async fn find(
    request: HttpRequest,
    service: Data<Service>,
    document: Data<ApiDocument>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let mut query = Query::of(request.query_string());
    let words = query.text("q").unwrap_or_default();
    query.finish()?;
    let reference = pages.0.reference.get_or_init(|| Reference::of(&document.value()));
    let hits = Index::of(reference).find(&words);
    let layout = Layout::public(service.authority.sandbox);
    let html = SearchPage { layout, frame: Frame::new("/docs/search"), words, hits }.render().map_err(ApiError::internal)?;
    Ok(published(&request, &Compressed::new(html), HTML))
}

/// The index of the search, for the script.
///
/// # Errors
/// 429 when one address asks too often.
pub async fn index(
    request: HttpRequest,
    document: Data<ApiDocument>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let reference = pages.0.reference.get_or_init(|| Reference::of(&document.value()));
    let index = pages.0.index.get_or_init(|| Compressed::new(Index::of(reference).json()));
    Ok(published(&request, index, "application/json"))
}

/// The collection for Postman.
///
/// # Errors
/// 429 when one address asks too often.
pub async fn collection(
    request: HttpRequest,
    service: Data<Service>,
    document: Data<ApiDocument>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let authority = &service.authority;
    let made = || postman::collection(&document.value(), &authority.public_base, authority.sandbox).to_string();
    Ok(published(&request, pages.0.postman.get_or_init(|| Compressed::new(made())), "application/json"))
}

/// The webhooks as an AsyncAPI document.
///
/// # Errors
/// 429 when one address asks too often.
pub async fn webhooks(
    request: HttpRequest,
    document: Data<ApiDocument>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    // As it is served: without the marks of its order.
    let made =
        || serde_json::from_str(document.text()).map_or_else(|_| String::new(), |document| asyncapi::asyncapi(&document).to_string());
    Ok(published(&request, pages.0.asyncapi.get_or_init(|| Compressed::new(made())), "application/json"))
}

/// `/llms.txt`: the pages as a list for programs that read.
///
/// # Errors
/// 429 when one address asks too often.
pub async fn list(
    request: HttpRequest,
    service: Data<Service>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let list = pages.0.list.get_or_init(|| Compressed::new(plain::list(&service.authority.public_base)));
    Ok(published(&request, list, "text/plain; charset=utf-8"))
}

/// Answers with a text that is the same for everybody.
fn published(request: &HttpRequest, text: &Compressed, content_type: &'static str) -> HttpResponse {
    let mut response = text.answer(request, content_type, "public, max-age=3600");
    let more = [
        (CONTENT_SECURITY_POLICY, PAGE_CSP),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    for (name, value) in more {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    open_to_every_origin(response)
}
