//! `/docs`: the developers' documentation, without a script and public.
//!
//! Its pages are the documents of the repository, with this installation's address in their commands, and a reference
//! built from the document that `/openapi.json` serves. Each is also served as Markdown. They are built once, at the
//! first request.

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
    /// Path of the page.
    current: &'static str,
}

impl Frame {
    fn new(current: &'static str) -> Self {
        Self { style: DOCS.url(), script: DOCS_SCRIPT.url(), current }
    }

    /// Returns the rail: its parts with their pages.
    fn rail(&self) -> Vec<(&'static str, Vec<&'static Page>)> {
        PAGES.chunk_by(|one, next| one.part == next.part).map(|pages| (pages[0].part, pages.iter().collect())).collect()
    }

    /// Returns the pages before and after this one.
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

/// Redirects to the first page.
pub async fn enter() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs")).finish()
}

/// A reader of the documentation, whose address has been charged for a page.
pub struct Reader {
    request: HttpRequest,
    service: Data<Service>,
    document: Data<ApiDocument>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
}

impl FromRequest for Reader {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let of = || {
            let rates: Data<RateLimits> = request.app_data().cloned()?;
            let known = (request.app_data().cloned()?, request.app_data().cloned()?, request.app_data().cloned()?);
            let (service, document, pages) = known;
            Some(Self { request: request.clone(), service, document, pages, rates })
        };
        let reader = of().ok_or_else(|| ApiError::internal("the documentation is not configured"));
        ready(reader.and_then(|reader| {
            reader.rates.pages.take(&reader.rates.client_address(request))?;
            Ok(reader)
        }))
    }
}

impl Reader {
    fn reference(&self) -> &Reference {
        self.pages.0.reference.get_or_init(|| Reference::of(&self.document.value()))
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
pub async fn show(reader: Reader) -> Result<HttpResponse, ApiError> {
    let path = reader.request.path();
    let (path, is_markdown) = path.strip_suffix(".md").map_or((path, false), |path| (path, true));
    let (at, page) = page_at(path).ok_or(ServiceError::NotFound("path"))?;
    let kept = &reader.pages.0;
    if is_markdown {
        let text =
            kept.markdown[at].get_or_init(|| Compressed::new(plain::page(page, reader.reference(), reader.base())));
        return Ok(published(&reader.request, text, "text/markdown; charset=utf-8"));
    }
    let html = match kept.html[at].get() {
        Some(html) => html,
        None => {
            let html = rendered(page, &reader).map_err(ApiError::internal)?;
            kept.html[at].get_or_init(|| Compressed::new(html))
        }
    };
    Ok(published(&reader.request, html, HTML))
}

const HTML: &str = "text/html; charset=utf-8";

fn rendered(page: &'static Page, reader: &Reader) -> askama::Result<String> {
    let (layout, frame) = (Layout::public(reader.service.authority.sandbox), Frame::new(page.path));
    match &page.source {
        Source::Document(document) => {
            let mut html = markdown::rendered(document, reader.base());
            if page.path == "/docs/limits" {
                html += &Here { limits: limits(&reader.rates) }.render()?;
            }
            Guide { layout, frame, title: page.title(), html }.render()
        }
        Source::Codes(document) => Codes { layout, frame, entries: codes::entries(document) }.render(),
        Source::Overview => Overview { layout, frame, reference: reader.reference() }.render(),
        Source::Section(anchor) => match reader.reference().section(anchor) {
            Some(section) => Operations { layout, frame, title: page.label, section }.render(),
            None => Err(askama::Error::Custom(format!("the API has no section {anchor}").into())),
        },
    }
}

/// Searches headings, operations and codes for the words in `q`.
///
/// # Errors
/// 400 for other parameters; 429 when one address sends too many requests.
pub async fn find(reader: Reader) -> Result<HttpResponse, ApiError> {
    let mut query = Query::parse(reader.request.query_string());
    let words = query.text("q").unwrap_or_default();
    query.finish()?;
    let hits = Index::of(reader.reference()).find(&words);
    let layout = Layout::public(reader.service.authority.sandbox);
    let html =
        SearchPage { layout, frame: Frame::new("/docs/search"), words, hits }.render().map_err(ApiError::internal)?;
    Ok(published(&reader.request, &Compressed::new(html), HTML))
}

/// Responds with the index of the search, for the script.
///
/// # Errors
/// 429 when one address sends too many requests.
pub async fn index(reader: Reader) -> Result<HttpResponse, ApiError> {
    let index = reader.pages.0.index.get_or_init(|| Compressed::new(Index::of(reader.reference()).json()));
    Ok(published(&reader.request, index, "application/json"))
}

/// Responds with the collection for Postman.
///
/// # Errors
/// 429 when one address sends too many requests.
pub async fn collection(reader: Reader) -> Result<HttpResponse, ApiError> {
    let made =
        || postman::collection(&reader.document.value(), reader.base(), reader.service.authority.sandbox).to_string();
    Ok(published(&reader.request, reader.pages.0.postman.get_or_init(|| Compressed::new(made())), "application/json"))
}

/// Responds with the webhooks as an AsyncAPI document.
///
/// # Errors
/// 429 when one address sends too many requests.
pub async fn webhooks(reader: Reader) -> Result<HttpResponse, ApiError> {
    // As served: without the order marks.
    let made = || {
        serde_json::from_str(reader.document.text())
            .map_or_else(|_| String::new(), |document| asyncapi::asyncapi(&document).to_string())
    };
    Ok(published(&reader.request, reader.pages.0.asyncapi.get_or_init(|| Compressed::new(made())), "application/json"))
}

/// Responds with `/llms.txt`, the list of pages for language models.
///
/// # Errors
/// 429 when one address sends too many requests.
pub async fn list(reader: Reader) -> Result<HttpResponse, ApiError> {
    let list = reader.pages.0.list.get_or_init(|| Compressed::new(plain::list(reader.base())));
    Ok(published(&reader.request, list, "text/plain; charset=utf-8"))
}

/// Responds with a public text.
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
