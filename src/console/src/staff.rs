//! Authentication in the console: a session whose operator is still valid.
//!
//! Pages get a [`Staff`] only by extraction, so they cannot forget to authenticate. The operator is looked up at every
//! use, so revoking an operator ends the sessions at once on every node.

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use futures_util::future::LocalBoxFuture;
use sakshi_domain::operator::Role;
use sakshi_operator::{Caller, InternalDeps, console_api};
use sakshi_store::ConsoleSession;
use sakshi_web::error::ApiError;
use sakshi_web::session::{CsrfToken, IDLE, PROLONG_INTERVAL, SameSite, SessionCookie};

use crate::Console;
use crate::error::ConsoleError;
use crate::layout::LayoutUser;

/// Cookie of the console's sessions.
pub(crate) static COOKIE: SessionCookie =
    SessionCookie { name: "sakshi_console", path: "/console", site: "console", same_site: SameSite::Strict };

/// A signed-in operator.
pub(crate) struct Staff {
    /// The operator.
    pub(crate) caller: Caller,
    /// CSRF token that the operator's forms must carry.
    pub(crate) csrf_token: CsrfToken,
    /// Session of the operator.
    pub(crate) session: ConsoleSession,
    /// Dependencies of the admin API.
    pub(crate) api: Data<InternalDeps>,
    /// The console's own dependencies.
    pub(crate) console: Data<Console>,
    /// The request.
    pub(crate) request: HttpRequest,
}

impl Staff {
    /// Authenticates a request by its session.
    pub(crate) async fn authenticate(request: &HttpRequest) -> Result<Self, ConsoleError> {
        let missing = || ApiError::internal("the console is not configured");
        let api = request.app_data::<Data<InternalDeps>>().cloned().ok_or_else(missing)?;
        let console = request.app_data::<Data<Console>>().cloned().ok_or_else(missing)?;
        let id = COOKIE.session_id(request).ok_or(ConsoleError::SignIn { ended: false })?;
        let session = api.store.load_console_session(id.digest()).await?.ok_or(ConsoleError::SignIn { ended: true })?;
        let Some(caller) = console_api::recognise(request, &api, &session.sign_in).await? else {
            api.store.end_console_session(id.digest()).await?;
            return Err(ConsoleError::SignIn { ended: true });
        };
        let csrf_token = id.csrf_token();
        let user = LayoutUser {
            name: caller.name.clone(),
            role: caller.role,
            csrf_token: csrf_token.as_str().to_owned(),
            section: None,
        };
        request.extensions_mut().insert(user);
        Ok(Self { caller, csrf_token, session, api, console, request: request.clone() })
    }

    /// Postpones the end of the idle session.
    async fn prolong(&self) -> Result<(), ConsoleError> {
        let until = self.api.clock.now() + IDLE;
        if until.since(self.session.idle_until) >= PROLONG_INTERVAL && self.session.idle_until < self.session.ends_at {
            self.api.store.prolong_console_session(self.session.digest, until).await?;
        }
        Ok(())
    }

    /// Returns true if the session has not ended and its operator is valid. While the store is unavailable, nothing
    /// changes.
    pub(crate) async fn is_still_valid(&self) -> bool {
        match self.api.store.load_console_session(self.session.digest).await {
            Ok(None) => false,
            Ok(Some(_)) => {
                !matches!(console_api::recognise(&self.request, &self.api, &self.session.sign_in).await, Ok(None))
            }
            Err(_) => true,
        }
    }

    /// Returns true if the role includes an operation of the admin API.
    pub(crate) fn may(&self, operation: &str) -> bool {
        console_api::is_allowed(self.caller.role, operation)
    }

    /// Returns true if the operator is an owner.
    pub(crate) fn is_owner(&self) -> bool {
        self.caller.role == Role::Owner
    }
}

/// A signed-in operator of a script's event stream. The request does not prolong the session.
pub(crate) struct StreamStaff(pub(crate) Staff);

impl FromRequest for StreamStaff {
    type Error = ConsoleError;
    type Future = LocalBoxFuture<'static, Result<Self, ConsoleError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Staff::authenticate(&request).await.map(Self) })
    }
}

impl FromRequest for Staff {
    type Error = ConsoleError;
    type Future = LocalBoxFuture<'static, Result<Self, ConsoleError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let staff = Self::authenticate(&request).await?;
            staff.prolong().await?;
            Ok(staff)
        })
    }
}
