//! Who calls, and then what they say: nothing of a request is read before its caller is known.

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::LocalBoxFuture;

use super::caller::Caller;
use super::error::ApiError;

/// A caller together with something that they sent.
#[derive(Debug)]
pub struct Called<T> {
    /// Who calls.
    pub caller: Caller,
    /// What was sent.
    pub sent: T,
}

impl<T> FromRequest for Called<T>
where
    T: FromRequest<Error = ApiError> + 'static,
{
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = Caller::from_request(request, payload);
        let sent = T::from_request(request, payload);
        Box::pin(async move {
            let caller = caller.await?;
            let sent = sent.await?;
            // The last byte may have been withheld for long.
            caller.judge_again().await?;
            Ok(Self { caller, sent })
        })
    }
}
