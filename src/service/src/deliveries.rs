//! Webhooks of an app's verifications and orders, newest first.

use sakshi_domain::delivery::{DeliveryRecord, Subject};
use sakshi_domain::time::Timestamp;

use crate::authentication::Caller;
use crate::verifications::{Filter, list};
use crate::{Service, ServiceError};

/// Number of orders whose webhooks are listed.
pub const ORDERS_MAX: u32 = 200;

/// A webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedDelivery {
    /// The verification or order that it reports.
    pub subject: Subject,
    /// The change of an order that it reports.
    pub tells: Option<String>,
    /// Its attempt.
    pub delivery: DeliveryRecord,
}

/// The newest webhooks.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryLog {
    /// The newest first.
    pub deliveries: Vec<LoggedDelivery>,
    /// Time before which verifications were not read; they may have further webhooks.
    pub older_than: Option<Timestamp>,
}

/// Reads the webhooks of the caller's newest verifications and orders.
///
/// # Errors
/// The store is unavailable.
pub async fn delivery_log(service: &Service, caller: &Caller) -> Result<DeliveryLog, ServiceError> {
    let listing = list(service, caller, &Filter::default(), None, usize::MAX).await?;
    let older_than = listing.read_back_to.filter(|_| listing.older.is_some());
    let of_verification = |(id, delivery): (_, Option<DeliveryRecord>)| {
        delivery.map(|delivery| LoggedDelivery { subject: Subject::Transaction(id), tells: None, delivery })
    };
    let mut deliveries: Vec<_> = listing
        .verifications
        .into_iter()
        .map(|found| (found.opened.id, found.delivery))
        .filter_map(of_verification)
        .collect();
    for order in service.store.list_flows(caller.client.clone(), caller.app.app_id.clone(), ORDERS_MAX).await? {
        let flow = order.state.header().id;
        deliveries.extend(order.deliveries.into_iter().map(|sent| LoggedDelivery {
            subject: Subject::Flow { flow, webhook: sent.webhook },
            tells: Some(sent.tells),
            delivery: sent.delivery,
        }));
    }
    deliveries.sort_by_key(|sent| std::cmp::Reverse(sent.delivery.queued_at));
    Ok(DeliveryLog { deliveries, older_than })
}
