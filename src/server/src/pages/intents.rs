//! The intents that a worker has signed for verify pages, for a short while: a signature is the most
//! costly part of a page, and a page is looked at more than once (a reload, a second device, a poll
//! without JavaScript). Pages of one transaction then show the same intent.
//!
//! Only pages take their intents from here. Whoever asks for an intent itself gets a fresh one.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use actix_web::HttpRequest;
use sakshi_authority::intent::decode_unverified;
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::{PAGE_INTENT_REUSED_MAX, PAGE_INTENTS_KEPT_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

use super::picture::Picture;
use crate::http::error::ApiError;
use crate::service::Service;

/// An intent as pages show it.
#[derive(Debug)]
pub(super) struct PageIntent {
    /// The intent JWT.
    pub(super) jwt: String,
    /// Its end, in seconds since 1970.
    pub(super) exp: i64,
    reused_until: Timestamp,
    code: OnceCell<Option<String>>,
}

impl PageIntent {
    fn sign(service: &Service, pending: &Pending, now: Timestamp) -> Result<Self, ApiError> {
        let jwt = service.agreement.intent(pending, now).map_err(|error| ApiError::Internal(error.to_string()))?;
        let exp = decode_unverified(&jwt).map_err(|error| ApiError::Internal(error.to_string()))?.exp;
        // A quarter of its time at most, so that a page always shows one that lasts.
        let quarter = Timestamp::from_millis(exp.saturating_mul(1_000)).since(now) / 4;
        Ok(Self { jwt, exp, reused_until: now + quarter.min(PAGE_INTENT_REUSED_MAX), code: OnceCell::new() })
    }

    /// The code for the identity app's own scanner, as an element of a page, drawn when it is first
    /// wanted; `None` when it does not fit into one.
    pub(super) fn code(&self, service: &Service) -> Option<String> {
        let draw = || Picture::shown(&service.agreement.qr_payload(&self.jwt)).ok().map(|code| code.inline());
        self.code.get_or_init(draw).clone()
    }
}

/// The intents of one worker's pages.
#[derive(Clone, Debug, Default)]
pub struct PageIntents(Rc<RefCell<HashMap<TxnId, Rc<PageIntent>>>>);

impl PageIntents {
    /// Those of the worker that a request is on.
    pub(super) fn of(request: &HttpRequest) -> Self {
        request.app_data::<Self>().cloned().unwrap_or_default()
    }

    /// The one that the pages of this transaction show now, if there is one.
    pub(super) fn current(&self, id: TxnId, now: Timestamp) -> Option<Rc<PageIntent>> {
        self.0.borrow().get(&id).filter(|intent| now < intent.reused_until).cloned()
    }

    /// A fresh one, which the pages of this transaction show from now on.
    ///
    /// # Errors
    /// Only if the cryptographic library fails.
    pub(super) fn sign(&self, service: &Service, pending: &Pending, now: Timestamp) -> Result<Rc<PageIntent>, ApiError> {
        let intent = Rc::new(PageIntent::sign(service, pending, now)?);
        let mut kept = self.0.borrow_mut();
        if kept.len() >= PAGE_INTENTS_KEPT_MAX {
            kept.retain(|_, intent| now < intent.reused_until);
        }
        if kept.len() >= PAGE_INTENTS_KEPT_MAX
            && let Some(oldest) = kept.iter().min_by_key(|(_, intent)| intent.reused_until).map(|(id, _)| *id)
        {
            kept.remove(&oldest);
        }
        kept.insert(pending.id, Rc::clone(&intent));
        Ok(intent)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sakshi_domain::clock::Clock as _;

    use super::*;
    use crate::pages::scene::Scene;

    #[actix_rt::test]
    async fn an_intent_is_shown_again_for_a_while_and_never_for_long() {
        let scene = Scene::new().await;
        let (pending, service) = (scene.open(|_| {}).await, &scene.shared.service);
        let intents = PageIntents::default();
        let signed = intents.sign(service, &pending, scene.clock.now()).unwrap();
        scene.clock.advance(PAGE_INTENT_REUSED_MAX - Duration::from_millis(1));
        assert_eq!(intents.current(pending.id, scene.clock.now()).unwrap().jwt, signed.jwt);
        scene.clock.advance(Duration::from_millis(1));
        assert!(intents.current(pending.id, scene.clock.now()).is_none());
    }

    #[actix_rt::test]
    async fn near_its_end_an_intent_is_shown_for_a_quarter_of_what_is_left() {
        let scene = Scene::new().await;
        let pending = scene.open(|_| {}).await;
        scene.clock.advance(pending.expires_at.since(scene.clock.now()) - Duration::from_secs(20));
        let intents = PageIntents::default();
        let now = scene.clock.now();
        intents.sign(&scene.shared.service, &pending, now).unwrap();
        assert!(intents.current(pending.id, now + Duration::from_secs(4)).is_some());
        assert!(intents.current(pending.id, now + Duration::from_secs(6)).is_none());
    }

    #[actix_rt::test]
    async fn a_worker_keeps_no_more_than_its_bound_and_the_newest_of_them() {
        let scene = Scene::new().await;
        let first = scene.open(|_| {}).await;
        let intents = PageIntents::default();
        for number in 0..=PAGE_INTENTS_KEPT_MAX {
            let id = scene.shared.service.transactions.new_id(&first.client);
            let now = scene.clock.now() + Duration::from_millis(number as u64);
            let pending = if number == 0 { first.clone() } else { Pending { id, ..first.clone() } };
            intents.sign(&scene.shared.service, &pending, now).unwrap();
        }
        assert_eq!(intents.0.borrow().len(), PAGE_INTENTS_KEPT_MAX);
        assert!(intents.current(first.id, scene.clock.now()).is_none());
    }
}
