//! Who visits the portal: the holder of a session whose key and app are still good.
//!
//! The only way to a [`Visitor`] is to extract one, so a page cannot forget to ask. Key and app go
//! through the same gate as those of the API, so a key that is revoked ends its sessions within a
//! second on every node.

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::LocalBoxFuture;
use sakshi_service::authentication::Caller;
use sakshi_service::authentication::KeyGate;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_store::{SessionDigest, SessionRecord};
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use std::rc::Rc;
use std::time::Duration;

use super::error::PortalError;
use super::session::{FormWord, IDLE, SessionId};

/// A session is prolonged at most this often, so that looking does not write each time.
const PROLONGED_EVERY: Duration = Duration::from_secs(60);

/// Somebody who has signed in.
pub struct Visitor {
    /// For whom they act; exactly what the API knows of a caller.
    pub(super) caller: Caller,
    /// What their forms must carry.
    pub(super) form_word: FormWord,
    /// Their session.
    pub(super) session: SessionDigest,
}

/// The same for what a page asks by itself, which does not keep a session alive.
pub struct Onlooker {
    /// For whom they act.
    pub(super) caller: Caller,
    /// Asks again whether they may.
    pub(super) pass: Pass,
}

/// A session's key and app, to be judged again while a stream is open.
pub(super) struct Pass {
    gate: Rc<KeyGate>,
    session: SessionRecord,
}

impl Pass {
    /// Whether key and app are still good.
    ///
    /// # Errors
    /// They are not, or that cannot be told now.
    pub(super) async fn check(&self) -> Result<Caller, ApiError> {
        Ok(self.gate.admit_digest(self.session.key, &self.session.app).await?)
    }
}

/// A session that was found, and who holds it.
struct Admitted {
    caller: Caller,
    form_word: FormWord,
    pass: Pass,
}

async fn admitted(gate: Option<Rc<KeyGate>>, service: &Service, id: Option<SessionId>) -> Result<Admitted, PortalError> {
    let Some(id) = id else { return Err(PortalError::SignIn { ended: false }) };
    let gate = gate.ok_or_else(|| ApiError::Service(ServiceError::Internal("no key gate is configured".to_owned())))?;
    let Some(session) = service.store.load_session(id.digest()).await? else { return Err(PortalError::SignIn { ended: true }) };
    let pass = Pass { gate, session };
    match pass.check().await {
        Ok(caller) => Ok(Admitted { caller, form_word: id.form_word(), pass }),
        Err(ApiError::Service(ServiceError::Unauthorized)) => {
            service.store.end_session(id.digest()).await?;
            Err(PortalError::SignIn { ended: true })
        }
        Err(error) => Err(error.into()),
    }
}

/// What a request brings for [`admitted`]; the rate is taken at once.
type Brought = (Option<Rc<KeyGate>>, Data<Service>, Option<SessionId>);

fn brought(request: &HttpRequest) -> Result<Brought, PortalError> {
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
        let brought = brought(request);
        Box::pin(async move {
            let (gate, service, id) = brought?;
            let Admitted { caller, form_word, pass } = admitted(gate, &service, id).await?;
            let session = pass.session;
            let until = service.clock.now() + IDLE;
            if until.since(session.idle_until) >= PROLONGED_EVERY && session.idle_until < session.ends_at {
                service.store.prolong_session(session.digest, until).await?;
            }
            Ok(Self { caller, form_word, session: session.digest })
        })
    }
}

impl FromRequest for Onlooker {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let brought = brought(request);
        Box::pin(async move {
            let (gate, service, id) = brought?;
            let Admitted { caller, pass, .. } = admitted(gate, &service, id).await?;
            Ok(Self { caller, pass })
        })
    }
}
