//! The list of an app's transactions.

use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;

use crate::body::body;

body! { response
    /// A page of the list of transactions.
    pub struct TransactionsPage {
        /// The transactions, newest first. The list may be empty although `next` is present.
        transactions: Vec<TransactionRow>,
        /// Path and query of the next page, with older transactions; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { response
    /// A transaction in the list.
    pub struct TransactionRow {
        /// The id of the transaction.
        txn_id: TxnId,
        /// `pending`, `passed`, `failed` or `expired`.
        status: TransactionStatus,
        /// The time at which the transaction was opened.
        opened_at: Timestamp,
        /// `web`, `qr` or `app`.
        channel: String,
        /// Your own reference from the request; absent without one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        client_reference_id: Option<String>,
        /// The event whose guest was verified; absent otherwise.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        event_id: Option<EventId>,
    }
}
