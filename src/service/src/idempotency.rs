//! `Idempotency-Key`: the first successful response is stored, sealed, in the step that it reports. A retry of the same
//! operation with the same body, byte for byte, gets the response again.

use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::IDEMPOTENCY_TTL;
use sakshi_domain::time::Timestamp;
use sakshi_store::{IdempotencyScope, IdempotentAnswer, Sealed, Vault};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api_key::sha256;
use crate::authentication::Caller;
use crate::{Service, ServiceError};

/// Initial capacity for a response, enough for most. An intent has about two kilobytes.
const ANSWER_BYTES: usize = 4_096;

/// A request with an idempotency key.
#[derive(Clone, Copy, Debug)]
pub struct IdempotentRequest {
    /// The scope of the key: partition of the client, and digest of app and key.
    pub scope: IdempotencyScope,
    /// Digest of the operation and the request's body.
    request: [u8; 32],
}

/// Returns the scope of a caller's idempotency key in the store.
#[must_use]
pub fn scope(key: &[u8], caller: &Caller) -> IdempotencyScope {
    let digest = digest(caller.app.app_id.as_str().as_bytes(), key);
    IdempotencyScope { partition: caller.client.partition(), digest }
}

impl IdempotentRequest {
    /// Creates a request for this operation with this body, under a key.
    #[must_use]
    pub fn new(scope: IdempotencyScope, operation: &str, body: &[u8]) -> Self {
        Self { scope, request: digest(operation.as_bytes(), body) }
    }

    /// Returns the response to an earlier request under the key, if there was one and the caller is still valid.
    ///
    /// # Errors
    /// [`ServiceError::IdempotencyKeyReused`] when the key was used for another request; the errors of
    /// [`Caller::recheck`]; any error of the store.
    pub(crate) async fn find_answer<A>(
        &self,
        service: &Service,
        caller: &Caller,
    ) -> Result<Option<CreationAnswer<A>>, ServiceError> {
        let Some(stored) = service.store.load_idempotent_answer(self.scope).await? else { return Ok(None) };
        caller.recheck().await?;
        if stored.request != self.request {
            return Err(ServiceError::IdempotencyKeyReused);
        }
        self.reveal(&service.vault, &stored.answer).map(|json| Some(CreationAnswer::Replayed(json)))
    }

    /// Builds the record that stores a response.
    pub(crate) fn to_record(self, vault: &Vault, answer: &[u8], now: Timestamp) -> IdempotentAnswer {
        let answer = vault.seal(&self.scope.digest, answer);
        IdempotentAnswer { scope: self.scope, request: self.request, answer, until: now + IDEMPOTENCY_TTL }
    }

    /// Decrypts the response that the store has found under the key of a request.
    ///
    /// # Errors
    /// As [`IdempotentRequest::reveal`].
    pub(crate) fn replay<A>(
        request: Option<&Self>,
        vault: &Vault,
        sealed: &Sealed,
    ) -> Result<CreationAnswer<A>, ServiceError> {
        let request = request.ok_or_else(|| ServiceError::Internal("a replay without a key".to_owned()))?;
        request.reveal(vault, sealed).map(CreationAnswer::Replayed)
    }

    /// Decrypts a stored response.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] when it was sealed with a key that this node does not have.
    fn reveal(&self, vault: &Vault, sealed: &Sealed) -> Result<Vec<u8>, ServiceError> {
        let plain = vault.open(&self.scope.digest, sealed).map_err(ServiceError::internal)?;
        Ok(plain.to_vec())
    }
}

/// The answer to a request that creates a resource: a typed result with its JSON.
#[derive(Debug)]
pub enum CreationAnswer<A> {
    /// The answer to a new request.
    New {
        /// The result.
        answer: A,
        /// The result as JSON.
        json: Vec<u8>,
    },
    /// The stored answer to an earlier request.
    Replayed(Vec<u8>),
}

impl<A: Serialize> CreationAnswer<A> {
    /// Builds the answer to a new request.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] when the result cannot be serialised.
    pub(crate) fn new(answer: A) -> Result<Self, ServiceError> {
        let mut json = Vec::with_capacity(ANSWER_BYTES);
        serde_json::to_writer(&mut json, &answer).map_err(ServiceError::internal)?;
        Ok(Self::New { answer, json })
    }
}

impl<A> CreationAnswer<A> {
    /// Returns the answer as JSON.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        let (Self::New { json, .. } | Self::Replayed(json)) = self;
        json
    }
}

impl<A: DeserializeOwned> CreationAnswer<A> {
    /// Returns the answer as a typed result.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] when a stored response cannot be read.
    pub fn into_answer(self) -> Result<A, ServiceError> {
        match self {
            Self::New { answer, .. } => Ok(answer),
            Self::Replayed(json) => serde_json::from_slice(&json).map_err(ServiceError::internal),
        }
    }
}

/// Returns the response to an earlier request under the key instead of the refusal of its retry: a time in the body may
/// have passed since the first request.
///
/// # Errors
/// The refusal, without such a response; the errors of [`Caller::recheck`]; any error of the store.
pub async fn replay_refused<A>(
    service: &Service,
    caller: &Caller,
    idempotent: Option<&IdempotentRequest>,
    refusal: Invalid,
) -> Result<CreationAnswer<A>, ServiceError> {
    let Some(idempotent) = idempotent else { return Err(refusal.into()) };
    match idempotent.find_answer(service, caller).await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) | Err(ServiceError::IdempotencyKeyReused) => Err(refusal.into()),
        Err(error) => Err(error),
    }
}

/// Returns the digest of two parts with their lengths, so that no other two parts have the same digest.
fn digest(first: &[u8], second: &[u8]) -> [u8; 32] {
    sha256(&[&(first.len() as u64).to_be_bytes(), first, &(second.len() as u64).to_be_bytes(), second])
}
