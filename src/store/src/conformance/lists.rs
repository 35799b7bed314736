//! Data for lists and overviews: summaries of transactions, the flows of an app, and daily figures.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use sakshi_domain::day_figures::{AnswerKind, Day, DayFigures, FIGURE_DAYS};
use sakshi_domain::delivery::Attempt;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::{AppId, TxnId};
use sakshi_domain::transaction::TransactionStatus;

use super::TestStore;
use super::fixture::{RESULT_TTL, WINDOW, build_completion, build_declined_completion, client_with, open_pending};
use super::flow_fixture::{
    FLOW_TTL, ShortReport, accept_report, create_client_app, locker_flow, open_flow, register_webhooks, wealth_flow,
};
use crate::Swept;

const MINUTE: Duration = Duration::from_secs(60);

pub(crate) async fn a_summary_has_the_first_time_of_each_step_of_a_transaction(test: &impl TestStore) {
    let (store, client) = (test.store(), client_with(test, 3).await);
    let pending = open_pending(test, &client).await;
    let id = pending.id;
    store.note_poll(id).await.unwrap();
    test.advance(MINUTE);
    let page_seen_at = Some(test.now());
    store.note_page(id).await.unwrap();
    test.advance(MINUTE);
    store.note_page(id).await.unwrap();
    let current = summary(test, id).await;
    assert_eq!(
        (current.opened, current.status, current.page_seen_at),
        (pending, TransactionStatus::Pending, page_seen_at)
    );
    assert_eq!((current.verified_at, current.code, current.polled_at, current.delivery), (None, None, None, None));

    let verified_at = Some(test.now());
    store.complete_transaction(build_completion(id, 1)).await.unwrap();
    let queued = store.load_delivery(id.into()).await.unwrap().unwrap();
    store.claim_delivery(queued.id, id.into()).await.unwrap();
    store.settle_delivery(queued.id, id.into(), Attempt::from_status(503, 7)).await.unwrap();
    test.advance(MINUTE);
    let polled_at = Some(test.now());
    store.note_poll(id).await.unwrap();
    test.advance(MINUTE);
    store.note_poll(id).await.unwrap();
    let current = summary(test, id).await;
    assert_eq!(
        (current.status, current.page_seen_at, current.verified_at),
        (TransactionStatus::Passed, page_seen_at, verified_at)
    );
    assert_eq!((current.polled_at, current.delivery), (polled_at, store.load_delivery(id.into()).await.unwrap()));

    let (declined, late) = (open_pending(test, &client).await.id, open_pending(test, &client).await.id);
    store
        .complete_transaction(crate::CompleteTransaction {
            code: Some("301".into()),
            ..build_declined_completion(declined, 2)
        })
        .await
        .unwrap();
    store.note_page(declined).await.unwrap();
    test.advance(WINDOW);
    let current = summary(test, declined).await;
    assert_eq!(
        (current.status, current.code.as_deref(), current.page_seen_at),
        (TransactionStatus::Failed, Some("301"), None)
    );
    assert_eq!(summary(test, late).await.status, TransactionStatus::Expired);

    test.advance(RESULT_TTL);
    let unknown = TxnId::generate(client.partition(), 0);
    assert_eq!(store.summarise_transactions(vec![id, unknown]).await, Ok(vec![None, None]));
}

async fn summary(test: &impl TestStore, id: TxnId) -> crate::TransactionSummary {
    test.store().summarise_transactions(vec![id]).await.unwrap().pop().unwrap().unwrap()
}

pub(crate) async fn the_figures_of_a_day_add_up_and_a_repeated_call_counts_once(test: &impl TestStore) {
    let (store, app, today) = (test.store(), AppId::generate(), Day::containing(test.now()));
    let mut first = DayFigures { opened: 3, lost: 1, ..DayFigures::default() };
    first.count_answer(AnswerKind::Verified, MINUTE);
    first.count_answer(AnswerKind::Declined, WINDOW);
    let second = DayFigures { opened: 2, failed: 1, delivered: 4, ..DayFigures::default() };
    for (call, figures) in [(1, &first), (2, &second)] {
        // Only an engine that may lose a response recognises a repeated call.
        for _ in 0..if store.is_shared() { 2 } else { 1 } {
            store.add_day_figures(app.clone(), today, figures.clone(), [call; 16]).await.unwrap();
        }
    }
    let oldest = today.plus(1 - FIGURE_DAYS);
    store.add_day_figures(app.clone(), oldest, second.clone(), [3; 16]).await.unwrap();
    let mut both = first;
    both += &second;
    let days = store.day_figures(app.clone(), today).await.unwrap();
    assert_eq!(days.len() as i64, FIGURE_DAYS);
    assert_eq!((days.first(), days.last()), (Some(&(oldest, second)), Some(&(today, both.clone()))));
    assert_eq!(store.day_figures(AppId::generate(), today).await.unwrap().pop(), Some((today, DayFigures::default())));
    test.advance(Duration::from_secs(3 * 86_400));
    while store.sweep(test.now(), 10).await.unwrap() != Swept::default() {}
    let days = store.day_figures(app, today).await.unwrap();
    assert_eq!((&days[0].1, &days[days.len() - 1].1), (&DayFigures::default(), &both), "the oldest day has expired");
}

pub(crate) async fn flows_are_listed_for_their_app_while_they_are_retained(test: &impl TestStore) {
    let (client_app, other) = (create_client_app(test).await, create_client_app(test).await);
    register_webhooks(test, &client_app).await;
    let first = open_flow(test, locker_flow(test, &client_app)).await;
    test.advance(MINUTE);
    let second = open_flow(test, wealth_flow(test, &client_app)).await;
    open_flow(test, locker_flow(test, &other)).await;
    let listed = async || {
        let flows = test.store().list_flows(client_app.client.clone(), client_app.app.clone(), 10).await.unwrap();
        flows
            .into_iter()
            .map(|flow| (flow.state.header().id, flow.state.status(), flow.deliveries.len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed().await, [(second.id, "Pending", 0), (first.id, "Pending", 0)]);
    test.advance(MINUTE);
    let delivery = accept_report(test, &first, ShortReport::Locker { status: "Fetched", content: 1 }).await.unwrap();
    assert_eq!(delivery.app, Some(client_app.app.clone()));
    assert_eq!(listed().await, [(second.id, "Pending", 0), (first.id, "Fetched", 1)], "the report queued a delivery");
    test.advance(RESULT_TTL);
    // An ended flow is retained for a shorter time.
    test.store().claim_delivery(delivery.id, delivery.subject).await.unwrap();
    test.store().settle_delivery(delivery.id, delivery.subject, Attempt::from_status(200, 1)).await.unwrap();
    assert_eq!(listed().await, [(second.id, "Pending", 0)]);
    test.store().erase(ErasureSubject::Flow(second.id)).await.unwrap();
    assert_eq!(listed().await, []);
    test.advance(FLOW_TTL + RESULT_TTL);
    let third = open_flow(test, locker_flow(test, &client_app)).await;
    assert_eq!(listed().await, [(third.id, "Pending", 0)]);
    // A report extends the retention of a consent.
    let lasting = open_flow(test, wealth_flow(test, &client_app)).await;
    test.advance(FLOW_TTL + RESULT_TTL - MINUTE);
    accept_report(test, &lasting, ShortReport::Consent { status: "Accepted", content: 1 }).await.unwrap();
    test.advance(2 * MINUTE);
    let next = open_flow(test, locker_flow(test, &client_app)).await;
    assert_eq!(listed().await, [(next.id, "Pending", 0), (lasting.id, "Accepted", 1)]);
}
