//! Reads of clients and deliveries that several pages share.

use futures_util::future::try_join_all;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome, DeliveryRecord};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::Client;
use sakshi_service::ServiceError;

use crate::error::ConsoleError;
use crate::staff::Staff;
use crate::view::Cell;

/// Number of records read concurrently.
pub(crate) const BATCH_SIZE: usize = 16;

/// A client and its balance.
pub(crate) struct ClientBalance {
    pub(crate) client: Client,
    pub(crate) balance: u64,
    /// True if the balance is below the client's own limit, or below that of the settings without one.
    pub(crate) is_low: bool,
}

/// Reads the balances of clients.
pub(crate) async fn load_balances(staff: &Staff, clients: Vec<Client>) -> Result<Vec<ClientBalance>, ConsoleError> {
    let mut loaded = Vec::with_capacity(clients.len());
    for batch in clients.chunks(BATCH_SIZE) {
        let balances =
            try_join_all(batch.iter().map(|client| staff.api.store.balance(client.client_id.clone()))).await?;
        loaded.extend(batch.iter().cloned().zip(balances).map(|(client, balance)| {
            let balance = balance.unwrap_or_default();
            let is_low = client.limits.is_low(balance, staff.console.low_credits);
            ClientBalance { client, balance, is_low }
        }));
    }
    Ok(loaded)
}

/// Loads a client, or fails with 404.
pub(crate) async fn find_client(staff: &Staff, id: &ClientId) -> Result<Client, ConsoleError> {
    Ok(staff.api.store.load_client(id.clone()).await?.ok_or(ServiceError::NotFound("client"))?)
}

/// Builds a link to a client with its name, and the client's id.
pub(crate) async fn client_cell(staff: &Staff, id: &ClientId) -> Result<Cell, ConsoleError> {
    let name = staff.api.store.load_client(id.clone()).await?.map(|client| client.name);
    let link = Cell::Link { href: format!("/console/clients/{id}"), text: name.unwrap_or_else(|| id.to_string()) };
    Ok(Cell::Many(vec![link, Cell::code(id)]))
}

/// Builds a link to an app with its name, and the app's id.
pub(crate) async fn app_cell(staff: &Staff, id: &AppId) -> Result<Cell, ConsoleError> {
    let name = staff.api.store.load_app(id.clone()).await?.map(|app| app.name);
    let link = Cell::Link { href: format!("/console/apps/{id}"), text: name.unwrap_or_else(|| id.to_string()) };
    Ok(Cell::Many(vec![link, Cell::code(id)]))
}

/// Returns the attempt of a delivery if it is not known to have reached its receiver.
pub(crate) fn lost_attempt(delivery: &DeliveryRecord) -> Option<Attempt> {
    delivery.attempt.filter(|attempt| attempt.outcome != DeliveryOutcome::Delivered)
}
