//! `/docs`: the developers' documentation, without a script and public.
//!
//! Its pages are the documents of the repository, with this installation's address in their commands, and a reference
//! built from the document that `/openapi.json` serves. Each page is also served as Markdown. Pages are built once, at
//! the first request.

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

use std::future::{Ready, ready};
use std::sync::{Arc, OnceLock};

use actix_web::dev::Payload;
use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use askama::Template;
use sakshi_service::{Service, ServiceError};
use sakshi_web::api_document::{ApiDocument, open_to_every_origin};
use sakshi_web::compressed::Compressed;
use sakshi_web::error::ApiError;
use sakshi_web::html::PAGE_CSP;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;

use self::codes::Entry;
use self::reference::{Reference, Section, split_code};
use self::search::{Hit, Index};
use self::site::{PAGES, Page, Source, page_at};
use super::layout::Layout;
use super::status::{Limit, limits};
use crate::files::{DOCS_SCRIPT, DOCS_STYLE};

/// The pages of this process. Clones share one cache.
#[derive(Clone, Debug, Default)]
pub struct DocsPages(Arc<Cache>);

/// The texts that were built so far; HTML and Markdown are in the order of [`PAGES`].
#[derive(Debug)]
struct Cache {
    reference: OnceLock<Reference>,
    html: [OnceLock<Compressed>; PAGES_COUNT],
    markdown: [OnceLock<Compressed>; PAGES_COUNT],
    /// The list of pages for language models.
    list: OnceLock<Compressed>,
    /// The index of the search.
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

/// The navigation of a page: the rail (the list of all pages), and links to the previous and the next page.
struct Frame {
    style: String,
    script: String,
    /// Path of the page.
    current: &'static str,
}

impl Frame {
    fn new(current: &'static str) -> Self {
        Self { style: DOCS_STYLE.url(), script: DOCS_SCRIPT.url(), current }
    }

    /// Returns the parts of the rail, with their pages.
    fn rail(&self) -> Vec<(&'static str, Vec<&'static Page>)> {
        PAGES
            .chunk_by(|page, next| page.part == next.part)
            .map(|pages| (pages[0].part, pages.iter().collect()))
            .collect()
    }

    /// Returns the previous and the next page.
    fn neighbours(&self) -> [Option<&'static Page>; 2] {
        let Some((index, _)) = page_at(self.current) else { return [None, None] };
        [index.checked_sub(1).and_then(|previous| PAGES.get(previous)), PAGES.get(index + 1)]
    }
}

/// A page with a document.
#[derive(Template)]
#[template(path = "guide.html")]
struct Guide {
    layout: Layout,
    frame: Frame,
    title: String,
    html: String,
}

/// The limits of this installation, at the end of the page on limits.
#[derive(Template)]
#[template(path = "limits_here.html")]
struct InstallationLimits {
    limits: Vec<Limit>,
}

/// The page with the error codes.
#[derive(Template)]
#[template(path = "errors.html")]
struct Codes {
    layout: Layout,
    frame: Frame,
    entries: Vec<Entry>,
}

/// The first page of the reference.
#[derive(Template)]
#[template(path = "docs_overview.html")]
struct Overview<'a> {
    layout: Layout,
    frame: Frame,
    reference: &'a Reference,
}

impl Overview<'_> {
    /// Returns the sections with their pages.
    fn sections(&self) -> impl Iterator<Item = (&'static Page, &Section)> {
        PAGES.iter().filter_map(|page| match page.source {
            Source::Section(anchor) => Some((page, self.reference.section(anchor)?)),
            _ => None,
        })
    }
}

/// A page with the operations of a section.
#[derive(Template)]
#[template(path = "section.html")]
struct Operations<'a> {
    layout: Layout,
    frame: Frame,
    title: &'static str,
    section: &'a Section,
}

/// The page with the results of a search.
#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    layout: Layout,
    frame: Frame,
    words: String,
    hits: Vec<Hit>,
}

/// Redirects to the first page.
pub async fn redirect_to_start() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs")).finish()
}

/// A request for documentation, within the page limit of the caller's address.
pub struct DocsRequest {
    request: HttpRequest,
    service: Data<Service>,
    document: Data<ApiDocument>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
}

impl FromRequest for DocsRequest {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let find_parts = || {
            Some(Self {
                request: request.clone(),
                service: request.app_data().cloned()?,
                document: request.app_data().cloned()?,
                pages: request.app_data().cloned()?,
                rates: request.app_data().cloned()?,
            })
        };
        let docs = find_parts().ok_or_else(|| ApiError::internal("the documentation is not configured"));
        ready(docs.and_then(|docs| {
            docs.rates.pages.take(&docs.rates.client_address(request))?;
            Ok(docs)
        }))
    }
}

impl DocsRequest {
    /// Returns the reference, built at the first request.
    fn reference(&self) -> &Reference {
        self.pages.0.reference.get_or_init(|| Reference::from_document(&self.document.value()))
    }

    /// Returns the public address of this installation.
    fn base(&self) -> &str {
        &self.service.authority.public_base
    }
}

/// Responds with the page at the request's path, as HTML or as Markdown.
///
/// # Errors
/// 404 for an unknown page; 429 when one address sends too many requests.
pub async fn show(docs: DocsRequest) -> Result<HttpResponse, ApiError> {
    let path = docs.request.path();
    let (path, is_markdown) = path.strip_suffix(".md").map_or((path, false), |path| (path, true));
    let (index, page) = page_at(path).ok_or(ServiceError::NotFound("path"))?;
    let cache = &docs.pages.0;
    if is_markdown {
        let text =
            cache.markdown[index].get_or_init(|| Compressed::new(plain::render(page, docs.reference(), docs.base())));
        return Ok(respond(&docs.request, text, "text/markdown; charset=utf-8"));
    }
    let html = match cache.html[index].get() {
        Some(html) => html,
        None => {
            let html = render_page(page, &docs).map_err(ApiError::internal)?;
            cache.html[index].get_or_init(|| Compressed::new(html))
        }
    };
    Ok(respond(&docs.request, html, HTML))
}

const HTML: &str = "text/html; charset=utf-8";

fn render_page(page: &'static Page, docs: &DocsRequest) -> askama::Result<String> {
    let (layout, frame) = (Layout::public(docs.service.rules.profile), Frame::new(page.path));
    match &page.source {
        Source::Document(document) => {
            let mut html = markdown::render(document, docs.base());
            if page.path == "/docs/limits" {
                html += &InstallationLimits { limits: limits(&docs.rates) }.render()?;
            }
            Guide { layout, frame, title: page.title(), html }.render()
        }
        Source::Codes(document) => Codes { layout, frame, entries: codes::parse_entries(document) }.render(),
        Source::Overview => Overview { layout, frame, reference: docs.reference() }.render(),
        Source::Section(anchor) => match docs.reference().section(anchor) {
            Some(section) => Operations { layout, frame, title: page.label, section }.render(),
            None => Err(askama::Error::Custom(format!("the API has no section {anchor}").into())),
        },
    }
}

/// Searches headings, operations and codes for the words in `q`.
///
/// # Errors
/// 400 for other parameters; 429 when one address sends too many requests.
pub async fn search_page(docs: DocsRequest) -> Result<HttpResponse, ApiError> {
    let mut query = Query::parse(docs.request.query_string());
    let words = query.text("q").unwrap_or_default();
    query.finish()?;
    let hits = Index::build(docs.reference()).find(&words);
    let layout = Layout::public(docs.service.rules.profile);
    let html =
        SearchPage { layout, frame: Frame::new("/docs/search"), words, hits }.render().map_err(ApiError::internal)?;
    Ok(respond(&docs.request, &Compressed::new(html), HTML))
}

/// Responds with the index of the search, for the script.
///
/// # Errors
/// 429 when one address sends too many requests.
pub async fn search_index(docs: DocsRequest) -> Result<HttpResponse, ApiError> {
    let index = docs.pages.0.index.get_or_init(|| Compressed::new(Index::build(docs.reference()).json()));
    Ok(respond(&docs.request, index, "application/json"))
}

/// Responds with the Postman collection.
///
/// # Errors
/// 429 when one address sends too many requests.
pub async fn postman_collection(docs: DocsRequest) -> Result<HttpResponse, ApiError> {
    let build = || postman::collection(&docs.document.value(), docs.base(), docs.service.authority.sandbox).to_string();
    Ok(respond(&docs.request, docs.pages.0.postman.get_or_init(|| Compressed::new(build())), "application/json"))
}

/// Responds with the webhooks as an AsyncAPI document.
///
/// # Errors
/// 429 when one address sends too many requests.
pub async fn asyncapi_document(docs: DocsRequest) -> Result<HttpResponse, ApiError> {
    // Unlike `value()`, the served text has no `x-order` keys.
    let build = || {
        serde_json::from_str(docs.document.text())
            .map_or_else(|_| String::new(), |document| asyncapi::asyncapi(&document).to_string())
    };
    Ok(respond(&docs.request, docs.pages.0.asyncapi.get_or_init(|| Compressed::new(build())), "application/json"))
}

/// Responds with `/llms.txt`, the list of pages for language models.
///
/// # Errors
/// 429 when one address sends too many requests.
pub async fn llms_txt(docs: DocsRequest) -> Result<HttpResponse, ApiError> {
    let list = docs.pages.0.list.get_or_init(|| Compressed::new(plain::render_list(docs.base())));
    Ok(respond(&docs.request, list, "text/plain; charset=utf-8"))
}

/// Responds with a public text, which caches and other origins may use.
fn respond(request: &HttpRequest, text: &Compressed, content_type: &'static str) -> HttpResponse {
    let mut response = text.respond(request, content_type, "public, max-age=3600");
    let headers = [
        (CONTENT_SECURITY_POLICY, PAGE_CSP),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    open_to_every_origin(response)
}
