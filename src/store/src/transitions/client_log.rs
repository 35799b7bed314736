//! The log of a client: an entry is added to the month of its time.

use sakshi_domain::client_log::LogEntry;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use crate::engine::{Batch, CallId, Guard, Op, Value};
use crate::error::StoreError;
use crate::records::client_log::{CLIENT_LOG_MONTH, client_log, client_log_month, end_of_log, month_of, months};
use crate::sealing::{seal_log_entry, unseal_log_entry};
use crate::vault::Vault;

/// Returns the batch that appends an entry. It is refused until the month has begun.
///
/// # Errors
/// The entry cannot be sealed.
pub(crate) fn append(vault: &Vault, client: &ClientId, entry: &LogEntry, call: CallId) -> Result<Batch, StoreError> {
    let list = client_log(client, month_of(entry.at));
    let (month, sealed) = (list.of(&CLIENT_LOG_MONTH), seal_log_entry(vault, &list.id, entry)?);
    Ok(Batch::new(vec![Guard::Present(month.clone())], vec![Op::Append(list, vec![sealed.into()])]).called(call, month))
}

/// Returns the batch that begins the month of a time.
#[must_use]
pub(crate) fn begin(client: &ClientId, at: Timestamp) -> Batch {
    let month = client_log_month(client, month_of(at));
    let end = Op::ExpireAt(month.clone(), end_of_log(at).into());
    Batch::new(vec![Guard::Absent(month.clone())], vec![Op::Put(month, vec![("client", client.as_str().into())]), end])
}

/// Returns the batch that removes the log.
#[must_use]
pub(crate) fn remove(client: &ClientId, now: Timestamp) -> Batch {
    Batch::on_full(vec![], months(now).map(|month| Op::Remove(client_log_month(client, month))).collect())
}

/// Returns the entry with these values.
///
/// # Errors
/// It cannot be read.
pub(crate) fn entry_of(vault: &Vault, list: &[u8], values: Vec<Value>) -> Result<LogEntry, StoreError> {
    let Ok([Value::Bytes(sealed)]) = <[Value; 1]>::try_from(values) else {
        return Err(StoreError::unreadable("an entry of the log of a client"));
    };
    unseal_log_entry(vault, list, sealed)
}
