//! What can be erased before its time.

use std::str::FromStr;

use crate::flow::flow_id::FlowId;
use crate::ids::{AppId, ClientId, EventId, TxnId};
use crate::string_enum::string_enum;

string_enum!(
    /// What kind of thing is erased.
    ErasureKind {
        /// A transaction, and what an event keeps of its guest.
        Transaction = "transaction",
        /// A flow.
        Flow = "flow",
        /// An event.
        Event = "event",
        /// What is kept for an app.
        App = "app",
        /// What is kept for all apps of a client.
        Client = "client",
    }
);

/// What is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasureSubject {
    /// A transaction with its webhook; of a guest also what the event keeps.
    Transaction(TxnId),
    /// A flow with its reports and webhooks.
    Flow(FlowId),
    /// An event with its guests and all that they have begun.
    Event(EventId),
    /// All transactions, flows, events and refused requests of an app, which itself stays.
    App(AppId),
    /// The same of all apps of a client, which stay with the client, its keys and its ledger.
    Client(ClientId),
}

impl ErasureSubject {
    /// The thing of this kind with this id; `None` when the text is no such id.
    #[must_use]
    pub fn parse(kind: ErasureKind, id: &str) -> Option<Self> {
        fn read<T: FromStr>(id: &str, subject: fn(T) -> ErasureSubject) -> Option<ErasureSubject> {
            id.parse().ok().map(subject)
        }
        match kind {
            ErasureKind::Transaction => read(id, Self::Transaction),
            ErasureKind::Flow => read(id, Self::Flow),
            ErasureKind::Event => read(id, Self::Event),
            ErasureKind::App => read(id, Self::App),
            ErasureKind::Client => read(id, Self::Client),
        }
    }
}
