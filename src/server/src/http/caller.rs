//! Who calls the public API: the holder of a key, for one of its apps (specification,
//! "Authentication").
//!
//! The only way to a [`Caller`] is to extract one, so a handler cannot forget to ask.

use std::rc::Rc;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::{Either, LocalBoxFuture, Ready, ready};
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::tenancy::App;

use super::error::ApiError;
use super::key_cache::KeyGate;

/// An authenticated client with one of its apps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Whose credits are spent.
    pub client: ClientId,
    /// On whose behalf; its settings are at most a second old.
    pub app: Arc<App>,
    /// With which key.
    pub key_id: KeyId,
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Either<Ready<Result<Self, ApiError>>, LocalBoxFuture<'static, Result<Self, ApiError>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let Some(gate) = request.app_data::<Rc<KeyGate>>() else {
            return Either::Left(ready(Err(ApiError::Internal("no key gate is configured".to_owned()))));
        };
        // Of two keys, one proxy may judge the first and another the second; so neither is taken.
        let header = |name: &str| {
            let mut given = request.headers().get_all(name);
            let text = given.next().and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
            text.filter(|_| given.next().is_none())
        };
        match (header("x-api-key"), header("x-api-app-id")) {
            (Some(key), Some(app)) => gate.admit(key, app),
            _ => Either::Left(ready(Err(ApiError::Unauthorized))),
        }
    }
}
