//! The use case of callbacks: the identity app delivers its answer.
//!
//! Callbacks are not authenticated. Trust rests on the capability in the address, the issuer's signature, and a pending
//! transaction. Garbage from a stranger ends no transaction.

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
use crate::issuer_keys::IssuerKeys;
use crate::service::Service;
use crate::transactions::OpenOrCompleted;

/// Upper bound on the difference of nodes' clocks. A credential is remembered for this time after it has expired.
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
    /// The callback names a transaction that does not match its address.
    OtherTransaction,
    /// The callback cannot be read.
    Unreadable(CallbackFault),
    /// The callback cannot be judged or stored now.
    TryAgain,
}

/// A transaction that accepts answers, and whose callback address the sender knows.
#[derive(Debug)]
pub struct CallbackTarget {
    id: TxnId,
    transaction: OpenOrCompleted,
    /// Owners charged for the sender's requests.
    pub owners: OwnerPath,
}

/// Returns the transaction that a callback address was made for; `None` for any other address.
#[must_use]
pub fn addressed_transaction(service: &Service, txn: &str, capability: &str) -> Option<TxnId> {
    txn.parse().ok().filter(|id| service.authority.callbacks.is_genuine(*id, capability))
}

/// Loads the transaction of a callback address.
///
/// # Errors
/// The reply, when no body could change the transaction.
pub async fn callback_target(service: &Service, id: TxnId, sender: IpAddr) -> Result<CallbackTarget, CallbackOutcome> {
    let transaction = match service.transactions.get_maybe_stale(id).await.map_err(|error| try_again(&error))? {
        View::Pending(pending) => OpenOrCompleted::Pending(pending),
        View::Completed(record) => OpenOrCompleted::Completed(record),
        View::Expired(_) => return Err(CallbackOutcome::Done(CompleteReply::Expired)),
        View::Unknown => return Err(CallbackOutcome::Done(CompleteReply::Unknown)),
    };
    let opened = match &transaction {
        OpenOrCompleted::Pending(pending) => &**pending,
        OpenOrCompleted::Completed(record) => &record.opened,
    };
    let owners = OwnerPath::sender(sender, &opened.client, opened.event, id);
    if let Some(trace) = opened.terms.trace() {
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
    let target = Arc::new(target);
    // The body is dropped here, so that a slow issuer or store holds no bodies.
    let judged_body = judge_with_new_keys(service, &target, content_type, Arc::new(body), &permit).await;
    let Some(JudgedBody { form, answer, .. }) = judged_body else {
        return (CallbackOutcome::TryAgain, None);
    };
    match &answer {
        Ok((_, Some(_))) => service.authority.clock_suspicion.note(None),
        Err(CallbackOutcome::CredentialRefused(refusal)) => service.authority.clock_suspicion.note(Some(*refusal)),
        _ => {}
    }
    if let Ok((answer, _)) = &answer {
        service.authority.answers.count(answer, service.clock.now());
    }
    // The answer with the credential's validity, the guest's details and the sealed evidence.
    let answer = match answer {
        Ok((answer, None)) => Ok((answer, Duration::ZERO, GuestDetails::default(), None)),
        Ok((answer, Some(mut credential))) => {
            let (valid_for, guest) = (credential.valid_for, std::mem::take(&mut credential.guest));
            // A verification that does not pass yields no proof.
            let credential =
                if answer.outcome().passed() { credential } else { VerifiedCredential { proof: None, ..credential } };
            check_status(service, &target, credential, &permit)
                .await
                .map(|evidence| (answer, valid_for, guest, evidence))
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
                .map_or_else(|error| try_again(&error), CallbackOutcome::Done)
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

/// Logs why a callback could not be served, and returns the outcome for which the app delivers it again.
fn try_again(error: &sakshi_actors::AskError) -> CallbackOutcome {
    tracing::warn!(%error, "a callback could not be served and will be delivered again");
    CallbackOutcome::TryAgain
}

/// Checks with the issuer whether the credential was revoked. Returns the sealed proof if evidence is kept.
async fn check_status(
    service: &Service,
    target: &CallbackTarget,
    credential: VerifiedCredential,
    permit: &MemoryPermit,
) -> Result<Option<Sealed>, CallbackOutcome> {
    let result = tokio::select! {
        result = service.authority.status.check(&credential.status, &target.owners) => result,
        () = permit.wait_until_revoked() => return Err(drop_for_memory()),
    };
    let status_document = result.map_err(|refusal| match refusal {
        StatusRefusal::Credential(refusal) => CallbackOutcome::CredentialRefused(refusal),
        StatusRefusal::Unavailable(_) => CallbackOutcome::StatusUnavailable,
    })?;
    let Some(mut proof) = credential.proof else { return Ok(None) };
    proof.status = status_document.map(|document| StatusProof {
        token: document.token.clone(),
        key: Value::clone(&document.key),
        checked_at: document.read_at,
    });
    seal(service, target.id, &proof).map(Some).map_err(|error| {
        tracing::error!(?error, "the evidence of a verification was not sealed");
        CallbackOutcome::TryAgain
    })
}

/// Counts a callback whose body was dropped to free memory; the app delivers it again.
fn drop_for_memory() -> CallbackOutcome {
    metrics::counter!("sakshi_callbacks_unread_total", "reason" => "memory").increment(1);
    CallbackOutcome::TryAgain
}

/// The data of a verified credential.
struct VerifiedCredential {
    status: CredentialStatus,
    /// Time until the credential expires.
    valid_for: Duration,
    /// Details of the person, if a guest opened the transaction.
    guest: GuestDetails,
    /// The proof, if evidence is kept.
    proof: Option<Proof>,
}

/// The result of judging a body.
struct JudgedBody {
    form: CallbackForm,
    /// The answer that ends the transaction once the credential's status is good, or the reply to a body that does not
    /// end it.
    answer: Result<(Answer, Option<VerifiedCredential>), CallbackOutcome>,
    /// The key that the credential names and the known keys of the issuer lack.
    unknown_key: Option<String>,
}

/// Judges a body, and once more if the issuer has a new key since its keys were read. Returns `None` when memory or
/// processor time runs out.
async fn judge_with_new_keys(
    service: &Service,
    target: &Arc<CallbackTarget>,
    content_type: Option<&str>,
    body: Arc<impl AsRef<[u8]> + Send + Sync + 'static>,
    permit: &MemoryPermit,
) -> Option<JudgedBody> {
    let issuer_keys = &service.authority.issuer_keys;
    let changes = issuer_keys.changes();
    let judged_body = judge_within_budget(service, target, content_type, &body, permit).await?;
    let Some(key_id) = judged_body.unknown_key.as_deref() else { return Some(judged_body) };
    if reread_within_budget(issuer_keys, key_id, changes, permit).await? {
        judge_within_budget(service, target, content_type, &body, permit).await
    } else {
        Some(judged_body)
    }
}

/// Requests a read of the issuer's keys for a body that waits in memory. Returns true if they have changed since
/// `changes`, and `None` when memory runs out: anyone can invent key ids, and every one waits for a read.
async fn reread_within_budget(
    issuer_keys: &IssuerKeys,
    key_id: &str,
    changes: u64,
    permit: &MemoryPermit,
) -> Option<bool> {
    tokio::select! {
        have_changed = issuer_keys.reread(key_id, changes) => Some(have_changed),
        () = permit.wait_until_revoked() => {
            drop_for_memory();
            None
        }
    }
}

/// Judges a small body at once, and a large body on another thread, so that this worker stays free. Returns `None` when
/// memory or processor time runs out.
async fn judge_within_budget(
    service: &Service,
    target: &Arc<CallbackTarget>,
    content_type: Option<&str>,
    body: &Arc<impl AsRef<[u8]> + Send + Sync + 'static>,
    permit: &MemoryPermit,
) -> Option<JudgedBody> {
    let now = service.clock.now();
    let bytes: &[u8] = (**body).as_ref();
    if bytes.len() <= CALLBACK_INLINE_BYTES_MAX {
        return Some(judge_body(&service.authority, target, content_type, bytes, now));
    }
    let (authority, content_type) = (Arc::clone(&service.authority), content_type.map(str::to_owned));
    let (target, body, owners) = (Arc::clone(target), Arc::clone(body), target.owners.clone());
    let work = service
        .cpu
        .run(owners, move || judge_body(&authority, &target, content_type.as_deref(), (*body).as_ref(), now));
    tokio::select! {
        result = work => result.inspect_err(|error| tracing::warn!(?error, "a callback was not verified and will be \
            delivered again")).ok(),
        () = permit.wait_until_revoked() => {
            drop_for_memory();
            None
        }
    }
}

/// Parses a body about a transaction and verifies it as far as possible. Changes nothing, so it can run on any thread.
fn judge_body(
    authority: &AuthorityContext,
    CallbackTarget { id, transaction, .. }: &CallbackTarget,
    content_type: Option<&str>,
    body: &[u8],
    now: Timestamp,
) -> JudgedBody {
    let message = match callback::parse(content_type, body) {
        Ok(message) => message,
        Err(error) => {
            return JudgedBody {
                form: error.form,
                answer: Err(CallbackOutcome::Unreadable(error.fault)),
                unknown_key: None,
            };
        }
    };
    let answer = match transaction {
        _ if message.txn.parse() != Ok(*id) => Err(CallbackOutcome::OtherTransaction),
        OpenOrCompleted::Pending(pending) => judge_message(authority, pending, &message.body, now),
        OpenOrCompleted::Completed(record) => {
            Err(CallbackOutcome::Done(reply_to_redelivery(*id, &message.body, record)))
        }
    };
    let unknown_key = match (&answer, &message.body) {
        (
            Err(CallbackOutcome::CredentialRefused(CredentialRefusal::KeyIdUnknown)),
            CallbackBody::Credential(credential),
        ) => sdjwt::credential_key_id(credential),
        _ => None,
    };
    JudgedBody { form: message.form, answer, unknown_key }
}

/// Verifies the credential or reads the failure in a body about a pending transaction.
fn judge_message(
    authority: &AuthorityContext,
    pending: &Pending,
    body: &CallbackBody,
    now: Timestamp,
) -> Result<(Answer, Option<VerifiedCredential>), CallbackOutcome> {
    match body {
        CallbackBody::Failure { code, message } => match callback::judge_failure(code, message) {
            Verdict::Terminal(failure) => Ok((callback::failure_answer(pending.id, failure), None)),
            Verdict::RetryExpected => Err(CallbackOutcome::Done(CompleteReply::Accepted)),
        },
        CallbackBody::Credential(credential) => {
            let audience = authority.callbacks.audience();
            let expectation = Expectation { nonce: pending.id, audience, now, requested: pending.terms.claims };
            let verified =
                authority.verifier.verify(credential, &expectation).map_err(CallbackOutcome::CredentialRefused)?;
            let claims_check =
                check_claims(pending.terms.claims, verified.claims.as_map(), verified.missing, verified.malformed);
            claims_check.map_err(|_| CallbackOutcome::TryAgain)?;
            let minimised =
                if pending.terms.keeps_evidence() { sdjwt::minimise(credential, pending.terms.claims) } else { None };
            let proof = minimised.map(|credential| Proof {
                credential,
                holder_bound: verified.holder_bound,
                audience: audience.to_owned(),
                issuer: verified.issuer.clone(),
                issuer_key: Value::clone(&verified.issuer_key),
                status: None,
                received_at: now,
            });
            let guest = pending
                .event
                .map(|_| GuestDetails { name: claims::shared_name(&verified.claims), traits: verified.traits() });
            let guest = guest.unwrap_or_default();
            let credential =
                VerifiedCredential { status: verified.status.clone(), valid_for: verified.valid_for, guest, proof };
            Ok((verified.into_answer(), Some(credential)))
        }
    }
}

/// Refuses claims that were not requested.
fn check_claims(
    requested: ClaimSet,
    claims: &Map<String, Value>,
    missing: ClaimSet,
    malformed: ClaimSet,
) -> Result<(), Broken> {
    let has_claim = |claim: &Claim| claims.contains_key(claims::credential_name(*claim));
    let count = claims.len() + missing.iter().count() + malformed.iter().count();
    ensure(
        Part::Service,
        "a claim that is kept was asked for",
        requested.iter().filter(has_claim).count() == claims.len(),
    )?;
    ensure(Part::Service, "a claim that is missing was asked for", missing.bits() & !requested.bits() == 0)?;
    ensure(Part::Service, "a claim that is malformed was asked for", malformed.bits() & !requested.bits() == 0)?;
    ensure(Part::Service, "a claim that was asked for is kept, missing or malformed", count == requested.iter().count())
}

/// Returns the reply to an answer that comes after the transaction has ended. A redelivery changes nothing.
fn reply_to_redelivery(id: TxnId, body: &CallbackBody, record: &CompletedRecord) -> CompleteReply {
    let digest = match body {
        CallbackBody::Credential(credential) => sdjwt::credential_digest(credential),
        CallbackBody::Failure { code, message } => match callback::judge_failure(code, message) {
            Verdict::Terminal(failure) => callback::failure_answer(id, failure).digest(),
            Verdict::RetryExpected => return CompleteReply::Accepted,
        },
    };
    CompleteReply::from_record(record, digest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::budget::{MemoryBudget, Owner, Stage};

    #[tokio::test(start_paused = true)]
    async fn a_body_that_waits_for_the_issuers_keys_gives_way_to_another_sender() {
        let (issuer_keys, budget) = (IssuerKeys::default(), MemoryBudget::new("test", 10));
        // The read never ends.
        issuer_keys.set_has_reader();
        let take = |sender: u8, bytes| {
            let address = IpAddr::from([203, 0, 113, sender]);
            budget.take(OwnerPath::new([Owner::Address(address)]), Stage::Waiting, bytes).unwrap()
        };
        let large = take(1, 8);
        let start = Instant::now();
        let reread = reread_within_budget(&issuer_keys, "invented", issuer_keys.changes(), &large);
        let (has_changed, _small) = tokio::join!(reread, async { take(2, 4) });
        assert_eq!((has_changed, start.elapsed()), (None, Duration::ZERO));
    }

    #[test]
    fn only_requested_claims_are_kept_and_none_of_them_is_lost() {
        let set = |claims: &[Claim]| claims.iter().copied().collect::<ClaimSet>();
        let requested = set(&[Claim::Name, Claim::Dob, Claim::Email]);
        let claims_of = |claims: &[Claim]| -> Map<String, Value> {
            claims.iter().map(|claim| (claims::credential_name(*claim).to_owned(), json!("x"))).collect()
        };
        let broken_invariant = |kept: &[Claim], missing: &[Claim], malformed: &[Claim]| {
            check_claims(requested, &claims_of(kept), set(missing), set(malformed)).err().map(Broken::name)
        };
        assert_eq!(broken_invariant(&[Claim::Name], &[Claim::Dob], &[Claim::Email]), None);
        assert_eq!(
            broken_invariant(&[Claim::Name, Claim::Photo], &[Claim::Dob], &[]),
            Some("a claim that is kept was asked for")
        );
        assert_eq!(
            broken_invariant(&[Claim::Name], &[Claim::Dob, Claim::Photo], &[]),
            Some("a claim that is missing was asked for")
        );
        assert_eq!(
            broken_invariant(&[Claim::Name], &[Claim::Dob], &[Claim::Photo]),
            Some("a claim that is malformed was asked for")
        );
        assert_eq!(
            broken_invariant(&[Claim::Name], &[Claim::Dob], &[]),
            Some("a claim that was asked for is kept, missing or malformed")
        );
    }
}
