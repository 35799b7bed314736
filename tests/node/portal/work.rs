//! Daily work: the overview, the filtered list and its file, details behind a button, and orders.

use std::time::Duration;

use actix_web::http::header::COOKIE;
use actix_web::test::TestRequest;
use sakshi_domain::client_log::{Action, LogFilter, Subject};
use sakshi_domain::clock::Clock as _;
use sakshi_domain::day_figures::{Day, DayFigures};
use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::ids::AppId;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::retention::ClientRetention;
use sakshi_domain::tenancy::ClientPatch;
use sakshi_service::client_log;
use sakshi_store::OpenFlow;

use super::Browser;
use crate::pages_fixture::PagesFixture;

#[actix_rt::test]
async fn details_are_shown_on_request_and_the_log_records_it() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let passed = fixture.open(|_| {}).await;
    fixture.verify(&passed).await;
    let path = format!("/portal/transactions/{}", passed.id);
    let hidden = browser.get(&path).await;
    assert!(
        !hidden.html.contains("Asha Rao")
            && !hidden.html.contains("id=\"body\"")
            && hidden.html.contains("Show the details")
    );
    let log = async || {
        let filter = LogFilter { action: Some(Action::DetailsShown), ..LogFilter::default() };
        client_log::list(&fixture.shared.service, fixture.first.client.clone(), filter, None, 10).await.unwrap().entries
    };
    assert!(log().await.is_empty());
    assert_eq!(browser.post(&format!("{path}/details"), &[]).await.status, 403, "a form of another page");
    assert!(log().await.is_empty());
    let page = browser.send(&format!("{path}/details"), &[]).await;
    assert!(page.status == 200 && page.html.contains("Asha Rao") && page.html.contains("Full name"), "{}", page.html);
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let [entry] = &log().await[..] else { panic!("one view makes one entry") };
    assert_eq!((entry.action, &entry.subjects[..]), (Action::DetailsShown, &[Subject::Transaction(passed.id)][..]));
    let reload = browser.get(&format!("{path}/details")).await;
    assert_eq!((reload.status, reload.location), (303, path));
    let unknown =
        format!("/portal/transactions/{}/details", sakshi_domain::ids::TxnId::generate(passed.client.partition(), 0));
    assert_eq!(browser.send(&unknown, &[]).await.status, 404);
    assert_eq!(log().await.len(), 1);
}

#[actix_rt::test]
async fn the_csv_file_has_the_filtered_list_and_no_details() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let (passed, declined) = (fixture.open(|_| {}).await, fixture.open(|_| {}).await);
    fixture.clock.advance(Duration::from_secs(2));
    fixture.verify(&passed).await;
    fixture.fail(&declined, "no", "301").await;
    let csv = browser.get("/portal/verifications.csv").await;
    assert_eq!(csv.header("content-disposition"), Some("attachment; filename=\"verifications.csv\""));
    let lines: Vec<_> = csv.html.strip_prefix('\u{feff}').unwrap().split("\r\n").collect();
    assert!(lines.len() == 4 && lines[0].starts_with("txn_id,client_reference_id,status,code"), "{lines:?}");
    assert!(lines[1].starts_with(&format!("{},\"\",failed,\"301\",", declined.id)), "{lines:?}");
    assert!(
        lines[2].starts_with(&format!("{},\"\",passed,\"\",", passed.id)) && lines[2].contains(",2.000,"),
        "{lines:?}"
    );
    assert!(!csv.html.contains("Asha"));
    fixture.fail(&fixture.open(|_| {}).await, "no", "=1+1,\"x").await;
    let csv = browser.get("/portal/verifications.csv").await.html;
    assert!(csv.contains(",failed,\"'=1+1,\"\"x\","), "a stranger chooses the code: {csv}");
    let filtered = browser.get("/portal/verifications.csv?why=301").await.html;
    assert!(filtered.contains(&declined.id.to_string()) && !filtered.contains(&passed.id.to_string()));
}

#[actix_rt::test]
async fn a_downloaded_file_takes_memory_of_its_client_until_it_was_sent() {
    let fixture = PagesFixture::new().await;
    let cookie = Browser::signed_in(&fixture).await.cookie.unwrap();
    let event = fixture.create_event(|_| {}).await;
    let memory = fixture.shared.service.memory.answers.clone();
    for path in ["/portal/verifications.csv".to_owned(), format!("/portal/events/{}/guests.xlsx", event.id)] {
        let unread = fixture.call(TestRequest::get().uri(&path).insert_header((COOKIE, cookie.as_str()))).await;
        assert_eq!(unread.status(), 200, "{path}");
        assert!(memory.bytes_held() > 0, "{path}");
        drop(unread);
        assert_eq!(memory.bytes_held(), 0, "{path}");
    }
}

#[actix_rt::test]
async fn an_active_filter_is_a_chip_and_the_count_shows_its_range() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    for _ in 0..3 {
        fixture.open(|_| {}).await;
    }
    let page = browser.get("/portal/verifications?status=verified").await.html;
    assert!(
        page.contains("aria-label=\"Remove the filter Status: Verified\"") && page.contains("0 of 3 searched"),
        "{page}"
    );
    assert!(page.contains("Nothing found") && page.contains("<option value=\"verified\" selected>"), "{page}");
    let all = browser.get("/portal/verifications").await.html;
    assert!(!all.contains("Clear all") && all.contains("3 shown") && all.contains("15:00 left"), "{all}");
}

#[actix_rt::test]
async fn the_overview_shows_what_needs_attention_and_the_first_steps() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let page = browser.get("/portal").await.html;
    assert!(
        page.contains("First steps")
            && !page.contains("Needs attention")
            && page.contains("No verification was opened."),
        "{page}"
    );
    let event = fixture.create_event(|_| {}).await;
    fixture.set_balance(0).await;
    let page = browser.get("/portal").await.html;
    assert!(
        page.contains("No credits are left.") && page.contains("turns guests away: no credits are left."),
        "{page}"
    );
    assert!(page.contains(&format!("<a href=\"/portal/events/{}\">Event</a>", event.id)), "{page}");
    assert_eq!(browser.get("/portal?x=1").await.status, 400);
}

#[actix_rt::test]
async fn the_overview_reports_a_balance_below_the_limit_of_the_client_or_of_the_settings() {
    let mut fixture = PagesFixture::new().await;
    let balance = fixture.balance().await;
    for (own, usual, is_low) in
        [(Some(0), 0, false), (Some(1), 0, true), (Some(0), 1, false), (None, 0, false), (None, 1, true)]
    {
        fixture.shared.service.rules.low_credits = balance + usual;
        let low_credits = Some(own.map(|above_balance| balance + above_balance));
        let patch = ClientPatch { low_credits, ..ClientPatch::default() };
        let store = &fixture.shared.service.store;
        store.patch_client(fixture.first.client.clone(), patch, fixture.clock.now()).await.unwrap();
        let page = Browser::signed_in(&fixture).await.get("/portal").await.html;
        assert_eq!(page.contains(&format!("{balance} credits are left.")), is_low, "{own:?} {usual}: {page}");
    }
}

#[actix_rt::test]
async fn the_overview_predicts_the_end_of_a_balance_from_a_week_and_no_less() {
    let fixture = PagesFixture::new().await;
    fixture.set_balance(10).await;
    let (store, today) = (&fixture.shared.service.store, Day::containing(fixture.clock.now()));
    let browser = Browser::signed_in(&fixture).await;
    for (days_ago, opened, sentence) in [(0, 30, None), (6, 1, Some("10 credits are left, enough for about 2 days."))] {
        let figures = DayFigures { opened, ..DayFigures::default() };
        let call_id = [u8::try_from(days_ago).unwrap(); 16];
        store.add_day_figures(fixture.first.app.clone(), today.plus(-days_ago), figures, call_id).await.unwrap();
        let page = browser.get("/portal").await.html;
        assert_eq!(page.contains("enough for about"), sentence.is_some(), "{page}");
        assert!(sentence.is_none_or(|sentence| page.contains(sentence)), "{page}");
    }
}

#[actix_rt::test]
async fn orders_are_listed_for_their_own_app_only() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    assert!(browser.get("/portal/orders").await.html.contains("No order yet"));
    let mut ids = Vec::new();
    for app in [fixture.first.app.clone(), AppId::generate()] {
        let id = FlowId::generate(fixture.first.client.partition(), 0);
        let header = FlowHeader {
            id,
            client: fixture.first.client.clone(),
            app,
            opened_at: fixture.clock.now(),
            request_id: RequestId::mint(),
            retention: ClientRetention::default(),
        };
        let flow = FlowState::DocLocker(DocLockerFlow::new(header));
        let until = fixture.clock.now() + Duration::from_secs(60);
        fixture
            .shared
            .service
            .store
            .open_flow(OpenFlow { flow, payload: None, until, idempotency: None })
            .await
            .unwrap();
        ids.push(id);
    }
    let list = browser.get("/portal/orders").await.html;
    assert!(list.contains(&format!("/portal/orders/{}", ids[0])) && !list.contains(&ids[1].to_string()), "{list}");
    let page = browser.get(&format!("/portal/orders/{}", ids[0])).await;
    assert!(
        page.status == 200 && page.html.contains("Document locker <span class=\"tag waiting\">Pending"),
        "{}",
        page.html
    );
    assert!(
        page.html.contains(&format!("/api/v1/doclocker/details/{}", ids[0])) && page.html.contains("No webhook yet")
    );
    assert_eq!(browser.get(&format!("/portal/orders/{}", ids[1])).await.status, 404);
    assert!(!browser.get("/portal/orders?kind=esign").await.html.contains(&ids[0].to_string()));
}
