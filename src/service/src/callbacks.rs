//! The use case of callbacks: the identity app hands in its answer.
//!
//! Nobody authenticates here. Trust rests on the capability of the address, the issuer's signature and the
//! transaction's being pending; a stranger's garbage ends nothing.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::{Complete, CompleteReply, View};
use sakshi_authority::callback::{self, CallbackBody, CallbackFault, CallbackForm, Verdict};
use sakshi_authority::claims;
use sakshi_authority::evidence::{Proof, StatusProof};
use sakshi_authority::sdjwt::{self, CredentialRefusal, CredentialStatus, Expectation};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::CALLBACK_INLINE_BYTES_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Answer, Pending};
use sakshi_store::{CompletedRecord, GuestDetails, Sealed};
use sakshi_trace::invariant::{Broken, Part, ensure};
use serde_json::{Map, Value};

use crate::authority::AuthorityContext;
use crate::budget::{MemoryPermit, OwnerPath};
use crate::credential_status::StatusRefusal;
use crate::evidence::seal;
use crate::service::Service;
use crate::transactions::OpenOrCompleted;

/// Upper bound on the difference of nodes' clocks. A credential is remembered this long after its end.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(300);

/// Outcome of a callback, for the reply to the identity app.
#[derive(Debug)]
pub enum CallbackOutcome {
    /// The answer was processed. An answer that the app will repeat changes nothing and is accepted.
    Done(CompleteReply),
    /// The credential broke a rule; the transaction stays pending.
    CredentialRefused(CredentialRefusal),
    /// The issuer gave no usable answer about the credential's status; the transaction stays pending.
    StatusUnavailable,
    /// The callback names another transaction than its address.
    OtherTransaction,
    /// The callback cannot be read.
    Unreadable(CallbackFault),
    /// It cannot be judged or stored now.
    TryAgain,
}

/// A transaction that still takes answers, and whose callback address the sender knows.
#[derive(Debug)]
pub struct CallbackTarget {
    id: TxnId,
    transaction: OpenOrCompleted,
    /// Owners charged for the sender's requests.
    pub owners: OwnerPath,
}

/// Returns the transaction that a callback address was made for; `None` for any other address.
#[must_use]
pub fn addressed(service: &Service, txn: &str, capability: &str) -> Option<TxnId> {
    txn.parse().ok().filter(|id| service.authority.callbacks.is_genuine(*id, capability))
}

/// Loads the transaction of a callback address.
///
/// # Errors
/// The reply when no body could change anything.
pub async fn callback_target(service: &Service, id: TxnId, sender: IpAddr) -> Result<CallbackTarget, CallbackOutcome> {
    let transaction = match service.transactions.get_maybe_stale(id).await.map_err(|error| not_served(&error))? {
        View::Pending(pending) => OpenOrCompleted::Pending(pending),
        View::Completed(record) => OpenOrCompleted::Completed(record),
        View::Expired(_) => return Err(CallbackOutcome::Done(CompleteReply::Expired)),
        View::Unknown => return Err(CallbackOutcome::Done(CompleteReply::Unknown)),
    };
    let owners = match &transaction {
        OpenOrCompleted::Pending(pending) => OwnerPath::sender(sender, &pending.client, pending.event, id),
        OpenOrCompleted::Completed(record) => OwnerPath::sender(sender, &record.opened.client, record.opened.event, id),
    };
    let terms = match &transaction {
        OpenOrCompleted::Pending(pending) => &pending.terms,
        OpenOrCompleted::Completed(record) => &record.opened.terms,
    };
    if let Some(trace) = terms.trace() {
        sakshi_trace::link(&sakshi_trace::current(), trace);
    }
    Ok(CallbackTarget { id, transaction, owners })
}

/// Reads and verifies a body that was sent to the address of a transaction, and ends the transaction with its answer.
/// Also returns the format of the reply, once the body was read.
pub async fn answer_callback(
    service: &Service,
    target: CallbackTarget,
    content_type: Option<&str>,
    body: impl AsRef<[u8]> + Send + Sync + 'static,
    permit: MemoryPermit,
) -> (CallbackOutcome, Option<CallbackForm>) {
    let id = target.id;
    let known = match &target.transaction {
        OpenOrCompleted::Pending(pending) => Some(Arc::clone(pending)),
        OpenOrCompleted::Completed(_) => None,
    };
    let (target, body) = (Arc::new(target), Arc::new(body));
    let mut first = judged(service, &target, content_type, &body, &permit).await;
    // The issuer may have a new key since its keys were read.
    if let Some(key_id) = first.as_ref().and_then(|judged| judged.unknown_key.as_deref())
        && service.authority.issuer_keys.reread(key_id).await
    {
        first = judged(service, &target, content_type, &body, &permit).await;
    }
    let Some(Reading { form, answer, .. }) = first else {
        return (CallbackOutcome::TryAgain, None);
    };
    match &answer {
        Ok((_, Some(_))) => service.authority.clock_suspicion.note(None),
        Err(CallbackOutcome::CredentialRefused(refusal)) => service.authority.clock_suspicion.note(Some(*refusal)),
        _ => {}
    }
    if let Ok((answer, _)) = &answer {
        service.authority.answers.note(answer, service.clock.now());
    }
    let answer = match answer {
        Ok((answer, None)) => Ok((answer, Duration::ZERO, GuestDetails::default(), None)),
        Ok((answer, Some(mut presented))) => {
            let (valid_for, guest) = (presented.valid_for, std::mem::take(&mut presented.guest));
            // A verification that does not pass yields no proof.
            let presented = if answer.outcome().passed() { presented } else { Presented { proof: None, ..presented } };
            accepted(service, &target, presented, &permit).await.map(|evidence| (answer, valid_for, guest, evidence))
        }
        Err(outcome) => Err(outcome),
    };
    let outcome = match answer {
        Ok((answer, valid_for, guest, evidence)) => {
            let replay_window = valid_for.saturating_add(CLOCK_SKEW_MAX).min(service.rules.replay_window);
            let result_ttl = service.rules.result_ttl;
            let complete = Complete { answer, known, evidence, guest, replay_window, result_ttl };
            service
                .transactions
                .complete(id, complete)
                .await
                .map_or_else(|error| not_served(&error), CallbackOutcome::Done)
        }
        Err(outcome) => outcome,
    };
    let refusal = match &outcome {
        CallbackOutcome::CredentialRefused(refusal) => Some(refusal.code()),
        CallbackOutcome::Done(CompleteReply::CredentialReplayed) => Some("credential_replayed"),
        _ => None,
    };
    if let Some(code) = refusal {
        metrics::counter!("sakshi_credentials_refused_total", "reason" => code).increment(1);
        tracing::info!(txn.id = %id, reason = code, "a credential was refused");
    }
    (outcome, Some(form))
}

fn not_served(error: &sakshi_actors::AskError) -> CallbackOutcome {
    tracing::warn!(%error, "a callback could not be served and will be delivered again");
    CallbackOutcome::TryAgain
}

/// Asks the issuer whether the credential was revoked. Returns the sealed proof if evidence is kept.
async fn accepted(
    service: &Service,
    target: &CallbackTarget,
    presented: Presented,
    permit: &MemoryPermit,
) -> Result<Option<Sealed>, CallbackOutcome> {
    let checked = tokio::select! {
        checked = service.authority.status.check(&presented.status, &target.owners) => checked,
        () = permit.revoked() => return Err(unread_for_memory()),
    };
    let document = checked.map_err(|refusal| match refusal {
        StatusRefusal::Credential(refusal) => CallbackOutcome::CredentialRefused(refusal),
        StatusRefusal::Unavailable(_) => CallbackOutcome::StatusUnavailable,
    })?;
    let Some(mut proof) = presented.proof else { return Ok(None) };
    proof.status = document.map(|document| StatusProof {
        token: document.token.clone(),
        key: Value::clone(&document.key),
        checked_at: document.read_at,
    });
    seal(service, target.id, &proof).map(Some).map_err(|error| {
        tracing::error!(?error, "the evidence of a verification was not sealed");
        CallbackOutcome::TryAgain
    })
}

fn unread_for_memory() -> CallbackOutcome {
    metrics::counter!("sakshi_callbacks_unread_total", "reason" => "memory").increment(1);
    CallbackOutcome::TryAgain
}

/// A credential, once it is verified.
struct Presented {
    status: CredentialStatus,
    /// The time until it expires.
    valid_for: Duration,
    /// The person, if the transaction is a guest's.
    guest: GuestDetails,
    /// The proof, if evidence is kept.
    proof: Option<Proof>,
}

/// The result of reading a body.
struct Reading {
    form: CallbackForm,
    /// The answer that ends the transaction once its credential's status is good, or the reply to one that does not end
    /// it.
    answer: Result<(Answer, Option<Presented>), CallbackOutcome>,
    /// The key that the credential names and the issuer does not have.
    unknown_key: Option<String>,
}

/// Judges a body: a small one at once, a large one off this worker, which serves others too. `None` when there is no
/// memory or no processor time for it.
async fn judged(
    service: &Service,
    target: &Arc<CallbackTarget>,
    content_type: Option<&str>,
    body: &Arc<impl AsRef<[u8]> + Send + Sync + 'static>,
    permit: &MemoryPermit,
) -> Option<Reading> {
    let now = service.clock.now();
    let bytes: &[u8] = (**body).as_ref();
    if bytes.len() <= CALLBACK_INLINE_BYTES_MAX {
        return Some(judge(&service.authority, target, content_type, bytes, now));
    }
    let (authority, content_type) = (Arc::clone(&service.authority), content_type.map(str::to_owned));
    let (target, body, owners) = (Arc::clone(target), Arc::clone(body), target.owners.clone());
    let work =
        service.cpu.run(owners, move || judge(&authority, &target, content_type.as_deref(), (*body).as_ref(), now));
    tokio::select! {
        judged = work => judged.inspect_err(|error| tracing::warn!(?error, "a callback was not verified and will be \
            delivered again")).ok(),
        () = permit.revoked() => {
            unread_for_memory();
            None
        }
    }
}

/// Reads a body about a transaction and verifies it as far as possible. Changes nothing, so it can run on any thread.
fn judge(
    authority: &AuthorityContext,
    CallbackTarget { id, transaction, .. }: &CallbackTarget,
    content_type: Option<&str>,
    body: &[u8],
    now: Timestamp,
) -> Reading {
    let message = match callback::parse(content_type, body) {
        Ok(message) => message,
        Err(error) => {
            return Reading {
                form: error.form,
                answer: Err(CallbackOutcome::Unreadable(error.fault)),
                unknown_key: None,
            };
        }
    };
    let answer = match transaction {
        _ if message.txn.parse() != Ok(*id) => Err(CallbackOutcome::OtherTransaction),
        OpenOrCompleted::Pending(pending) => understand(authority, pending, &message.body, now),
        OpenOrCompleted::Completed(record) => Err(CallbackOutcome::Done(redelivery(*id, &message.body, record))),
    };
    let unknown_key = match (&answer, &message.body) {
        (
            Err(CallbackOutcome::CredentialRefused(CredentialRefusal::KeyIdUnknown)),
            CallbackBody::Credential(credential),
        ) => sdjwt::credential_key_id(credential),
        _ => None,
    };
    Reading { form: message.form, answer, unknown_key }
}

fn understand(
    authority: &AuthorityContext,
    pending: &Pending,
    body: &CallbackBody,
    now: Timestamp,
) -> Result<(Answer, Option<Presented>), CallbackOutcome> {
    match body {
        CallbackBody::Failure { code, message } => match callback::verdict(code, message) {
            Verdict::Terminal(failure) => Ok((callback::failure_answer(pending.id, failure), None)),
            Verdict::RetryExpected => Err(CallbackOutcome::Done(CompleteReply::Accepted)),
        },
        CallbackBody::Credential(credential) => {
            let audience = authority.callbacks.audience();
            let expectation = Expectation { nonce: pending.id, audience, now, requested: pending.terms.claims };
            let verified =
                authority.verifier.verify(credential, &expectation).map_err(CallbackOutcome::CredentialRefused)?;
            let own = is_asked(pending.terms.claims, verified.claims.as_map(), verified.missing, verified.malformed);
            own.map_err(|_| CallbackOutcome::TryAgain)?;
            let kept =
                if pending.terms.keeps_evidence() { sdjwt::minimised(credential, pending.terms.claims) } else { None };
            let proof = kept.map(|credential| Proof {
                credential,
                holder_bound: verified.holder_bound,
                audience: audience.to_owned(),
                issuer: verified.issuer.clone(),
                issuer_key: Value::clone(&verified.issuer_key),
                status: None,
                received_at: now,
            });
            let guest =
                pending.event.map(|_| GuestDetails { name: claims::name(&verified.claims), traits: verified.traits() });
            let guest = guest.unwrap_or_default();
            let presented = Presented { status: verified.status.clone(), valid_for: verified.valid_for, guest, proof };
            Ok((verified.into_answer(), Some(presented)))
        }
    }
}

/// Refuses claims that were not requested.
fn is_asked(asked: ClaimSet, given: &Map<String, Value>, missing: ClaimSet, malformed: ClaimSet) -> Result<(), Broken> {
    let is_given = |claim: &Claim| given.contains_key(claims::credential_name(*claim));
    let count = given.len() + missing.iter().count() + malformed.iter().count();
    ensure(Part::Service, "a claim that is kept was asked for", asked.iter().filter(is_given).count() == given.len())?;
    ensure(Part::Service, "a claim that is missing was asked for", missing.bits() & !asked.bits() == 0)?;
    ensure(Part::Service, "a claim that is malformed was asked for", malformed.bits() & !asked.bits() == 0)?;
    ensure(Part::Service, "a claim that was asked for is kept, missing or malformed", count == asked.iter().count())
}

/// Judges an answer that comes after the end: the same one again changes nothing.
fn redelivery(id: TxnId, body: &CallbackBody, record: &CompletedRecord) -> CompleteReply {
    let digest = match body {
        CallbackBody::Credential(credential) => sdjwt::credential_digest(credential),
        CallbackBody::Failure { code, message } => match callback::verdict(code, message) {
            Verdict::Terminal(failure) => callback::failure_answer(id, failure).digest(),
            Verdict::RetryExpected => return CompleteReply::Accepted,
        },
    };
    match record.refused {
        _ if digest != record.answer => CompleteReply::AlreadyCompleted,
        Some(refusal) => CompleteReply::EventRefused(refusal),
        None => CompleteReply::Accepted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_claim_is_taken_in_that_was_not_asked_for_and_none_is_forgotten() {
        let set = |claims: &[Claim]| claims.iter().copied().collect::<ClaimSet>();
        let asked = set(&[Claim::Name, Claim::Dob, Claim::Email]);
        let given = |claims: &[Claim]| -> Map<String, Value> {
            claims.iter().map(|claim| (claims::credential_name(*claim).to_owned(), json!("x"))).collect()
        };
        let broken = |kept: &[Claim], missing: &[Claim], malformed: &[Claim]| {
            is_asked(asked, &given(kept), set(missing), set(malformed)).err().map(Broken::name)
        };
        assert_eq!(broken(&[Claim::Name], &[Claim::Dob], &[Claim::Email]), None);
        assert_eq!(
            broken(&[Claim::Name, Claim::Photo], &[Claim::Dob], &[]),
            Some("a claim that is kept was asked for")
        );
        assert_eq!(
            broken(&[Claim::Name], &[Claim::Dob, Claim::Photo], &[]),
            Some("a claim that is missing was asked for")
        );
        assert_eq!(
            broken(&[Claim::Name], &[Claim::Dob], &[Claim::Photo]),
            Some("a claim that is malformed was asked for")
        );
        assert_eq!(
            broken(&[Claim::Name], &[Claim::Dob], &[]),
            Some("a claim that was asked for is kept, missing or malformed")
        );
    }
}
