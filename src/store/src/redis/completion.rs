//! Ending transactions.
//!
//! Whoever completes knows the event of a guest as a rule, so every key of the script can be named; when it is another
//! the script says which, and is called again. A completion whose answer was lost is recognised by its call and answered
//! as the first time.

use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::EventId;
use uuid::Uuid;

use super::answer::{Fields, arguments, unreadable};
use super::credentials::Reservation;
use super::script::COMPLETE_TRANSACTION;
use super::{Shared, keys, position, records};
use crate::error::StoreError;
use crate::record::CompletedRecord;
use crate::sealing::open_webhook;
use crate::transition::{CompleteOutcome, CompleteTransaction, GuestOutcomes};
use crate::vault::Sealed;

impl Shared {
    pub(super) async fn complete_transaction(&self, complete: CompleteTransaction) -> Result<CompleteOutcome, StoreError> {
        let (id, call) = (complete.id, Uuid::new_v4());
        let reservation = self.reserve(&complete, id, call).await?;
        let replayed = matches!(reservation, Reservation::Taken);
        let outcome = match self.end(&complete, call, complete.event, replayed).await? {
            Ok(outcome) => outcome,
            // It never changes.
            Err(OfEvent(event)) => self.end(&complete, call, event, replayed).await?.unwrap_or(CompleteOutcome::NotFound),
        };
        if !matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }) {
            self.release(reservation).await;
        }
        Ok(outcome)
    }

    async fn end(
        &self,
        complete: &CompleteTransaction,
        call: Uuid,
        event: Option<EventId>,
        replayed: bool,
    ) -> Result<Result<CompleteOutcome, OfEvent>, StoreError> {
        let CompleteTransaction { id, passed, outcome, answer, result_ttl, guest, .. } = complete;
        let [event_key, registrations, waiting] = keys::event(id.partition(), event);
        let keys = vec![keys::transaction(*id), keys::outbox(id.partition()), event_key, registrations, waiting];
        let sharded = self.link.is_cluster();
        let instead = |refusal| guest.as_ref().map(|outcomes| outcome_of(outcomes, refusal).to_bytes());
        let args = arguments![
            id.as_bytes(),
            self.node.to_string(),
            *passed,
            outcome.to_bytes(),
            &answer.0,
            replayed,
            *result_ttl,
            if sharded { keys::notices_of(id.partition()) } else { keys::NOTICES.to_owned() },
            id.to_string(),
            event.map(|event| event.to_string()),
            instead(EventRefusal::Disabled),
            instead(EventRefusal::Expired),
            instead(EventRefusal::Full),
            call.as_bytes(),
            if sharded { "SPUBLISH" } else { "PUBLISH" },
        ];
        let mut answer = Fields::of("the answer to a completion", self.call(&COMPLETE_TRANSACTION, keys, args).await?)?;
        let outcome = match answer.text()?.as_str() {
            "completed" => {
                let record = records::completed(&self.vault, *id, answer.fields()?)?;
                let queued = answer.optional()?;
                let queued = queued.map(|at| self.queued(&record, &at, answer.optional_sealed()?)).transpose()?;
                CompleteOutcome::Completed { record, queued, repeated: false }
            }
            "repeated" => {
                let record = records::completed(&self.vault, *id, answer.fields()?)?;
                CompleteOutcome::Completed { record, queued: None, repeated: true }
            }
            "before" => CompleteOutcome::AlreadyCompleted(records::completed(&self.vault, *id, answer.fields()?)?),
            "expired" => CompleteOutcome::Expired,
            "replayed" => CompleteOutcome::CredentialReplayed,
            "unknown" => self.absent(CompleteOutcome::NotFound).await?,
            "event" => return Ok(Err(OfEvent(answer.optional_parsed()?))),
            _ => return Err(unreadable("the answer to a completion")),
        };
        Ok(Ok(outcome))
    }

    /// The delivery at a position, to the address that it copied or to the transaction's own.
    fn queued(&self, record: &CompletedRecord, at: &[u8], address: Option<Sealed>) -> Result<QueuedDelivery, StoreError> {
        let txn = record.opened.id;
        let id = position::delivery(txn.partition(), at).ok_or_else(|| unreadable("the position of a delivery"))?;
        let url = match (address, record.opened.event) {
            (Some(sealed), Some(event)) => Some(open_webhook(&self.vault, event, &sealed)?),
            _ => record.opened.terms.webhook_url.clone(),
        };
        let url = url.ok_or_else(|| unreadable("the address of a delivery"))?;
        Ok(QueuedDelivery { id, subject: txn.into(), url, stored_bytes: record.outcome.size() })
    }
}

/// The event whose guest a transaction is, if it is one's.
struct OfEvent(Option<EventId>);

const fn outcome_of(outcomes: &GuestOutcomes, refusal: EventRefusal) -> &Sealed {
    match refusal {
        EventRefusal::Disabled => &outcomes.disabled,
        EventRefusal::Expired => &outcomes.expired,
        EventRefusal::Full => &outcomes.full,
    }
}
