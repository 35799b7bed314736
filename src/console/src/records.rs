//! Reads of clients and deliveries that several pages share.

use futures_util::future::try_join_all;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome, DeliveryRecord};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::Client;
use sakshi_service::ServiceError;

use crate::error::ConsoleError;
use crate::staff::Staff;
use crate::view::Cell;

/// Number of records read at once.
pub(crate) const AT_ONCE: usize = 16;

/// A client and its balance.
pub(crate) struct Funds {
    pub(crate) client: Client,
    pub(crate) balance: u64,
    /// True if it has fewer credits than its own limit, or than that of the settings.
    pub(crate) is_low: bool,
}

/// Reads the balances of clients.
pub(crate) async fn funds_of(staff: &Staff, clients: Vec<Client>) -> Result<Vec<Funds>, ConsoleError> {
    let mut funds = Vec::with_capacity(clients.len());
    for some in clients.chunks(AT_ONCE) {
        let balances =
            try_join_all(some.iter().map(|client| staff.api.store.balance(client.client_id.clone()))).await?;
        funds.extend(some.iter().cloned().zip(balances).map(|(client, balance)| {
            let balance = balance.unwrap_or_default();
            let is_low = balance < client.limits.low_credits.unwrap_or(staff.console.low_credits);
            Funds { client, balance, is_low }
        }));
    }
    Ok(funds)
}

/// Reads a client.
pub(crate) async fn client_of(staff: &Staff, id: &ClientId) -> Result<Client, ConsoleError> {
    Ok(staff.api.store.load_client(id.clone()).await?.ok_or(ServiceError::NotFound("client"))?)
}

/// Builds a link to a client by its name, and its id.
pub(crate) async fn client_cell(staff: &Staff, id: &ClientId) -> Result<Cell, ConsoleError> {
    let name = staff.api.store.load_client(id.clone()).await?.map(|client| client.name);
    let link = Cell::Link { href: format!("/console/clients/{id}"), text: name.unwrap_or_else(|| id.to_string()) };
    Ok(Cell::Many(vec![link, Cell::code(id)]))
}

/// Builds a link to an app by its name, and its id.
pub(crate) async fn app_cell(staff: &Staff, id: &AppId) -> Result<Cell, ConsoleError> {
    let name = staff.api.store.load_app(id.clone()).await?.map(|app| app.name);
    let link = Cell::Link { href: format!("/console/apps/{id}"), text: name.unwrap_or_else(|| id.to_string()) };
    Ok(Cell::Many(vec![link, Cell::code(id)]))
}

/// Returns the attempt of a delivery that did not reach its receiver, as far as is known.
pub(crate) fn lost(delivery: &DeliveryRecord) -> Option<Attempt> {
    delivery.attempt.filter(|attempt| attempt.outcome != DeliveryOutcome::Delivered)
}
