//! Anyone can post to a callback address. Garbage must end no transaction, cost nothing and disclose nothing.

use reqwest::Body;
use serde_json::json;

use sakshi_kit::answer::Answer;
use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::node::TestNode;

/// Maximum size of a callback.
const CALLBACK_BYTES_MAX: usize = 4 * 1_024 * 1_024;

#[tokio::test]
async fn garbage_gets_400_and_leaves_the_transaction_pending() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let txn = &opened.txn;
    let deep = format!("{}{}", "<a>".repeat(20_000), "</a>".repeat(20_000));
    let xml = [
        String::new(),
        "<".to_owned(),
        "<Request>".to_owned(),
        "<Request></Request>".to_owned(),
        format!("<Request><TxnID>{txn}</TxnID></Request>"),
        format!("<Request><TxnID>{txn}</TxnID><Credential></Credential></Request>"),
        format!("<Request><TxnID>{txn}</TxnID><TxnID>{txn}</TxnID><ErrorCode>301</ErrorCode></Request>"),
        format!("<Request><TxnID>{txn}</TxnID><Credential>a</Credential><ErrorCode>301</ErrorCode></Request>"),
        format!("<Request><TxnID>{txn}</TxnID><ErrorCode><b>301</b></ErrorCode></Request>"),
        format!("<Other><TxnID>{txn}</TxnID><ErrorCode>301</ErrorCode></Other>"),
        format!("<Request><TxnID>{txn}</TxnID><ErrorCode>301</ErrorCode></Request><Request/>"),
        deep,
        "not xml at all".to_owned(),
    ];
    let json = [
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "{}".to_owned(),
        json!({"txn": txn}).to_string(),
        json!({"txn": txn, "response": "garbage"}).to_string(),
        json!({"txn": txn, "response": 7}).to_string(),
        json!({"txn": txn, "response": "a~", "errCode": "301"}).to_string(),
        json!({"response": "a~"}).to_string(),
        "[".repeat(50_000),
        format!("{{\"txn\":\"{txn}\",\"txn\":\"{txn}\",\"errCode\":\"301\"}}"),
    ];
    for (format, bodies) in [(CallbackFormat::Xml, xml.as_slice()), (CallbackFormat::Json, json.as_slice())] {
        for body in bodies {
            let answer = identity_app.post(&opened, format, body.clone()).await;
            let excerpt: String = body.chars().take(120).collect();
            assert_eq!(answer.status, 400, "{excerpt}: {}", answer.text);
            assert_eq!(answer.header("content-type"), Some(format.content_type()), "{excerpt}");
        }
    }
    let binary =
        Answer::receive(identity_app.request(&opened.callback_path(), "application/xml", vec![0xff, 0xfe, 0x00])).await;
    assert_eq!(binary.status, 400);
    assert!(backend.is_pending(txn).await);
    identity_app.approve(&opened, "asha").await;
}

#[tokio::test]
async fn xml_entities_and_document_types_are_refused() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let secret = node.directory.path().join("secret.txt");
    std::fs::write(&secret, "content-of-a-local-file").unwrap();
    let failure_with = |text: &str| {
        format!("<Request><TxnID>{}</TxnID><ErrorCode>999</ErrorCode><ErrorMsg>{text}</ErrorMsg></Request>", opened.txn)
    };
    let file = format!("<!ENTITY x SYSTEM \"file://{}\">", secret.display());
    // Entities that expand to many copies of a text.
    let nested_entities = "<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\"><!ENTITY x \"&b;&b;&b;&b;\">";
    for body in [
        format!("<?xml version=\"1.0\"?><!DOCTYPE r [{file}]>{}", failure_with("&x;")),
        format!("<!DOCTYPE r [{nested_entities}]>{}", failure_with("&x;")),
        format!("<!DOCTYPE r SYSTEM \"http://127.0.0.1:1/evil.dtd\">{}", failure_with("x")),
        failure_with("&x;"),
    ] {
        let answer = identity_app.post(&opened, CallbackFormat::Xml, body).await;
        let message = CallbackFormat::Xml.reply(&answer, &opened.txn, 400);
        assert!(!message.contains("content-of-a-local-file") && !message.contains("haha"), "{message}");
    }
    assert!(backend.is_pending(&opened.txn).await);
    let escaped = identity_app.post(&opened, CallbackFormat::Xml, failure_with("&lt;b&gt; &amp; &#65;")).await;
    CallbackFormat::Xml.reply(&escaped, &opened.txn, 200);
    assert_eq!(backend.result(&opened.txn).await.ok()["data"]["message"], "<b> & A");
}

#[tokio::test]
async fn a_wrong_capability_and_an_unknown_transaction_get_the_same_404() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let (opened, other) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    let capability = opened.intent.cb.rsplit('/').next().unwrap().to_owned();
    let other_capability = other.intent.cb.rsplit('/').next().unwrap();
    let unknown_txn = uuid::Uuid::new_v4().to_string();
    let truncated = &capability[..capability.len() - 1];
    for format in CallbackFormat::BOTH {
        let body = |txn: &str| format.failure(txn, "301", "User Reject");
        let mut messages = Vec::new();
        for (txn, capability) in [
            (&*opened.txn, other_capability),
            (&opened.txn, truncated),
            (&opened.txn, "x"),
            (&unknown_txn, &capability),
        ] {
            let path = format!("/cb/{txn}/{capability}");
            let answer = Answer::receive(identity_app.request(&path, format.content_type(), body(txn))).await;
            messages.push(format.reply(&answer, txn, 404));
        }
        assert!(messages.iter().all(|message| message == &messages[0]), "{messages:?}");
    }
    assert!(backend.is_pending(&opened.txn).await);
}

#[tokio::test]
async fn a_body_for_another_transaction_than_its_address_gets_400() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let (opened, other) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    for format in CallbackFormat::BOTH {
        for txn in [&*other.txn, "seven", "&lt;b&gt;"] {
            let answer = identity_app.post(&opened, format, format.failure(txn, "301", "User Reject")).await;
            format.reply(&answer, &opened.txn, 400);
        }
    }
    assert!(backend.is_pending(&opened.txn).await && backend.is_pending(&other.txn).await);
}

#[tokio::test]
async fn a_callback_over_four_mebibytes_gets_413() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    for format in CallbackFormat::BOTH {
        let too_large = format.success(&opened.txn, &"a".repeat(CALLBACK_BYTES_MAX));
        assert_eq!(identity_app.post(&opened, format, too_large).await.status, 413);
    }
    let chunks: Vec<_> = (0..80).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 64 * 1_024])).collect();
    let unannounced = Body::wrap_stream(futures_util::stream::iter(chunks));
    assert_eq!(
        Answer::receive(identity_app.request(&opened.callback_path(), "application/xml", unannounced)).await.status,
        413,
        "without a declared length"
    );
    let within_limit = CallbackFormat::Json.success(&opened.txn, &"a".repeat(CALLBACK_BYTES_MAX - 500));
    assert_eq!(
        identity_app.post(&opened, CallbackFormat::Json, within_limit).await.status,
        400,
        "the body is read, and its credential is refused"
    );
    assert!(backend.is_pending(&opened.txn).await);
}

#[tokio::test]
async fn a_media_type_other_than_xml_or_json_gets_415() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let body = CallbackFormat::Json.failure(&opened.txn, "301", "User Reject");
    for content_type in ["image/png", "application/x-www-form-urlencoded", "text/html"] {
        let answer = Answer::receive(identity_app.request(&opened.callback_path(), content_type, body.clone())).await;
        assert_eq!(answer.status, 415, "{content_type}: {}", answer.text);
    }
    assert!(backend.is_pending(&opened.txn).await);
    let get = node.get(&opened.callback_path()).await;
    assert_eq!((get.refusal(405), get.header("allow")), ("method_not_allowed".to_owned(), Some("POST")));
}

#[tokio::test]
async fn a_long_code_or_message_of_the_app_is_truncated() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let answer = identity_app.fail(&opened, &"9".repeat(5_000), &format!("\u{202e}\u{0}{}", "é".repeat(5_000))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let data = backend.result(&opened.txn).await.ok()["data"].clone();
    assert!(data["message"].as_str().unwrap().chars().count() <= 200, "{data}");
    assert!(data["error_code"].as_str().unwrap().chars().count() <= 32, "{data}");
    assert!(!data["message"].as_str().unwrap().contains('\u{0}'), "{data}");
}

#[tokio::test]
async fn a_genuine_callback_is_accepted_despite_a_flood_from_its_address() {
    let node = TestNode::start_with(&[("LIMITS__CALLBACKS_PER_SECOND_PER_ADDRESS", "3")]).await;
    let (backend, identity_app) = (node.backend_with_credits(5).await, node.identity_app());
    let unknown_callback = node.addresses.public("/cb/01890000-0000-7000-8000-000000000000/AAAAAAAAAAAAAAAAAAAAAAAA");
    let mut refused = 0;
    for round in 0..5 {
        for _ in 0..8 {
            let answer = Answer::receive(node.http.post(&unknown_callback).body("<x/>")).await;
            refused += u32::from(answer.status == 429);
        }
        let opened = backend.open(&["name"]).await;
        let credential = identity_app.credential(&opened, "asha");
        assert_eq!(identity_app.present(&opened, &credential).await.status, 200, "{round}");
    }
    assert!(refused > 10, "{refused} of 40");
}

#[tokio::test]
async fn callbacks_of_an_address_are_limited_as_configured() {
    let node = TestNode::start_with(&[("LIMITS__CALLBACKS_PER_SECOND_PER_ADDRESS", "3")]).await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let mut limited = None;
    for _ in 0..200 {
        let answer = identity_app.post(&opened, CallbackFormat::Json, "{".to_owned()).await;
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
    }
    let limited = limited.expect("a 429");
    assert_eq!(limited.refusal(429), "rate_limited");
    assert!(limited.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    assert!(backend.is_pending(&opened.txn).await);
}
