//! Flows: opened once, with one delivery for each webhook, retained for their time.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome, Receiver, Subject};
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::statuses::SigningStatus;
use sakshi_domain::flow::transition::ReportRefusal;
use sakshi_domain::ids::AppId;
use sakshi_domain::limits::{FILE_BYTES_MAX, FLOW_END_GRACE};
use sakshi_domain::retention::ClientRetention;

use super::TestStore;
use super::fixture::{RESULT_TTL, build_app, build_client, build_idempotent_answer, client_with, receiver, url};
use super::flow_fixture::{
    ClientApp, FLOW_TTL, ShortReport, accept_report, build_report, create_client_app, document_flow, load_flow,
    locker_flow, locker_with_retention, open_flow, register_webhooks, wealth_flow,
};
use super::upkeep::sweep_all;
use crate::{CreateOutcome, LapseFlowOutcome, ReportFlowOutcome};

/// Returns the subjects of the due deliveries.
async fn due_subjects(test: &impl TestStore) -> Vec<Subject> {
    test.store().first_due_deliveries(100).await.unwrap().into_iter().map(|delivery| delivery.subject).collect()
}

pub(crate) async fn opening_a_flow_twice_opens_it_once(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    let (first, second) = (wealth_flow(test, &client_app), document_flow(test, &client_app, None));
    for _ in 0..2 {
        assert_eq!(test.store().open_flow(first.opening(test)).await, Ok(CreateOutcome::Created));
        assert_eq!(test.store().open_flow(second.opening(test)).await, Ok(CreateOutcome::Created));
    }
    accept_report(test, &first, ShortReport::Consent { status: "Accepted", content: 1 }).await;
    assert_eq!(test.store().open_flow(first.opening(test)).await, Ok(CreateOutcome::Created));
    assert!(matches!(load_flow(test, &first).await.unwrap().state,
            FlowState::Wealth(consent) if consent.consent_id().is_some()));
    let document = load_flow(test, &second).await.unwrap();
    assert!(matches!(document.state, FlowState::ESign(_)) && document.latest.is_some());
    assert_eq!(due_subjects(test).await.len(), 1);
}

pub(crate) async fn an_idempotency_key_opens_one_flow_and_an_unknown_client_none(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    let (first, second) = (locker_flow(test, &client_app), locker_flow(test, &client_app));
    let mut open = first.opening(test);
    open.idempotency = Some(build_idempotent_answer(test, &client_app.client, 1, 1));
    assert_eq!(test.store().open_flow(open).await, Ok(CreateOutcome::Created));
    for (request, expected) in [(1, None), (2, Some(CreateOutcome::KeyReused))] {
        let mut second_open = second.opening(test);
        second_open.idempotency = Some(build_idempotent_answer(test, &client_app.client, 1, request));
        let replayed = CreateOutcome::Replayed(build_idempotent_answer(test, &client_app.client, 1, 1).answer);
        assert_eq!(test.store().open_flow(second_open).await, Ok(expected.unwrap_or(replayed)));
    }
    assert_eq!(load_flow(test, &second).await, None);
    let unknown = ClientApp { client: build_client(test).client_id, app: client_app.app };
    assert_eq!(
        test.store().open_flow(locker_flow(test, &unknown).opening(test)).await,
        Ok(CreateOutcome::ClientNotFound)
    );
}

pub(crate) async fn three_identical_reports_queue_one_delivery(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    let flow = open_flow(test, locker_flow(test, &client_app)).await;
    let queued = accept_report(test, &flow, ShortReport::Locker { status: "Fetched", content: 1 }).await.unwrap();
    assert_eq!(receiver(test.store(), &queued).await, url("https://doclocker.example/hook"));
    for _ in 0..2 {
        assert_eq!(
            test.store().report_flow(build_report(&flow, ShortReport::Locker { status: "Fetched", content: 1 })).await,
            Ok(ReportFlowOutcome::Repeated)
        );
    }
    let refused =
        test.store().report_flow(build_report(&flow, ShortReport::Locker { status: "Fetched", content: 2 })).await;
    assert_eq!(refused, Ok(ReportFlowOutcome::Refused(ReportRefusal::AlreadyEnded("Fetched"))));
    let due = test.store().first_due_deliveries(10).await.unwrap();
    assert_eq!(due, [queued]);
}

pub(crate) async fn raw_then_analysed_then_raw_again_queues_two(test: &impl TestStore) {
    let flow = open_flow(test, wealth_flow(test, &create_client_app(test).await)).await;
    assert!(accept_report(test, &flow, ShortReport::Data { fetch: 1, form: "RAW", content: 1 }).await.is_some());
    assert!(accept_report(test, &flow, ShortReport::Data { fetch: 1, form: "ANALYSED", content: 1 }).await.is_some());
    assert_eq!(
        test.store().report_flow(build_report(&flow, ShortReport::Data { fetch: 1, form: "RAW", content: 1 })).await,
        Ok(ReportFlowOutcome::Repeated)
    );
    assert_eq!(due_subjects(test).await.len(), 2);
    assert!(
        accept_report(test, &flow, ShortReport::Data { fetch: 2, form: "RAW", content: 1 }).await.is_some(),
        "another fetch has its own webhooks"
    );
    assert!(accept_report(test, &flow, ShortReport::Historical { account: 1, content: 1 }).await.is_some());
    assert_eq!(
        test.store().report_flow(build_report(&flow, ShortReport::Historical { account: 1, content: 1 })).await,
        Ok(ReportFlowOutcome::Repeated)
    );
    assert_eq!(due_subjects(test).await.len(), 4);
}

pub(crate) async fn accepted_accepted_revoked_queues_two_webhooks(test: &impl TestStore) {
    let flow = open_flow(test, wealth_flow(test, &create_client_app(test).await)).await;
    accept_report(test, &flow, ShortReport::Consent { status: "Accepted", content: 1 }).await.unwrap();
    assert_eq!(
        test.store().report_flow(build_report(&flow, ShortReport::Consent { status: "Accepted", content: 1 })).await,
        Ok(ReportFlowOutcome::Repeated)
    );
    accept_report(test, &flow, ShortReport::Consent { status: "Revoked", content: 1 }).await.unwrap();
    let due = test.store().first_due_deliveries(10).await.unwrap();
    assert_eq!(due.len(), 2);
    for (delivery, status) in due.iter().zip(["Accepted", "Revoked"]) {
        let Subject::Flow { flow: id, webhook } = delivery.subject else { panic!("{delivery:?}") };
        let (url, _) = test.store().load_webhook(id, webhook).await.unwrap().unwrap();
        assert_eq!((id, url.as_str()), (flow.id, "https://consent.example/hook"), "{status}");
        assert!(test.store().claim_delivery(delivery.id, delivery.subject).await.unwrap());
    }
}

pub(crate) async fn a_deduplication_key_of_two_flows_has_one_webhook(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    let first = open_flow(test, wealth_flow(test, &client_app)).await;
    let second = open_flow(test, wealth_flow(test, &client_app).with_upstream_ids_of(&first)).await;
    for (number, report) in [
        ShortReport::Consent { status: "Accepted", content: 1 },
        ShortReport::Data { fetch: 1, form: "RAW", content: 1 },
        ShortReport::Historical { account: 1, content: 1 },
    ]
    .into_iter()
    .enumerate()
    {
        let (of_first, of_second) = tokio::join!(
            test.store().report_flow(build_report(&first, report)),
            test.store().report_flow(build_report(&second, report))
        );
        let (winner, loser) = if matches!(of_first, Ok(ReportFlowOutcome::Accepted { .. })) {
            (of_first, of_second)
        } else {
            (of_second, of_first)
        };
        assert!(matches!(winner, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. })), "{winner:?}");
        assert_eq!(loser, Ok(ReportFlowOutcome::Refused(ReportRefusal::ReportedDifferently)));
        assert_eq!(due_subjects(test).await.len(), number + 1);
    }
    let of_other_app = wealth_flow(test, &create_client_app(test).await).with_upstream_ids_of(&first);
    let of_other_app = open_flow(test, of_other_app).await;
    assert!(
        accept_report(test, &of_other_app, ShortReport::Consent { status: "Accepted", content: 1 }).await.is_some(),
        "another app has its own keys"
    );
}

pub(crate) async fn one_of_several_racing_contradictory_reports_wins(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    for _ in 0..5 {
        let flow = open_flow(test, locker_flow(test, &client_app)).await;
        let before = due_subjects(test).await.len();
        let reports = (0..8).map(|content| {
            let status = if content % 2 == 0 { "Fetched" } else { "Failed" };
            test.store().report_flow(build_report(&flow, ShortReport::Locker { status, content }))
        });
        let outcomes = join_all(reports).await;
        let accepted = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. })));
        assert_eq!(accepted.count(), 1, "{outcomes:?}");
        let refused = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Ok(ReportFlowOutcome::Refused(ReportRefusal::AlreadyEnded(_)))));
        assert_eq!(refused.count(), 7, "{outcomes:?}");
        assert_eq!(due_subjects(test).await.len(), before + 1);
    }
}

pub(crate) async fn racing_reports_of_one_flow_are_all_accepted(test: &impl TestStore) {
    let flow = open_flow(test, wealth_flow(test, &create_client_app(test).await)).await;
    let reports = (0..12).map(|fetch| {
        test.store().report_flow(build_report(&flow, ShortReport::Data { fetch, form: "RAW", content: 1 }))
    });
    for outcome in join_all(reports).await {
        assert!(matches!(outcome, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. })), "{outcome:?}");
    }
    assert_eq!(due_subjects(test).await.len(), 12);
}

pub(crate) async fn a_flow_without_a_url_completes_without_a_webhook_and_can_be_fetched(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    let flow = open_flow(test, locker_flow(test, &client_app)).await;
    assert_eq!(load_flow(test, &flow).await.unwrap().latest, None);
    assert_eq!(accept_report(test, &flow, ShortReport::Locker { status: "Pending", content: 1 }).await, None);
    assert!(!load_flow(test, &flow).await.unwrap().state.has_ended());
    assert_eq!(accept_report(test, &flow, ShortReport::Locker { status: "Fetched", content: 1 }).await, None);
    let record = load_flow(test, &flow).await.unwrap();
    assert!(record.state.has_ended() && record.latest.is_some());
    assert_eq!(record.kept_until, test.now() + RESULT_TTL);
    assert_eq!(due_subjects(test).await, []);
    test.advance(RESULT_TTL - Duration::from_millis(1));
    sweep_all(test).await;
    assert!(load_flow(test, &flow).await.unwrap().latest.is_some());
    test.advance(Duration::from_millis(1));
    for _ in 0..2 {
        assert_eq!(load_flow(test, &flow).await, None);
        assert_eq!(
            test.store().report_flow(build_report(&flow, ShortReport::Locker { status: "Fetched", content: 1 })).await,
            Ok(ReportFlowOutcome::NotFound)
        );
        sweep_all(test).await;
    }
}

pub(crate) async fn a_registered_url_applies_immediately_and_a_response_url_has_priority(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    let store = test.store();
    let set = |hook: Option<&str>| store.set_webhook_url(client_app.app.clone(), ApiType::ESign, hook.map(url));
    let first = open_flow(test, document_flow(test, &client_app, None)).await;
    let urls = set(Some("https://first.example/a")).await.unwrap().unwrap();
    assert_eq!(store.webhook_urls(client_app.app.clone()).await, Ok(Some(urls)));
    set(Some("https://second.example/b")).await.unwrap();
    let queued = accept_report(test, &first, ShortReport::Document("Rejected")).await.unwrap();
    assert_eq!(receiver(store, &queued).await, url("https://second.example/b"));
    let with_response_url = open_flow(test, document_flow(test, &client_app, Some("https://own.example/c"))).await;
    let to_response_url = accept_report(test, &with_response_url, ShortReport::Document("Rejected")).await.unwrap();
    assert_eq!(receiver(store, &to_response_url).await, url("https://own.example/c"));
    let last = open_flow(test, document_flow(test, &client_app, None)).await;
    set(None).await.unwrap();
    assert_eq!(store.webhook_urls(client_app.app.clone()).await.unwrap().unwrap().iter().count(), 0);
    assert_eq!(accept_report(test, &last, ShortReport::Document("Rejected")).await, None);
    let due = store.first_due_deliveries(10).await.unwrap();
    assert_eq!(due[0], queued, "a queued delivery keeps its URL");
    let unknown = AppId::generate();
    assert_eq!(store.set_webhook_url(unknown.clone(), ApiType::ESign, None).await, Ok(None));
    assert_eq!(store.webhook_urls(unknown).await, Ok(None));
}

pub(crate) async fn racing_registrations_of_urls_all_apply(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    let urls = test.store().webhook_urls(client_app.app).await.unwrap().unwrap();
    assert_eq!(urls.iter().count(), ApiType::ALL.len());
}

pub(crate) async fn a_flow_of_another_app_is_not_found(test: &impl TestStore) {
    let (owner, other) = (create_client_app(test).await, create_client_app(test).await);
    let flow = open_flow(test, locker_flow(test, &owner)).await;
    assert_eq!(test.store().load_flow(flow.id, other.app.clone()).await, Ok(None));
    let mut foreign = flow.clone();
    foreign.app = other.app;
    let outcome =
        test.store().report_flow(build_report(&foreign, ShortReport::Locker { status: "Fetched", content: 1 })).await;
    assert_eq!(outcome, Ok(ReportFlowOutcome::NotFound));
    let mut other_kind = flow.clone();
    other_kind.id = open_flow(test, wealth_flow(test, &owner)).await.id;
    let outcome = test
        .store()
        .report_flow(build_report(&other_kind, ShortReport::Locker { status: "Fetched", content: 1 }))
        .await;
    assert_eq!(outcome, Ok(ReportFlowOutcome::NotFound), "a flow of another kind is not found");
    assert!(!load_flow(test, &flow).await.unwrap().state.has_ended());
}

pub(crate) async fn a_report_with_an_unfinished_delivery_is_retained(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    let flow = open_flow(test, locker_flow(test, &client_app)).await;
    let queued = accept_report(test, &flow, ShortReport::Locker { status: "Fetched", content: 1 }).await.unwrap();
    let Subject::Flow { flow: id, webhook } = queued.subject else { panic!("{queued:?}") };
    test.advance(RESULT_TTL * 3);
    sweep_all(test).await;
    assert_eq!(load_flow(test, &flow).await, None, "the result expires nevertheless");
    assert_eq!(due_subjects(test).await, [queued.subject]);
    assert!(test.store().load_webhook(id, webhook).await.unwrap().is_some());
    assert!(test.store().claim_delivery(queued.id, queued.subject).await.unwrap());
    assert!(!test.store().claim_delivery(queued.id, queued.subject).await.unwrap());
    assert!(test.store().load_webhook(id, webhook).await.unwrap().is_some());
    let attempt = Attempt::from_status(204, 3);
    test.store().settle_delivery(queued.id, queued.subject, attempt).await.unwrap();
    sweep_all(test).await;
    assert_eq!(test.store().load_webhook(id, webhook).await, Ok(None));
    assert_eq!(test.store().load_delivery(queued.subject).await, Ok(None));
}

pub(crate) async fn the_outcome_of_an_attempt_for_a_flow_is_recorded(test: &impl TestStore) {
    let flow = open_flow(test, wealth_flow(test, &create_client_app(test).await)).await;
    let claimed = accept_report(test, &flow, ShortReport::Data { fetch: 1, form: "RAW", content: 1 }).await.unwrap();
    let settled =
        accept_report(test, &flow, ShortReport::Data { fetch: 1, form: "ANALYSED", content: 1 }).await.unwrap();
    for delivery in [&claimed, &settled] {
        assert!(test.store().claim_delivery(delivery.id, delivery.subject).await.unwrap());
    }
    let attempt = Attempt::from_status(500, 7);
    test.store().settle_delivery(settled.id, settled.subject, attempt).await.unwrap();
    assert_eq!(test.store().abandon_attempts().await, Ok(1));
    let record = test.store().load_delivery(settled.subject).await.unwrap().unwrap();
    assert_eq!(
        (record.id, record.origin.as_str(), record.attempt),
        (settled.id, "https://data.example", Some(attempt))
    );
    let record = test.store().load_delivery(claimed.subject).await.unwrap().unwrap();
    assert_eq!((record.queued_at, record.attempt.unwrap().outcome), (test.now(), DeliveryOutcome::Unknown));
    assert_eq!(due_subjects(test).await, []);
}

pub(crate) async fn the_operator_sees_the_deliveries_of_a_flow_in_order_with_summaries(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    let store = test.store();
    let (flow, silent) =
        (open_flow(test, wealth_flow(test, &client_app)).await, open_flow(test, locker_flow(test, &client_app)).await);
    assert_eq!(store.flow_deliveries(flow.id).await.unwrap().unwrap().deliveries, []);
    let reports = [
        ShortReport::Consent { status: "Accepted", content: 1 },
        ShortReport::Data { fetch: 1, form: "RAW", content: 1 },
        ShortReport::Data { fetch: 1, form: "ANALYSED", content: 1 },
        ShortReport::Historical { account: 1, content: 1 },
    ];
    let mut queued = Vec::new();
    for report in reports.into_iter().chain([ShortReport::Consent { status: "Expiring Soon", content: 1 }]) {
        queued.push(accept_report(test, &flow, report).await.unwrap());
        test.advance(Duration::from_millis(1));
    }
    let attempt = Attempt::from_status(500, 7);
    for delivery in &queued[..2] {
        assert!(store.claim_delivery(delivery.id, delivery.subject).await.unwrap());
    }
    store.settle_delivery(queued[1].id, queued[1].subject, attempt).await.unwrap();
    let overview = store.flow_deliveries(flow.id).await.unwrap().unwrap();
    assert_eq!((overview.state.kind(), overview.state.status()), ("wealth", "Expiring Soon"));
    let summaries: Vec<_> = overview.deliveries.iter().map(|delivery| delivery.summary.as_str()).collect();
    let historical = "wealth-historical HISTORICAL_DATA_FETCH_SUCCESS";
    let expected = [
        "wealth-consent Accepted",
        "wealth-data RAW SUCCESS",
        "wealth-data ANALYSED SUCCESS",
        historical,
        "wealth-consent Expiring Soon",
    ];
    assert_eq!(summaries, expected);
    for (listed, queued) in overview.deliveries.iter().zip(&queued) {
        assert_eq!(Subject::Flow { flow: flow.id, webhook: listed.webhook }, queued.subject);
        assert_eq!(Some(&listed.delivery), store.load_delivery(queued.subject).await.unwrap().as_ref());
    }
    assert!(
        overview.deliveries[0].delivery.attempt.is_none() && overview.deliveries[1].delivery.attempt == Some(attempt)
    );
    accept_report(test, &silent, ShortReport::Locker { status: "Fetched", content: 1 }).await;
    let overview = store.flow_deliveries(silent.id).await.unwrap().unwrap();
    assert_eq!(
        (overview.state.kind(), overview.state.status(), overview.deliveries),
        ("doclocker", "Fetched", vec![]),
        "a flow without a URL has no deliveries"
    );
    test.advance(RESULT_TTL);
    sweep_all(test).await;
    assert_eq!(store.flow_deliveries(silent.id).await, Ok(None));
    assert_eq!(store.flow_deliveries(locker_flow(test, &client_app).id).await, Ok(None));
}

pub(crate) async fn a_document_lapses_by_the_clock_of_the_store_and_is_reported_once(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    let flow = open_flow(test, document_flow(test, &client_app, None)).await;
    let lapse = || test.store().lapse_flow(flow.id, RESULT_TTL);
    test.advance(FLOW_TTL - Duration::from_millis(1));
    assert_eq!((lapse().await, test.store().lapsed_flows(10).await), (Ok(LapseFlowOutcome::NotDue), Ok(vec![])));
    test.advance(Duration::from_millis(1));
    assert_eq!(test.store().lapsed_flows(10).await, Ok(vec![flow.id]));
    let outcomes = join_all((0..4).map(|_| lapse())).await;
    let lapsed: Vec<_> = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Ok(LapseFlowOutcome::Lapsed { queued: Some(_), .. })))
        .collect();
    assert_eq!(lapsed.len(), 1, "{outcomes:?}");
    let FlowState::ESign(sakshi_domain::flow::esign::EsignFlow::Ended(ended)) =
        load_flow(test, &flow).await.unwrap().state
    else {
        panic!("the document has not ended")
    };
    assert_eq!(ended.end.outcome, SigningStatus::Expired);
    assert_eq!((due_subjects(test).await.len(), test.store().lapsed_flows(10).await), (1, Ok(vec![])));
    test.advance(RESULT_TTL);
    sweep_all(test).await;
    assert_eq!(lapse().await, Ok(LapseFlowOutcome::NotFound));
}

pub(crate) async fn a_document_still_lapses_at_the_end_of_the_grace_after_its_deadline(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    let flow = open_flow(test, document_flow(test, &client_app, None)).await;
    assert_eq!(accept_report(test, &flow, ShortReport::Document("Pending")).await, None);
    test.advance(FLOW_TTL + FLOW_END_GRACE - Duration::from_millis(1));
    sweep_all(test).await;
    let outcome = test.store().lapse_flow(flow.id, RESULT_TTL).await;
    assert!(matches!(outcome, Ok(LapseFlowOutcome::Lapsed { queued: Some(_), .. })), "{outcome:?}");
    assert_eq!(load_flow(test, &flow).await.unwrap().kept_until, test.now() + RESULT_TTL);
}

pub(crate) async fn a_document_of_ten_mebibytes_is_stored_once_and_returned(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    let flow = open_flow(test, locker_flow(test, &client_app)).await;
    let queued = accept_report(test, &flow, ShortReport::Large(FILE_BYTES_MAX)).await.unwrap();
    assert_eq!(
        test.store().report_flow(build_report(&flow, ShortReport::Large(FILE_BYTES_MAX))).await,
        Ok(ReportFlowOutcome::Repeated)
    );
    assert_eq!(due_subjects(test).await, [queued.subject]);
    let Subject::Flow { flow: id, webhook } = queued.subject else { panic!("{queued:?}") };
    let (_, body) = test.store().load_webhook(id, webhook).await.unwrap().unwrap();
    assert_eq!(load_flow(test, &flow).await.unwrap().latest, Some(body), "polls return the payload of the webhook");
}

pub(crate) async fn deliveries_of_flows_and_transactions_share_one_order(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    let flow = open_flow(test, wealth_flow(test, &client_app)).await;
    let owner = client_with(test, 5).await;
    assert!(test.store().create_app(build_app(test, &owner)).await.unwrap());
    let mut expected = Vec::new();
    for fetch in 0..3 {
        expected.push(
            accept_report(test, &flow, ShortReport::Data { fetch, form: "RAW", content: 1 }).await.unwrap().subject,
        );
        test.advance(Duration::from_millis(1));
        let (pending, _) = super::fixture::open_and_complete(test, &owner).await;
        expected.push(pending.id.into());
        test.advance(Duration::from_millis(1));
    }
    assert_eq!(due_subjects(test).await, expected);
    let receiver = Receiver { client: client_app.client.clone(), origin: "https://data.example".into() };
    let of_one_receiver = test.store().due_deliveries(None, Some(receiver), 10).await.unwrap();
    assert_eq!(of_one_receiver.len(), 3);
}

pub(crate) async fn the_result_of_a_flow_expires_after_the_retention_of_its_client(test: &impl TestStore) {
    let client_app = create_client_app(test).await;
    let short = ClientRetention { result_ttl_s: NonZeroU32::new(60), ..ClientRetention::default() };
    let (early, usual) = (
        open_flow(test, locker_with_retention(test, &client_app, short)).await,
        open_flow(test, locker_flow(test, &client_app)).await,
    );
    for flow in [&early, &usual] {
        assert_eq!(
            accept_report(test, flow, ShortReport::Locker { status: "Fetched", content: 1 }).await,
            None,
            "no URL is registered"
        );
    }
    test.advance(Duration::from_millis(59_999));
    assert!(load_flow(test, &early).await.is_some());
    test.advance(Duration::from_millis(1));
    assert!(load_flow(test, &early).await.is_none() && load_flow(test, &usual).await.is_some());
}
