//! Accepted credentials, their issuers, and the data passed on.

use serde_json::{Value, json};

use sakshi_kit::issuer::{self, TestIssuer, now, with_disclosures, with_the_other_signature};
use sakshi_kit::node::TestNode;
use sakshi_kit::other_issuers::{Library, issue};

#[tokio::test]
async fn a_missing_requested_claim_fails_the_verification() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name", "email", "mobile"]).await;
    let issuer = &node.issuer;
    let credential = issuer.sign(&issuer.draft(&[("residentName", json!("Asha Rao")), ("email", json!(" "))]));
    assert_eq!(identity_app.present(&opened, &credential).await.status, 200);
    let result = backend.result(&opened.txn).await.ok();
    assert_eq!((&result["success"], &result["data"]["verification_passed"]), (&json!(false), &json!(false)));
    assert_eq!(
        (&result["data"]["verified_claims"], &result["data"]["error_code"]),
        (&json!({}), &json!("claims_missing"))
    );
}

#[tokio::test]
async fn unrequested_claims_and_id_numbers_are_never_passed_on() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name", "address"]).await;
    let id_number = "999941057058";
    node.secrets.watch_for(id_number);
    let issuer = &node.issuer;
    let credential = issuer.sign(&issuer.draft(&[
        ("residentName", json!("Asha Rao")),
        ("uid", json!(id_number)),
        ("UID", json!(id_number)),
        ("vid", json!(id_number)),
        ("maskedUID", json!(id_number)),
        ("email", json!("asha@mail.example")),
        ("pincode", json!("560000")),
        ("address", json!({"house": "7", "maskedUid": id_number, "street": "First Example Street"})),
    ]));
    assert_eq!(identity_app.present(&opened, &credential).await.status, 200);
    let result = backend.result(&opened.txn).await;
    let expected = json!({"residentName": "Asha Rao", "address": {"house": "7", "street": "First Example Street"}});
    assert_eq!(result.ok()["data"]["verified_claims"], expected);
    assert!(!result.text.contains(id_number));
    for file in std::fs::read_dir(node.store()).unwrap().flatten().filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        for text in [id_number, "Asha Rao", "First Example Street"] {
            let is_stored = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(!is_stored, "{} contains a claim in plain text", file.path().display());
        }
    }
}

#[tokio::test]
async fn different_spellings_of_a_value_are_normalised() {
    let node = TestNode::start().await;
    let (backend, identity_app, issuer) = (node.backend_with_credits(20).await, node.identity_app(), &node.issuer);
    for (claim, credential_name, issued, expected) in [
        ("dob", "dob", json!("14-02-1990"), json!("1990-02-14")),
        ("dob", "dob", json!("14/02/1990"), json!("1990-02-14")),
        ("dob", "dob", json!("1990-02-14"), json!("1990-02-14")),
        ("dob", "dob", json!("1990"), json!("1990")),
        ("gender", "gender", json!("female"), json!("F")),
        ("age_above_18", "ageAbove18", json!("Yes"), json!(true)),
        ("age_above_75", "ageAbove75", json!("false"), json!(false)),
        ("nri_status", "isNRI", json!(true), json!(true)),
        ("pincode", "Pincode", json!("560000"), json!("560000")),
    ] {
        let opened = backend.open(&[claim]).await;
        let credential = issuer.sign(&issuer.draft(&[(credential_name, issued.clone())]));
        assert_eq!(identity_app.present(&opened, &credential).await.status, 200, "{issued}");
        let claims = backend.result(&opened.txn).await.ok()["data"]["verified_claims"].clone();
        assert_eq!(claims.as_object().unwrap().values().next(), Some(&expected), "{issued}");
    }
}

#[tokio::test]
async fn a_claim_in_an_unknown_form_fails_the_verification_and_is_not_passed_on() {
    let node = TestNode::start().await;
    let (backend, identity_app, issuer) = (node.backend_with_credits(20).await, node.identity_app(), &node.issuer);
    for (claim, credential_name, issued) in [
        ("dob", "dob", json!("31/02/1990")),
        ("dob", "dob", json!(19_900_102)),
        ("dob", "dob", json!("99/99/9999")),
        ("gender", "gender", json!("é")),
        ("gender", "gender", json!(1)),
        ("age_above_18", "ageAbove18", json!("maybe")),
        ("age_above_18", "ageAbove18", json!(1)),
        ("nri_status", "isNRI", json!("unknown")),
    ] {
        let opened = backend.open(&["name", claim]).await;
        let credential =
            issuer.sign(&issuer.draft(&[("residentName", json!("Asha Rao")), (credential_name, issued.clone())]));
        assert_eq!(identity_app.present(&opened, &credential).await.status, 200, "{issued}");
        let result = backend.result(&opened.txn).await.ok();
        assert_eq!(
            (&result["success"], &result["data"]["verification_passed"]),
            (&json!(false), &json!(false)),
            "{issued}"
        );
        assert_eq!(
            (&result["data"]["verified_claims"], &result["data"]["error_code"]),
            (&json!({}), &json!("claims_malformed"))
        );
        assert_eq!(result["message"], format!("Requested claims are not in a known form: {claim}"));
    }
}

#[tokio::test]
async fn an_issuers_key_is_accepted_for_that_issuer_only() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let mut draft = node.issuer.valid_draft();
    draft.payload["iss"] = json!("https://issuer.sandbox.invalid");
    assert_eq!(identity_app.present(&opened, &node.issuer.sign(&draft)).await.status, 400);
    assert!(backend.is_pending(&opened.txn).await);
    identity_app.approve(&opened, "asha").await;
}

#[tokio::test]
async fn a_used_bare_credential_is_refused_for_another_transaction() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(3).await, node.identity_app());
    let (first, second) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    let bare = identity_app.bare_credential(first.intent.requested(), "asha");
    assert_eq!(identity_app.present(&first, &bare).await.status, 200);
    assert_eq!(identity_app.present(&second, &bare).await.status, 400);
    assert!(backend.is_pending(&second.txn).await);
    assert_eq!(identity_app.present(&first, &bare).await.status, 200, "a redelivery is not a replay");
    let fresh = identity_app.bare_credential(second.intent.requested(), "asha");
    assert_eq!(identity_app.present(&second, &fresh).await.status, 200, "the same person may verify again");
}

#[tokio::test]
async fn a_replayed_credential_is_refused_in_every_form() {
    let node = TestNode::start().await;
    let (backend, identity_app, issuer) = (node.backend_with_credits(8).await, node.identity_app(), &node.issuer);
    for bound in [false, true] {
        let (first, second) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
        let draft = issuer.valid_draft();
        let bare = issuer.sign(&draft);
        let accepted = if bound { issuer.bind(&bare, &first, |_, _| ()) } else { bare.clone() };
        assert_eq!(identity_app.present(&first, &accepted).await.status, 200);
        let jws = bare.split('~').next().expect("a JWS");
        let reordered: Vec<String> = draft.disclosures.iter().rev().cloned().collect();
        for replay in [
            accepted,
            bare.clone(),
            with_disclosures(jws, &reordered),
            with_disclosures(jws, &draft.disclosures[..1]),
            with_the_other_signature(&bare),
            with_disclosures(with_the_other_signature(&format!("{jws}~")).trim_end_matches('~'), &reordered),
        ] {
            assert_eq!(identity_app.present(&second, &replay).await.status, 400);
            assert!(backend.is_pending(&second.txn).await);
        }
        let bound_again = issuer.bind(&bare, &second, |_, _| ());
        assert_eq!(
            identity_app.present(&second, &bound_again).await.status,
            200,
            "the holder may bind it to another transaction"
        );
    }
    let metrics = node.operator().probe("/metrics").await.text;
    // Of the twice six replays, the credential bound to the first transaction is refused for its binding.
    assert!(
        metrics.lines().any(|line| line == r#"sakshi_credentials_refused_total{reason="credential_replayed"} 11"#),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_bare_credential_completes_only_one_of_two_concurrent_transactions() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(20).await, node.identity_app());
    for _ in 0..5 {
        let (first, second) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
        let bare = identity_app.bare_credential(first.intent.requested(), "asha");
        let (first_answer, second_answer) =
            tokio::join!(identity_app.present(&first, &bare), identity_app.present(&second, &bare));
        let mut statuses = [first_answer.status, second_answer.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400]);
    }
}

/// Builds the request for a credential to an issuer library, with values as the authority writes them.
fn library_request(changes: &Value) -> Value {
    let mut request = json!({
        "issuer": issuer::ISSUER,
        "plain": {"id": uuid::Uuid::new_v4()},
        "claims": {
            "residentName": "आशा राव", "dob": "28-02-1990", "gender": "F", "uid": "999941057058", "pincode": "560001",
            "residentImage": "/9j/".repeat(10_000),
        },
    });
    for (name, value) in changes.as_object().expect("an object") {
        request[name] = value.clone();
    }
    request
}

/// Checks that credentials of a library complete transactions, both bare and bound to a transaction by their holder.
async fn assert_credentials_accepted(library: Library) {
    let issued = issue(library, &library_request(&json!({})));
    let node = TestNode::trusting(TestIssuer::generate(), &issued["jwks"], &[]).await;
    let (backend, identity_app) = (node.backend_with_credits(4).await, node.identity_app());
    for has_key_binding in [false, true] {
        let opened = backend.open(&["name", "dob", "photo"]).await;
        let terms = json!({"private_jwk": issued["private_jwk"], "with_kb": has_key_binding, "nonce": opened.txn,
            "aud": opened.intent.aud});
        let credential =
            issue(library, &library_request(&terms))["credential"].as_str().expect("a credential").to_owned();
        assert_eq!(
            identity_app.present(&opened, &credential).await.status,
            200,
            "{library:?}, key binding: {has_key_binding}"
        );
        let claims = backend.result(&opened.txn).await.ok()["data"]["verified_claims"].clone();
        let expected = json!({"residentName": "आशा राव", "dob": "1990-02-28", "residentImage": "/9j/".repeat(10_000)});
        assert_eq!(claims, expected);

        let other = backend.open(&["name", "dob", "photo"]).await;
        assert_eq!(
            identity_app.present(&other, &credential).await.status,
            400,
            "{library:?}: another transaction's credential"
        );
        assert!(backend.is_pending(&other.txn).await);
    }
}

#[tokio::test]
async fn bare_and_bound_credentials_of_an_independent_python_issuer_are_accepted() {
    assert_credentials_accepted(Library::Python).await;
}

#[tokio::test]
async fn bare_and_bound_credentials_of_an_independent_node_issuer_are_accepted() {
    assert_credentials_accepted(Library::Node).await;
}

#[tokio::test]
async fn an_untrusted_issuer_with_the_same_library_is_refused() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    let stranger = issue(Library::Python, &library_request(&json!({"kid": issuer::KID})));
    assert_eq!(identity_app.present(&opened, stranger["credential"].as_str().unwrap()).await.status, 400);
    let stale = issue(Library::Python, &library_request(&json!({"iat": now() - 7_200, "exp": now() - 3_600})));
    assert_eq!(identity_app.present(&opened, stale["credential"].as_str().unwrap()).await.status, 400);
    assert!(backend.is_pending(&opened.txn).await);
}
