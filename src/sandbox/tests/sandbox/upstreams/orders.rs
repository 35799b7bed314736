//! The orders of the service: authentication, validation, and limits.

use actix_web::http::header::AUTHORIZATION;
use actix_web::test::TestRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::limits::FILE_BYTES_MAX;
use sakshi_sandbox::upstreams::{SandboxUpstreams, SetupError};
use serde_json::{Value, json};

use super::scene::{PDF, Scene, TOKEN, options, read_json, with_members};

const UPSTREAMS: [&str; 9] =
    ["esign", "doclocker", "estamp", "wealth", "pan", "gst", "bank_account", "ifsc", "voter_id"];

#[actix_rt::test]
async fn an_order_without_the_upstream_token_gets_401() {
    let scene = Scene::new().await;
    let longer = format!("Bearer {TOKEN}x");
    for header in [None, Some("Bearer "), Some("Bearer wrong"), Some(longer.as_str()), Some(TOKEN), Some("Basic x")] {
        for upstream in UPSTREAMS {
            let mut request = TestRequest::post().uri(&format!("/sandbox/upstreams/{upstream}")).set_payload("{");
            if let Some(header) = header {
                request = request.insert_header((AUTHORIZATION, header));
            }
            let (status, body) = read_json(scene.call(request).await).await;
            assert_eq!((status, &body["code"]), (401, &json!("unauthorized")), "{upstream} {header:?}");
        }
    }
}

#[actix_rt::test]
async fn every_problem_of_an_order_is_reported_with_its_path() {
    let scene = Scene::new().await;
    let cases: [(&str, Value, &[&str]); 7] = [
        (
            "esign",
            json!({}),
            &["documentId", "app_id", "request_id", "document.name", "document.content", "signerInfo"],
        ),
        (
            "esign",
            json!({"documentId": "x", "app_id": "a b", "request_id": "", "document": {"name": " ", "content": "AAA"},
                "signerInfo": [{"signerId": "a b", "signerName": "", "invitationExpireTimeStamp": "tomorrow"}]}),
            &[
                "documentId",
                "app_id",
                "request_id",
                "document.name",
                "document.content",
                "signerInfo[0].signerId",
                "signerInfo[0].signerName",
                "signerInfo[0].invitationExpireTimeStamp",
            ],
        ),
        (
            "doclocker",
            json!({"docs": ["a", ""]}),
            &["transactionId", "app_id", "request_id", "docs[1]", "consent_text"],
        ),
        (
            "estamp",
            json!({"apiType": "ESign", "signatoriesInfo": [{}]}),
            &[
                "eStampId",
                "app_id",
                "request_id",
                "apiType",
                "document.documentName",
                "document.base64FileData",
                "signatoriesInfo[0].name",
                "signatoriesInfo[0].emailID",
                "signatoriesInfo[0].signType",
            ],
        ),
        ("wealth", json!({"consent_text": " "}), &["uniqueIdentifier", "app_id", "request_id", "consent_text"]),
        ("pan", json!({"pan": "ABC", "date_of_birth": "1.1.1990"}), &["pan", "consent_text", "date_of_birth"]),
        ("bank_account", json!({"ifsc": 7, "name": " "}), &["account_number", "ifsc", "consent_text", "name"]),
    ];
    for (upstream, order, expected) in cases {
        let (status, body) = scene.order(upstream, &order).await;
        let fields: Vec<&str> =
            body["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
        assert_eq!((status, fields.as_slice()), (400, expected), "{upstream}");
    }
    for upstream in UPSTREAMS {
        let (status, body) = scene.order(upstream, &json!("nonsense")).await;
        assert_eq!((status, &body["errors"][0]["field"]), (400, &json!("body")), "{upstream}: {body}");
    }
}

#[actix_rt::test]
async fn two_signers_with_one_id_are_refused() {
    let scene = Scene::new().await;
    let header = scene.new_flow_header();
    let signer =
        json!({"signerId": "s", "signerName": "Asha", "invitationExpireTimeStamp": "2026-02-07T09:30:00.000Z"});
    let order = json!({"documentId": header.id, "app_id": scene.app, "request_id": "r", "documentReferenceId": null,
        "document": {"name": "n", "content": STANDARD.encode(PDF)}, "signerInfo": [signer, signer]});
    let (status, body) = scene.order("esign", &order).await;
    assert_eq!((status, &body["errors"][0]["field"]), (400, &json!("signerInfo[1].signerId")));
}

#[actix_rt::test]
async fn a_repeated_order_gets_the_same_answer_and_a_conflicting_order_gets_409() {
    let scene = Scene::new().await;
    let order = json!({"uniqueIdentifier": scene.new_flow_header().id, "app_id": scene.app, "request_id": "r",
        "consent_text": "I agree.",
        "a_member_of_later_days": 1});
    let first = scene.order("wealth", &order).await;
    assert_eq!(first.0, 200);
    assert_eq!(scene.order("wealth", &order).await, first);
    let (status, body) = scene.order("wealth", &with_members(order.clone(), &json!({"request_id": "other"}))).await;
    assert_eq!((status, &body["code"]), (409, &json!("ordered_otherwise")));
    let locker = with_members(order, &json!({"transactionId": scene.new_flow_header().id, "docs": ["a"]}));
    assert_eq!(scene.order("doclocker", &locker).await.0, 400, "an order names one flow");
}

#[actix_rt::test]
async fn the_oldest_order_is_evicted_and_its_page_says_so() {
    let scene = Scene::new().await;
    let first = scene.order_doclocker(&["a"]).await;
    let second = scene.order_doclocker(&["a"]).await;
    let order =
        |id| json!({"uniqueIdentifier": id, "app_id": scene.app, "request_id": "r", "consent_text": "I agree."});
    // With these the first order is one too many.
    const LIMIT: usize = 500;
    for _ in 0..LIMIT - 1 {
        assert_eq!(scene.order("wealth", &order(scene.new_flow_header().id)).await.0, 200);
    }
    let (status, html) = scene.page(&format!("/sandbox/doclocker/{first}")).await;
    assert_eq!((status, html.contains("dropped to make room")), (410, true));
    assert_eq!(scene.play("doclocker", first, "fetched").await.1["code"], "flow_given_up");
    assert_eq!(scene.page(&format!("/sandbox/doclocker/{second}")).await.0, 200);
}

#[actix_rt::test]
async fn the_oldest_documents_are_evicted_beyond_the_memory_limit() {
    let scene = Scene::new().await;
    let mut large = PDF.to_vec();
    large.resize(FILE_BYTES_MAX, b' ');
    let small = scene.order_doclocker(&["a"]).await;
    let mut ids_and_signers = Vec::new();
    // Five documents of this size exceed the memory for documents.
    for _ in 0..5 {
        ids_and_signers.push(scene.order_esign(&["Asha Rao"], &large).await);
    }
    let page = |index: usize| {
        let (id, signers) = &ids_and_signers[index];
        format!("/sandbox/esign/{id}/{}", signers[0])
    };
    assert_eq!(scene.page(&page(0)).await.0, 410);
    assert_eq!(scene.page(&page(1)).await.0, 200);
    assert_eq!(scene.page(&format!("/sandbox/doclocker/{small}")).await.0, 200, "the order has no document");
    // A document of the maximum size is reported without annotations. Then its memory is free.
    let (second, _) = ids_and_signers[1];
    let (status, answer) = scene.play("esign", second, "completed").await;
    assert_eq!((status, &answer["reported"][0]["status"]), (200, &json!(200)));
    assert_eq!(
        STANDARD.decode(scene.service.reports()[0].body["content"].as_str().unwrap()).unwrap().len(),
        FILE_BYTES_MAX
    );
    scene.order_esign(&["Asha Rao"], &large).await;
    assert_eq!((scene.page(&page(1)).await.0, scene.page(&page(2)).await.0), (200, 200));
}

#[actix_rt::test]
async fn bases_other_than_http_urls_are_refused_at_the_start() {
    let scene = Scene::new().await;
    for base in ["", "svc.example", "ftp://svc.example"] {
        let internal = options(base, &scene.clock);
        assert!(matches!(SandboxUpstreams::new(internal), Err(SetupError::Base("internal"))), "{base}");
    }
    let mut public = options(&scene.service.base, &scene.clock);
    public.public_base = "mailto:x".to_owned();
    let result = SandboxUpstreams::new(public);
    assert!(matches!(result, Err(SetupError::Base("public"))));
    assert!(!format!("{:?}", options("", &scene.clock)).contains(TOKEN));
}
