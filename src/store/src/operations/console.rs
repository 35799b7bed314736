//! The operators' console: its sessions, and credit grants that a second operator must confirm.

use sakshi_domain::credits::EntryKind;
use sakshi_domain::grant_request::{GrantRequest, GrantState};
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::Store;
use crate::console::{ConsoleSession, DecideGrant, DecideGrantOutcome, RequestGrant, RequestGrantOutcome};
use crate::engine::{Batch, Op};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::client;
use crate::records::console::{
    key_of_console_session, key_of_grant_request, key_of_grant_requests, key_of_provider_logout,
};
use crate::sealing::{seal_of_console, unseal_of_console};
use crate::sessions::SessionDigest;
use crate::transitions::console::{decide, decode_request, end_provider_sessions, logout_digest, request_grant};
use crate::transitions::session::open;

/// Maximum number of listed grant requests.
const LISTED_MAX: u64 = 1_000;

impl Store {
    /// Stores a console session. Repeatable by its digest; its operator never changes.
    pub fn open_console_session(&self, new_session: ConsoleSession) -> StoreFuture<()> {
        self.run(|store| async move {
            let ConsoleSession { digest, sign_in, idle_until, ends_at } = new_session;
            let sealed_sign_in = seal_of_console(store.vault(), &digest.0, &sign_in)?;
            store.commit(open(key_of_console_session(&digest), idle_until, ends_at, sealed_sign_in)).await.map(drop)
        })
    }

    /// Returns a console session that has not expired by the store's clock.
    pub fn load_console_session(&self, digest: SessionDigest) -> StoreFuture<Option<ConsoleSession>> {
        self.run(move |store| async move {
            let Some(record) = store.record_unless_lost(key_of_console_session(&digest)).await? else {
                return Ok(None);
            };
            let sign_in = unseal_of_console(store.vault(), &digest.0, record.bytes("grant").to_vec())?;
            let time = |name| record.time(name).ok_or_else(|| StoreError::unreadable("a session"));
            Ok(Some(ConsoleSession { digest, sign_in, idle_until: time("idle_until")?, ends_at: time("ends_at")? }))
        })
    }

    /// Extends a console session to `until`, at most to its final end; `false` if it has ended already.
    pub fn prolong_console_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.run(move |store| async move { store.prolong(key_of_console_session(&digest), until).await })
    }

    /// Ends a console session. Repeatable.
    pub fn end_console_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        // Allowed on a full store, because it frees memory.
        self.run(move |store| async move {
            store
                .commit(Batch::even_when_full(vec![], vec![Op::Remove(key_of_console_session(&digest))]))
                .await
                .map(drop)
        })
    }

    /// Ends the console sessions opened until `at` by the subject or session `name` of the identity provider `issuer`.
    /// Repeatable.
    pub fn end_provider_sessions(&self, issuer: String, name: String, at: Timestamp) -> StoreFuture<()> {
        self.run(move |store| async move {
            store.commit(end_provider_sessions(logout_digest(&issuer, &name), at)).await.map(drop)
        })
    }

    /// Returns the last time at which the identity provider `issuer` ended the sessions of the subject `name`, or the
    /// session `name`.
    pub fn provider_sessions_ended(&self, issuer: String, name: String) -> StoreFuture<Option<Timestamp>> {
        self.run(move |store| async move {
            let record = store.record_unless_lost(key_of_provider_logout(logout_digest(&issuer, &name))).await?;
            Ok(record.and_then(|record| record.time("at")))
        })
    }

    /// Requests a grant that a second operator must confirm. Repeatable by its id.
    pub fn ask_grant(&self, command: RequestGrant) -> StoreFuture<RequestGrantOutcome> {
        self.run(|store| async move {
            for _ in 0..ATTEMPTS {
                store.commit(request_grant(store.vault(), &command)?).await?;
                // Returns the stored request, which an earlier call may have made. An expired request is made again.
                if let Some(record) = store.record_confirmed(key_of_grant_request(&command.id)).await? {
                    let request = decode_request(store.vault(), command.id.clone(), &record)?;
                    let is_same_amount = request.movement.amount == command.movement.amount;
                    return Ok(if is_same_amount {
                        RequestGrantOutcome::Requested(request)
                    } else {
                        RequestGrantOutcome::ReferenceReused
                    });
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the pending and the recently decided grant requests, oldest first.
    pub fn grant_requests(&self) -> StoreFuture<Vec<GrantRequest>> {
        self.run(|store| async move {
            let ids = store.ids(key_of_grant_requests(), 0, LISTED_MAX).await?;
            store.load_records(ids, key_of_grant_request, |id, record| decode_request(store.vault(), id, &record)).await
        })
    }

    /// Confirms or refuses a grant. Repeatable.
    pub fn decide_grant(&self, command: DecideGrant) -> StoreFuture<DecideGrantOutcome> {
        self.run(|store| async move {
            let DecideGrant { id, by, decision } = command;
            for _ in 0..ATTEMPTS {
                let Some(record) = store.record_confirmed(key_of_grant_request(&id)).await? else {
                    return store.unless_records_were_lost(DecideGrantOutcome::NotFound).await;
                };
                let request = decode_request(store.vault(), id.clone(), &record)?;
                if let Err(refusal) = request.check_decision(&by, decision) {
                    return Ok(DecideGrantOutcome::Refused(refusal));
                }
                if request.state != GrantState::Pending {
                    return Ok(DecideGrantOutcome::Decided(request));
                }
                store.commit(decide(store.vault(), &id, &record, &by, decision)?).await?;
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns true if a credit movement with this kind and reference exists.
    pub fn has_moved(&self, client: ClientId, kind: EntryKind, reference: String) -> StoreFuture<bool> {
        self.run(move |store| async move {
            Ok(store.record(client::key_of_reference(&client, kind, &reference)).await?.is_some())
        })
    }
}
