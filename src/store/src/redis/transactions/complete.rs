//! Completing transactions.
//!
//! The caller usually knows the guest's event, so every key of the script can be named. If the event is another one,
//! the script says which, and is called again. A completion whose reply was lost is recognised by the id of its call
//! and answered as the first time.

use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::EventId;
use uuid::Uuid;

use super::credentials::Reservation;
use super::records;
use crate::error::StoreError;
use crate::redis::arguments::arguments;
use crate::redis::script::COMPLETE_TRANSACTION;
use crate::redis::shared::Shared;
use crate::redis::{delivery_id, keys};
use crate::transactions::{CompleteOutcome, CompleteTransaction};

impl Shared {
    pub(crate) async fn complete_transaction(&self, complete: CompleteTransaction) -> Result<CompleteOutcome, StoreError> {
        let (id, call) = (complete.id, Uuid::new_v4());
        let reservation = self.reserve(&complete, id, call).await?;
        let replayed = matches!(reservation, Reservation::Taken);
        let outcome = match self.end(&complete, call, complete.event, replayed).await? {
            Ok(outcome) => outcome,
            // The event of a transaction never changes.
            Err(event) => self.end(&complete, call, event, replayed).await?.unwrap_or(CompleteOutcome::NotFound),
        };
        if !matches!(outcome, CompleteOutcome::Completed { repeated: false, .. }) {
            self.release(reservation).await;
        }
        Ok(outcome)
    }

    /// Ends it; answers with the transaction's event if that is another one than the caller named.
    async fn end(
        &self,
        complete: &CompleteTransaction,
        call: Uuid,
        event: Option<EventId>,
        replayed: bool,
    ) -> Result<Result<CompleteOutcome, Option<EventId>>, StoreError> {
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
        let mut answer = self.call(&COMPLETE_TRANSACTION, keys, args).await?.fields()?;
        let outcome = match answer.text()?.as_str() {
            "completed" => {
                let record = records::completed(&self.vault, *id, answer.value()?.fields()?)?;
                let entry = answer.optional()?.map(|entry| delivery_id::of_entry(id.partition(), &entry)).transpose()?;
                let queued = entry.map(|entry| record.queued(&self.vault, entry, answer.optional()?)).transpose()?;
                CompleteOutcome::Completed { record, queued, repeated: false }
            }
            "repeated" => {
                let record = records::completed(&self.vault, *id, answer.value()?.fields()?)?;
                CompleteOutcome::Completed { record, queued: None, repeated: true }
            }
            "before" => CompleteOutcome::AlreadyCompleted(records::completed(&self.vault, *id, answer.value()?.fields()?)?),
            "expired" => self.confirm(CompleteOutcome::Expired).await?,
            "replayed" => CompleteOutcome::CredentialReplayed,
            "unknown" => self.confirm(CompleteOutcome::NotFound).await?,
            "event" => return Ok(Err(answer.optional_parsed()?)),
            _ => return Err(answer.unreadable()),
        };
        Ok(Ok(outcome))
    }
}
