//! Evidence of a verification: one sealed file that others can verify years later.

use std::time::Duration;

use sakshi_authority::evidence::{Evidence, SealedEvidence};
use sakshi_authority::intent::{IntentKey, IntentSettings, IntentSigner, SealedFile};
use sakshi_domain::claims::Claim;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::issuer::{ISSUER, KID, TestIssuer, now};
use sakshi_kit::node::TestNode;
use sakshi_kit::other_issuers::check_evidence;
use sakshi_kit::process::{Process, ProcessOutput};
use sakshi_kit::status_host::{Reply, StatusHost};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};

/// The member `evidence` of an init: a request for evidence, a request for none, or no member.
type EvidenceMember = Option<bool>;
const EVIDENCE_REQUESTED: EvidenceMember = Some(true);
const EVIDENCE_REFUSED: EvidenceMember = Some(false);
const EVIDENCE_UNSPECIFIED: EvidenceMember = None;

/// The id of the credential, to which its status refers.
const CREDENTIAL_ID: &str = "7d1a3b1c-5c0e-4f43-9a31-8f1f2f4d6c11";

fn evidence_path(txn: &str) -> String {
    format!("/api/v1/nationalid-ovse/result/{txn}/evidence")
}

/// Opens a transaction with this member `evidence`.
async fn open_with(backend: &Backend, evidence: EvidenceMember) -> Opened {
    let mut body = json!({"claims": ["name", "dob", "gender"], "channel": "web", "purpose": "To open an account"});
    if let Some(evidence) = evidence {
        body["evidence"] = json!(evidence);
    }
    Opened::read(&backend.post("/api/v1/nationalid-ovse/init", &body).await.ok())
}

/// Runs `verify-evidence` on a file with these options.
fn verify_evidence(node: &TestNode, file: &str, options: &[&str]) -> ProcessOutput {
    let directory = node.directory.path();
    std::fs::write(directory.join("evidence.json"), file).unwrap();
    Process::run(&[&["verify-evidence", "evidence.json"], options].concat(), node.environment(), directory)
}

/// Starts a node with a status host, and completes a verification with evidence.
async fn complete_with_evidence() -> (TestNode, StatusHost, Backend, Opened) {
    let host = StatusHost::start().await;
    let node = TestNode::start_with(&[("AUTHORITY__STATUS_HOSTS", host.authority.as_str())]).await;
    let payload = json!({"iss": ISSUER, "sub": CREDENTIAL_ID, "status": "VALID", "iat": now(), "exp": now() + 60});
    let header = json!({"alg": "ES256", "typ": "JWT", "kid": KID});
    host.publish("status", Reply::Body(node.issuer.issuer.sign(&header, &payload).expect("a signature")));
    let backend = node.backend_with_credits(9).await;
    let opened = open_with(&backend, EVIDENCE_REQUESTED).await;
    assert_eq!(backend.get(&evidence_path(&opened.txn)).await.refusal(404), "not_found", "no evidence exists yet");
    let mut draft = node.issuer.valid_draft();
    draft.payload["id"] = CREDENTIAL_ID.into();
    draft.payload["status"] = host.url("status").into();
    let credential = node.issuer.bind(&node.issuer.sign(&draft), &opened, |_, _| {});
    let reply = node.identity_app().present(&opened, &credential).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    (node, host, backend, opened)
}

#[tokio::test]
async fn third_parties_can_check_an_evidence_file() {
    let (node, _host, backend, opened) = complete_with_evidence().await;
    let answer = backend.get(&evidence_path(&opened.txn)).await;
    answer.ok();
    let file = answer.text;
    let check_result = {
        let file = file.clone();
        tokio::task::spawn_blocking(move || check_evidence(&file)).await.unwrap()
    };
    assert_eq!(
        (&check_result["claims"]["residentName"], &check_result["claims"]["iss"]),
        (&json!("Asha Rao"), &json!(ISSUER)),
        "{check_result}"
    );
    assert_eq!(
        (&check_result["status"]["status"], &check_result["bound"]),
        (&json!("VALID"), &json!(true)),
        "{check_result}"
    );

    let directory = node.directory.path();
    std::fs::write(directory.join("issuer.json"), node.issuer.jwks().to_string()).unwrap();
    std::fs::write(directory.join("service.json"), node.get("/.well-known/jwks.json").await.text).unwrap();
    let output =
        verify_evidence(&node, &file, &["--json", "--issuer-keys", "issuer.json", "--seal-keys", "service.json"]);
    assert!(output.status.success(), "{}{}", output.out, output.err);
    let summary: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(
        (&summary["txn_id"], &summary["shared"]),
        (&json!(opened.txn), &json!(["name", "dob", "gender"])),
        "{summary}"
    );
    assert_eq!((&summary["status"], &summary["holder_bound"]), (&json!("valid"), &json!(true)), "{summary}");
    assert_eq!(
        (&summary["issuer_key_trusted"], &summary["seal_key_trusted"]),
        (&json!(true), &json!(true)),
        "{summary}"
    );
    let text = verify_evidence(&node, &file, &[]);
    assert!(
        text.status.success() && text.out.contains("compare the thumbprints") && !text.out.contains("Asha"),
        "{}",
        text.out
    );
}

#[tokio::test]
async fn a_changed_or_foreign_evidence_file_is_refused() {
    let (node, _host, backend, opened) = complete_with_evidence().await;
    let file = backend.get(&evidence_path(&opened.txn)).await.ok();
    let assert_refused = |file: &Value, options: &[&str], reason: &str| {
        let output = verify_evidence(&node, &file.to_string(), options);
        assert!(output.status.code() == Some(1) && output.out.contains(reason), "{}{}", output.out, output.err);
    };
    for part in ["payload", "protected", "signature"] {
        let mut changed = file.clone();
        let text = file[part].as_str().unwrap();
        let other = if &text[30..31] == "A" { "B" } else { "A" };
        changed[part] = json!(format!("{}{other}{}", &text[..30], &text[31..]));
        let output = verify_evidence(&node, &changed.to_string(), &[]);
        assert_eq!(output.status.code(), Some(1), "{part}: {}{}", output.out, output.err);
    }
    assert_refused(&json!({"payload": "", "protected": "", "signature": ""}), &[], "not an evidence file");
    let directory = node.directory.path();
    std::fs::write(directory.join("others.json"), TestIssuer::generate().jwks().to_string()).unwrap();
    assert_refused(
        &file,
        &["--issuer-keys", "others.json"],
        "the key that signed the credential is not among those that are trusted",
    );
    assert_refused(
        &file,
        &["--seal-keys", "others.json"],
        "the key that sealed the file is not among those that are trusted",
    );
    assert_eq!(verify_evidence(&node, "{}", &["--issuer-keys", "missing.json"]).status.code(), Some(2));
}

#[tokio::test]
async fn a_forged_evidence_file_is_refused_despite_a_valid_seal() {
    let (node, _host, backend, opened) = complete_with_evidence().await;
    let file = backend.get(&evidence_path(&opened.txn)).await.text;
    let genuine = SealedEvidence::open(file.as_bytes(), None).unwrap().evidence;
    let stranger = TestIssuer::generate();
    let sealer = IntentSigner::new(IntentKey::generate_es256().unwrap().0, IntentSettings::default());
    // An empty reason means that the file is accepted.
    let assert_outcome = async |change: &dyn Fn(&mut Evidence), reason: &str| {
        let mut evidence = genuine.clone();
        change(&mut evidence);
        let SealedFile { payload, protected, signature } = sealer.seal(&evidence, SystemClock.now()).await.unwrap();
        let file = json!({"payload": payload, "protected": protected, "signature": signature}).to_string();
        let output = verify_evidence(&node, &file, &[]);
        assert!(
            output.status.code() == Some(i32::from(!reason.is_empty())) && output.out.contains(reason),
            "{reason}: {}",
            output.out
        );
    };
    assert_outcome(&|_| {}, "").await;
    let forged = stranger.sign(&stranger.valid_draft());
    let strangers_key = stranger.jwks()["keys"][0].clone();
    // The forged credential has the issuer's key id, and the stranger's key is listed beside the issuer's key.
    let with_status_key = |evidence: &mut Evidence| {
        evidence.proof.credential.clone_from(&forged);
        evidence.proof.status.as_mut().unwrap().key = strangers_key.clone();
    };
    assert_outcome(&with_status_key, "the credential is refused").await;
    assert_outcome(
        &|evidence| evidence.proof.status.as_mut().unwrap().key = strangers_key.clone(),
        "status of the credential cannot be used",
    )
    .await;
    assert_outcome(
        &|evidence| evidence.requested = [Claim::Name, Claim::Mobile].into_iter().collect(),
        "does not share every claim",
    )
    .await;
    let two_days = Duration::from_secs(2 * 24 * 3_600);
    assert_outcome(&|evidence| evidence.verified_at = evidence.opened_at - two_days, "times in the file contradict")
        .await;
}

#[tokio::test]
async fn evidence_holds_only_requested_claims_of_passed_verifications() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(9).await, node.identity_app());
    let shared = [("residentName", json!("Asha Rao")), ("dob", json!("14-02-1990")), ("gender", json!("F"))];
    // Presents a credential with these disclosed claims, and perhaps one that is not disclosed separately.
    let present_and_get = async |opened: &Opened, claims: &[(&str, Value)], plain_claim: Option<&str>| {
        let mut draft = node.issuer.draft(claims);
        if let Some(name) = plain_claim {
            draft.payload[name] = json!("planted-number");
        }
        let credential = node.issuer.bind(&node.issuer.sign(&draft), opened, |_, _| {});
        let reply = identity_app.present(opened, &credential).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        backend.get(&evidence_path(&opened.txn)).await
    };
    let opened = open_with(&backend, EVIDENCE_REQUESTED).await;
    let too_many = [&shared[..], &[("maskedUID", json!("xxxx-planted")), ("mobile", json!("9999-planted"))]].concat();
    let file = present_and_get(&opened, &too_many, None).await;
    file.ok();
    let summary: Value = serde_json::from_str(&verify_evidence(&node, &file.text, &["--json"]).out).unwrap();
    assert_eq!(
        (&summary["shared"], &summary["holder_bound"]),
        (&json!(["name", "dob", "gender"]), &json!(true)),
        "{summary}"
    );
    assert_eq!(summary["holder_binding_checked"], json!(false), "a key binding covers all disclosures");
    let text = file.text.clone();
    let checked = tokio::task::spawn_blocking(move || check_evidence(&text)).await.unwrap();
    assert!(!checked.to_string().contains("planted") && checked["claims"]["residentName"] == "Asha Rao", "{checked}");

    let signed_in_plain_text = open_with(&backend, EVIDENCE_REQUESTED).await;
    assert_eq!(present_and_get(&signed_in_plain_text, &shared, Some("uid")).await.refusal(404), "not_found");
    let withheld = open_with(&backend, EVIDENCE_REQUESTED).await;
    assert_eq!(present_and_get(&withheld, &shared[..2], None).await.refusal(404), "not_found", "it did not pass");
}

#[tokio::test]
async fn evidence_is_stored_if_requested_and_erased_with_the_result() {
    let node = TestNode::start().await;
    let (backend, other, identity_app) =
        (node.backend_with_credits(900).await, node.backend_with_credits(1).await, node.identity_app());
    let complete_and_get = async |evidence: EvidenceMember| {
        let opened = open_with(&backend, evidence).await;
        identity_app.approve(&opened, "asha").await;
        (backend.get(&evidence_path(&opened.txn)).await.status, opened)
    };
    assert_eq!(complete_and_get(EVIDENCE_UNSPECIFIED).await.0, 404);
    let (status, stored) = complete_and_get(EVIDENCE_REQUESTED).await;
    assert_eq!(status, 200);
    let patched = node.admin(&["apps", "patch", &backend.app, "--evidence", "true"]).await;
    assert!(patched.status.success() && patched.out.contains("evidence"), "{}{}", patched.out, patched.err);
    let app_setting_applies = async || (complete_and_get(EVIDENCE_UNSPECIFIED).await.0 == 200).then_some(());
    eventually("evidence by the setting of the app", TIMEOUT, app_setting_applies).await;
    assert_eq!(complete_and_get(EVIDENCE_REFUSED).await.0, 404, "the request overrides the app");

    assert_eq!(other.get(&evidence_path(&stored.txn)).await.refusal(404), "transaction_not_found");
    let declined = open_with(&backend, EVIDENCE_REQUESTED).await;
    identity_app.fail(&declined, "301", "User Reject").await;
    assert_eq!(
        backend.get(&evidence_path(&declined.txn)).await.refusal(404),
        "not_found",
        "a declined verification has no evidence"
    );
    node.operator().post("/admin/v1/erasures", &json!({"kind": "transaction", "id": stored.txn})).await.ok();
    assert_eq!(backend.get(&evidence_path(&stored.txn)).await.refusal(404), "transaction_not_found");
}
