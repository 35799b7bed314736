//! The sandbox identity app, used by a browser and by a script. The authority's codec parses its callbacks.

use crate::scene::Scene;
use crate::upstreams::scene::read_text;
use actix_web::App;
use actix_web::dev::ServiceResponse;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::test::{TestRequest, call_service, init_service};
use sakshi_authority::callback::{CallbackBody, CallbackForm, CallbackMessage, parse};
use sakshi_authority::qr::{qr_digits, qr_payload};
use sakshi_authority::sdjwt::{CredentialState, CredentialStatus};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_sandbox::app::configure;
use sakshi_sandbox::receiver::{Behaviour, Received};
use sakshi_sandbox::residents::Resident;
use serde_json::{Value, json};

/// Sends a request to the app.
async fn call(scene: &Scene, request: TestRequest) -> ServiceResponse {
    let state = scene.state.clone();
    let app = init_service(App::new().configure(|cfg| configure(cfg, state))).await;
    call_service(&app, request.to_request()).await
}

/// Submits the consent screen of a valid intent with these fields.
async fn submit_form(scene: &Scene, fields: &[(&str, &str)]) -> ServiceResponse {
    let intent = scene.intent();
    let mut form = vec![("intent", intent.as_str())];
    form.extend_from_slice(fields);
    call(scene, TestRequest::post().uri("/sandbox/app").set_form(form)).await
}

/// Calls the endpoint for scripts. Returns the status and the JSON of the response.
async fn answer_by_script(scene: &Scene, body: Value) -> (u16, Value) {
    let response = call(scene, TestRequest::post().uri("/sandbox/app/answer").set_json(body)).await;
    let status = response.status().as_u16();
    (status, serde_json::from_str(&read_text(response).await).unwrap())
}

fn parse_callback(received: &Received) -> CallbackMessage {
    parse(received.headers.get(CONTENT_TYPE.as_str()).map(|value| value.to_str().unwrap()), &received.body).unwrap()
}

/// Returns the only request that the service has received.
fn only_request(received: &[Received]) -> &Received {
    assert_eq!(received.len(), 1);
    &received[0]
}

#[actix_rt::test]
async fn the_page_shows_the_requester_and_the_claims_escaped() {
    let scene = Scene::new().await;
    for name in ["req", "request", "value"] {
        let response = call(&scene, TestRequest::get().uri(&format!("/sandbox/app?{name}={}", scene.intent()))).await;
        assert_eq!(response.status(), 200);
        let html = read_text(response).await;
        for expected in [
            "Example Bank &#38; Sons",
            "client-&#60;7&#62;",
            "REG-42",
            "Full name",
            "Date of birth",
            "Last digits of the mobile",
            "tamil",
        ] {
            assert!(html.contains(expected), "{expected}");
        }
        assert!(!html.contains("Photograph") && !html.contains("client-<7>") && !html.contains("<Jr>"));
        assert!(html.contains("Cannot share: Last digits of the mobile number"), "kabir has no mobile");
    }
}

#[actix_rt::test]
async fn the_page_reads_a_qr_payload_and_its_digits() {
    let scene = Scene::new().await;
    let payload = qr_payload("https://qr.example", &scene.intent());
    let encoded: String = url::form_urlencoded::byte_serialize(payload.as_bytes()).collect();
    for value in [encoded, qr_digits(&scene.intent())] {
        let html = read_text(call(&scene, TestRequest::get().uri(&format!("/sandbox/app?value={value}"))).await).await;
        assert!(html.contains("REG-42"));
    }
}

#[actix_rt::test]
async fn pages_need_no_script_and_have_a_strict_policy() {
    let scene = Scene::new().await;
    let uris = [
        "/sandbox/app".to_owned(),
        format!("/sandbox/app?req={}", scene.intent()),
        "/sandbox/app?req=nonsense".to_owned(),
    ];
    for uri in uris {
        let response = call(&scene, TestRequest::get().uri(&uri)).await;
        let policy = response.headers().get("content-security-policy").unwrap().to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        let html = read_text(response).await;
        let inline =
            |word: &str| word.starts_with("<script") || word.starts_with("<style") || word.starts_with("style=");
        let handler = |word: &str| word.starts_with("on") && word.contains('=');
        assert!(!html.split_whitespace().any(|word| inline(word) || handler(word)), "{html}");
        assert!(html.contains("href=\"app/app.css\""));
    }
    let style = call(&scene, TestRequest::get().uri("/sandbox/app/app.css")).await;
    assert_eq!(style.headers().get("content-type").unwrap(), "text/css; charset=utf-8");
}

#[actix_rt::test]
async fn approving_posts_a_credential_in_the_chosen_form_with_or_without_key_binding() {
    for (form, expected_form) in [("xml", CallbackForm::Xml), ("json", CallbackForm::Json)] {
        for is_bound in [true, false] {
            let scene = Scene::new().await;
            let mut fields = vec![("resident", "asha"), ("action", "approve"), ("form", form)];
            if is_bound {
                fields.push(("key_binding", "yes"));
            }
            let response = submit_form(&scene, &fields).await;
            assert_eq!(response.status(), 200);
            assert!(read_text(response).await.contains("Your details were shared"));

            let received = scene.service.received();
            let message = parse_callback(only_request(&received));
            assert_eq!((received[0].path.as_str(), message.form), ("/cb/x/y", expected_form));
            assert_eq!(message.txn, scene.txn.to_string());
            let CallbackBody::Credential(credential) = message.body else { panic!("no credential") };
            let verified = scene.verify(&credential);
            assert_eq!(verified.holder_bound, is_bound);
            assert!(verified.missing.is_empty());
        }
    }
}

#[actix_rt::test]
async fn the_last_page_leads_back_to_the_portal_or_the_verify_page() {
    for (from, address, words) in
        [("portal", "../portal/transactions/", "Back to the portal"), ("elsewhere", "/v/", "Back to the verify page")]
    {
        let scene = Scene::new().await;
        let consent = read_text(
            call(&scene, TestRequest::get().uri(&format!("/sandbox/app?from={from}&req={}", scene.intent()))).await,
        )
        .await;
        assert_eq!(consent.contains("name=\"from\" value=\"portal\""), from == "portal");
        let page =
            read_text(submit_form(&scene, &[("resident", "asha"), ("action", "approve"), ("from", from)]).await).await;
        assert!(page.contains(&format!("{address}{}\">{words}</a>", scene.txn)), "{page}");
    }
}

#[actix_rt::test]
async fn each_failure_posts_its_code_and_walking_away_posts_nothing() {
    for (action, code) in [
        ("decline", "301"),
        ("fail_liveness", "302"),
        ("abort", "303"),
        ("fail_match", "304"),
        ("biometrics_locked", "305"),
        ("service_down", "306"),
        ("http_error", "307"),
        ("retry_later", "308"),
    ] {
        for form in ["xml", "json"] {
            let scene = Scene::new().await;
            let page =
                read_text(submit_form(&scene, &[("resident", "asha"), ("action", action), ("form", form)]).await).await;
            assert!(page.contains("The service knows that you did not share"));
            let CallbackBody::Failure { code: posted_code, message } =
                parse_callback(only_request(&scene.service.received())).body
            else {
                panic!("{action}")
            };
            assert_eq!(posted_code, code);
            assert!(!message.is_empty());
        }
    }
    let scene = Scene::new().await;
    let page = read_text(submit_form(&scene, &[("resident", "asha"), ("action", "walk_away")]).await).await;
    assert!(page.contains("Nothing was sent"));
    assert!(scene.service.received().is_empty());
}

#[actix_rt::test]
async fn a_refusal_by_the_service_is_shown() {
    let scene = Scene::new().await;
    scene.service.set_behaviour(Behaviour::Answer(410));
    let page = read_text(submit_form(&scene, &[("resident", "asha"), ("action", "approve")]).await).await;
    assert!(
        page.contains("The service did not take the answer") && page.contains("410") && page.contains("Answer again")
    );
}

#[actix_rt::test]
async fn the_json_endpoint_answers_with_defaults_and_reports_the_services_reply() {
    let scene = Scene::new().await;
    let (status, body) = answer_by_script(&scene, json!({"intent": scene.intent()})).await;
    assert_eq!((status, body["posted"].clone(), body["callback"]["status"].clone()), (200, json!(true), json!(200)));
    assert_eq!(body["txnId"], scene.txn.to_string());
    let CallbackBody::Credential(credential) = parse_callback(only_request(&scene.service.received())).body else {
        panic!("no credential")
    };
    assert!(scene.verify(&credential).holder_bound);

    let walk_away = json!({"intent": qr_payload("https://qr.example", &scene.intent()), "resident": "kabir",
        "action": "walk_away"});
    let (status, body) = answer_by_script(&scene, walk_away).await;
    assert_eq!((status, body["posted"].clone(), body["callback"].clone()), (200, json!(false), Value::Null));
    assert_eq!(scene.service.received().len(), 1);
}

#[actix_rt::test]
async fn a_claim_that_the_resident_lacks_is_missing_from_the_credential() {
    let scene = Scene::new().await;
    answer_by_script(
        &scene,
        json!({"intent": scene.intent(), "resident": "kabir", "form": "json", "key_binding": false}),
    )
    .await;
    let CallbackBody::Credential(credential) = parse_callback(only_request(&scene.service.received())).body else {
        panic!("no credential")
    };
    let missing: Vec<&str> = scene.verify(&credential).missing.iter().map(|claim| claim.name()).collect();
    assert_eq!(missing, ["masked_mobile"]);
}

#[actix_rt::test]
async fn an_intent_for_another_service_is_refused() {
    let (scene, victim) = (Scene::new().await, Scene::new().await);
    let own_port = scene.service.address().port();
    for cb in [
        victim.service.url("/cb"),
        format!("http://localhost:{own_port}/cb"),
        format!("https://127.0.0.1:{own_port}/cb"),
        "x".to_owned(),
    ] {
        let intent = scene.intent_to(&cb);
        let (status, body) = answer_by_script(&scene, json!({"intent": intent})).await;
        assert_eq!((status, body["code"].clone()), (403, json!("foreign_callback")), "{cb}");
        let form = [("intent", intent.as_str()), ("resident", "asha"), ("action", "approve")];
        assert_eq!(call(&scene, TestRequest::post().uri("/sandbox/app").set_form(form)).await.status(), 403);
        assert_eq!(call(&scene, TestRequest::get().uri(&format!("/sandbox/app?req={intent}"))).await.status(), 403);
    }
    assert!(victim.service.received().is_empty() && scene.service.received().is_empty());
}

#[actix_rt::test]
async fn a_redirect_of_the_callback_is_not_followed() {
    let (scene, victim) = (Scene::new().await, Scene::new().await);
    scene.service.set_behaviour(Behaviour::Redirect(victim.service.url("/cb")));
    let (_, body) = answer_by_script(&scene, json!({"intent": scene.intent()})).await;
    assert_eq!(body["callback"]["status"], 302);
    assert!(victim.service.received().is_empty());
}

#[actix_rt::test]
async fn a_service_that_closes_idle_connections_gets_every_callback() {
    let scene = Scene::new().await;
    scene.service.set_behaviour(Behaviour::CloseIdle);
    for answers in 1..=100 {
        let (_, body) = answer_by_script(&scene, json!({"intent": scene.intent(), "action": "decline"})).await;
        assert_eq!((body["callback"]["status"].clone(), scene.service.received().len()), (json!(200), answers));
    }
}

#[actix_rt::test]
async fn malformed_requests_get_400_and_a_silent_service_gets_502() {
    let scene = Scene::new().await;
    for (body, code) in [
        (json!({"intent": "nonsense"}), "unreadable_intent"),
        (json!({"intent": "12345"}), "unreadable_intent"),
        (json!({}), "malformed_body"),
        (json!({"intent": scene.intent(), "action": "explode"}), "unknown_action"),
        (json!({"intent": scene.intent(), "key_bindings": true}), "malformed_body"),
        (json!({"intent": scene.intent(), "resident": "nobody"}), "unknown_resident"),
    ] {
        let (status, answer) = answer_by_script(&scene, body.clone()).await;
        assert_eq!(
            (status, answer["code"].clone(), answer["statusCode"].clone()),
            (400, json!(code), json!(400)),
            "{body}"
        );
    }
    assert_eq!(submit_form(&scene, &[("resident", "asha"), ("action", "explode")]).await.status(), 400);
    scene.service.set_behaviour(Behaviour::Drop);
    let (status, answer) = answer_by_script(&scene, json!({"intent": scene.intent()})).await;
    assert_eq!((status, answer["code"].clone()), (502, json!("callback_unanswered")));
}

#[actix_rt::test]
async fn an_expired_intent_is_not_answered() {
    let scene = Scene::new().await;
    let intent = scene.intent_at(SystemClock.now().seconds() - 900, &scene.service.url("/cb/x/y"));
    let (status, answer) = answer_by_script(&scene, json!({"intent": intent})).await;
    assert_eq!((status, answer["code"].clone()), (410, json!("intent_expired")));
    let form = [("intent", intent.as_str()), ("resident", "asha"), ("action", "approve")];
    assert_eq!(call(&scene, TestRequest::post().uri("/sandbox/app").set_form(form)).await.status(), 410);
    assert!(scene.service.received().is_empty());
}

#[actix_rt::test]
async fn an_unknown_action_is_refused_with_the_list_of_actions() {
    let scene = Scene::new().await;
    let (_, answer) = answer_by_script(&scene, json!({"intent": scene.intent(), "action": "explode"})).await;
    assert_eq!(
        answer["message"],
        "There is no such action; the actions are approve, decline, abort, fail_liveness, fail_match, \
         biometrics_locked, service_down, http_error, retry_later, malformed_claims, walk_away."
    );
    for action in [
        "approve",
        "decline",
        "abort",
        "fail_liveness",
        "fail_match",
        "biometrics_locked",
        "service_down",
        "http_error",
        "retry_later",
        "malformed_claims",
        "walk_away",
    ] {
        assert_eq!(
            answer_by_script(&scene, json!({"intent": scene.intent(), "action": action})).await.0,
            200,
            "{action}"
        );
    }
}

#[actix_rt::test]
async fn the_issuer_answers_at_the_status_url_of_each_credential() {
    for (resident, status, path, state) in [
        ("asha", "available", "valid", Some(CredentialState::Valid)),
        ("revoked_ravi", "available", "revoked", Some(CredentialState::Revoked)),
        ("suspended_sita", "available", "suspended", Some(CredentialState::Suspended)),
        ("asha", "unavailable", "unavailable", None),
    ] {
        let scene = Scene::new().await;
        let (http_status, _) =
            answer_by_script(&scene, json!({"intent": scene.intent(), "resident": resident, "status": status})).await;
        assert_eq!(http_status, 200);
        let CallbackBody::Credential(credential) = parse_callback(only_request(&scene.service.received())).body else {
            panic!("no credential")
        };
        let verified = scene.verify(&credential);
        let CredentialStatus::At(reference) = verified.status else { panic!("{:?}", verified.status) };
        assert!(reference.url.path().starts_with(&format!("/sandbox/status/{path}/")), "{}", reference.url);
        let response = call(&scene, TestRequest::get().uri(reference.url.path())).await;
        assert_eq!(response.status().as_u16(), if state.is_some() { 200 } else { 503 });
        let answer = read_text(response).await;
        let document = scene.verifier().read_status(&reference, answer.as_bytes(), SystemClock.now());
        assert_eq!(document.ok().map(|document| document.state(&reference).unwrap()), state);
    }
}

#[actix_rt::test]
async fn the_residents_are_listed_with_their_missing_claims() {
    let scene = Scene::new().await;
    let body: Value =
        serde_json::from_str(&read_text(call(&scene, TestRequest::get().uri("/sandbox/residents")).await).await)
            .unwrap();
    let residents = body["residents"].as_array().unwrap();
    assert_eq!(residents.len(), Resident::all().len());
    let states: Vec<&Value> =
        residents.iter().map(|resident| &resident["state"]).filter(|state| *state != "valid").collect();
    assert_eq!(states, ["revoked", "suspended"]);
    assert_eq!((residents[0]["id"].clone(), residents[0]["missing_claims"].clone()), (json!("asha"), json!([])));
    let kabir = residents.iter().find(|resident| resident["id"] == "kabir").unwrap();
    assert!(kabir["missing_claims"].as_array().unwrap().contains(&json!("masked_email")));
}
