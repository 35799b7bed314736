//! Authentication of the portal: the holder of a session whose key and app are still valid.
//!
//! A [`Visitor`] comes only from its extractor, so a page cannot forget to authenticate. Key and app are checked like those of the
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
use super::session::{FormWord, IDLE, SessionId};

/// A session is prolonged at most this often, so that not every page writes to the store.
const PROLONGED_EVERY: Duration = Duration::from_secs(60);

/// A developer who has signed in.
pub struct Visitor {
    /// The caller, as the API knows it.
    pub(super) caller: Caller,
    /// What their forms must carry.
    pub(super) form_word: FormWord,
    /// Their session.
    pub(super) session: SessionDigest,
}

impl Visitor {
    /// The frame around a page of this part.
    pub(super) fn frame(&self, part: Part, service: &Service) -> Frame {
        let app = &self.caller.app;
        let form_word = self.form_word.as_str().to_owned();
        let inside = Inside { app: app.name.clone(), app_id: app.app_id.as_str().to_owned(), form_word, part };
        Frame { inside: Some(inside), ..Frame::outside(service.authority.sandbox) }
    }
}

/// The same for requests that a page's script makes, which do not prolong the session.
pub struct StreamVisitor {
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
    /// They are not valid, or the store's.
    pub(super) async fn run(&self) -> Result<Caller, ApiError> {
        Ok(self.gate.admit_digest(self.session.key, &self.session.app).await?)
    }
}

/// A session that was found, and who holds it.
struct Admitted {
    caller: Caller,
    form_word: FormWord,
    check: SessionCheck,
}

async fn admitted(gate: Option<Rc<KeyGate>>, service: &Service, id: Option<SessionId>) -> Result<Admitted, PortalError> {
    let Some(id) = id else { return Err(PortalError::SignIn { ended: false }) };
    let gate = gate.ok_or_else(|| ApiError::Service(ServiceError::Internal("no key gate is configured".to_owned())))?;
    let Some(session) = service.store.load_session(id.digest()).await? else { return Err(PortalError::SignIn { ended: true }) };
    let check = SessionCheck { gate, session };
    match check.run().await {
        Ok(caller) => Ok(Admitted { caller, form_word: id.form_word(), check }),
        Err(ApiError::Service(ServiceError::Unauthorized)) => {
            service.store.end_session(id.digest()).await?;
            Err(PortalError::SignIn { ended: true })
        }
        Err(error) => Err(error.into()),
    }
}

/// What a request brings for [`admitted`]; the rate is taken at once.
type RequestParts = (Option<Rc<KeyGate>>, Data<Service>, Option<SessionId>);

fn parts(request: &HttpRequest) -> Result<RequestParts, PortalError> {
    let missing = || ApiError::Service(ServiceError::Internal("the portal is not configured".to_owned()));
    let service = request.app_data::<Data<Service>>().cloned().ok_or_else(missing)?;
    let rates = request.app_data::<Data<RateLimits>>().ok_or_else(missing)?;
    rates.pages.take(&rates.client_address(request))?;
    Ok((request.app_data::<Rc<KeyGate>>().cloned(), service, SessionId::of(request)))
}

impl FromRequest for Visitor {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let parts = parts(request);
        Box::pin(async move {
            let (gate, service, id) = parts?;
            let Admitted { caller, form_word, check } = admitted(gate, &service, id).await?;
            let session = check.session;
            let until = service.clock.now() + IDLE;
            if until.since(session.idle_until) >= PROLONGED_EVERY && session.idle_until < session.ends_at {
                service.store.prolong_session(session.digest, until).await?;
            }
            Ok(Self { caller, form_word, session: session.digest })
        })
    }
}

impl FromRequest for StreamVisitor {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let parts = parts(request);
        Box::pin(async move {
            let (gate, service, id) = parts?;
            let Admitted { caller, check, .. } = admitted(gate, &service, id).await?;
            Ok(Self { caller, check })
        })
    }
}
