//! Authentication in the portal: a session whose API key and app are still valid.
//!
//! A [`PortalUser`] can only be had as an extractor, so a page cannot forget to authenticate. Key and app are checked as in the
//! API, so revoking a key ends its sessions within a second on every node.

use std::rc::Rc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::LocalBoxFuture;
use sakshi_service::authentication::{Caller, KeyGate};
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_store::{SessionDigest, SessionRecord};
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use super::error::PortalError;
use super::frame::{Frame, Inside, Part};
use super::session::{CsrfToken, IDLE, SessionId};

/// The least time between two prolongations of a session, so that not every page writes to the store.
const PROLONG_INTERVAL: Duration = Duration::from_secs(60);

/// A developer who has signed in.
pub struct PortalUser {
    /// The caller, as the API knows it.
    pub(super) caller: Caller,
    /// The CSRF token that their forms must carry.
    pub(super) csrf_token: CsrfToken,
    /// Their session.
    pub(super) session: SessionDigest,
}

impl PortalUser {
    /// The frame around a page of this part.
    pub(super) fn frame(&self, part: Part, service: &Service) -> Frame {
        let app = &self.caller.app;
        let csrf_token = self.csrf_token.as_str().to_owned();
        let inside = Inside { app: app.name.clone(), app_id: app.app_id.as_str().to_owned(), csrf_token, part };
        Frame { inside: Some(inside), ..Frame::outside(service.authority.sandbox) }
    }
}

/// A developer who has signed in, in a request for an event stream, which a script makes and which does not prolong the session.
pub struct StreamUser {
    /// The caller.
    pub(super) caller: Caller,
    /// Checks the session again while a stream is open.
    pub(super) check: SessionCheck,
}

/// Checks whether a session's key and app are still valid.
pub(super) struct SessionCheck {
    gate: Rc<KeyGate>,
    session: SessionRecord,
}

impl SessionCheck {
    /// The caller, if key and app are still valid.
    ///
    /// # Errors
    /// `Unauthorized` when they are not valid; the store's error when that cannot be checked.
    pub(super) async fn run(&self) -> Result<Caller, ApiError> {
        Ok(self.gate.admit_digest(self.session.key, &self.session.app).await?)
    }
}

/// A valid session, and who holds it.
struct Admitted {
    caller: Caller,
    csrf_token: CsrfToken,
    check: SessionCheck,
}

async fn admit(gate: Option<Rc<KeyGate>>, service: &Service, id: Option<SessionId>) -> Result<Admitted, PortalError> {
    let Some(id) = id else { return Err(PortalError::SignIn { ended: false }) };
    let gate = gate.ok_or_else(|| ApiError::Service(ServiceError::Internal("no key gate is configured".to_owned())))?;
    let Some(session) = service.store.load_session(id.digest()).await? else { return Err(PortalError::SignIn { ended: true }) };
    let check = SessionCheck { gate, session };
    match check.run().await {
        Ok(caller) => Ok(Admitted { caller, csrf_token: id.csrf_token(), check }),
        Err(ApiError::Service(ServiceError::Unauthorized)) => {
            service.store.end_session(id.digest()).await?;
            Err(PortalError::SignIn { ended: true })
        }
        Err(error) => Err(error.into()),
    }
}

/// What a request brings for [`admit`].
type RequestParts = (Option<Rc<KeyGate>>, Data<Service>, Option<SessionId>);

/// Takes them out of the request, after counting it against the rate limit of its address.
fn parts(request: &HttpRequest) -> Result<RequestParts, PortalError> {
    let missing = || ApiError::Service(ServiceError::Internal("the portal is not configured".to_owned()));
    let service = request.app_data::<Data<Service>>().cloned().ok_or_else(missing)?;
    let rates = request.app_data::<Data<RateLimits>>().ok_or_else(missing)?;
    rates.pages.take(&rates.client_address(request))?;
    Ok((request.app_data::<Rc<KeyGate>>().cloned(), service, SessionId::of(request)))
}

impl FromRequest for PortalUser {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let parts = parts(request);
        Box::pin(async move {
            let (gate, service, id) = parts?;
            let Admitted { caller, csrf_token, check } = admit(gate, &service, id).await?;
            let session = check.session;
            let until = service.clock.now() + IDLE;
            if until.since(session.idle_until) >= PROLONG_INTERVAL && session.idle_until < session.ends_at {
                service.store.prolong_session(session.digest, until).await?;
            }
            Ok(Self { caller, csrf_token, session: session.digest })
        })
    }
}

impl FromRequest for StreamUser {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let parts = parts(request);
        Box::pin(async move {
            let (gate, service, id) = parts?;
            let Admitted { caller, check, .. } = admit(gate, &service, id).await?;
            Ok(Self { caller, check })
        })
    }
}
