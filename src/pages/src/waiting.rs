//! The page of a pending transaction: the requester, the claims, a link or code for the identity app, and the time
//! left.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use sakshi_service::Service;
use sakshi_service::page_settings::PageSettings;
use sakshi_web::error::ApiError;
use sakshi_web::html::page;

use super::app_icon::APP_ICON_PATH;
use super::claim_groups::{ClaimGroup, group_claims};
use super::intents::PageIntent;
use super::language::PageLanguage;
use super::layout::Layout;
use super::notice::{Reference, host};
use super::platform::Platform;
use super::qr_code::QrCode;
use super::requester::Requester;
use super::time_left::TimeLeft;

/// Seconds before an intent expires at which its page is loaded again.
const STALE_MARGIN_S: i64 = 30;

/// The way from the page to the identity app.
#[derive(Debug)]
enum Access {
    /// A link on this phone, and a code in case the app is on another.
    Link { address: String, page_code: String },
    /// A code for another device, a code for the app's own scanner, and links for tablets that present themselves as
    /// desktops.
    Scan { page_code: String, app_code: Option<String>, android: String, ios: String },
}

impl Access {
    /// Returns true if the app is expected on another device.
    const fn is_scan(&self) -> bool {
        matches!(self, Self::Scan { .. })
    }
}

/// An app store that offers the identity app.
#[derive(Debug)]
struct AppStore<'a> {
    address: &'a str,
    /// The devices that the store serves; `None` if it is the store of this phone.
    devices: Option<&'static str>,
}

impl<'a> AppStore<'a> {
    /// Returns the store of a phone, or all stores if the platform is unknown.
    fn for_platform(pages: &'a PageSettings, platform: Platform) -> Vec<Self> {
        let is_phone = platform != Platform::Other;
        let offer = |address: &'a Option<String>, store_platform, devices: &'static str| {
            let address = address.as_deref().filter(|_| !is_phone || platform == store_platform)?;
            Some(Self { address, devices: (!is_phone).then_some(devices) })
        };
        let android = offer(&pages.android_store, Platform::Android, "Android");
        android.into_iter().chain(offer(&pages.ios_store, Platform::Ios, "iPhone, iPad")).collect()
    }
}

/// The page of a pending transaction.
#[derive(Template)]
#[template(path = "waiting.html")]
struct Waiting<'a> {
    layout: Layout,
    /// Path of this page.
    path: String,
    /// Path of this page, with the chosen language.
    page: String,
    event_name: Option<String>,
    purpose: Option<&'a str>,
    groups: Vec<ClaimGroup>,
    app_name: Option<&'a str>,
    app_icon: Option<&'static str>,
    stores: Vec<AppStore<'a>>,
    face_scan: bool,
    access: Access,
    sandbox_link: Option<String>,
    left: TimeLeft,
    /// Seconds until the links need a new intent, if the intent expires before the transaction.
    stale_s: Option<i64>,
    /// True if the help is unfolded.
    help: bool,
    reference: Reference,
    /// Address and host of the site to which a person returns without an answer.
    back: Option<(&'a str, String)>,
}

/// Renders the page; `help` unfolds the help.
///
/// # Errors
/// An internal error when the address does not fit a QR code.
pub(super) async fn render_waiting(
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
        Some(event) => Requester::load_for_event(service, event).await,
        None => Requester::load(service, &pending.client, &pending.app).await,
    };
    let android = || authority.links.android_browser(&intent.jwt, &language.localise(&format!("{request_url}?help=1")));
    let page_code = QrCode::for_screen(&language.localise(&request_url)).map_err(ApiError::internal)?.inline();
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
    // Without an address the links to other languages are relative, which keeps the page small.
    let layout = Layout::new(service, language, "").for_transaction(service, pending).requested_by(requester);
    let template = Waiting {
        layout,
        page: language.localise(&path),
        path,
        event_name: event.map(|event| event.terms.name.as_str().to_owned()),
        purpose: pending.terms.purpose(),
        groups: group_claims(&pending.terms.claims, texts),
        app_name: pages.app_name_in(texts.tag),
        app_icon: pages.app_icon.is_some().then_some(APP_ICON_PATH),
        stores: AppStore::for_platform(pages, platform),
        face_scan: pending.terms.face_auth,
        access,
        sandbox_link: authority.sandbox.then(|| format!("/sandbox/app?req={}", intent.jwt)),
        left: TimeLeft::until_expiry(pending, now),
        stale_s: seconds_until_stale(intent.exp, pending, now),
        help,
        reference: Reference::new(pending.id),
        back: pending.terms.redirect_url().map(|url| (url, host(url))),
    };
    Ok(page(StatusCode::OK, None, &template))
}

/// Returns the seconds until the page needs a new intent, if the current intent expires well before the transaction.
fn seconds_until_stale(exp: i64, pending: &Pending, now: Timestamp) -> Option<i64> {
    (exp + STALE_MARGIN_S < pending.expires_at.seconds())
        .then(|| (exp - STALE_MARGIN_S - now.seconds()).max(STALE_MARGIN_S))
}
