//! Ending transactions.
//!
//! The event of a guest is read first, so that every key of the script can be named; it never
//! changes. A completion whose answer was lost is recognised by its call and answered as the first
//! time.

use futures_util::future::try_join;
use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::{EventId, TxnId};
use uuid::Uuid;

use super::answer::{Fields, arguments, text, unreadable};
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
        let (event, reservation) = try_join(self.event_of(id), self.reserve(&complete, id, call)).await?;
        let outcome = self.end(&complete, call, event, matches!(reservation, Reservation::Taken)).await?;
        if !matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }) {
            self.release(reservation).await;
        }
        Ok(outcome)
    }

    async fn event_of(&self, id: TxnId) -> Result<Option<EventId>, StoreError> {
        let found = self.link.read(redis::cmd("HGET").arg(keys::transaction(id)).arg("e").to_owned()).await?;
        text("the event of a transaction", found)?
            .map(|text| text.parse().map_err(|_| unreadable("the event of a transaction")))
            .transpose()
    }

    async fn end(
        &self,
        complete: &CompleteTransaction,
        call: Uuid,
        event: Option<EventId>,
        replayed: bool,
    ) -> Result<CompleteOutcome, StoreError> {
        let CompleteTransaction { id, passed, outcome, answer, result_ttl, guest, .. } = complete;
        let [event_key, registrations, waiting] = keys::event(id.partition(), event);
        let keys = vec![keys::transaction(*id), keys::outbox(id.partition()), event_key, registrations, waiting];
        let instead = |refusal| guest.as_ref().map(|outcomes| outcome_of(outcomes, refusal).to_bytes());
        let args = arguments![
            id.as_bytes(),
            self.node.to_string(),
            *passed,
            outcome.to_bytes(),
            &answer.0,
            replayed,
            *result_ttl,
            keys::CHANGES,
            id.to_string(),
            event.map(|event| event.to_string()),
            instead(EventRefusal::Disabled),
            instead(EventRefusal::Expired),
            instead(EventRefusal::Full),
            call.as_bytes(),
        ];
        let mut answer = Fields::of("the answer to a completion", self.call(&COMPLETE_TRANSACTION, keys, args).await?)?;
        match answer.text()?.as_str() {
            "completed" => {
                let record = records::completed(&self.vault, *id, answer.fields()?)?;
                let queued = answer.optional()?;
                let queued = queued.map(|at| self.queued(&record, &at, answer.optional_sealed()?)).transpose()?;
                Ok(CompleteOutcome::Completed { record, queued, repeated: false })
            }
            "repeated" => {
                let record = records::completed(&self.vault, *id, answer.fields()?)?;
                Ok(CompleteOutcome::Completed { record, queued: None, repeated: true })
            }
            "before" => records::completed(&self.vault, *id, answer.fields()?).map(CompleteOutcome::AlreadyCompleted),
            "expired" => Ok(CompleteOutcome::Expired),
            "replayed" => Ok(CompleteOutcome::CredentialReplayed),
            "unknown" => self.absent(CompleteOutcome::NotFound).await,
            _ => Err(unreadable("the answer to a completion")),
        }
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

const fn outcome_of(outcomes: &GuestOutcomes, refusal: EventRefusal) -> &Sealed {
    match refusal {
        EventRefusal::Disabled => &outcomes.disabled,
        EventRefusal::Expired => &outcomes.expired,
        EventRefusal::Full => &outcomes.full,
    }
}
