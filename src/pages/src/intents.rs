//! A worker's short-lived cache of intents for verify pages. A page is loaded more than once: by a reload, on a second
//! device, and by polling without JavaScript. The identity app that scans the page requests the same intent.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use actix_web::HttpRequest;
use sakshi_authority::intent::decode_unverified;
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::{PAGE_INTENT_REUSED_MAX, PAGE_INTENTS_KEPT_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_service::Service;
use sakshi_web::error::ApiError;

use super::qr_code::QrCode;

/// A cached intent, the signed request that launches the identity app.
#[derive(Debug)]
pub struct PageIntent {
    /// Intent JWT.
    pub jwt: String,
    /// Expiry, in seconds since 1970.
    pub(super) exp: i64,
    reusable_until: Timestamp,
    /// QR code for the identity app's own scanner, once it was drawn.
    code: OnceCell<Option<String>>,
}

impl PageIntent {
    /// Decides how long an intent may be reused.
    fn new(jwt: String, now: Timestamp) -> Result<Self, ApiError> {
        let exp = decode_unverified(&jwt).map_err(ApiError::internal)?.exp;
        // At most a quarter of its lifetime, so that pages never show an intent that is about to expire.
        let quarter = Timestamp::from_millis(exp.saturating_mul(1_000)).since(now) / 4;
        Ok(Self { jwt, exp, reusable_until: now + quarter.min(PAGE_INTENT_REUSED_MAX), code: OnceCell::new() })
    }

    /// Returns the QR code for the identity app's own scanner as inline SVG, drawn at its first use. Returns `None` if
    /// the intent does not fit a QR code.
    pub(super) fn code(&self, service: &Service) -> Option<String> {
        let draw = || QrCode::for_screen(&service.authority.qr_payload(&self.jwt)).ok().map(|code| code.inline());
        self.code.get_or_init(draw).clone()
    }
}

/// A worker's cache of intents.
#[derive(Clone, Debug, Default)]
pub struct PageIntents(Rc<RefCell<HashMap<TxnId, Rc<PageIntent>>>>);

impl PageIntents {
    /// Returns the cache of the worker that serves the request.
    pub(super) fn of_worker(request: &HttpRequest) -> Self {
        request.app_data::<Self>().cloned().unwrap_or_default()
    }

    /// Returns the cached intent of a transaction, while it may be reused.
    #[must_use]
    pub fn find_reusable(&self, id: TxnId, now: Timestamp) -> Option<Rc<PageIntent>> {
        self.0.borrow().get(&id).filter(|intent| now < intent.reusable_until).cloned()
    }

    /// Caches the intent of a transaction.
    ///
    /// # Errors
    /// An internal error when `jwt` is not an intent.
    pub fn cache(&self, id: TxnId, jwt: String, now: Timestamp) -> Result<Rc<PageIntent>, ApiError> {
        let intent = Rc::new(PageIntent::new(jwt, now)?);
        let mut intents = self.0.borrow_mut();
        if intents.len() >= PAGE_INTENTS_KEPT_MAX {
            intents.retain(|_, intent| now < intent.reusable_until);
        }
        if intents.len() >= PAGE_INTENTS_KEPT_MAX
            && let Some(oldest) = intents.iter().min_by_key(|(_, intent)| intent.reusable_until).map(|(id, _)| *id)
        {
            intents.remove(&oldest);
        }
        intents.insert(id, Rc::clone(&intent));
        Ok(intent)
    }
}
