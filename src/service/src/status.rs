//! Status for a client: of the authority, the upstreams, and the app's own webhooks.

use sakshi_domain::delivery::WebhookState;

use crate::authentication::Caller;
use crate::authority_answers::AnswerCounts;
use crate::verifications::{Filter, list};
use crate::{Service, ServiceError};

/// Number of newest transactions whose webhooks are counted.
const TRANSACTIONS_COUNTED: usize = 100;

/// Status of the authority, the upstreams and an app's webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Counts of the identity app's answers to this node.
    pub authority: AnswerCounts,
    /// The offered upstreams by name, each with the numbers of answers and failures on this node.
    pub upstreams: Vec<(&'static str, [u64; 2])>,
    /// The webhooks of the app's newest transactions.
    pub webhooks: Webhooks,
}

/// Webhooks by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Webhooks {
    /// Accepted by their receivers.
    pub delivered: u64,
    /// Not accepted, or unknown.
    pub failed: u64,
    /// Not sent yet, or in flight.
    pub waiting: u64,
}

/// Returns the status for the caller's app.
///
/// # Errors
/// Any error of the store.
pub async fn status(service: &Service, caller: &Caller) -> Result<Status, ServiceError> {
    let upstreams = &service.upstreams;
    let flow_upstreams = [
        ("esign", &upstreams.esign),
        ("doclocker", &upstreams.doclocker),
        ("estamp", &upstreams.estamp),
        ("wealth", &upstreams.wealth),
    ];
    let flow_upstreams =
        flow_upstreams.into_iter().filter_map(|(name, upstream)| Some((name, upstream.as_ref()?.recent())));
    let checks = upstreams.checks.iter().map(|(name, upstream)| (*name, upstream.recent()));
    Ok(Status {
        authority: service.authority.answers.counts(),
        upstreams: flow_upstreams.chain(checks).collect(),
        webhooks: count_webhooks(service, caller).await?,
    })
}

/// Counts the webhooks of the newest transactions by outcome.
async fn count_webhooks(service: &Service, caller: &Caller) -> Result<Webhooks, ServiceError> {
    let newest = list(service, caller, &Filter::default(), None, TRANSACTIONS_COUNTED).await?.verifications;
    let mut webhooks = Webhooks::default();
    for verification in newest {
        match WebhookState::from_delivery(verification.delivery.as_ref()) {
            WebhookState::None => {}
            WebhookState::Waiting => webhooks.waiting += 1,
            WebhookState::Delivered => webhooks.delivered += 1,
            WebhookState::Lost => webhooks.failed += 1,
        }
    }
    Ok(webhooks)
}
