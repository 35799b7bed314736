//! Refused requests: the newest of each app are stored for a day.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use sakshi_domain::ids::AppId;
use sakshi_domain::limits::{REFUSAL_TTL, REFUSALS_KEPT_MAX};
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_domain::request_id::RequestId;

use super::TestStore;
use crate::Swept;

const MOMENT: Duration = Duration::from_millis(1);

/// Builds the record of a refused request, identified by a number.
pub(crate) fn build_refused_request(test: &impl TestStore, number: u32) -> RefusedRequest {
    RefusedRequest {
        at: test.now(),
        method: "POST".to_owned(),
        route: "/api/v1/nationalid-ovse/init".to_owned(),
        status: 400,
        code: "validation_failed".to_owned(),
        fields: vec!["claims[0]".to_owned(), "planted-field".to_owned()],
        request_id: RequestId::parse(&format!("request-{number}")).unwrap(),
    }
}

pub(crate) async fn the_newest_refused_requests_of_an_app_are_stored_newest_first(test: &impl TestStore) {
    let (app, other) = (AppId::generate(), AppId::generate());
    assert_eq!(test.store().refusals(app.clone()).await, Ok(vec![]));
    test.store().keep_refusal(other.clone(), build_refused_request(test, 0)).await.unwrap();
    let mut expected = Vec::new();
    for number in 0..REFUSALS_KEPT_MAX + 5 {
        let refused = build_refused_request(test, number);
        test.store().keep_refusal(app.clone(), refused.clone()).await.unwrap();
        expected.push(refused);
        test.advance(MOMENT);
    }
    expected.reverse();
    expected.truncate(usize::try_from(REFUSALS_KEPT_MAX).unwrap());
    assert_eq!(test.store().refusals(app).await, Ok(expected));
    assert_eq!(test.store().refusals(other).await.unwrap().len(), 1);
}

pub(crate) async fn a_refused_request_expires(test: &impl TestStore) {
    let app = AppId::generate();
    test.store().keep_refusal(app.clone(), build_refused_request(test, 1)).await.unwrap();
    test.advance(REFUSAL_TTL / 2);
    let later = build_refused_request(test, 2);
    test.store().keep_refusal(app.clone(), later.clone()).await.unwrap();
    test.advance(REFUSAL_TTL / 2 - MOMENT);
    assert_eq!(test.store().refusals(app.clone()).await.unwrap().len(), 2);
    test.advance(MOMENT);
    assert_eq!(test.store().refusals(app.clone()).await, Ok(vec![later]), "the later request has not expired");
    test.advance(REFUSAL_TTL);
    assert_eq!(test.store().refusals(app.clone()).await, Ok(vec![]));
    while test.store().sweep(test.now(), 1).await.unwrap() != Swept::default() {}
    assert_eq!(test.store().refusals(app).await, Ok(vec![]));
}
