//! Webhooks of an app's verifications and orders, newest first.

use sakshi_domain::delivery::{DeliveryRecord, Subject};
use sakshi_domain::time::Timestamp;

use crate::authentication::Caller;
use crate::verifications::{Filter, list};
use crate::{Service, ServiceError};

/// Maximum orders whose webhooks are listed.
pub const ORDERS_MAX: u32 = 200;

/// A webhook of a verification or an order.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedDelivery {
    /// The verification or order that the webhook reports.
    pub subject: Subject,
    /// The change of an order that the webhook reports.
    pub summary: Option<String>,
    /// The delivery and its attempt.
    pub delivery: DeliveryRecord,
}

/// The newest webhooks.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryLog {
    /// The webhooks, newest first.
    pub deliveries: Vec<LoggedDelivery>,
    /// Time before which verifications were not read; they may have further webhooks.
    pub older_than: Option<Timestamp>,
}

/// Reads the webhooks of the caller's newest verifications and orders.
///
/// # Errors
/// Any error of the store.
pub async fn delivery_log(service: &Service, caller: &Caller) -> Result<DeliveryLog, ServiceError> {
    let listing = list(service, caller, &Filter::default(), None, usize::MAX).await?;
    let older_than = listing.read_back_to.filter(|_| listing.older.is_some());
    let to_logged = |(id, delivery): (_, Option<DeliveryRecord>)| {
        delivery.map(|delivery| LoggedDelivery { subject: Subject::Transaction(id), summary: None, delivery })
    };
    let mut deliveries: Vec<_> = listing
        .verifications
        .into_iter()
        .map(|verification| (verification.opened.id, verification.delivery))
        .filter_map(to_logged)
        .collect();
    for order in service.store.list_flows(caller.client.clone(), caller.app.app_id.clone(), ORDERS_MAX).await? {
        let flow = order.state.header().id;
        deliveries.extend(order.deliveries.into_iter().map(|queued| LoggedDelivery {
            subject: Subject::Flow { flow, webhook: queued.webhook },
            summary: Some(queued.summary),
            delivery: queued.delivery,
        }));
    }
    deliveries.sort_by_key(|logged| std::cmp::Reverse(logged.delivery.queued_at));
    Ok(DeliveryLog { deliveries, older_than })
}
