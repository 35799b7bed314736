//! Owners that are charged for memory and processor time.
//!
//! Owners nest: a transaction belongs to an event, the event to a client, and the client to the address from which an
//! unauthenticated request comes. Use is compared from the outermost owner inwards, so that many transactions of one
//! sender count no more than one transaction of another.

use std::net::IpAddr;
use std::sync::Arc;

use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};

/// An owner of a budget's use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// All senders at an IPv4 address, or in an IPv6 /64 network.
    Address(IpAddr),
    /// An authenticated client.
    Client(ClientId),
    /// An app of a client.
    App(AppId),
    /// An event of an app.
    Event(EventId),
    /// A transaction of a client.
    Transaction(TxnId),
    /// The connector that reports on one kind of flow.
    Connector(ReportKind),
}

/// A path of nested owners, from the outermost to the innermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerPath(Arc<[Owner]>);

impl OwnerPath {
    /// Builds a path, the outermost owner first.
    #[must_use]
    pub fn new(path: impl IntoIterator<Item = Owner>) -> Self {
        Self(path.into_iter().collect())
    }

    /// Builds the path of a client and one of its apps.
    #[must_use]
    pub fn app(client: &ClientId, app: &AppId) -> Self {
        Self::new([Owner::Client(client.clone()), Owner::App(app.clone())])
    }

    /// Builds the path of an unauthenticated sender who answers a transaction of a client, or of one of its events.
    pub(crate) fn sender(address: IpAddr, client: &ClientId, event: Option<EventId>, txn: TxnId) -> Self {
        let outer = [Owner::Address(address), Owner::Client(client.clone())];
        Self::new(outer.into_iter().chain(event.map(Owner::Event)).chain([Owner::Transaction(txn)]))
    }

    pub(super) fn path(&self) -> &[Owner] {
        &self.0
    }
}
