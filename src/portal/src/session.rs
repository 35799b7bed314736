//! The cookie of the portal's sessions.

use sakshi_web::session::SameSite;
pub(super) use sakshi_web::session::{CsrfToken, IDLE, LIFETIME, PROLONG_INTERVAL, SessionCookie, SessionId};

/// Cookie of the portal's sessions.
pub(super) static COOKIE: SessionCookie =
    SessionCookie { name: "sakshi_portal", path: "/portal", site: "portal", same_site: SameSite::Strict };
