//! The status of credentials: a callback is accepted only if the issuer publishes a usable and valid status. In every
//! other case the transaction stays pending.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use futures_util::future::join_all;
use sakshi_kit::backend::Backend;
use sakshi_kit::issuer::{ISSUER, KID, TestIssuer, encode, now};
use sakshi_kit::node::TestNode;
use sakshi_kit::status_host::{Reply, StatusHost};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};

/// The `id` of this file's credentials.
const CREDENTIAL_ID: &str = "7d1a3b1c-5c0e-4f43-9a31-8f1f2f4d6c11";

/// Starts a node with a status host, and a client with credits.
async fn start_with_status_host(settings: &[(&str, &str)]) -> (TestNode, StatusHost, Backend) {
    let host = StatusHost::start().await;
    let node =
        TestNode::start_with(&[&[("AUTHORITY__STATUS_HOSTS", host.authority.as_str())], settings].concat()).await;
    let backend = node.backend_with_credits(10_000).await;
    (node, host, backend)
}

/// Issues a credential with this `status`.
fn credential(issuer: &TestIssuer, status: Value) -> String {
    let mut draft = issuer.valid_draft();
    draft.payload["id"] = CREDENTIAL_ID.into();
    draft.payload["status"] = status;
    issuer.sign(&draft)
}

/// Signs a status response about the credential; `change` edits its parts.
fn status_response(issuer: &TestIssuer, change: impl FnOnce(&mut Value, &mut Value)) -> String {
    let mut header = json!({"alg": "ES256", "typ": "JWT", "kid": KID});
    let mut payload = json!({"iss": ISSUER, "sub": CREDENTIAL_ID, "status": "VALID", "iat": now(), "exp": now() + 60});
    change(&mut header, &mut payload);
    issuer.issuer.sign(&header, &payload).expect("a signature")
}

/// Signs a token status list whose states have `bits` bits each.
fn status_list(
    issuer: &TestIssuer,
    url: &str,
    bits: u8,
    states: &[u8],
    change: impl FnOnce(&mut Value, &mut Value),
) -> String {
    let states_per_byte = usize::from(8 / bits);
    let bytes = states
        .chunks(states_per_byte)
        .map(|chunk| chunk.iter().rev().fold(0, |byte, state| (u16::from(byte) << bits) as u8 | state));
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(&bytes.collect::<Vec<u8>>()).unwrap();
    let mut header = json!({"alg": "ES256", "typ": "statuslist+jwt", "kid": KID});
    let mut payload = json!({"iss": ISSUER, "sub": url, "iat": now(), "ttl": 60, "status_list": {"bits": bits,
        "lst": encode(zlib.finish().unwrap())}});
    change(&mut header, &mut payload);
    issuer.issuer.sign(&header, &payload).expect("a signature")
}

/// Presents a credential for a new transaction, which must stay pending unless it is accepted. Returns the status and
/// the text of the reply.
async fn open_and_present(node: &TestNode, backend: &Backend, credential: &str) -> (u16, String) {
    let opened = backend.open(&["name", "dob", "gender"]).await;
    let reply = node.identity_app().present(&opened, credential).await;
    assert_eq!(backend.is_pending(&opened.txn).await, reply.status != 200, "{}", reply.text);
    if reply.status == 503 {
        assert_eq!(reply.header("retry-after"), Some("5"));
    }
    (reply.status, reply.text)
}

/// Returns the number of status checks with this outcome.
async fn check_count(node: &TestNode, outcome: &str) -> u64 {
    let series = format!("sakshi_credential_status_checks_total{{outcome=\"{outcome}\"}}");
    node.metric(&series).await.unwrap_or(0)
}

#[tokio::test]
async fn the_issuers_status_response_decides_whether_a_credential_is_accepted() {
    let (node, host, backend) = start_with_status_host(&[]).await;
    let issuer = &node.issuer;
    let with_status = |member: &'static str, status: &'static str| {
        status_response(issuer, |_, payload| {
            drop(payload.as_object_mut().unwrap().remove("status"));
            payload[member] = status.into();
        })
    };
    let in_json_object = json!({"token": status_response(issuer, |_, _| {})}).to_string();
    let name_by_url = |payload: &mut Value| payload["sub"] = host.url("by-url").into();
    // Path, response about the credential, and then the callback's status, its reason and the counted outcome.
    let cases = [
        ("valid", status_response(issuer, |_, _| {}), 200, "", "valid"),
        ("state", with_status("state", "Active"), 200, "", "valid"),
        ("issued", with_status("status", "issued"), 200, "", "valid"),
        ("wrapped", in_json_object, 200, "", "valid"),
        ("by-url", status_response(issuer, |_, payload| name_by_url(payload)), 200, "", "valid"),
        (
            "by-id",
            status_response(issuer, |_, payload| {
                *payload = json!({"id": CREDENTIAL_ID, "state": "valid", "iat": now()});
            }),
            200,
            "",
            "valid",
        ),
        ("revoked", with_status("status", "REVOKED"), 400, "credential_revoked", "credential_revoked"),
        ("suspended", with_status("state", "suspended"), 400, "credential_suspended", "credential_suspended"),
        ("expired", with_status("state", "expired"), 400, "credential_not_valid", "credential_not_valid"),
        ("unknown-status", with_status("state", "on-hold"), 400, "credential_not_valid", "credential_not_valid"),
        (
            "both",
            status_response(issuer, |_, payload| payload["state"] = "revoked".into()),
            400,
            "credential_revoked",
            "credential_revoked",
        ),
    ];
    for (path, reply, status, reason, outcome) in cases {
        host.publish(path, Reply::Body(reply));
        let before = check_count(&node, outcome).await;
        let (actual_status, text) = open_and_present(&node, &backend, &credential(issuer, host.url(path).into())).await;
        assert_eq!(actual_status, status, "{path}: {text}");
        assert!(text.contains(reason), "{path}: {text}");
        assert_eq!(check_count(&node, outcome).await, before + 1, "{path}");
        eprintln!("{path}: {actual_status} {reason}");
    }
}

#[tokio::test]
async fn an_unusable_status_response_gives_the_callback_a_503() {
    let (node, host, backend) = start_with_status_host(&[]).await;
    let (issuer, stranger) = (&node.issuer, TestIssuer::generate());
    let with_payload = |change: &dyn Fn(&mut Value)| Reply::Body(status_response(issuer, |_, payload| change(payload)));
    let with_header = |name: &str, value: Value| Reply::Body(status_response(issuer, |header, _| header[name] = value));
    let unsigned = format!(
        "{}.{}.",
        encode(r#"{"alg":"none"}"#),
        encode(json!({"sub": CREDENTIAL_ID, "status": "valid", "iat": now()}).to_string())
    );
    // The counted outcome, and the response about the credential.
    let cases = [
        ("unreachable", Reply::Closed),
        ("http_status", Reply::Status("500 Internal Server Error", "X-None: 1")),
        ("redirect", Reply::Status("302 Found", "Location: /valid")),
        ("timed_out", Reply::Never),
        ("too_long", Reply::Body("x".repeat(64 * 1_024 + 1))),
        ("malformed", Reply::Body("VALID".to_owned())),
        ("malformed", Reply::Body(unsigned)),
        ("malformed", Reply::Body(json!({"status": "valid"}).to_string())),
        ("malformed", with_payload(&|payload| drop(payload.as_object_mut().unwrap().remove("status")))),
        ("malformed", with_payload(&|payload| payload["status"] = json!(["valid"]))),
        ("malformed", with_header("typ", "vc+sd-jwt".into())),
        ("unsigned", Reply::Body(status_response(&stranger, |_, _| {}))),
        ("unsigned", with_header("alg", "HS256".into())),
        ("unsigned", with_header("jwk", stranger.issuer.public_jwk())),
        ("key_unknown", with_header("kid", "another".into())),
        ("foreign", with_payload(&|payload| payload["sub"] = "another credential".into())),
        ("foreign", with_payload(&|payload| payload["iss"] = "https://other.example".into())),
        ("stale", with_payload(&|payload| payload["exp"] = (now() - 1).into())),
        ("stale", with_payload(&|payload| payload["iat"] = (now() + 120).into())),
        ("stale", with_payload(&|payload| drop(payload.as_object_mut().unwrap().remove("iat")))),
    ];
    for (number, (outcome, reply)) in cases.into_iter().enumerate() {
        let path = number.to_string();
        host.publish(&path, reply);
        let before = check_count(&node, outcome).await;
        let (status, text) = open_and_present(&node, &backend, &credential(issuer, host.url(&path).into())).await;
        assert_eq!(status, 503, "case {number}, {outcome}: {text}");
        assert!(text.contains("status_unavailable"), "case {number}, {outcome}: {text}");
        assert_eq!(check_count(&node, outcome).await, before + 1, "case {number}, {outcome}");
        eprintln!("{outcome}: 503");
    }
    let unlisted_host = credential(issuer, "http://127.0.0.1:9/status".into());
    assert_eq!(open_and_present(&node, &backend, &unlisted_host).await.0, 503);
    assert_eq!(check_count(&node, "host_not_listed").await, 1);
}

#[tokio::test]
async fn a_retried_callback_is_accepted_once_the_issuer_responds() {
    let (node, host, backend) = start_with_status_host(&[]).await;
    let opened = backend.open(&["name", "dob", "gender"]).await;
    let credential = credential(&node.issuer, host.url("one").into());
    host.publish("one", Reply::Closed);
    let app = node.identity_app();
    let answers = join_all((0..20).map(|_| app.present(&opened, &credential))).await;
    assert!(answers.iter().all(|answer| answer.status == 503), "{answers:?}");
    assert_eq!(host.request_count("one"), 1, "concurrent callbacks share one fetch, and its failure is cached");
    host.publish("one", Reply::Body(status_response(&node.issuer, |_, _| {})));
    eventually("acceptance", TIMEOUT, || async {
        (app.present(&opened, &credential).await.status == 200).then_some(())
    })
    .await;
    assert_eq!(backend.result(&opened.txn).await.ok()["success"], true);
    assert_eq!(app.present(&opened, &credential).await.status, 200, "a repeated callback causes no fetch");
    assert_eq!(host.request_count("one"), 2);
    assert_eq!(node.operator().balance(&backend.client).await, 9_999);
}

#[tokio::test]
async fn token_status_lists_of_every_bit_width_are_read() {
    let (node, host, backend) = start_with_status_host(&[]).await;
    let issuer = &node.issuer;
    for bits in [1, 2, 4, 8] {
        let path = format!("list-{bits}");
        let state_max = if bits == 1 { 1 } else { 3 };
        let states: Vec<u8> = (0..40).map(|index| index % (state_max + 1)).collect();
        host.publish(&path, Reply::Body(status_list(issuer, &host.url(&path), bits, &states, |_, _| {})));
        // One credential for each state, in the middle of the list.
        for (index, state) in states.iter().enumerate().skip(20).take(usize::from(state_max) + 1) {
            let status = json!({"status_list": {"idx": index, "uri": host.url(&path)}});
            let (actual_status, text) = open_and_present(&node, &backend, &credential(issuer, status)).await;
            let reason =
                ["Success", "credential_revoked", "credential_suspended", "credential_not_valid"][usize::from(*state)];
            assert_eq!(
                (actual_status, text.contains(reason)),
                (if *state == 0 { 200 } else { 400 }, true),
                "{bits} bits, {state}: {text}"
            );
        }
        assert_eq!(host.request_count(&path), 1, "the list is cached");
    }
    let url = |path: &str| host.url(path);
    let eight_valid: [u8; 8] = [0; 8];
    // Path, the counted outcome, and the list.
    let cases = [
        ("beyond", "malformed", status_list(issuer, &url("beyond"), 8, &eight_valid[..1], |_, _| {})),
        ("other-sub", "foreign", status_list(issuer, &url("elsewhere"), 8, &eight_valid, |_, _| {})),
        (
            "other-type",
            "malformed",
            status_list(issuer, &url("other-type"), 8, &eight_valid, |header, _| header["typ"] = "JWT".into()),
        ),
        (
            "three",
            "malformed",
            status_list(issuer, &url("three"), 8, &eight_valid, |_, payload| payload["status_list"]["bits"] = 3.into()),
        ),
        (
            "no-zlib",
            "malformed",
            status_list(issuer, &url("no-zlib"), 8, &eight_valid, |_, payload| {
                payload["status_list"]["lst"] = "AAAA".into();
            }),
        ),
        ("bomb", "malformed", status_list(issuer, &url("bomb"), 8, &vec![0; 2 * 1_024 * 1_024], |_, _| {})),
    ];
    for (path, outcome, reply) in cases {
        host.publish(path, Reply::Body(reply));
        let before = check_count(&node, outcome).await;
        let status = json!({"status_list": {"idx": 1, "uri": host.url(path)}});
        assert_eq!(open_and_present(&node, &backend, &credential(issuer, status)).await.0, 503, "{path}");
        assert_eq!(check_count(&node, outcome).await, before + 1, "{path}");
    }
}

#[tokio::test]
async fn the_policy_decides_which_credentials_are_checked() {
    for (policy, status_if_absent, status_if_revoked, status_if_malformed) in
        [("require", 400, 400, 400), ("if_present", 200, 400, 400), ("off", 200, 200, 200)]
    {
        let (node, host, backend) = start_with_status_host(&[("AUTHORITY__STATUS", policy)]).await;
        host.publish(
            "revoked",
            Reply::Body(status_response(&node.issuer, |_, payload| payload["status"] = "revoked".into())),
        );
        let without_status = node.issuer.sign(&node.issuer.valid_draft());
        assert_eq!(open_and_present(&node, &backend, &without_status).await.0, status_if_absent, "{policy}");
        assert_eq!(
            open_and_present(&node, &backend, &credential(&node.issuer, host.url("revoked").into())).await.0,
            status_if_revoked,
            "{policy}"
        );
        for status in [
            json!(7),
            json!("no URL"),
            json!("ftp://issuer.example/1"),
            json!({"status_list": {"idx": -1, "uri": "https://a/"}}),
        ] {
            assert_eq!(
                open_and_present(&node, &backend, &credential(&node.issuer, status)).await.0,
                status_if_malformed,
                "{policy}"
            );
        }
        let opened = backend.open(&["name"]).await;
        assert_eq!(
            node.identity_app().fail(&opened, "301", "User Reject").await.status,
            200,
            "a failure has no credential"
        );
    }
}

#[tokio::test]
async fn a_status_response_is_reused_until_it_expires() {
    let (node, host, backend) = start_with_status_host(&[]).await;
    let expiring_in =
        |seconds: i64| status_response(&node.issuer, |_, payload| payload["exp"] = (now() + seconds).into());
    host.publish("short", Reply::Body(expiring_in(6)));
    let new_credential = || credential(&node.issuer, host.url("short").into());
    assert_eq!(open_and_present(&node, &backend, &new_credential()).await.0, 200);
    host.publish(
        "short",
        Reply::Body(status_response(&node.issuer, |_, payload| payload["status"] = "revoked".into())),
    );
    eventually("the expiry of the first response", TIMEOUT, || async {
        open_and_present(&node, &backend, &new_credential()).await.1.contains("credential_revoked").then_some(())
    })
    .await;
    assert_eq!(host.request_count("short"), 2, "the first response was reused until its expiry");
}
