//! Common parts of all pages, and the content of read-only pages.

use std::num::NonZeroU32;
use std::time::Duration;

use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::{AppId, EventId, TxnId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{App, ClientPatch};
use sakshi_domain::transaction::OptionalTerms;

use super::Browser;
use crate::pages_fixture::PagesFixture;

#[actix_rt::test]
async fn a_page_names_its_environment() {
    let mut fixture = PagesFixture::new().await;
    for (profile, badge) in [
        (Profile::Sandbox, "<p class=\"badge\">Sandbox</p>"),
        (Profile::Stage, "<p class=\"badge plain-badge\">Stage</p>"),
        (Profile::Production, "<p class=\"badge plain-badge\">Production</p>"),
    ] {
        fixture.shared.service.rules.profile = profile;
        let page = Browser::new(&fixture).get("/portal/sign-in").await;
        assert!(page.html.contains(badge), "{profile}: {}", page.html);
    }
}

#[actix_rt::test]
async fn pages_state_the_clients_own_time_for_results() {
    let fixture = PagesFixture::new().await;
    let patch = ClientPatch { result_ttl_s: Some(NonZeroU32::new(120)), ..ClientPatch::default() };
    let store = &fixture.shared.service.store;
    store.patch_client(fixture.first.client.clone(), patch, fixture.clock.now()).await.unwrap();
    let browser = Browser::signed_in(&fixture).await;
    let (webhooks, list) = (browser.get("/portal/webhooks").await, browser.get("/portal/verifications").await);
    assert!(webhooks.html.contains("available for 2 minutes."), "{}", webhooks.html);
    assert!(list.html.contains("A result is kept for 2 minutes."), "{}", list.html);
}

#[actix_rt::test]
async fn no_page_is_stored_framed_indexed_or_larger_than_30_kilobytes_with_its_files() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let files = browser.get("/assets/portal.css").await.html.len() + browser.get("/assets/portal.js").await.html.len();
    for path in [
        "/portal",
        "/portal/sign-in",
        "/portal/events",
        "/portal/events/new",
        "/portal/checks",
        "/portal/webhooks",
        "/portal/credits",
        "/portal/status",
        "/portal/events/none",
    ] {
        let page = browser.get(path).await;
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(page.header("x-robots-tag"), Some("noindex"), "{path}");
        assert_eq!(page.header("referrer-policy"), Some("same-origin"), "{path}");
        let policy = page.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(
            !page.html.contains("style=\"") && !page.html.contains("<style") && !page.html.contains("onclick"),
            "{path}"
        );
        assert!(page.html.len() + files < 30_000, "{path}: {} and {files}", page.html.len());
    }
}

#[actix_rt::test]
async fn transactions_and_events_of_another_app_get_404() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let event = fixture.create_event(|_| {}).await;
    let other_app = App { app_id: AppId::generate(), name: "Other".into(), ..fixture.app.clone() };
    assert!(fixture.shared.service.store.create_app(other_app.clone()).await.unwrap());
    let mut browser = Browser::new(&fixture);
    browser.sign_in(fixture.first.key.reveal(), other_app.app_id.as_str()).await;
    let partition = fixture.app.client_id.partition();
    for path in [
        format!("/portal/transactions/{}", pending.id),
        format!("/portal/transactions/{}", TxnId::generate(partition, 1)),
        "/portal/transactions/none".to_owned(),
        format!("/portal/events/{}", event.id),
        format!("/portal/events/{}/live", event.id),
        format!("/portal/events/{}/settings", event.id),
        format!("/portal/events/{}/guests", event.id),
        format!("/portal/events/{}/poster", event.id),
        format!("/portal/events/{}/guests.csv", event.id),
        format!("/portal/events/{}", EventId::generate(partition, 1)),
    ] {
        let answer = browser.get(&path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.html.contains("There is nothing here"), "{path}");
        assert!(answer.html.contains("<a href=\"/portal/events\">Events</a>"), "{path}: the page has the navigation");
    }
    for path in ["settings", "doors"] {
        let patched = browser.send(&format!("/portal/events/{}/{path}", event.id), &[("is_active", "false")]).await;
        assert_eq!(patched.status, 404, "{path}");
    }
    assert!(!browser.get("/portal/events").await.html.contains(&event.id.to_string()));
}

#[actix_rt::test]
async fn the_statement_is_newest_first_and_links_to_transactions() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let mut opened = Vec::new();
    for _ in 0..12 {
        opened.push(fixture.open(|_| {}).await.id.to_string());
    }
    let page = browser.get("/portal/credits").await;
    assert!(page.html.contains("<p class=\"big\">988</p>") && page.html.contains("Page 1 of 2"));
    let last = &opened[11];
    assert!(page.html.contains(&format!("href=\"/portal/transactions/{last}\"")) && !page.html.contains(&opened[0]));
    assert!(page.html.find(last.as_str()) < page.html.find(&opened[10]));
    let older = browser.get("/portal/credits?page=2").await;
    assert!(older.html.contains(&opened[0]) && older.html.contains("+1000") && !older.html.contains(last));
    assert!(page.html.contains("Used in the last 30 days: 12"));
}

#[actix_rt::test]
async fn a_transaction_page_shows_reference_times_and_reason() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let reference = Some("order-42".to_owned());
    let declined = fixture
        .open(|terms| {
            terms.extras = Some(Box::new(OptionalTerms { client_reference_id: reference, ..OptionalTerms::default() }));
        })
        .await;
    fixture.clock.advance(Duration::from_millis(12_340));
    fixture.fail(&declined, "User Reject", "301").await;
    let page = browser.get(&format!("/portal/transactions/{}", declined.id)).await;
    assert!(page.html.contains("<dd id=\"reference\"><bdi>order-42</bdi></dd>"), "{}", page.html);
    assert!(
        page.html.contains("id=\"opened\"><b>Opened</b> <time") && page.html.contains("after 12.3 s, code 301"),
        "{}",
        page.html
    );
    assert!(page.html.contains("The person was told: “You declined the request"), "{}", page.html);
    assert!(
        !page.html.contains(": User Reject")
            && page.html.contains("<p class=\"back\"><a href=\"/portal/verifications\">")
    );
}

#[actix_rt::test]
async fn every_link_of_the_list_has_a_different_text() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    for _ in 0..5 {
        fixture.open(|_| {}).await;
    }
    let page = browser.get("/portal/verifications").await;
    let links: Vec<_> = page.html.split("<a href=\"/portal/transactions/").skip(1).collect();
    let words = links.iter().map(|link| link.split_once('>').unwrap().1.split_once("</a>").unwrap().0);
    let distinct: std::collections::BTreeSet<_> = words.collect();
    assert_eq!((links.len(), distinct.len()), (5, 5), "{distinct:?}");
}

#[actix_rt::test]
async fn the_icon_is_an_svg_that_browsers_cache() {
    let fixture = PagesFixture::new().await;
    let pages = [Browser::new(&fixture).get("/portal/sign-in").await.html, fixture.page("/v/none", "").await.1];
    for html in pages {
        let address = html.split("<link rel=\"icon\" href=\"").nth(1).unwrap().split('"').next().unwrap();
        let icon = Browser::new(&fixture).get(address).await;
        assert_eq!((icon.status, icon.header("content-type")), (200, Some("image/svg+xml")), "{address}");
        assert!(icon.header("cache-control").unwrap().contains("immutable") && icon.html.starts_with("<svg"));
    }
}

#[actix_rt::test]
async fn guests_of_an_event_are_listed_with_what_they_shared() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let event = fixture.create_event(|_| {}).await;
    let started = browser.post(&format!("/e/{}/start", event.id), &[]).await;
    let guest = fixture.load_pending(started.location.rsplit('/').next().unwrap().parse().unwrap()).await;
    fixture.verify(&guest).await;
    let page = browser.get(&format!("/portal/events/{}", event.id)).await;
    assert_eq!((page.element_text("registrations"), page.element_text("scans")), ("1".to_owned(), "1".to_owned()));
    assert!(page.html.contains(&format!("/portal/transactions/{}", guest.id)));
    let guest_page = browser.get(&format!("/portal/transactions/{}", guest.id)).await;
    assert!(guest_page.html.contains(&format!("href=\"/portal/events/{}\"", event.id)));
    assert!(
        page.html.contains("<bdi>Asha Rao</bdi>") && !guest_page.html.contains("Asha Rao"),
        "the name is hidden until requested"
    );

    let printed_list = browser.get(&format!("/portal/events/{}/guests", event.id)).await;
    assert!(
        printed_list.status == 200
            && printed_list.html.contains("1 guest by name")
            && printed_list.html.contains("<bdi>Asha Rao</bdi>"),
        "{}",
        printed_list.html
    );
    let csv = browser.get(&format!("/portal/events/{}/guests.csv", event.id)).await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    assert_eq!(csv.header("content-disposition"), Some(&*format!("attachment; filename=\"guests-{}.csv\"", event.id)));
    assert_eq!(csv.header("cache-control"), Some("no-store"));
    let lines: Vec<_> = csv.html.strip_prefix('\u{feff}').unwrap().split("\r\n").collect();
    assert!(
        lines[0].starts_with("txn_id,registration_code,verified_at,possible_duplicate_of,checked_in_at,gate,name"),
        "{lines:?}"
    );
    let row: Vec<_> = lines[1].split(',').collect();
    let code = row[1].trim_matches(['"', '\'']);
    assert!(
        row[0] == guest.id.to_string() && code.len() == 6 && row[2].starts_with("20") && row[6] == "\"Asha Rao\"",
        "{lines:?}"
    );
    assert_eq!(lines[2..], [""]);
}

#[actix_rt::test]
async fn unknown_addresses_and_reloaded_forms_lead_back() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let unknown = browser.get("/portal/evnets").await;
    assert!(
        unknown.status == 404
            && unknown.html.contains("There is nothing here")
            && unknown.html.contains("<a href=\"/portal/credits\">Credits</a>")
    );
    for path in ["/portal/", "/portal/sign-out"] {
        let back = browser.get(path).await;
        assert_eq!((back.status, back.location.as_str()), (303, "/portal"), "{path}");
    }
    let stranger = Browser::new(&fixture).get("/portal/evnets").await;
    assert_eq!((stranger.status, stranger.location.as_str()), (303, "/portal/sign-in"));
}

#[actix_rt::test]
async fn commands_contain_the_app_id_and_never_the_key() {
    let fixture = PagesFixture::new().await;
    let page = Browser::signed_in(&fixture).await.get("/portal/credits").await;
    assert!(
        page.html.contains(&format!("export APP={};", fixture.first.app.as_str()))
            && !page.html.contains(fixture.first.key.reveal())
    );
}
