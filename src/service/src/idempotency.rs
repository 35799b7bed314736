//! `Idempotency-Key`: the first response is stored, sealed, together with what it paid for. A retry of the same
//! operation with the same body, byte for byte, gets it again; no two readers of JSON can disagree on bytes.

use sakshi_domain::limits::IDEMPOTENCY_TTL;
use sakshi_domain::time::Timestamp;
use sakshi_store::{IdempotencyScope, IdempotentAnswer, Sealed, Vault};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api_key::sha256;
use crate::authentication::Caller;
use crate::{Service, ServiceError};

/// Initial capacity for a response; fits most. An intent alone has about two kilobytes.
const ANSWER_BYTES: usize = 4_096;

/// A request with an idempotency key.
#[derive(Clone, Copy, Debug)]
pub struct IdempotentRequest {
    /// App and key.
    pub scope: IdempotencyScope,
    /// The operation and the request's body.
    request: [u8; 32],
}

/// Returns app and key of a request, as the store knows them.
#[must_use]
pub fn scope(key: &[u8], caller: &Caller) -> IdempotencyScope {
    let digest = digest_of(caller.app.app_id.as_str().as_bytes(), key);
    IdempotencyScope { partition: caller.client.partition(), digest }
}

impl IdempotentRequest {
    /// Creates the request for this operation with this body, under a key.
    #[must_use]
    pub fn new(scope: IdempotencyScope, operation: &str, body: &[u8]) -> Self {
        Self { scope, request: digest_of(operation.as_bytes(), body) }
    }

    /// Returns the response to an earlier request under the key, if there was one.
    ///
    /// # Errors
    /// [`ServiceError::IdempotencyKeyReused`] when it was to another request; store errors.
    pub(crate) async fn kept(&self, service: &Service) -> Result<Option<Vec<u8>>, ServiceError> {
        match service.store.load_idempotent_answer(self.scope).await? {
            Some(kept) if kept.request == self.request => self.reveal(&service.vault, &kept.answer).map(Some),
            Some(_) => Err(ServiceError::IdempotencyKeyReused),
            None => Ok(None),
        }
    }

    /// Builds the record that stores a response.
    pub(crate) fn keep(&self, vault: &Vault, answer: &[u8], now: Timestamp) -> IdempotentAnswer {
        let answer = vault.seal(&self.scope.digest, answer);
        IdempotentAnswer { scope: self.scope, request: self.request, answer, until: now + IDEMPOTENCY_TTL }
    }

    /// Opens the response that the store has found under the key of a request.
    ///
    /// # Errors
    /// As [`IdempotentRequest::reveal`].
    pub(crate) fn replayed<A>(
        request: Option<&Self>,
        vault: &Vault,
        sealed: &Sealed,
    ) -> Result<CreationAnswer<A>, ServiceError> {
        let request = request.ok_or_else(|| ServiceError::Internal("a replay without a key".to_owned()))?;
        request.reveal(vault, sealed).map(CreationAnswer::Replayed)
    }

    /// Opens a stored response.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] when it was sealed with a key that this node does not have.
    fn reveal(&self, vault: &Vault, sealed: &Sealed) -> Result<Vec<u8>, ServiceError> {
        let plain = vault.open(&self.scope.digest, sealed).map_err(ServiceError::internal)?;
        Ok(plain.to_vec())
    }
}

/// The answer to a request that creates something: a typed result, written once.
#[derive(Debug)]
pub enum CreationAnswer<A> {
    /// Given for the first time.
    New {
        /// The result.
        answer: A,
        /// The same as JSON.
        json: Vec<u8>,
    },
    /// Stored, and given again.
    Replayed(Vec<u8>),
}

impl<A: Serialize> CreationAnswer<A> {
    /// Builds a response that is given for the first time.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] when it cannot be written.
    pub(crate) fn new(answer: A) -> Result<Self, ServiceError> {
        let mut json = Vec::with_capacity(ANSWER_BYTES);
        serde_json::to_writer(&mut json, &answer).map_err(ServiceError::internal)?;
        Ok(Self::New { answer, json })
    }
}

impl<A> CreationAnswer<A> {
    /// Returns the JSON.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        let (Self::New { json, .. } | Self::Replayed(json)) = self;
        json
    }
}

impl<A: DeserializeOwned> CreationAnswer<A> {
    /// Returns the result.
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

/// Returns the digest of two parts that cannot run into each other.
fn digest_of(first: &[u8], second: &[u8]) -> [u8; 32] {
    sha256(&[&(first.len() as u64).to_be_bytes(), first, &(second.len() as u64).to_be_bytes(), second])
}
