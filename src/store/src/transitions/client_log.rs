//! The log of a client. An entry belongs to the month of its time.

use sakshi_domain::client_log::LogEntry;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use crate::engine::{Batch, CallId, Guard, Op, Value};
use crate::error::StoreError;
use crate::records::client_log::{
    CLIENT_LOG_MONTH, key_of_client_log, key_of_client_log_month, log_expiry, month_of, months,
};
use crate::sealing::{seal_log_entry, unseal_log_entry};
use crate::vault::Vault;

/// Builds the batch that appends an entry. It is refused until [`begin`] has created the month. A full store still
/// takes the entry of an action that ends access.
///
/// # Errors
/// [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn append(vault: &Vault, client: &ClientId, entry: &LogEntry, call: CallId) -> Result<Batch, StoreError> {
    let list = key_of_client_log(client, month_of(entry.at));
    let (month, sealed) = (list.in_table(&CLIENT_LOG_MONTH), seal_log_entry(vault, &list.id, entry)?);
    let (guards, ops) = (vec![Guard::Present(month.clone())], vec![Op::Append(list, vec![sealed.into()])]);
    let batch = if entry.action.ends_access() { Batch::even_when_full(guards, ops) } else { Batch::new(guards, ops) };
    Ok(batch.with_call_id(call, month))
}

/// Builds the batch that creates the month that contains `at`.
#[must_use]
pub(crate) fn begin(client: &ClientId, at: Timestamp) -> Batch {
    let month = key_of_client_log_month(client, month_of(at));
    let end = Op::ExpireAt(month.clone(), log_expiry(at).into());
    let put = Op::Put(month.clone(), vec![("client", client.as_str().into())]);
    Batch::even_when_full(vec![Guard::Absent(month)], vec![put, end])
}

/// Builds the batch that removes the whole log of a client.
#[must_use]
pub(crate) fn remove(client: &ClientId, now: Timestamp) -> Batch {
    Batch::even_when_full(vec![], months(now).map(|month| Op::Remove(key_of_client_log_month(client, month))).collect())
}

/// Decodes an entry.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable entry.
pub(crate) fn decode_entry(vault: &Vault, list: &[u8], values: Vec<Value>) -> Result<LogEntry, StoreError> {
    let Ok([Value::Bytes(sealed)]) = <[Value; 1]>::try_from(values) else {
        return Err(StoreError::unreadable("an entry of the log of a client"));
    };
    unseal_log_entry(vault, list, sealed)
}
