//! Authentication in the portal: a session whose API key and app are still valid.
//!
//! A [`PortalUser`] can only be had as an extractor, so a page cannot forget to authenticate. Key and app are checked as in the
//! API, so revoking a key ends its sessions within a second on every node.

use std::rc::Rc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use futures_util::future::LocalBoxFuture;
use sakshi_domain::client_log::Actor;
use sakshi_service::authentication::{Caller, KeyGate};
use sakshi_service::{Service, ServiceError};
use sakshi_store::{SessionDigest, SessionRecord};
use sakshi_web::authenticated::refuse_elsewhere;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use super::error::PortalError;
use super::layout::{Layout, LayoutUser, Section};
use super::session::{COOKIE, CsrfToken, IDLE};

/// The least time between two prolongations of a session, so that not every page writes to the store.
const PROLONG_INTERVAL: Duration = Duration::from_secs(60);

/// A developer who has signed in.
pub(crate) struct PortalUser {
    /// The caller, as the API knows it.
    pub(super) caller: Caller,
    /// The client's name.
    pub(super) client: String,
    /// The CSRF token that their forms must carry.
    pub(super) csrf_token: CsrfToken,
    /// Their session.
    pub(super) session: Session,
}

/// A developer who has signed in, in a request for an event stream, which a script makes and which does not prolong the session.
pub(crate) struct StreamUser(pub(super) PortalUser);

/// A session, and what judges its key and app.
pub(super) struct Session {
    gate: Rc<KeyGate>,
    record: SessionRecord,
}

impl Session {
    /// What the store knows it by.
    pub(super) fn digest(&self) -> SessionDigest {
        self.record.digest
    }

    /// The caller, if key and app are still valid.
    ///
    /// # Errors
    /// `Unauthorized` when they are not valid; the store's error when that cannot be checked.
    pub(super) async fn check(&self) -> Result<Caller, ApiError> {
        Ok(self.gate.admit_digest(self.record.key, &self.record.app).await?)
    }
}

impl PortalUser {
    /// Authenticates a request, after counting it against the rate limit of its address.
    async fn of(request: &HttpRequest, service: &Service) -> Result<Self, PortalError> {
        let missing = || ApiError::internal("the portal is not configured");
        let rates = request.app_data::<Data<RateLimits>>().ok_or_else(missing)?;
        rates.pages.take(&rates.client_address(request))?;
        let gate = request.app_data::<Rc<KeyGate>>().cloned().ok_or_else(missing)?;
        let id = COOKIE.of(request).ok_or(PortalError::SignIn { ended: false })?;
        let record = service.store.load_session(id.digest()).await?.ok_or(PortalError::SignIn { ended: true })?;
        let session = Session { gate, record };
        match session.check().await {
            Ok(caller) => {
                refuse_elsewhere(request, &caller)?;
                let client = service.store.load_client(caller.client.clone()).await?.map(|client| client.name).unwrap_or_default();
                let user = Self { caller, client, csrf_token: id.csrf_token(), session };
                request.extensions_mut().insert(user.layout_user(None));
                Ok(user)
            }
            Err(ApiError::Service(ServiceError::Unauthorized)) => {
                service.store.end_session(id.digest()).await?;
                Err(PortalError::SignIn { ended: true })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The actor of what this person does.
    pub(super) fn actor(&self) -> Actor {
        Actor::Key { id: self.caller.key_id.clone() }
    }

    /// Moves the end of the session, which comes when nobody uses it.
    async fn prolong(&self, service: &Service) -> Result<(), PortalError> {
        let record = &self.session.record;
        let until = service.clock.now() + IDLE;
        if until.since(record.idle_until) >= PROLONG_INTERVAL && record.idle_until < record.ends_at {
            service.store.prolong_session(record.digest, until).await?;
        }
        Ok(())
    }

    /// The layout of a page of this part.
    pub(super) fn layout(&self, section: Section, service: &Service) -> Layout {
        Layout { user: Some(self.layout_user(Some(section))), ..Layout::signed_out(service.authority.sandbox) }
    }

    fn layout_user(&self, section: Option<Section>) -> LayoutUser {
        let app = &self.caller.app;
        LayoutUser {
            client: self.client.clone(),
            app: app.name.clone(),
            app_id: app.app_id.as_str().to_owned(),
            csrf_token: self.csrf_token.as_str().to_owned(),
            section,
        }
    }
}

fn service_of(request: &HttpRequest) -> Result<Data<Service>, PortalError> {
    Ok(request.app_data::<Data<Service>>().cloned().ok_or_else(|| ApiError::internal("the portal is not configured"))?)
}

impl FromRequest for PortalUser {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let service = service_of(&request)?;
            let user = Self::of(&request, &service).await?;
            user.prolong(&service).await?;
            Ok(user)
        })
    }
}

impl FromRequest for StreamUser {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let service = service_of(&request)?;
            PortalUser::of(&request, &service).await.map(Self)
        })
    }
}
