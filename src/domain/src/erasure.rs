//! The erasure of data before its retention ends.

use std::str::FromStr;

use crate::flow::flow_id::FlowId;
use crate::ids::{AppId, ClientId, EventId, TxnId};
use crate::string_enum::string_enum;

string_enum!(
    /// The kind of erased data.
    ErasureKind {
        /// A transaction, and its guest's data at an event.
        Transaction = "transaction",
        /// A flow.
        Flow = "flow",
        /// An event.
        Event = "event",
        /// The stored data of an app.
        App = "app",
        /// The stored data of all apps of a client.
        Client = "client",
    }
);

/// The subject of an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasureSubject {
    /// A transaction with its webhook; for a guest, also their data at the event.
    Transaction(TxnId),
    /// A flow with its reports and webhooks.
    Flow(FlowId),
    /// An event with its guests and everything they started.
    Event(EventId),
    /// All transactions, flows, events and refused requests of an app. The app itself stays.
    App(AppId),
    /// All transactions, flows, events and refused requests of all apps of a client. The client, its apps, its keys and
    /// its ledger stay.
    Client(ClientId),
}

impl ErasureSubject {
    /// Reads a subject of this kind; `None` if the text is not an id of the kind.
    #[must_use]
    pub fn parse(kind: ErasureKind, id: &str) -> Option<Self> {
        fn parse_id<T: FromStr>(id: &str, subject: fn(T) -> ErasureSubject) -> Option<ErasureSubject> {
            id.parse().ok().map(subject)
        }
        match kind {
            ErasureKind::Transaction => parse_id(id, Self::Transaction),
            ErasureKind::Flow => parse_id(id, Self::Flow),
            ErasureKind::Event => parse_id(id, Self::Event),
            ErasureKind::App => parse_id(id, Self::App),
            ErasureKind::Client => parse_id(id, Self::Client),
        }
    }
}
