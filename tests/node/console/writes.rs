//! Changes by operators in the console: through the handlers of the admin API, with its roles, refusals and audit
//! entries.

use sakshi_domain::clock::Clock as _;
use sakshi_operator::InternalDeps;
use sakshi_service::api_key::ApiKey;
use serde_json::{Value, json};

use super::records::{create_party, open_transaction};
use super::{Browser, CONSOLE_ORIGIN, HOST, audit_log, call_api, listener};
use crate::store_fixture::StoreFixture;

/// Returns the last two entries of the audit log: the request and its outcome.
async fn last_entries(fixture: &StoreFixture) -> [Value; 2] {
    let entries = audit_log(fixture).await;
    entries.last_chunk().unwrap().clone()
}

#[actix_rt::test]
async fn credits_are_granted_once_under_a_reference_and_both_entries_name_the_operator() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, operator) = Browser::with_role(&service, "owner").await;
    let client = fixture.create_client().await;
    let path = format!("/console/clients/{client}/credits");
    for _ in 0..2 {
        let answer = browser.send(&path, &[("amount", "250"), ("reference", "goodwill-7"), ("kind", "grant")]).await;
        assert_eq!(
            (answer.status, answer.location.as_str()),
            (303, &*format!("{path}?done=granted")),
            "{}",
            answer.html
        );
    }
    assert_eq!(fixture.store.balance(client.clone()).await, Ok(Some(250)));
    let page = browser.page(&format!("{path}?done=granted")).await;
    assert!(page.contains("goodwill-7") && page.contains("The credits were granted."), "{page}");
    let [requested, outcome] = last_entries(&fixture).await;
    for entry in [&requested, &outcome] {
        assert_eq!((&entry["operation"], &entry["operator_id"]), (&json!("grantCredits"), &json!(operator)));
        assert_eq!((&entry["ids"], &entry["operator"]), (&json!({"client_id": client}), &json!("Asha owner")));
    }
    assert_eq!((&requested["before"], &outcome["status"]), (&json!({"balance": 250}), &json!(200)));
    let refused = browser.send(&path, &[("amount", "many"), ("reference", ""), ("kind", "grant")]).await;
    assert!(refused.status == 400 && refused.html.contains("Nothing was done."), "{}", refused.html);
    assert!(refused.html.contains("amount must be") && refused.html.contains("value=\"many\""), "{}", refused.html);
    let reused = browser.send(&path, &[("amount", "251"), ("reference", "goodwill-7"), ("kind", "grant")]).await;
    assert!(
        reused.status == 409 && reused.html.contains("This reference was used for another amount"),
        "{}",
        reused.html
    );
}

#[actix_rt::test]
async fn a_large_grant_is_listed_until_another_operator_confirms_it() {
    let fixture = StoreFixture::new();
    let service = listener(InternalDeps { second_person_above: Some(100), ..fixture.internal() }).await;
    let (requester, _) = Browser::with_role(&service, "owner").await;
    let confirmer = Browser::signed_in(&service).await;
    let client = fixture.create_client().await;
    let path = format!("/console/clients/{client}/credits");
    let answer = requester.send(&path, &[("amount", "101"), ("reference", "invoice-8")]).await;
    assert_eq!(answer.location, format!("{path}?done=asked"));
    assert_eq!(fixture.store.balance(client.clone()).await, Ok(Some(0)));
    let own_overview = requester.page("/console").await;
    assert!(
        own_overview.contains("Another operator must confirm it.")
            && own_overview.contains(">Withdraw<")
            && !own_overview.contains(">Confirm<"),
        "{own_overview}"
    );
    let overview = confirmer.page("/console").await;
    assert!(
        overview.contains("invoice-8") && overview.contains("Asha owner") && overview.contains(">Confirm<"),
        "{overview}"
    );
    let confirm = overview.split('"').find(|part| part.ends_with("/confirm")).unwrap().to_owned();
    let refused = requester.send(&confirm, &[]).await;
    assert!(refused.status == 409 && refused.html.contains("Another operator must confirm"), "{}", refused.html);
    assert_eq!(confirmer.send(&confirm, &[]).await.location, "/console?done=confirmed");
    assert_eq!(fixture.store.balance(client).await, Ok(Some(101)));
    assert_eq!(last_entries(&fixture).await[1]["operation"], "confirmGrant");
    assert!(confirmer.page("/console").await.contains(">confirmed<"));
}

#[actix_rt::test]
async fn a_refused_grant_does_not_wait_when_it_is_requested_again() {
    let fixture = StoreFixture::new();
    let service = listener(InternalDeps { second_person_above: Some(100), ..fixture.internal() }).await;
    let browser = Browser::signed_in(&service).await;
    let path = format!("/console/clients/{}/credits", fixture.create_client().await);
    let grant = [("amount", "101"), ("reference", "invoice-8")];
    assert_eq!(browser.send(&path, &grant).await.location, format!("{path}?done=asked"));
    let overview = browser.page("/console").await;
    let withdraw = overview.split('"').find(|part| part.ends_with("/refuse")).unwrap().to_owned();
    assert_eq!(browser.send(&withdraw, &[]).await.location, "/console?done=refused");
    let again = browser.send(&path, &grant).await;
    assert!(
        again.status == 409 && again.html.contains("was refused or withdrawn") && again.html.contains("value=\"101\""),
        "{}",
        again.html
    );
}

#[actix_rt::test]
async fn a_key_is_shown_once_rotated_and_revoked() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let browser = Browser::signed_in(&service).await;
    let client = fixture.create_client().await;
    let path = format!("/console/clients/{client}/keys");
    let terms = [
        ("label", "kiosk"),
        ("networks", "203.0.113.0/24, 192.0.2.7"),
        ("environments", "stage"),
        ("expires_at", "2030-01-01T00:00"),
    ];
    let issued = browser.send(&path, &terms).await;
    let issued_key = |html: &str| html.split_once("id=\"key-text\">").unwrap().1.split('<').next().unwrap().to_owned();
    let (status, key_text) = (issued.status, issued_key(&issued.html));
    assert!(status == 200 && ApiKey::parse(&key_text).is_some(), "{}", issued.html);
    let keys = fixture.store.list_keys(client.clone()).await.unwrap();
    let networks: Vec<String> = keys[0].networks.texts().collect();
    assert_eq!((keys[0].label.as_str(), networks.len(), keys[0].environments.len()), ("kiosk", 2, 1));
    let id = keys[0].key_id.clone();
    assert!(
        !browser.page(&path).await.contains(&key_text)
            && !browser.page(&format!("/console/keys/{id}")).await.contains(&key_text)
    );
    let rotated = browser.send(&format!("/console/keys/{id}/rotate"), &[("overlap_s", "3600")]).await;
    assert!(
        ApiKey::parse(&issued_key(&rotated.html)).is_some() && issued_key(&rotated.html) != key_text,
        "{}",
        rotated.html
    );
    assert!(rotated.html.contains(&format!("href=\"{path}\"")), "{}", rotated.html);
    let revoked = browser.send(&format!("/console/keys/{id}/revoke"), &[]).await;
    assert_eq!(revoked.location, format!("/console/keys/{id}?done=revoked"));
    assert!(fixture.store.list_keys(client).await.unwrap()[0].revoked_at.is_some());
    let log = format!("{:?}", audit_log(&fixture).await);
    assert!(
        log.contains("issueKey") && log.contains("rotateKey") && log.contains("revokeKey") && !log.contains("sk_"),
        "{log}"
    );
    let invalid = browser.send(&path, &[("networks", "nonsense")]).await;
    assert!(invalid.status == 400 && invalid.html.contains("networks"), "{}", invalid.html);
}

#[actix_rt::test]
async fn a_client_is_suspended_and_resumed_by_support() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, _) = Browser::with_role(&service, "support").await;
    let client = fixture.create_client().await;
    let path = format!("/console/clients/{client}/state");
    for (suspended, done) in [("true", "suspended"), ("false", "resumed")] {
        let answer = browser.send(&path, &[("suspended", suspended)]).await;
        assert_eq!(answer.location, format!("/console/clients/{client}?done={done}"), "{}", answer.html);
        let stored = fixture.store.load_client(client.clone()).await.unwrap().unwrap();
        assert_eq!(stored.suspended_at, (suspended == "true").then(|| fixture.clock.now()));
    }
}

#[actix_rt::test]
async fn a_brand_is_changed_with_a_logo_from_a_file() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let browser = Browser::signed_in(&service).await;
    let client = fixture.create_client().await;
    let path = format!("/console/clients/{client}/brand");
    let token = browser.csrf_token().await;
    let send = async |colour: &str, logo: &str, remove: &str| {
        let mut body = String::new();
        for (name, value) in
            [("form_word", token.as_str()), ("name", "Example Bank"), ("colour", colour), ("remove", remove)]
        {
            body += &format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        }
        for (name, file) in [("logo", logo), ("picture", "")] {
            body += &format!(
                "--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a;b.svg\"\r\n\r\n{file}\r\n"
            );
        }
        let request = actix_web::test::TestRequest::post()
            .uri(&path)
            .insert_header(("origin", CONSOLE_ORIGIN))
            .insert_header(("host", HOST));
        let request = request.insert_header(("content-type", "multipart/form-data; boundary=b"));
        browser.call(request.set_payload(body + "--b--\r\n")).await
    };
    let brand = async || fixture.store.load_client(client.clone()).await.unwrap().unwrap().brand;
    let answer = send("#7a1f3d", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "").await;
    assert_eq!(answer.location, format!("{path}?done=brand"), "{}", answer.html);
    let saved = brand().await;
    assert_eq!(
        (saved.name.as_deref(), saved.logo.is_some(), saved.picture.is_some()),
        (Some("Example Bank"), true, false)
    );
    assert!(browser.page(&path).await.contains("value=\"#7a1f3d\""));
    assert_eq!(send("", "", "").await.status, 303);
    let unchanged = brand().await;
    assert_eq!(
        (unchanged.logo, unchanged.colour),
        (saved.logo, None),
        "without a new file the logo stays, and an empty field removes the colour"
    );
    assert_eq!(send("", "", "logo").await.status, 303);
    assert_eq!(brand().await.logo, None);
    let refused = send("#ffffff", "no picture", "").await;
    assert!(
        refused.status == 400 && refused.html.contains("logo") && refused.html.contains("value=\"#ffffff\""),
        "{}",
        refused.html
    );
}

#[actix_rt::test]
async fn erasing_requires_the_id_twice() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, party) = (Browser::signed_in(&service).await, create_party(&fixture).await);
    let id = open_transaction(&fixture, &party, None).await.to_string();
    let mismatched =
        browser.send("/console/erasures", &[("kind", "transaction"), ("id", &id), ("again", &id[1..])]).await;
    assert!(mismatched.status == 400 && mismatched.html.contains("The two ids differ."), "{}", mismatched.html);
    assert!(fixture.store.load_transaction(id.parse().unwrap()).await.unwrap().is_some());
    let erased = browser.send("/console/erasures", &[("kind", "transaction"), ("id", &id), ("again", &id)]).await;
    assert!(erased.status == 200 && erased.html.contains("Erased"), "{}", erased.html);
    assert_eq!(fixture.store.load_transaction(id.parse().unwrap()).await, Ok(None));
    let invalid = browser.send("/console/erasures", &[("kind", "flow"), ("id", "x"), ("again", "x")]).await;
    assert!(invalid.status == 400 && invalid.html.contains("id must be an id of the given kind"), "{}", invalid.html);
}

#[actix_rt::test]
async fn resealing_reports_that_the_pass_is_complete() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let browser = Browser::signed_in(&service).await;
    let page = browser.send("/console/encryption", &[]).await;
    assert!(
        page.status == 200 && page.html.contains(">whole<") && page.html.contains("stays under another key"),
        "{}",
        page.html
    );
}

#[actix_rt::test]
async fn an_operator_without_permission_gets_no_form_and_a_logged_refusal() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, operator) = Browser::with_role(&service, "auditor").await;
    let client = fixture.create_client().await;
    let (_, key) = fixture.create_key(&client, |_| ()).await;
    for (page, path, pairs) in [
        (
            format!("clients/{client}/credits"),
            format!("clients/{client}/credits"),
            vec![("amount", "1"), ("reference", "x")],
        ),
        (format!("clients/{client}/keys"), format!("clients/{client}/keys"), vec![]),
        (format!("clients/{client}"), format!("clients/{client}/state"), vec![("suspended", "true")]),
        (format!("keys/{key}"), format!("keys/{key}/revoke"), vec![]),
        (format!("keys/{key}"), format!("keys/{key}/rotate"), vec![]),
        (
            "erasures".to_owned(),
            "erasures".to_owned(),
            vec![("kind", "client"), ("id", client.as_str()), ("again", client.as_str())],
        ),
        ("encryption".to_owned(), "encryption".to_owned(), vec![]),
    ] {
        let html = browser.page(&format!("/console/{page}")).await;
        assert!(!html.contains(&format!("action=\"/console/{path}\"")), "{path}");
        let refused = browser.send(&format!("/console/{path}"), &pairs).await;
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.html.contains("Your role does not include this operation."), "{}", refused.html);
        let entry = audit_log(&fixture).await.pop().unwrap();
        assert_eq!((&entry["stage"], &entry["operator_id"]), (&json!("refused"), &json!(operator)), "{path}");
    }
    assert_eq!(fixture.store.balance(client.clone()).await, Ok(Some(0)));
    let (_, stored) = call_api(&service, "GET", &format!("/admin/v1/clients/{client}"), None).await;
    assert_eq!(stored["suspended_at"], Value::Null);
}
