//! Pages of records: clients, transactions, lost webhooks, the search by id, and the audit log.

use std::time::Duration;

use sakshi_domain::clock::Clock as _;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::delivery::{Attempt, AttemptPart, DeliveryOutcome, FailureReason};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::transaction::{AnswerDigest, OptionalTerms};
use sakshi_kit::{flow_records, records};
use sakshi_store::{CompleteOutcome, CompleteTransaction, CreateEvent, GuestDetails, Vault};

use super::{Browser, listener};
use crate::store_fixture::StoreFixture;

/// A client with credits and an app.
pub(super) struct Party {
    pub(super) client: ClientId,
    pub(super) app: AppId,
}

pub(super) async fn create_party(fixture: &StoreFixture) -> Party {
    let client = fixture.create_client().await;
    let grant = CreditMove { kind: EntryKind::Grant, amount: 500, reference: "first".into() };
    fixture.store.move_credits(client.clone(), grant).await.unwrap();
    let app = fixture.create_app(&client).await;
    Party { client, app }
}

/// Opens a transaction with this webhook URL and a client reference.
pub(super) async fn open_transaction(fixture: &StoreFixture, party: &Party, webhook: Option<&str>) -> TxnId {
    let id = TxnId::generate(party.client.partition(), 0);
    let mut pending = records::pending(id, party.client.clone(), party.app.clone(), fixture.clock.now());
    pending.terms.webhook_url = webhook.map(|url| serde_json::from_value::<WebhookUrl>(url.into()).unwrap());
    pending.terms.extras =
        Some(Box::new(OptionalTerms { client_reference_id: Some("order-42".into()), ..OptionalTerms::default() }));
    fixture.store.open_transaction(records::opening(pending)).await.unwrap();
    id
}

/// The outcome of a verification.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Declined,
}

/// Completes a transaction, and settles its webhook, if it has one, with this attempt.
pub(super) async fn complete_transaction(
    fixture: &StoreFixture,
    id: TxnId,
    verdict: Verdict,
    attempt: Option<Attempt>,
) {
    let passed = verdict == Verdict::Passed;
    let sealed_outcome = Vault::new(&[vec![7; 32].into()]).unwrap().seal(id.as_bytes(), b"{\"planted\":\"Asha Rao\"}");
    let complete = CompleteTransaction {
        id,
        known: None,
        passed,
        code: (!passed).then(|| "user_declined".to_owned()),
        outcome: sealed_outcome,
        evidence: None,
        answer: AnswerDigest([1; 32]),
        guest: GuestDetails::default(),
        credential: None,
        replay_window: Duration::from_secs(60),
        result_ttl: Duration::from_secs(3_600),
    };
    let CompleteOutcome::Completed { queued, .. } = fixture.store.complete_transaction(complete).await.unwrap() else {
        panic!()
    };
    if let (Some(queued), Some(attempt)) = (queued, attempt) {
        assert!(fixture.store.claim_delivery(queued.id, id.into()).await.unwrap());
        fixture.store.settle_delivery(queued.id, id.into(), attempt).await.unwrap();
    }
}

const CERTIFICATE_EXPIRED: Attempt =
    Attempt::unanswered(DeliveryOutcome::Unreachable, FailureReason::TlsExpired, Some(AttemptPart::Tls), 12);

#[actix_rt::test]
async fn a_flow_page_says_if_the_client_can_poll() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, Party { client, app }) = (Browser::signed_in(&service).await, create_party(&fixture).await);
    let party = flow_records::Party { client, app, now: fixture.clock.now() };
    let (document, stamp) = (party.open_document(&fixture.store).await, party.open_stamp(&fixture.store).await);
    for (id, polls) in [(document.id, "The client polls for lost outcomes."), (stamp.id, "This flow has no poll")] {
        let page = browser.page(&format!("/console/flows/{id}")).await;
        assert!(page.contains(polls), "{page}");
    }
}

#[actix_rt::test]
async fn a_transaction_page_explains_why_its_webhook_was_lost() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, party) = (Browser::signed_in(&service).await, create_party(&fixture).await);
    let id = open_transaction(&fixture, &party, Some("https://client.example/hooks/planted-secret")).await;
    let page = browser.page(&format!("/console/transactions/{id}")).await;
    assert!(
        page.contains("Nobody has opened its page")
            && page.contains("No answer of the identity app has arrived yet.")
            && page.contains("one credit was debited"),
        "{page}"
    );
    fixture.clock.advance(Duration::from_secs(75));
    complete_transaction(&fixture, id, Verdict::Passed, Some(CERTIFICATE_EXPIRED)).await;
    let page = browser.page(&format!("/console/transactions/{id}")).await;
    for words in [
        "The person was verified, after 1 min 15 s.",
        "queued for https://client.example.",
        "The webhook was lost: unreachable, after 12 ms. The receiver does not have it.",
        "certificate is not valid now (tls_expired)",
        &format!("GET /api/v1/nationalid-ovse/result/{id} until"),
        "The client has not fetched the outcome.",
        "order-42",
        "Acme",
        "Kiosk",
    ] {
        assert!(page.replace("&#39;", "'").contains(words), "{words}: {page}");
    }
    assert!(!page.contains("planted") && !page.contains("Asha Rao"), "{page}");
}

#[actix_rt::test]
async fn transaction_pages_explain_a_refusal_an_expiry_and_a_missing_webhook() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, party) = (Browser::signed_in(&service).await, create_party(&fixture).await);
    let declined = open_transaction(&fixture, &party, None).await;
    complete_transaction(&fixture, declined, Verdict::Declined, None).await;
    let page = browser.page(&format!("/console/transactions/{declined}")).await;
    assert!(page.contains("The person was not verified") && page.contains("code user_declined"), "{page}");
    assert!(page.contains("No webhook was sent, because no URL was known."), "{page}");
    let expired = open_transaction(&fixture, &party, Some("https://client.example/hooks")).await;
    fixture.clock.advance(records::WINDOW);
    let page = browser.page(&format!("/console/transactions/{expired}")).await;
    assert!(page.contains("Nobody answered in time") && page.contains("the credit stays spent"), "{page}");
}

#[actix_rt::test]
async fn the_search_box_finds_everything_by_its_id() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, operator) = Browser::with_role(&service, "auditor").await;
    let party = create_party(&fixture).await;
    let (txn, event) = (open_transaction(&fixture, &party, None).await, EventId::generate(party.client.partition(), 0));
    let created =
        records::event(event, party.client.clone(), party.app.clone(), fixture.clock.now(), Duration::from_secs(60));
    fixture.store.create_event(CreateEvent { event: created, events_max: None, idempotency: None }).await.unwrap();
    let (_, key) = fixture.create_key(&party.client, |key| key.label = "kiosk".into()).await;
    let refused = RefusedRequest {
        at: fixture.clock.now(),
        method: "POST".into(),
        route: "/api/v1/nationalid-ovse/init".into(),
        status: 400,
        code: "validation_failed".into(),
        fields: vec!["claims[0]".into()],
        request_id: RequestId::parse("order/42?try=1&a#%2F+x").unwrap(),
    };
    fixture.store.keep_refusal(party.app.clone(), refused.clone()).await.unwrap();
    let request = refused.request_id.as_str();
    for (id, folder, words) in [
        (txn.to_string(), "transactions", "What happened"),
        (event.to_string(), "events", "Open day"),
        (party.client.to_string(), "clients", "Acme"),
        (party.app.to_string(), "apps", "Kiosk"),
        (key.to_string(), "keys", "kiosk"),
        (operator.clone(), "operators", "Asha auditor"),
        (request.to_owned(), "requests", "claims[0]"),
    ] {
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("id", &format!(" {id} ")).finish();
        let response = browser.get(&format!("/console/find?{query}")).await;
        assert!(
            response.status == 303 && response.location.starts_with(&format!("/console/{folder}")),
            "{id}: {} {}",
            response.status,
            response.location
        );
        assert!(browser.page(&response.location).await.contains(words), "{id}");
    }
    let app_page = browser.page(&format!("/console/apps/{}", party.app)).await;
    assert!(
        app_page.contains("href=\"/console/requests/order%2F42%3Ftry%3D1%26a%23%252F%2Bx\""),
        "a link leads to the page as well: {app_page}"
    );
    let missing = browser.get("/console/find?id=3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11").await;
    assert!(
        missing.status == 404 && missing.html.contains("Nothing found") && missing.html.contains("value=\"3f0f6c0e"),
        "{}",
        missing.html
    );
}

#[actix_rt::test]
async fn lost_webhooks_are_grouped_and_found_by_the_client_reference() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, party) = (Browser::signed_in(&service).await, create_party(&fixture).await);
    for attempt in
        [CERTIFICATE_EXPIRED, CERTIFICATE_EXPIRED, Attempt::from_status(500, 3), Attempt::from_status(204, 3)]
    {
        let id = open_transaction(&fixture, &party, Some("https://client.example/hooks/planted-secret")).await;
        complete_transaction(&fixture, id, Verdict::Passed, Some(attempt)).await;
    }
    let page = browser.page(&format!("/console/clients/{}/webhooks", party.client)).await;
    let row = page.split("<tr>").find(|row| row.contains("tls_expired")).unwrap();
    assert!(
        row.contains("https://client.example") && row.contains(">2<") && row.contains("certificate is not valid now"),
        "{row}"
    );
    assert!(page.contains("status</span>") && !page.contains("planted"), "{page}");
    let list = browser.page("/console/clients").await;
    assert!(list.contains("3 of the newest"), "{list}");
    let matching = browser.page(&format!("/console/clients/{}/verifications?reference=ORDER-42", party.client)).await;
    assert_eq!(matching.matches("order-42</bdi>").count(), 4, "{matching}");
    let unmatched = browser.page(&format!("/console/clients/{}/verifications?reference=other", party.client)).await;
    assert!(unmatched.contains("Nothing was found here."), "{unmatched}");
}

#[actix_rt::test]
async fn client_pages_show_balance_state_and_apps_and_mark_a_low_balance() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let browser = Browser::signed_in(&service).await;
    let party = create_party(&fixture).await;
    let without_credits = fixture.create_client().await;
    let list = browser.page("/console/clients").await;
    let rows: Vec<&str> = list.split("<tr>").collect();
    let row = |id: &ClientId| *rows.iter().find(|row| row.contains(id.as_str())).unwrap();
    assert!(
        row(&without_credits).contains(">low<")
            && !row(&party.client).contains(">low<")
            && row(&party.client).contains(">500<"),
        "{list}"
    );
    let front = browser.page("/console").await;
    assert!(front.contains(without_credits.as_str()) && !front.contains(party.client.as_str()), "{front}");
    let page = browser.page(&format!("/console/clients/{}", party.client)).await;
    assert!(page.contains("Kiosk") && page.contains(party.app.as_str()) && page.contains(">active<"), "{page}");
    for page in ["credits", "keys", "brand", "verifications", "webhooks", "consents"] {
        browser.page(&format!("/console/clients/{}/{page}", party.client)).await;
    }
    for page in ["operators", "audit-log", "audit-log/verify", "encryption", "erasures"] {
        browser.page(&format!("/console/{page}")).await;
    }
}

#[actix_rt::test]
async fn the_audit_log_is_filtered_paged_and_verified() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let browser = Browser::signed_in(&service).await;
    for number in 0..40 {
        let entry = serde_json::json!({"at": fixture.clock.now(), "operator": "Ravi", "operation": "createApp",
            "stage": "answered",
            "status": 200, "ids": {"client_id": format!("cl_{number}")}, "from": "::1"});
        fixture.store.append_audit(entry.to_string()).await.unwrap();
    }
    let page = browser.page("/console/audit-log?operator=ravi").await;
    assert_eq!(page.matches("createApp").count(), 25, "a page of entries: {page}");
    let (_, older) =
        page.split_once("href=\"/console/audit-log?operator=ravi&#38;before=").unwrap_or_else(|| panic!("{page}"));
    let older =
        browser.page(&format!("/console/audit-log?operator=ravi&before={}", older.split('"').next().unwrap())).await;
    assert!(older.contains("cl_14<") && older.contains("cl_0<") && !older.contains("cl_15<"), "{older}");
    let filtered = browser.page("/console/audit-log?id=cl_7").await;
    assert!(filtered.contains("cl_7<") && !filtered.contains("cl_8<"), "{filtered}");
    assert!(browser.page("/console/audit-log?operation=signIn").await.contains("settings"));
    let verified = browser.page("/console/audit-log/verify").await;
    assert!(
        verified.contains("every entry follows from the one before") && verified.contains("entries 1 to 41 of 41"),
        "{verified}"
    );
    let hash = "0".repeat(64);
    let verify_from = async |number: u64, hash: &str| {
        browser.page(&format!("/console/audit-log/verify?after={number}&hash={hash}")).await
    };
    let head = fixture.store.audit_head().await.unwrap();
    assert!(verify_from(41, &head.hash.to_string()).await.contains("every entry follows from the one before"));
    for (number, fault) in [
        (3, "entry 4 does not follow from the one before"),
        (41, "entry 41 has another hash"),
        (42, "entry 42 is missing: the end was cut off"),
    ] {
        let broken = verify_from(number, &hash).await;
        assert!(broken.contains(fault) && !broken.contains("every entry follows"), "{broken}");
    }
}

#[actix_rt::test]
async fn the_audit_log_links_to_ids_of_any_characters() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let browser = Browser::signed_in(&service).await;
    let entry = serde_json::json!({"at": fixture.clock.now(), "operator": "Ravi", "operation": "erase",
        "stage": "asked", "ids": {"id": "a&b=c d"}, "from": "::1"});
    fixture.store.append_audit(entry.to_string()).await.unwrap();
    let page = browser.page("/console/audit-log").await;
    assert!(page.contains("href=\"/console/find?id=a%26b%3Dc%20d\""), "{page}");
    assert!(browser.get("/console/find?id=a%26b%3Dc%20d").await.html.contains("Nothing found"));
}
