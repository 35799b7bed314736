//! How things are, as a client may know it: the authority, the upstreams, and the app's own webhooks.

use sakshi_domain::delivery::WebhookState;

use crate::authentication::Caller;
use crate::authority_answers::Counted;
use crate::verifications::{Filter, list};
use crate::{Service, ServiceError};

/// Transactions whose webhooks are counted.
const LOOKED_AT: usize = 100;

/// How things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What the identity app has answered this node.
    pub authority: Counted,
    /// The upstreams that are offered, with what they answered this node and what not.
    pub upstreams: Vec<(&'static str, [u64; 2])>,
    /// The webhooks of the app's newest transactions.
    pub webhooks: Webhooks,
}

/// Webhooks by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Webhooks {
    /// Taken by their receivers.
    pub delivered: u64,
    /// Not taken, or it is not known.
    pub failed: u64,
    /// Not sent yet, or under way.
    pub waiting: u64,
}

/// How things are for the caller's app.
///
/// # Errors
/// A store that is away.
pub async fn status(service: &Service, caller: &Caller) -> Result<Status, ServiceError> {
    let flows = &service.upstreams;
    let named = [("esign", &flows.esign), ("doclocker", &flows.doclocker), ("estamp", &flows.estamp), ("wealth", &flows.wealth)];
    let named = named.into_iter().filter_map(|(name, upstream)| Some((name, upstream.as_ref()?.recent())));
    let checks = flows.checks.iter().map(|(name, upstream)| (*name, upstream.recent()));
    Ok(Status {
        authority: service.authority.answers.counted(),
        upstreams: named.chain(checks).collect(),
        webhooks: webhooks(service, caller).await?,
    })
}

async fn webhooks(service: &Service, caller: &Caller) -> Result<Webhooks, ServiceError> {
    let newest = list(service, caller, &Filter::default(), None, LOOKED_AT).await?.verifications;
    let mut webhooks = Webhooks::default();
    for found in newest {
        match WebhookState::of(found.delivery.as_ref()) {
            WebhookState::None => {}
            WebhookState::Waiting => webhooks.waiting += 1,
            WebhookState::Delivered => webhooks.delivered += 1,
            WebhookState::Lost => webhooks.failed += 1,
        }
    }
    Ok(webhooks)
}
