//! Opening a flow: one response to the client and one order to the upstream.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::flow::{CONSENT_TEXT, Flow, PDF};
use sakshi_kit::node::TestNode;
use sakshi_kit::upstream::{Order, TOKEN, Upstream};

/// Returns the names of an object's members.
fn member_names(value: &Value) -> Vec<&str> {
    let mut members: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    members.sort_unstable();
    members
}

/// Checks an order: the flow, its body, and the headers for the upstream.
fn assert_ordered(order: &Order, flow: Flow, body: &Value) {
    assert_eq!((order.flow.as_str(), &order.body), (flow.name(), body));
    assert_eq!(order.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(order.headers["content-type"], "application/json");
}

#[tokio::test]
async fn an_esign_request_is_ordered_and_each_signer_gets_a_signing_url() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    let body = Flow::Esign.body();
    let opened = backend.open_flow_with(Flow::Esign, &body).await;
    let answer = &opened.answer;
    assert_eq!(member_names(answer), ["documentId", "documentReferenceId", "signerInfo"]);
    assert_eq!(answer["documentReferenceId"], "loan-agreement-7");
    let signers = answer["signerInfo"].as_array().expect("signers");
    for (signer, reference) in signers.iter().zip(["borrower", "guarantor"]) {
        assert_eq!(member_names(signer), ["signerId", "signerRefId", "signingUrl"]);
        assert_eq!(signer["signerRefId"], reference);
        assert!(signer["signingUrl"].as_str().expect("a URL").starts_with("https://upstream.example/"), "{signer}");
    }
    let urls: Vec<&Value> = signers.iter().map(|signer| &signer["signingUrl"]).collect();
    assert!(urls.len() == 2 && urls[0] != urls[1], "{answer}");

    let ordered_signer = |index: usize| {
        json!({"signerId": signers[index]["signerId"], "signerRefId": body["signerInfo"][index]["signerRefId"],
               "signerName": body["signerInfo"][index]["signerName"],
               "invitationExpireTimeStamp": body["signerInfo"][index]["invitationExpireTimeStamp"]})
    };
    let expected = json!({
        "documentId": opened.id, "app_id": backend.app, "request_id": "req-1",
        "documentReferenceId": "loan-agreement-7",
        "document": {"name": "Loan agreement of Asha", "content": PDF},
        "signerInfo": [ordered_signer(0), ordered_signer(1)],
    });
    assert_ordered(&upstream.last_order(), Flow::Esign, &expected);
}

#[tokio::test]
async fn twenty_signers_are_ordered_and_answered_in_signing_order() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    let mut body = Flow::Esign.body_with(&[("/documentReferenceId", None)]);
    let signers: Vec<Value> = (0..20).map(|number| json!({"signerName": format!("Signer Number {number}")})).collect();
    body["signerInfo"] = json!(signers);
    let opened = backend
        .open_flow_with(Flow::Esign, &json!({"documentInfo": body["documentInfo"], "signerInfo": signers}))
        .await;
    assert_eq!(opened.answer["documentReferenceId"], "");
    let body = upstream.last_order().body;
    let ordered_signers = body["signerInfo"].as_array().expect("signers");
    let returned_signers = opened.answer["signerInfo"].as_array().expect("signers");
    assert_eq!((ordered_signers.len(), returned_signers.len()), (20, 20));
    for (number, (order, answer)) in ordered_signers.iter().zip(returned_signers).enumerate() {
        assert_eq!(order["signerName"], format!("Signer Number {number}"), "in the order of signing");
        assert_eq!(order["signerId"], answer["signerId"]);
        assert_eq!(answer["signerRefId"], "");
    }
}

#[tokio::test]
async fn a_document_locker_request_is_ordered_with_its_consent() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    let opened = backend.open_flow(Flow::DocLocker).await;
    assert_eq!(member_names(&opened.answer), ["requestUrl", "transactionId"]);
    assert!(
        opened.answer["requestUrl"].as_str().expect("a URL").starts_with("https://upstream.example/"),
        "{}",
        opened.answer
    );
    let expected = json!({"transactionId": opened.id, "app_id": backend.app, "request_id": "req-1",
                          "docs": ["driving_licence", "class_x_marksheet"], "consent_text": CONSENT_TEXT});
    assert_ordered(&upstream.last_order(), Flow::DocLocker, &expected);
}

#[tokio::test]
async fn both_kinds_of_e_stamp_are_ordered_by_name() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    for api_type in ["RegistryEStamp", "PhysicalEStamp"] {
        let opened =
            backend.open_flow_with(Flow::EStamp, &Flow::EStamp.body_with(&[("/apiType", Some(json!(api_type)))])).await;
        assert_eq!(opened.answer, json!({"eStampId": opened.id}));
        let expected = json!({"eStampId": opened.id, "app_id": backend.app, "request_id": "req-1", "apiType": api_type,
                              "document": {"documentName": "lease.pdf", "base64FileData": PDF},
                              "signatoriesInfo": [{"name": "Asha Rao", "emailID": "asha@example.com",
                                  "signType": "electronic"}]});
        assert_ordered(&upstream.last_order(), Flow::EStamp, &expected);
    }
}

#[tokio::test]
async fn a_wealth_consent_is_ordered_and_answered_with_its_handle() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    let opened = backend.open_flow(Flow::Wealth).await;
    assert_eq!(member_names(&opened.answer), ["consentHandle", "requestUrl", "uniqueIdentifier"]);
    assert_eq!(
        (&opened.answer["uniqueIdentifier"], &opened.answer["consentHandle"]),
        (&json!(opened.id), &json!("handle-1"))
    );
    let expected = json!({"uniqueIdentifier": opened.id, "app_id": backend.app, "request_id": "req-1",
        "consent_text": CONSENT_TEXT});
    assert_ordered(&upstream.last_order(), Flow::Wealth, &expected);
}

#[tokio::test]
async fn flows_cost_no_credits() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(3).await;
    for flow in Flow::ALL {
        backend.open_flow(flow).await;
    }
    assert_eq!(node.operator().balance(&backend.client).await, 3);
}

#[tokio::test]
async fn members_in_either_spelling_give_the_same_order() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    let camel = Flow::Esign.body();
    let invitation_end = &camel["signerInfo"][0]["invitationExpireTimeStamp"];
    // Flow, body in the other spelling, and members of the order.
    let cases = [
        (
            Flow::Esign,
            json!({"document_info": camel["documentInfo"], "document_reference_id": "loan-agreement-7",
                   "signer_info": [{"signer_name": "Asha Rao", "signer_ref_id": "borrower",
                       "invitation_expire_time_stamp": invitation_end}]}),
            json!({"documentReferenceId": "loan-agreement-7",
                   "signerInfo": [{"signerName": "Asha Rao", "signerRefId": "borrower",
                       "invitationExpireTimeStamp": invitation_end}]}),
        ),
        (
            Flow::EStamp,
            json!({"api_type": "RegistryEStamp", "document": {"document_name": "lease.pdf", "base64_file_data": PDF},
                   "signatories_info": [{"name": "Asha Rao", "email_id": "asha@example.com",
                       "sign_type": "electronic"}]}),
            Flow::EStamp.body(),
        ),
        (
            Flow::DocLocker,
            json!({"docs": ["driving_licence"], "consent": "Y", "consentText": CONSENT_TEXT}),
            json!({"consent_text": CONSENT_TEXT}),
        ),
        (Flow::Wealth, json!({"consent": "Y", "consentText": CONSENT_TEXT}), json!({"consent_text": CONSENT_TEXT})),
    ];
    for (flow, body, expected) in cases {
        backend.try_open_flow(flow, &body).await.ok();
        let mut order = upstream.last_order().body;
        if let Some(signers) = order["signerInfo"].as_array_mut() {
            signers.iter_mut().for_each(|signer| drop(signer.as_object_mut().expect("a signer").remove("signerId")));
        }
        for (member, value) in expected.as_object().expect("an object") {
            assert_eq!(&order[member], value, "{member} of {order}");
        }
    }
}

#[tokio::test]
async fn a_request_id_in_the_body_is_passed_to_the_upstream() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    for flow in Flow::ALL {
        let body = flow.body_with(&[("/request_id", Some(json!("order-7")))]);
        let answer = Answer::receive(backend.request(Method::POST, flow.path()).json(&body)).await;
        answer.ok();
        assert_eq!(
            (answer.header("x-request-id"), &upstream.last_order().body["request_id"]),
            (Some("order-7"), &json!("order-7"))
        );
    }
}

#[tokio::test]
async fn a_retry_under_the_same_key_gets_the_first_response_and_orders_nothing() {
    let upstream = Upstream::start().await;
    let mut node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    let bodies = Flow::ALL.map(|flow| (flow, flow.body()));
    let mut first_answers = Vec::new();
    for (flow, body) in &bodies {
        first_answers.push(backend.open_flow_once(&format!("key-{}", flow.name()), *flow, body).await);
    }
    assert_eq!(upstream.orders().len(), 4);
    for attempt in 0..2 {
        for ((flow, body), first) in bodies.iter().zip(&first_answers) {
            first.ok();
            let again = backend.open_flow_once(&format!("key-{}", flow.name()), *flow, body).await;
            assert_eq!((again.status, &again.text), (200, &first.text), "{}", flow.name());
            assert_eq!(
                (first.header("idempotency-replayed"), again.header("idempotency-replayed")),
                (None, Some("true"))
            );
        }
        if attempt == 0 {
            node.kill().await;
            node.launch().await;
        }
    }
    assert_eq!(upstream.orders().len(), 4, "a replay orders nothing, not even after the process was killed");
    for flow in Flow::ALL {
        let other = flow.body_with(&[("/request_id", Some(json!("another-body")))]);
        let answer = backend.open_flow_once(&format!("key-{}", flow.name()), flow, &other).await;
        assert_eq!(answer.refusal(422), "idempotency_key_reused", "{}", flow.name());
    }
    assert_eq!(upstream.orders().len(), 4);
}

#[tokio::test]
async fn an_idempotency_key_of_another_kind_of_flow_gets_422() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(1).await;
    backend.open_flow_once("order-1", Flow::Wealth, &Flow::Wealth.body()).await.ok();
    let locker = backend.open_flow_once("order-1", Flow::DocLocker, &Flow::DocLocker.body()).await;
    assert_eq!(locker.refusal(422), "idempotency_key_reused");
    let init = backend.init_once("order-1", &json!({"claims": ["name"], "channel": "qr"})).await;
    assert_eq!(init.refusal(422), "idempotency_key_reused");
    assert_eq!(upstream.orders().len(), 1);
}

#[tokio::test]
async fn concurrent_requests_under_one_key_order_and_open_one_flow() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    for (orders_before, flow) in Flow::ALL.into_iter().enumerate() {
        let (key, body) = (flow.name(), flow.body());
        let answers = join_all((0..20).map(|_| backend.open_flow_once(key, flow, &body))).await;
        for answer in &answers {
            assert_eq!((answer.status, &answer.text), (200, &answers[0].text));
        }
        let opening_count = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_none()).count();
        assert_eq!((opening_count, upstream.orders().len()), (1, orders_before + 1), "{flow:?}");
    }
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_app() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let (one, other) = (node.backend_with_credits(0).await, node.backend_with_credits(0).await);
    let body = Flow::EStamp.body();
    let first = one.open_flow_once("order-1", Flow::EStamp, &body).await.ok();
    assert_ne!(other.open_flow_once("order-1", Flow::EStamp, &body).await.ok()["eStampId"], first["eStampId"]);
}
