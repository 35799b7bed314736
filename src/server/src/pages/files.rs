//! The style sheets and the scripts of the pages, built into the binary and named by their content.

use actix_web::http::header::{CACHE_CONTROL, ETAG, EntityTag, Header as _, IfNoneMatch, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpRequest, HttpResponse};

/// A file and where it is served.
#[derive(Debug)]
pub(crate) struct File {
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    version: u64,
}

impl File {
    const fn new(path: &'static str, content_type: &'static str, bytes: &'static [u8]) -> Self {
        Self { path, content_type, bytes, version: fnv1a(bytes) }
    }

    /// The address under which browsers may keep the file for good.
    pub(crate) fn address(&self) -> String {
        format!("{}?v={:016x}", self.path, self.version)
    }

    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let tag = EntityTag::new_strong(format!("{:016x}", self.version));
        let named = request.query_string() == format!("v={:016x}", self.version);
        let kept = if named { "public, max-age=31536000, immutable" } else { "no-cache" };
        let known = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|known| known.weak_eq(&tag)),
            _ => false,
        };
        let mut response = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header((ETAG, tag.to_string())).insert_header((CACHE_CONTROL, kept));
        if known {
            return response.finish();
        }
        response.insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff")).content_type(self.content_type).body(self.bytes)
    }
}

/// The style sheet.
pub(crate) const STYLE: File = File::new(
    "/assets/page.css",
    "text/css; charset=utf-8",
    concat!(include_str!("../../assets/base.css"), include_str!("../../assets/page.css")).as_bytes(),
);
/// The script.
pub(crate) const SCRIPT: File = File::new("/assets/page.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/page.js"));

/// The script of a kiosk's screen.
pub(crate) const KIOSK: File = File::new("/assets/kiosk.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/kiosk.js"));
/// The style sheet of a poster.
pub(crate) const POSTER: File = File::new("/assets/poster.css", "text/css; charset=utf-8", include_bytes!("../../assets/poster.css"));

/// The style sheet of the portal, on the same ground as that of the pages.
pub(crate) const PORTAL_STYLE: File = File::new(
    "/assets/portal.css",
    "text/css; charset=utf-8",
    concat!(include_str!("../../assets/base.css"), include_str!("../../assets/portal.css")).as_bytes(),
);
/// The script of the portal.
pub(crate) const PORTAL: File = File::new("/assets/portal.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/portal.js"));

/// `GET /assets/page.css`
pub async fn style(request: HttpRequest) -> HttpResponse {
    STYLE.answer(&request)
}

/// `GET /assets/page.js`
pub async fn script(request: HttpRequest) -> HttpResponse {
    SCRIPT.answer(&request)
}

/// `GET /assets/kiosk.js`
pub async fn kiosk(request: HttpRequest) -> HttpResponse {
    KIOSK.answer(&request)
}

/// `GET /assets/poster.css`
pub async fn poster(request: HttpRequest) -> HttpResponse {
    POSTER.answer(&request)
}

/// `GET /assets/portal.css`
pub async fn portal_style(request: HttpRequest) -> HttpResponse {
    PORTAL_STYLE.answer(&request)
}

/// `GET /assets/portal.js`
pub async fn portal(request: HttpRequest) -> HttpResponse {
    PORTAL.answer(&request)
}

/// FNV-1a: tells versions of our own files apart, at compile time.
const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
        index += 1;
    }
    hash
}
