//! The sandbox upstreams: they take the service's orders to have a document signed, documents
//! fetched, a paper stamped or wealth data gathered, and let the tester decide what becomes of them.
//!
//! Orders and reports are the real ones: an order arrives over HTTP with the upstream's token, and
//! every decision is reported to the service's internal listener with the connector's. A person
//! decides on pages that need no JavaScript; a script plays a whole outcome with one call. What was
//! ordered is held in memory, within bounds, for the life of the process.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::web::{self, Data, FormConfig, JsonConfig, PayloadConfig, ServiceConfig};
use sakshi_domain::clock::Clock;
use sakshi_domain::limits::REPORT_BYTES_MAX;
use secrecy::SecretString;
use thiserror::Error;
use url::Url;

mod bearer;
mod book;
mod case;
mod doclocker;
mod error;
mod esign;
mod estamp;
mod intake;
mod orders;
mod pages;
mod pan;
mod pdf;
mod person;
mod reporter;
mod scripts;

mod wealth;

pub use error::FlowError;
pub use pan::PanFileError;

use book::Book;
use pages::Place;
use pan::PanRecords;
use reporter::Reporter;

use crate::page::style;

/// What the upstreams are set up with.
#[derive(Clone, Debug)]
pub struct SandboxUpstreamsOptions {
    /// The origin under which browsers reach the pages: the service's public base.
    pub public_base: String,
    /// Where reports go: the origin of the service's internal listener.
    pub internal_base: String,
    /// The token of reports.
    pub connector_token: SecretString,
    /// The token that orders must carry.
    pub upstream_token: SecretString,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// The PANs that are known, in the form of `assets/pan.toml`, which is used without one.
    pub pan_file: Option<PathBuf>,
}

/// Why the upstreams cannot be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A base is no http(s) URL.
    #[error("the {0} base of the service is not an http(s) URL")]
    Base(&'static str),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Http(#[source] reqwest::Error),
    /// The file of PANs cannot be used.
    #[error(transparent)]
    PanFile(#[from] PanFileError),
}

/// The state of all sandbox upstreams.
pub struct SandboxUpstreams {
    public_base: Url,
    upstream_token: SecretString,
    clock: Arc<dyn Clock>,
    book: Book,
    reporter: Reporter,
    pans: PanRecords,
}

impl SandboxUpstreams {
    /// Upstreams with an empty book.
    ///
    /// # Errors
    /// A base is no http(s) URL; the file of PANs cannot be used; a library failed.
    pub fn new(options: SandboxUpstreamsOptions) -> Result<Self, SetupError> {
        let SandboxUpstreamsOptions { public_base, internal_base, connector_token, upstream_token, clock, pan_file } = options;
        let pans = pan_file.map_or_else(PanRecords::built_in, |path| PanRecords::read(&path))?;
        let reporter = Reporter::new(base(&internal_base, "internal")?, connector_token).map_err(SetupError::Http)?;
        Ok(Self { public_base: base(&public_base, "public")?, upstream_token, clock, book: Book::default(), reporter, pans })
    }

    /// The address of a page, for an answer that leaves this origin.
    fn page_url(&self, segments: &[&str]) -> String {
        let mut url = self.public_base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("sandbox").extend(segments);
        }
        url.into()
    }
}

impl fmt::Debug for SandboxUpstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SandboxUpstreams({})", self.public_base)
    }
}

fn base(text: &str, which: &'static str) -> Result<Url, SetupError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or(SetupError::Base(which))
}

/// Bytes of a form or of a script's body.
const BODY_BYTES_MAX: usize = 16 * 1_024;

/// Mounts what testers and scripts use, for the public listener: `/sandbox/flows` and a folder for
/// the pages of each upstream.
#[allow(clippy::needless_pass_by_value, reason = "what is mounted is handed over, as everywhere")]
pub fn configure_pages(cfg: &mut ServiceConfig, state: Data<SandboxUpstreams>) {
    let scope = |folder: &str, state: &Data<SandboxUpstreams>| {
        let json = JsonConfig::default().limit(BODY_BYTES_MAX).error_handler(|_, _| FlowError::MalformedBody.into());
        let unreadable = |request: &HttpRequest| Place::of(request).problem(FlowError::MalformedBody);
        let form = FormConfig::default().limit(BODY_BYTES_MAX).error_handler(move |_, request| unreadable(request).into());
        web::scope(&format!("/sandbox/{folder}")).app_data(state.clone()).app_data(json).app_data(form)
    };
    let flows = scope("flows", &state)
        .service(web::resource("").get(pages::index::show))
        .service(web::resource("/flows.css").get(style))
        .service(web::resource("/{upstream}/{id}").post(scripts::play));
    let esign = scope("esign", &state)
        .service(web::resource("/{document}/{signer}").get(pages::esign::show).post(pages::esign::decide))
        .service(web::resource("/{document}/{signer}/document").get(pages::esign::document));
    let doclocker = web::resource("/{id}").get(pages::doclocker::show).post(pages::doclocker::decide);
    let estamp = web::resource("/{id}").get(pages::estamp::show).post(pages::estamp::decide);
    let wealth = web::resource("/{id}").get(pages::wealth::show).post(pages::wealth::decide);
    cfg.service(flows)
        .service(esign)
        .service(scope("doclocker", &state).service(doclocker))
        .service(scope("estamp", &state).service(estamp))
        .service(scope("wealth", &state).service(wealth));
}

/// Mounts the endpoints that take orders, under `/sandbox/upstreams`, for the internal listener.
pub fn configure_orders(cfg: &mut ServiceConfig, state: Data<SandboxUpstreams>) {
    cfg.service(
        web::scope("/sandbox/upstreams")
            .app_data(state)
            .app_data(PayloadConfig::new(REPORT_BYTES_MAX))
            .service(web::resource("/esign").post(orders::esign))
            .service(web::resource("/doclocker").post(orders::doclocker))
            .service(web::resource("/estamp").post(orders::estamp))
            .service(web::resource("/wealth").post(orders::wealth))
            .service(web::resource("/pan").post(orders::pan)),
    );
}
