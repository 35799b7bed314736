//! Specification, "OVSE": the response to init for each channel, and the content of the intent.

use sakshi_authority::claims::scope_bitmap;
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::node::TestNode;

/// Returns the members of an answer, sorted.
fn member_names(answer: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = answer.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Returns a well-formed signature of an Android app: 32 bytes in Base64.
fn app_signature() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode([7_u8; 32])
}

#[tokio::test]
async fn channels_web_and_qr_return_a_request_url() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    for channel in ["web", "qr"] {
        let opened = backend.open_with(&json!({"claims": ["name", "dob"], "channel": channel})).await;
        let expected: &[&str] = match channel {
            "web" => &["expiresAt", "intentJwt", "iosAppUri", "requestUrl", "txnId"],
            _ => &["expiresAt", "intentJwt", "requestUrl", "txnId"],
        };
        assert_eq!(member_names(&opened.answer), expected);
        assert_eq!(opened.answer["requestUrl"], node.addresses.public(&format!("/v/{}", opened.txn)));
        assert_eq!(opened.intent.ch, channel);
        let uuid: uuid::Uuid = opened.txn.parse().expect("a UUID");
        assert_eq!(uuid.get_version_num(), 4);
    }
}

/// Returns the number of intents that the process has issued: `signed` anew, or signed `again` with the same bytes.
pub(crate) async fn intent_count(node: &TestNode, made: &str) -> u64 {
    node.metric(&format!("sakshi_intents_total{{made=\"{made}\"}}")).await.unwrap_or(0)
}

#[tokio::test]
async fn a_page_shows_the_intent_signed_by_init() {
    // A restarted process has other ports, and intents contain the callback address.
    let mut node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let backend = node.backend_with_credits(3).await;
    let web_opened = backend.open_with(&json!({"claims": ["name"], "channel": "web"})).await;
    let app_opened = backend.open_with(&json!({"claims": ["name"], "channel": "app"})).await;
    let jwt = web_opened.answer["intentJwt"].as_str().unwrap().to_owned();
    let path = format!("/v/{}", web_opened.txn);
    let page = || node.http.get(node.addresses.public(&path)).header("user-agent", "Mozilla/5.0 (Linux; Android 15)");
    assert!(Answer::receive(page()).await.text.contains(&jwt));
    let fetched =
        Answer::receive(node.http.get(node.addresses.public(&path)).header("accept", "application/jwt")).await;
    assert_eq!((fetched.status, &fetched.text), (200, &jwt), "an identity app that scans the page gets the same");
    assert_eq!(intent_count(&node, "signed").await, 2, "one for each init");
    assert!(intent_count(&node, "again").await >= 1);

    // Another process, as another node would be.
    node.restart().await;
    let page = node.http.get(node.addresses.public(&path)).header("user-agent", "Mozilla/5.0 (Linux; Android 15)");
    assert!(Answer::receive(page).await.text.contains(&jwt));
    assert_eq!((intent_count(&node, "signed").await, intent_count(&node, "again").await), (0, 1));
    node.identity_app().approve(&web_opened, "asha").await;
    assert!(backend.is_pending(&app_opened.txn).await);
}

#[tokio::test]
async fn channel_app_returns_an_intent_uri_on_android_and_a_url_on_ios() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    let body = json!({"claims": ["name"], "channel": "app", "app_id": "com.example.bank",
        "app_signature": app_signature()});
    let android = backend.open_with(&body).await;
    assert_eq!(member_names(&android.answer), ["expiresAt", "intentJwt", "nationalIdAppUri", "txnId"]);
    let jwt = android.answer["intentJwt"].as_str().unwrap();
    let expected = format!("intent:#Intent;action=example.idauthority.action.APP_REQUEST;S.request={jwt};end");
    assert_eq!(android.answer["nationalIdAppUri"], expected);
    assert_eq!(android.intent.aid.as_deref(), Some("com.example.bank"));
    assert_eq!(android.intent.asig, Some(app_signature()));

    let ios = backend.open_with(&json!({"claims": ["name"], "channel": "app"})).await;
    assert_eq!(member_names(&ios.answer), ["expiresAt", "intentJwt", "iosAppUri", "txnId"]);
    assert_eq!(
        ios.answer["iosAppUri"],
        format!("idauthority://verify?req={}", ios.answer["intentJwt"].as_str().unwrap())
    );
    assert_eq!((&*ios.intent.ch, ios.intent.aid, ios.intent.asig), ("app", None, None));
}

#[tokio::test]
async fn a_request_for_a_qr_code_gets_its_value_in_the_same_response() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(4).await;
    for (channel, link) in [("web", "iosAppUri"), ("qr", "requestUrl"), ("app", "iosAppUri")] {
        let opened = backend.open_with(&json!({"claims": ["name"], "channel": channel, "qr": true})).await;
        assert!(member_names(&opened.answer).contains(&link), "{}", opened.answer);
        let payload = opened.answer["qrPayload"].as_str().unwrap();
        assert_eq!(
            sakshi_authority::qr::decode_qr_payload(payload).as_deref(),
            Ok(opened.answer["intentJwt"].as_str().unwrap())
        );
    }
    let without = backend.open_with(&json!({"claims": ["name"], "channel": "qr", "qr": false})).await;
    assert!(without.answer.get("qrPayload").is_none());
}

#[tokio::test]
async fn a_long_name_hint_is_cut_between_visible_letters() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(3).await;
    let hint_in_intent = async |hint: &str| {
        backend.open_with(&json!({"claims": ["name"], "channel": "qr", "name_hint": hint})).await.intent.ht.unwrap()
    };
    assert_eq!(hint_in_intent(&"n".repeat(150)).await, "n".repeat(100));
    // A visible letter of four characters, which must not be split.
    let letter = "क्षि";
    assert_eq!(hint_in_intent(&letter.repeat(30)).await, letter.repeat(25));
    assert_eq!(hint_in_intent(&format!("aa{}", letter.repeat(30))).await, format!("aa{}", letter.repeat(24)));
}

#[tokio::test]
async fn a_transaction_expires_fifteen_minutes_after_its_init() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let before = sakshi_kit::issuer::now();
    let opened = backend.open(&["name"]).await;
    let text = opened.answer["expiresAt"].as_str().unwrap();
    assert!(text.ends_with('Z') && text.len() == "2026-01-01T00:00:00.000Z".len(), "{text}");
    let expires = Timestamp::parse_iso8601(text).unwrap().seconds();
    assert!((before + 900..=sakshi_kit::issuer::now() + 900).contains(&expires), "{text}");
    assert!(opened.intent.exp <= expires);
}

#[tokio::test]
async fn the_intent_contains_the_requested_terms() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    let body = json!({"claims": ["name", "dob", "gender"], "channel": "qr", "language": "tamil", "face_auth": false,
        "name_hint": "A. Rao"});
    let opened = backend.open_with(&body).await;
    let intent = &opened.intent;
    // The scope has a bit for each claim.
    assert_eq!(intent.sc, format!("0000010000011000{}", "0".repeat(48)));
    // The transaction, the requested item, the code of Tamil, a constant, and no face scan.
    assert_eq!(
        (&*intent.txn, &*intent.i, &*intent.lang, intent.pop, intent.m),
        (&*opened.txn, "credential", "20", 1, 0)
    );
    // The verifier's client id, registration and name.
    assert_eq!((&*intent.ac, &*intent.sa, &*intent.iss), ("sandbox-verifier", "SANDBOX-0001", "sakshi"));
    assert_eq!(intent.ht.as_deref(), Some("A. Rao"));
    assert!(
        intent.cb.starts_with(&node.addresses.public(&format!("/cb/{}/", opened.txn))),
        "one address per transaction"
    );
    assert_eq!(intent.aud, node.addresses.public(""));
    assert!(intent.cb.rsplit('/').next().unwrap().len() >= 22, "128 bits of capability");

    let plain = backend.open(&["name"]).await.intent;
    assert_eq!((&*plain.lang, plain.m, plain.ht), ("23", 1, None), "the defaults are English and a face scan");
    assert_ne!(plain.jti, intent.jti);
}

#[tokio::test]
async fn every_claim_of_the_specification_can_be_requested() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(31).await;
    let names: Vec<&str> = Claim::ALL.iter().map(|claim| claim.name()).collect();
    assert_eq!(names.len(), 30);
    for name in &names {
        let requested: ClaimSet = [Claim::from_name(name).unwrap()].into_iter().collect();
        assert_eq!(backend.open(&[name]).await.intent.sc, scope_bitmap(requested, 64), "{name}");
    }
    let all_claims: ClaimSet = Claim::ALL.into_iter().collect();
    assert_eq!(backend.open(&names).await.intent.requested(), all_claims);
}

#[tokio::test]
async fn languages_are_accepted_by_name_in_any_case_and_by_code() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(100).await;
    let codes_by_name = [
        ("english", "23"),
        ("hindi", "6"),
        ("marathi", "13"),
        ("gujarati", "5"),
        ("tamil", "20"),
        ("telugu", "21"),
        ("bengali", "2"),
        ("kannada", "7"),
        ("malayalam", "11"),
        ("punjabi", "16"),
        ("urdu", "22"),
        ("assamese", "1"),
        ("oriya", "15"),
        ("nepali", "14"),
    ];
    let mut cases: Vec<(Value, String)> =
        codes_by_name.iter().map(|(name, code)| (json!(name), (*code).to_owned())).collect();
    cases.push((json!("HiNdI"), "6".to_owned()));
    for code in 1..=23 {
        cases.push((json!(code), code.to_string()));
        cases.push((json!(code.to_string()), code.to_string()));
    }
    for (language, code) in cases {
        let opened = backend.open_with(&json!({"claims": ["name"], "channel": "web", "language": language})).await;
        assert_eq!(opened.intent.lang, code, "{language}");
    }
}

#[tokio::test]
async fn fields_are_accepted_in_both_spellings() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    let signature = app_signature();
    let snake = json!({
        "claims": ["name"], "channel": "app", "face_auth": false, "webhook_url": "https://client.example/hook",
        "app_id": "com.example.bank",
        "app_signature": signature, "name_hint": "A", "client_reference_id": "order-7",
        "redirect_url": "https://client.example/done",
    });
    let camel = json!({
        "claims": ["name"], "channel": "app", "faceAuth": false, "webhookUrl": "https://client.example/hook",
        "appId": "com.example.bank",
        "appSignature": signature, "nameHint": "A", "clientReferenceId": "order-7",
        "redirectUrl": "https://client.example/done",
    });
    for body in [snake, camel] {
        let intent = backend.open_with(&body).await.intent;
        // No face scan, the package of the app, and the name hint.
        assert_eq!((intent.m, intent.aid.as_deref(), intent.ht.as_deref()), (0, Some("com.example.bank"), Some("A")));
    }
}

#[tokio::test]
async fn opening_a_transaction_debits_one_credit() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(3).await;
    let opened = backend.open(&["name"]).await;
    assert_eq!(node.operator().balance(&backend.client).await, 2);
    let statement = node.operator().statement(&backend.client).await;
    let debit = statement.last().unwrap();
    assert_eq!((&debit["kind"], &debit["amount"], &debit["balance_after"]), (&json!("debit"), &json!(1), &json!(2)));
    assert!(debit["reference"].as_str().unwrap().contains(&opened.txn), "{debit}");
}

#[tokio::test]
async fn init_without_credits_gets_402_and_opens_nothing() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(0).await;
    let answer = backend.init(&json!({"claims": ["name"], "channel": "qr"})).await;
    assert_eq!(answer.refusal(402), "insufficient_credits");
    let operator = node.operator();
    assert_eq!(operator.statement(&backend.client).await, Vec::<Value>::new());
    let tree = operator.get("/admin/v1/tree").await.ok();
    assert_eq!(live_transactions(&tree), 0, "{tree:#}");
    operator.grant(&backend.client, 1, "first").await;
    backend.open(&["name"]).await;
}

/// Returns the number of live transactions in the tree of actors.
fn live_transactions(tree: &Value) -> u64 {
    let shards =
        tree["children"].as_array().expect("children").iter().filter(|node| node["kind"] == "transaction_registry");
    shards.map(|shard| shard["live"].as_u64().expect("a count")).sum()
}
