//! The memory limit for responses that clients have not read yet.

use sakshi_domain::clock::Clock as _;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::limits::{ANSWER_BYTES_HELD_MAX, FILE_BYTES_MAX};
use sakshi_domain::tenancy::{App, Client};
use sakshi_kit::flow_records::Party;
use sakshi_service::ServiceError;
use sakshi_service::flow_polls::poll_locker;
use sakshi_store::ReportFlow;
use sakshi_wire::reports::FlowReport;

use crate::pages_fixture::PagesFixture;
use crate::store_fixture::RESULT_TTL;

#[actix_rt::test]
async fn an_app_with_unread_responses_is_refused_before_memory_runs_out() {
    let fixture = PagesFixture::new().await;
    let (service, app) = (&fixture.shared.service, &fixture.app);
    let other_app = App { app_id: AppId::generate(), client_id: ClientId::generate(), ..app.clone() };
    let client = Client::new(other_app.client_id.clone(), "Other".into(), fixture.clock.now());
    service.store.create_client(client).await.unwrap();
    assert!(service.store.create_app(other_app.clone()).await.unwrap());
    let mut ids = Vec::new();
    for app in [app, &other_app] {
        let party = Party { client: app.client_id.clone(), app: app.app_id.clone(), now: fixture.clock.now() };
        let flow = party.open_locker(&service.store).await;
        let large = flow.locker_report_with_file("Fetched", "QUJD".repeat(FILE_BYTES_MAX / 3));
        let report = FlowReport::parse(ReportKind::DocLocker, large.to_string().as_bytes()).unwrap();
        service
            .store
            .report_flow(ReportFlow { report, result_ttl: RESULT_TTL, pending_ttl: RESULT_TTL })
            .await
            .unwrap();
        ids.push(flow.id.to_string());
    }
    let mut unread = vec![poll_locker(service, app, &ids[0]).await.unwrap()];
    let bytes = service.memory.answers.bytes_held();
    assert!(bytes >= FILE_BYTES_MAX);
    for _ in 1..ANSWER_BYTES_HELD_MAX / bytes {
        unread.push(poll_locker(service, app, &ids[0]).await.unwrap());
    }
    let refused = poll_locker(service, app, &ids[0]).await.unwrap_err();
    assert!(matches!(refused, ServiceError::Overloaded), "{refused:?}");
    assert!(poll_locker(service, &other_app, &ids[1]).await.is_ok(), "other apps still get responses");
    unread.pop();
    assert!(poll_locker(service, app, &ids[0]).await.is_ok());
}

#[actix_rt::test]
async fn a_large_result_takes_memory_of_its_client_until_it_was_sent() {
    let fixture = PagesFixture::new().await;
    let memory = fixture.shared.service.memory.answers.clone();
    for (name_bytes, bytes_held) in [(100, 0..1), (200_000, 200_000..210_000)] {
        let pending = fixture.open(|_| {}).await;
        fixture.verify_as(&pending, &"A".repeat(name_bytes)).await;
        let unread = fixture.get_as_client(&format!("/api/v1/nationalid-ovse/result/{}", pending.id)).await;
        assert_eq!(unread.status(), 200);
        assert!(bytes_held.contains(&memory.bytes_held()), "{}", memory.bytes_held());
        drop(unread);
        assert_eq!(memory.bytes_held(), 0);
    }
}
