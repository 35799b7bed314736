//! Authentication in the portal: a session whose user or API key is still valid, and whose role the route accepts.
//!
//! A [`PortalUser`] comes only from the extractor, so a page cannot forget to authenticate. User, key and app are
//! checked as in the API, so disabling a user or revoking a key ends the sessions on every node within a second.

use std::rc::Rc;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use futures_util::future::LocalBoxFuture;
use sakshi_domain::client_log::{Action, Actor, Subject};
use sakshi_domain::request_id::RequestId;
use sakshi_service::authentication::{Caller, KeyGate};
use sakshi_service::client_log::append;
use sakshi_service::{Service, ServiceError};
use sakshi_store::{SessionDigest, SessionHolder, SessionRecord};
use sakshi_web::authenticated::refuse_other_address;
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use super::error::PortalError;
use super::layout::{Layout, LayoutUser, Section};
use super::person::Person;
use super::roles::required_role;
use super::session::{COOKIE, CsrfToken, IDLE, PROLONG_INTERVAL, SessionId};

/// A signed-in person.
pub(crate) struct PortalUser {
    /// Caller, as the API knows it.
    pub(super) caller: Caller,
    /// Name of the client.
    pub(super) client: String,
    /// Person as the header shows it.
    pub(super) person: Person,
    /// Request id, for the log.
    request_id: RequestId,
    /// CSRF token that forms must carry.
    pub(super) csrf_token: CsrfToken,
    pub(super) session: Session,
}

/// A signed-in person in a request for an event stream. A script sends such requests, so they do not extend the
/// session.
pub(crate) struct StreamUser(pub(super) PortalUser);

/// A session, and the gate that checks its person and app.
pub(super) struct Session {
    gate: Rc<KeyGate>,
    record: SessionRecord,
}

impl Session {
    /// Returns the digest of the session's id, its key in the store.
    pub(super) fn digest(&self) -> SessionDigest {
        self.record.digest
    }

    /// Returns the caller, if the person and the app are still valid.
    ///
    /// # Errors
    /// `Unauthorized` when the person or the app is no longer valid; any error of the store.
    pub(super) async fn check(&self) -> Result<Caller, ApiError> {
        Ok(self.gate.admit_holder(&self.record.holder, &self.record.app).await?)
    }

    /// Returns true if the session has ended, or its person or app is no longer valid. While the store is unavailable,
    /// nothing changes.
    pub(super) async fn has_ended(&self, service: &Service) -> bool {
        let is_invalid = matches!(self.check().await, Err(ApiError::Service(ServiceError::Unauthorized)));
        is_invalid || matches!(service.store.load_session(self.digest()).await, Ok(None))
    }

    /// Returns the user or the API key of the session.
    pub(super) fn holder(&self) -> &SessionHolder {
        &self.record.holder
    }
}

impl PortalUser {
    /// Authenticates a request. Counts it against the page limit of the caller's address first.
    async fn authenticate(request: &HttpRequest, service: &Service) -> Result<Self, PortalError> {
        let not_configured = || ApiError::internal("the portal is not configured");
        let rates = request.app_data::<Data<RateLimits>>().ok_or_else(not_configured)?;
        rates.pages.take(&rates.client_address(request))?;
        let gate = request.app_data::<Rc<KeyGate>>().cloned().ok_or_else(not_configured)?;
        let id = COOKIE.session_id(request).ok_or(PortalError::SignIn { ended: false })?;
        let record = service.store.load_session(id.digest()).await?.ok_or(PortalError::SignIn { ended: true })?;
        let session = Session { gate, record };
        let caller = match session.check().await {
            Ok(caller) => caller,
            Err(ApiError::Service(ServiceError::Unauthorized)) => return Self::end_session(&id, service).await,
            Err(error) => return Err(error.into()),
        };
        refuse_other_address(request, &caller)?;
        let Some(client) = service.store.load_client(caller.client.clone()).await? else {
            return Self::end_session(&id, service).await;
        };
        if matches!(session.holder(), SessionHolder::Key(_)) && !client.portal_key_sign_in {
            return Self::end_session(&id, service).await;
        }
        let (person, request_id) = (Person::load(&caller, service).await?, request_id(request));
        let user = Self { caller, client: client.name, person, request_id, csrf_token: id.csrf_token(), session };
        request.extensions_mut().insert(user.layout_user(None));
        user.check_role(request)?;
        Ok(user)
    }

    /// Ends a session that is no longer valid.
    async fn end_session(id: &SessionId, service: &Service) -> Result<Self, PortalError> {
        service.store.end_session(id.digest()).await?;
        Err(PortalError::SignIn { ended: true })
    }

    /// Refuses a person whose role the route does not accept.
    fn check_role(&self, request: &HttpRequest) -> Result<(), PortalError> {
        let (required, actual) =
            (required_role(request.method(), &request.match_pattern().unwrap_or_default()), self.caller.role);
        if required > actual {
            tracing::info!(app.id = %self.caller.app.app_id, role.needed = required.as_str(), role = actual.as_str(),
                "refused by role");
            return Err(PortalError::Role { required, actual, is_key_holder: self.person.name.is_none() });
        }
        Ok(())
    }

    /// Returns the person as the actor of an action.
    pub(super) fn actor(&self) -> Actor {
        self.caller.actor.clone()
    }

    /// Appends an action of this person to the log of the client.
    pub(super) async fn log(
        &self,
        service: &Service,
        action: Action,
        subjects: Vec<Subject>,
    ) -> Result<(), ServiceError> {
        append(service, &self.caller.client, self.actor(), action, subjects, self.request_id.clone()).await
    }

    /// Extends the session, which ends after [`IDLE`] without use.
    async fn prolong(&self, service: &Service) -> Result<(), PortalError> {
        let record = &self.session.record;
        let idle_until = service.clock.now() + IDLE;
        if idle_until.since(record.idle_until) >= PROLONG_INTERVAL && record.idle_until < record.ends_at {
            service.store.prolong_session(record.digest, idle_until).await?;
        }
        Ok(())
    }

    /// Builds the layout of a page in a section.
    pub(super) fn layout(&self, section: Section, service: &Service) -> Layout {
        Layout { user: Some(self.layout_user(Some(section))), ..Layout::signed_out(service.rules.profile) }
    }

    /// Builds the layout of a page outside the sections.
    pub(super) fn plain_layout(&self, service: &Service) -> Layout {
        Layout { user: Some(self.layout_user(None)), ..Layout::signed_out(service.rules.profile) }
    }

    fn layout_user(&self, section: Option<Section>) -> LayoutUser {
        let app = &self.caller.app;
        LayoutUser {
            client: self.client.clone(),
            app: app.name.clone(),
            app_id: app.app_id.as_str().to_owned(),
            csrf_token: self.csrf_token.as_str().to_owned(),
            person: self.person.clone(),
            section,
        }
    }
}

fn find_service(request: &HttpRequest) -> Result<Data<Service>, PortalError> {
    Ok(request
        .app_data::<Data<Service>>()
        .cloned()
        .ok_or_else(|| ApiError::internal("the portal is not configured"))?)
}

impl FromRequest for PortalUser {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let service = find_service(&request)?;
            let user = Self::authenticate(&request, &service).await?;
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
            let service = find_service(&request)?;
            PortalUser::authenticate(&request, &service).await.map(Self)
        })
    }
}
