//! The list of an app's transactions.

use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;

use crate::body::body;

body! { answer
    /// A part of the list of transactions.
    pub struct TransactionsPage {
        /// Newest first. It may be empty although `next` is present.
        transactions: Vec<TransactionRow>,
        /// The path of older ones; absent at the end of what is kept.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { answer
    /// A transaction of the list.
    pub struct TransactionRow {
        /// The transaction.
        txn_id: TxnId,
        /// `pending`, `passed`, `failed` or `expired`.
        status: TransactionStatus,
        /// The time of its opening.
        opened_at: Timestamp,
        /// `web`, `qr` or `app`.
        channel: String,
        /// The reference that the client gave it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        client_reference_id: Option<String>,
        /// The event of a guest.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        event_id: Option<EventId>,
    }
}
