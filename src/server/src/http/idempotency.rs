//! `Idempotency-Key`: the first answer is kept, sealed, together with what it paid for, and given
//! again to the same request: the same operation, and the same body by its bytes, so that no two
//! readers of JSON can disagree on it.

use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, HttpResponse};
use aws_lc_rs::digest::{Context, SHA256};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{IDEMPOTENCY_KEY_CHARS_MAX, IDEMPOTENCY_TTL};
use sakshi_domain::time::Timestamp;
use sakshi_store::{IdempotencyScope, IdempotentAnswer, Sealed, Vault};

use super::caller::Caller;
use super::error::ApiError;
use crate::service::Service;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request that asked to be answered once.
#[derive(Clone, Copy, Debug)]
pub struct OnceOnly {
    /// App and key.
    pub scope: IdempotencyScope,
    /// The operation and the request's body.
    request: [u8; 32],
}

impl OnceOnly {
    /// Reads the header; `None` when it is absent.
    ///
    /// # Errors
    /// As [`OnceOnly::key`].
    pub fn of(request: &HttpRequest, caller: &Caller, operation: &str, body: &[u8]) -> Result<Option<Self>, ApiError> {
        Ok(Self::key(request, caller)?.map(|key| Self::asking(key, operation, body)))
    }

    /// The key of a request, if it has one.
    ///
    /// # Errors
    /// A key that is not 1 to 255 visible ASCII characters, or given twice.
    pub fn key(request: &HttpRequest, caller: &Caller) -> Result<Option<IdempotencyScope>, ApiError> {
        let mut given = request.headers().get_all(IDEMPOTENCY_KEY);
        let Some(key) = given.next() else { return Ok(None) };
        let key = key.as_bytes();
        let fits = (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
        if !fits || given.next().is_some() {
            return Err(Invalid::one("Idempotency-Key", "must be given once, as 1 to 255 visible ASCII characters").into());
        }
        Ok(Some(Self::scope(key, caller)))
    }

    fn scope(key: &[u8], caller: &Caller) -> IdempotencyScope {
        let digest = digest_of([caller.app.app_id.as_str().as_bytes(), key]);
        IdempotencyScope { partition: caller.client.partition(), digest }
    }

    /// Under a key that was given otherwise than by the header.
    #[must_use]
    pub fn under(key: &[u8], caller: &Caller, operation: &str, body: &[u8]) -> Self {
        Self::asking(Self::scope(key, caller), operation, body)
    }

    /// What is asked under a key.
    #[must_use]
    pub fn asking(scope: IdempotencyScope, operation: &str, body: &[u8]) -> Self {
        Self { scope, request: digest_of([operation.as_bytes(), body]) }
    }

    /// The answer that an earlier request under the key got, if there was one.
    ///
    /// # Errors
    /// [`ApiError::IdempotencyKeyReused`] when it was to another request; the store's when it does not say.
    pub async fn kept(&self, service: &Service) -> Result<Option<Vec<u8>>, ApiError> {
        let kept = service.store.load_idempotent_answer(self.scope).await?;
        kept.filter(|kept| kept.until > service.clock.now()).map(|kept| self.replay(&service.vault, &kept)).transpose()
    }

    /// The record that keeps an answer.
    #[must_use]
    pub fn keep(&self, vault: &Vault, answer: &[u8], now: Timestamp) -> IdempotentAnswer {
        let answer = vault.seal(&self.scope.digest, answer);
        IdempotentAnswer { scope: self.scope, request: self.request, answer, until: now + IDEMPOTENCY_TTL }
    }

    /// The kept answer, if it was to this request.
    ///
    /// # Errors
    /// [`ApiError::IdempotencyKeyReused`] when the key came with another body.
    fn replay(&self, vault: &Vault, kept: &IdempotentAnswer) -> Result<Vec<u8>, ApiError> {
        if kept.request != self.request {
            return Err(ApiError::IdempotencyKeyReused);
        }
        self.reveal(vault, &kept.answer)
    }

    /// Opens a kept answer.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when it was sealed with a key that this node does not have.
    pub fn reveal(&self, vault: &Vault, sealed: &Sealed) -> Result<Vec<u8>, ApiError> {
        let plain = vault.open(&self.scope.digest, sealed).map_err(|error| ApiError::Internal(error.to_string()))?;
        Ok(plain.to_vec())
    }
}

/// The answer to a request that creates something, in JSON.
#[derive(Debug)]
pub enum Answered {
    /// Given for the first time.
    Now(Vec<u8>),
    /// Kept, and given again.
    Before(Vec<u8>),
}

impl Answered {
    /// The JSON.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        let (Self::Now(json) | Self::Before(json)) = self;
        json
    }
}

impl From<Answered> for HttpResponse {
    fn from(answered: Answered) -> Self {
        let mut response = Self::Ok();
        response.content_type("application/json");
        match answered {
            Answered::Now(json) => response.body(json),
            Answered::Before(json) => response.insert_header(("idempotency-replayed", "true")).body(json),
        }
    }
}

/// The digest of two parts that cannot run into each other.
fn digest_of(parts: [&[u8]; 2]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut fixed = [0; 32];
    fixed.copy_from_slice(context.finish().as_ref());
    fixed
}
