//! The callback of the identity app: both formats, every code, and repetition.

use futures_util::future::join_all;
use serde_json::json;

use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

#[tokio::test]
async fn a_credential_completes_the_transaction_and_gets_a_reply_in_its_format() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    for format in CallbackFormat::BOTH {
        let opened = backend.open(&["name", "dob", "gender", "pincode"]).await;
        let answer = identity_app
            .post(&opened, format, format.success(&opened.txn, &identity_app.credential(&opened, "asha")))
            .await;
        assert_eq!(format.reply(&answer, &opened.txn, 200), "Success");
        let result = backend.result(&opened.txn).await.ok();
        let claims = json!({"residentName": "Asha Rao", "dob": "1990-02-14", "gender": "F", "pincode": "560000"});
        assert_eq!((&result["success"], &result["data"]["verified_claims"]), (&json!(true), &claims));
    }
}

#[tokio::test]
async fn every_terminal_code_completes_the_transaction_with_its_reason() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(20).await;
    let identity_app = node.identity_app();
    for format in CallbackFormat::BOTH {
        for code in ["301", "302", "303", "304", "305", "306", "307", "999", "E-17"] {
            let opened = backend.open(&["name"]).await;
            let answer =
                identity_app.post(&opened, format, format.failure(&opened.txn, code, "Reason of the app")).await;
            assert_eq!(format.reply(&answer, &opened.txn, 200), "Success");
            let result = backend.result(&opened.txn).await.ok();
            let expected = json!({
                "success": false, "statusCode": 200, "message": "Reason of the app", "request_id": result["request_id"],
                "data": {
                    "txn_id": opened.txn, "pending": false, "verification_passed": false, "verified_claims": {},
                    "verified_at": result["data"]["verified_at"], "message": "Reason of the app", "error_code": code,
                },
            });
            assert_eq!(result, expected);
        }
    }
    assert_eq!(node.operator().balance(&backend.client).await, 2, "a failure is not refunded");
}

#[tokio::test]
async fn an_error_code_without_a_message_still_has_a_reason() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(7).await, node.identity_app());
    for code in ["301", "302", "303", "304", "305", "306", "307"] {
        let opened = backend.open(&["name"]).await;
        assert_eq!(identity_app.fail(&opened, code, "").await.status, 200);
        let result = backend.result(&opened.txn).await.ok();
        assert!(result["data"]["message"].as_str().unwrap().len() > 10, "{result}");
    }
}

#[tokio::test]
async fn code_308_leaves_the_transaction_open_for_a_credential() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    for format in CallbackFormat::BOTH {
        let opened = backend.open(&["name"]).await;
        let answer = identity_app.post(&opened, format, format.failure(&opened.txn, "308", "Retry")).await;
        format.reply(&answer, &opened.txn, 200);
        assert!(backend.is_pending(&opened.txn).await);
        identity_app.approve(&opened, "asha").await;
        assert_eq!(backend.result(&opened.txn).await.ok()["success"], true);
    }
}

#[tokio::test]
async fn a_repeated_callback_gets_200_and_changes_nothing() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let (verified, failed) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    let credential = identity_app.credential(&verified, "asha");
    identity_app.present(&verified, &credential).await;
    identity_app.fail(&failed, "301", "User Reject").await;
    let before = (backend.result(&verified.txn).await.text, backend.result(&failed.txn).await.text);
    for format in CallbackFormat::BOTH {
        for _ in 0..2 {
            let again = identity_app.post(&verified, format, format.success(&verified.txn, &credential)).await;
            format.reply(&again, &verified.txn, 200);
            let again = identity_app.post(&failed, format, format.failure(&failed.txn, "301", "User Reject")).await;
            format.reply(&again, &failed.txn, 200);
        }
    }
    assert_eq!((backend.result(&verified.txn).await.text, backend.result(&failed.txn).await.text), before);
}

#[tokio::test]
async fn a_different_callback_for_a_finished_transaction_gets_409() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let (verified, failed) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    identity_app.approve(&verified, "asha").await;
    identity_app.fail(&failed, "301", "User Reject").await;
    for format in CallbackFormat::BOTH {
        let conflicting = [
            (&verified, format.failure(&verified.txn, "301", "User Reject")),
            (&verified, format.success(&verified.txn, &identity_app.credential(&verified, "vikram"))),
            (&failed, format.success(&failed.txn, &identity_app.credential(&failed, "asha"))),
            (&failed, format.failure(&failed.txn, "302", "Liveness")),
        ];
        for (opened, body) in conflicting {
            format.reply(&identity_app.post(opened, format, body).await, &opened.txn, 409);
        }
    }
    assert_eq!(backend.result(&verified.txn).await.ok()["data"]["verified_claims"]["residentName"], "Asha Rao");
    assert_eq!(backend.result(&failed.txn).await.ok()["data"]["error_code"], "301");
}

#[tokio::test]
async fn one_of_several_concurrent_callbacks_wins() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(10).await, node.identity_app());
    for _ in 0..10 {
        let opened = backend.open(&["name"]).await;
        let credentials = ["asha", "vikram", "asha", "vikram", "asha", "vikram"]
            .map(|resident| (resident, identity_app.credential(&opened, resident)));
        let callbacks = credentials.iter().map(|(resident, credential)| {
            let (opened, identity_app) = (&opened, &identity_app);
            async move { (*resident, identity_app.present(opened, credential).await.status) }
        });
        let answers = join_all(callbacks).await;
        let winners: Vec<&str> =
            answers.iter().filter(|(_, status)| *status == 200).map(|(resident, _)| *resident).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        assert!(answers.iter().all(|(_, status)| matches!(status, 200 | 409)), "{answers:?}");
        let name = if winners[0] == "asha" { "Asha Rao" } else { "Vikram Namuna" };
        assert_eq!(backend.result(&opened.txn).await.ok()["data"]["verified_claims"]["residentName"], name);
    }
}

#[tokio::test]
async fn concurrent_copies_of_one_callback_are_all_accepted() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(5).await, node.identity_app());
    for _ in 0..5 {
        let opened = backend.open(&["name"]).await;
        let credential = identity_app.credential(&opened, "asha");
        let answers = join_all((0..6).map(|_| identity_app.present(&opened, &credential))).await;
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200; 6], "a retry must not get a conflict: {answers:?}");
    }
}

#[tokio::test]
async fn a_backend_may_post_the_result_that_its_app_received() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open_with(&json!({"claims": ["name"], "channel": "app"})).await;
    identity_app.approve(&opened, "asha").await;
    assert_eq!(backend.result(&opened.txn).await.ok()["success"], true);
}

#[tokio::test]
async fn large_photos_and_names_in_other_scripts_arrive_unchanged() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    for format in CallbackFormat::BOTH {
        let opened = backend.open(&["name", "local_name", "photo"]).await;
        let answer = identity_app
            .post(&opened, format, format.success(&opened.txn, &identity_app.credential(&opened, "meena")))
            .await;
        format.reply(&answer, &opened.txn, 200);
        let claims = backend.result(&opened.txn).await.ok()["data"]["verified_claims"].clone();
        assert_eq!(claims["localResidentName"], "மீனா மாதிரி");
        assert!(claims["residentImage"].as_str().unwrap().len() > 295_000);
    }
}

#[tokio::test]
async fn the_sandbox_app_answers_through_the_real_callback() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    for (action, passed) in [("approve", true), ("decline", false)] {
        let opened = backend.open(&["name", "dob"]).await;
        let body = json!({"intent": opened.answer["intentJwt"], "resident": "asha", "action": action});
        let request = node.http.post(node.addresses.public("/sandbox/app/answer")).json(&body);
        let answer = sakshi_kit::answer::Answer::receive(request).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        eventually("completion", TIMEOUT, || async { (!backend.is_pending(&opened.txn).await).then_some(()) }).await;
        assert_eq!(backend.result(&opened.txn).await.ok()["data"]["verification_passed"], passed, "{action}");
    }
}
