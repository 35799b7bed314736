//! The page of a pending transaction: the requester, the claims, the way from this device to the identity app, and the
//! time left.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use sakshi_service::Service;
use sakshi_service::page_settings::PageSettings;
use sakshi_web::error::ApiError;
use sakshi_web::html::page;

use super::app_icon::APP_ICON;
use super::claim_groups::{ClaimGroup, grouped};
use super::intents::PageIntent;
use super::language::PageLanguage;
use super::layout::Layout;
use super::notice::{Reference, host};
use super::platform::Platform;
use super::qr_code::QrCode;
use super::requester::Requester;
use super::time_left::TimeLeft;

/// Seconds before an intent ends at which its page is loaded again.
const STALE_MARGIN: i64 = 30;

/// The way to the identity app.
#[derive(Debug)]
enum Access {
    /// A link on this phone, and a code in case the app is on another.
    Link { address: String, page_code: String },
    /// A code for another device, one for the app's own scanner, and links for tablets that present themselves as
    /// desktops.
    Scan { page_code: String, app_code: Option<String>, android: String, ios: String },
}

impl Access {
    const fn is_scan(&self) -> bool {
        matches!(self, Self::Scan { .. })
    }
}

/// The store that offers the identity app.
#[derive(Debug)]
struct Store<'a> {
    address: &'a str,
    /// Devices it is for, unless that is plain.
    devices: Option<&'static str>,
}

impl<'a> Store<'a> {
    fn for_platform(pages: &'a PageSettings, platform: Platform) -> Vec<Self> {
        let known = platform != Platform::Other;
        let offer = |address: &'a Option<String>, of, devices: &'static str| {
            let address = address.as_deref().filter(|_| !known || platform == of)?;
            Some(Self { address, devices: (!known).then_some(devices) })
        };
        let android = offer(&pages.android_store, Platform::Android, "Android");
        android.into_iter().chain(offer(&pages.ios_store, Platform::Ios, "iPhone, iPad")).collect()
    }
}

#[derive(Template)]
#[template(path = "waiting.html")]
struct Waiting<'a> {
    layout: Layout,
    path: String,
    /// Address of this page.
    page: String,
    event_name: Option<String>,
    purpose: Option<&'a str>,
    groups: Vec<ClaimGroup>,
    app_name: Option<&'a str>,
    app_icon: Option<&'static str>,
    stores: Vec<Store<'a>>,
    face_scan: bool,
    access: Access,
    sandbox_link: Option<String>,
    left: TimeLeft,
    /// Seconds until the links must be signed again, if that is before the end.
    stale_s: Option<i64>,
    help: bool,
    reference: Reference,
    /// The way back of a person who does not want to answer, with the name of the site.
    back: Option<(&'a str, String)>,
}

/// Renders the page.
///
/// # Errors
/// A code that cannot be drawn.
pub(super) async fn waiting(
    service: &Service,
    pending: &Pending,
    intent: &PageIntent,
    language: PageLanguage,
    platform: Platform,
    help: bool,
) -> Result<HttpResponse, ApiError> {
    let now = service.clock.now();
    let (authority, pages) = (&service.authority, &*service.pages);
    let PageLanguage { texts, .. } = language;
    let request_url = authority.request_url(pending.id);
    let event = match pending.event {
        Some(id) => service.events.get_recent(id).await.ok().flatten(),
        None => None,
    };
    let requester = match &event {
        Some(event) => Requester::of_event(service, event).await,
        None => Requester::of(service, &pending.client, &pending.app).await,
    };
    let android = || authority.links.android_browser(&intent.jwt, &language.at(&format!("{request_url}?help=1")));
    let page_code = QrCode::for_screen(&language.at(&request_url)).map_err(ApiError::internal)?.inline();
    let access = match platform {
        Platform::Android => Access::Link { address: android(), page_code },
        Platform::Ios => Access::Link { address: authority.links.ios(&intent.jwt), page_code },
        Platform::Other => Access::Scan {
            page_code,
            app_code: intent.code(service),
            android: android(),
            ios: authority.links.ios(&intent.jwt),
        },
    };
    let path = format!("/v/{}", pending.id);
    // The page's own address need not be written fourteen times.
    let layout = Layout::new(service, language, "").of_transaction(service, pending).requested_by(requester);
    let template = Waiting {
        layout,
        page: language.at(&path),
        path,
        event_name: event.map(|event| event.terms.name.as_str().to_owned()),
        purpose: pending.terms.purpose(),
        groups: grouped(&pending.terms.claims, texts),
        app_name: pages.app_name_in(texts.tag),
        app_icon: pages.app_icon.is_some().then_some(APP_ICON),
        stores: Store::for_platform(pages, platform),
        face_scan: pending.terms.face_auth,
        access,
        sandbox_link: authority.sandbox.then(|| format!("/sandbox/app?req={}", intent.jwt)),
        left: TimeLeft::of(pending, now),
        stale_s: stale_after(intent.exp, pending, now),
        help,
        reference: Reference::of(pending.id),
        back: pending.terms.redirect_url().map(|url| (url, host(url))),
    };
    Ok(page(StatusCode::OK, None, &template))
}

/// Returns the seconds until a fresh intent is needed, if the current one ends well before its transaction.
fn stale_after(exp: i64, pending: &Pending, now: Timestamp) -> Option<i64> {
    (exp + STALE_MARGIN < pending.expires_at.seconds()).then(|| (exp - STALE_MARGIN - now.seconds()).max(STALE_MARGIN))
}
