//! On whose behalf memory is held or processor time is spent.
//!
//! Owners nest: a transaction belongs to an event, that to a client, and all of them to the address
//! from which a stranger sends. Shares are judged from the outermost owner inwards, so that many
//! transactions of one sender weigh no more than one of another.

use std::net::IpAddr;
use std::sync::Arc;

use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};

/// One owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Whoever sends from there, as [`crate::rate::Rates::address`] tells it.
    Address(IpAddr),
    /// An authenticated client.
    Client(ClientId),
    /// One of its apps.
    App(AppId),
    /// An event of an app.
    Event(EventId),
    /// One transaction.
    Transaction(TxnId),
    /// The connector that reports on flows of a kind.
    Connector(ReportKind),
}

/// Owners from the outermost to the innermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners(Arc<[Owner]>);

impl Owners {
    /// A path of owners, the outermost first.
    #[must_use]
    pub fn new(path: impl IntoIterator<Item = Owner>) -> Self {
        Self(path.into_iter().collect())
    }

    /// A client with one of its apps.
    #[must_use]
    pub fn app(client: &ClientId, app: &AppId) -> Self {
        Self::new([Owner::Client(client.clone()), Owner::App(app.clone())])
    }

    /// A stranger at an address, who answers for a transaction of a client and perhaps of its event.
    #[must_use]
    pub fn stranger(address: IpAddr, client: &ClientId, event: Option<EventId>, txn: TxnId) -> Self {
        let outer = [Owner::Address(address), Owner::Client(client.clone())];
        Self::new(outer.into_iter().chain(event.map(Owner::Event)).chain([Owner::Transaction(txn)]))
    }

    /// The path.
    pub(super) fn path(&self) -> &[Owner] {
        &self.0
    }
}
