//! The register of consents. An entry belongs to the week in which the person was asked.

use std::time::Duration;

use sakshi_domain::consent::Consent;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use crate::consents::StoredConsent;
use crate::engine::{Batch, CallId, Guard, Op, Operand, Value};
use crate::error::StoreError;
use crate::records::consent::{CONSENT_WEEK, end_of_week, key_of_consent_week, key_of_consents, week_of};
use crate::records::idempotency::key_of_call_lease;
use crate::sealing::{seal_consent, unseal_consent};
use crate::vault::Vault;

/// Index of the guard of [`declare`] that requires the week.
pub(crate) const WEEK_GUARD: usize = 0;

/// Longer than an engine repeats a call.
const REPEATED_FOR: Duration = Duration::from_secs(60);

/// Builds the guard and the operation that append an entry to the list of its week. The guard fails until [`begin`] has
/// created the week.
#[must_use]
pub(crate) fn append(vault: &Vault, client: &ClientId, entry: &Consent) -> (Guard, Op) {
    let list = key_of_consents(client, week_of(entry.opened_at));
    let sealed = seal_consent(vault, &list.id, entry);
    (Guard::Present(list.in_table(&CONSENT_WEEK)), Op::Append(list, vec![Operand::NOW, sealed.into_bytes().into()]))
}

/// Builds the batch that adds a declared consent, once: if its reply is lost and the engine repeats it, it finds the
/// lease of its first application.
#[must_use]
pub(crate) fn declare(vault: &Vault, client: &ClientId, entry: &Consent, call: CallId) -> Batch {
    let ((week_exists, append), lease) = (append(vault, client, entry), key_of_call_lease(client.partition(), call));
    let take = Op::Put(lease.clone(), vec![("holder", call[..].into())]);
    let end = Op::ExpireAt(lease.clone(), Operand::after(REPEATED_FOR));
    Batch::new(vec![week_exists, Guard::Absent(lease)], vec![append, take, end])
}

/// Builds the batch that creates the week that contains `at`. It expires `retention` after its end.
#[must_use]
pub(crate) fn begin(client: &ClientId, at: Timestamp, retention: Duration) -> Batch {
    let week = key_of_consent_week(client, week_of(at));
    let end = Op::ExpireAt(week.clone(), (end_of_week(at) + retention).into());
    Batch::new(vec![Guard::Absent(week.clone())], vec![Op::Put(week, vec![("client", client.as_str().into())]), end])
}

/// Decodes an entry of this week.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable entry.
pub(crate) fn decode_entry(
    vault: &Vault,
    client: &ClientId,
    week: i64,
    values: Vec<Value>,
) -> Result<StoredConsent, StoreError> {
    let Ok([Value::Integer(answered_at), Value::Bytes(sealed)]) = <[Value; 2]>::try_from(values) else {
        return Err(StoreError::unreadable("a consent"));
    };
    let consent = unseal_consent(vault, &key_of_consents(client, week).id, sealed)?;
    Ok(StoredConsent { consent, answered_at: Timestamp::from_millis(answered_at) })
}
