//! Completing transactions.
//!
//! The caller usually knows the guest's event, so every key of the script can be named. If the event is another one,
//! the script says which, and is called again. A completion whose reply was lost is recognised by the id of its call
//! and answered as the first time.

use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::EventId;
use uuid::Uuid;

use super::credentials::Reservation;
use super::records;
use crate::error::StoreError;
use crate::redis::arguments::arguments;
use crate::redis::reply::{Fields, unreadable};
use crate::redis::script::COMPLETE_TRANSACTION;
use crate::redis::shared::Shared;
use crate::redis::{delivery_id, keys};
use crate::sealing::open_webhook;
use crate::transactions::{CompleteOutcome, CompleteTransaction, CompletedRecord};
use crate::vault::Sealed;

impl Shared {
    pub(crate) async fn complete_transaction(&self, complete: CompleteTransaction) -> Result<CompleteOutcome, StoreError> {
        let (id, call) = (complete.id, Uuid::new_v4());
        let reservation = self.reserve(&complete, id, call).await?;
        let replayed = matches!(reservation, Reservation::Taken);
        let outcome = match self.end(&complete, call, complete.event, replayed).await? {
            Ok(outcome) => outcome,
            // The event of a transaction never changes.
            Err(OtherEvent(event)) => self.end(&complete, call, event, replayed).await?.unwrap_or(CompleteOutcome::NotFound),
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
    ) -> Result<Result<CompleteOutcome, OtherEvent>, StoreError> {
        let CompleteTransaction { id, passed, outcome, answer, result_ttl, guest, .. } = complete;
        let [event_key, registrations, waiting] = keys::event(id.partition(), event);
        let keys = vec![keys::transaction(*id), keys::outbox(id.partition()), event_key, registrations, waiting];
        let sharded = self.link.is_cluster();
        let instead = |refusal| guest.as_ref().map(|outcomes| outcomes.of(refusal).to_bytes());
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
                let queued = queued.map(|entry| self.queued(&record, &entry, answer.optional_sealed()?)).transpose()?;
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
            "event" => return Ok(Err(OtherEvent(answer.optional_parsed()?))),
            _ => return Err(unreadable("the answer to a completion")),
        };
        Ok(Ok(outcome))
    }

    /// The delivery of a stream entry, to the address that it copied or to the transaction's own.
    fn queued(&self, record: &CompletedRecord, entry: &[u8], address: Option<Sealed>) -> Result<QueuedDelivery, StoreError> {
        let txn = record.opened.id;
        let id = delivery_id::of_entry(txn.partition(), entry)?;
        let url = match (address, record.opened.event) {
            (Some(sealed), Some(event)) => Some(open_webhook(&self.vault, event, &sealed)?),
            _ => record.opened.terms.webhook_url.clone(),
        };
        let url = url.ok_or_else(|| unreadable("the address of a delivery"))?;
        Ok(QueuedDelivery { id, subject: txn.into(), url, stored_bytes: record.outcome.size() })
    }
}

/// The event of the transaction, which is not the one that the caller named.
struct OtherEvent(Option<EventId>);
