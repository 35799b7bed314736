//! The checks with an immediate response (specification, "What the service does" 2), by analogy with PAN checks.

use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::flow_fixture::FlowFixture;
use sakshi_kit::upstream::{TOKEN, UpstreamBehaviour};
use serde_json::{Value, json};

const CONSENT_TEXT: &str = "I agree that Example Bank verifies this number.";

/// A number in the request of a check.
struct Number {
    field: &'static str,
    /// The number as the client writes it.
    sent: &'static str,
    /// The same number as the service writes it.
    normalised: &'static str,
    malformed_code: &'static str,
}

/// A kind of check.
struct Kind {
    name: &'static str,
    path: &'static str,
    numbers: &'static [Number],
    /// Malformed values of the first number.
    malformed: &'static [&'static str],
    needs_consent: bool,
    /// The message of a check whose number is valid.
    message: &'static str,
}

static KINDS: [Kind; 4] = [
    Kind {
        name: "gst",
        path: "/api/v1/gst/verify",
        numbers: &[Number {
            field: "gstin",
            sent: "27aapfu0939f1zv",
            normalised: "27AAPFU0939F1ZV",
            malformed_code: "malformed_gstin",
        }],
        malformed: &["27AAPFU0939F1ZW", "27AAPFU0939F1Z", "27AAPF10939F1ZV", "A7AAPFU0939F1ZV", "AAPFU0939F", "", "७"],
        needs_consent: true,
        message: "GSTIN verified",
    },
    Kind {
        name: "bank_account",
        path: "/api/v1/bank-account/verify",
        numbers: &[
            Number {
                field: "account_number",
                sent: "001234567890",
                normalised: "001234567890",
                malformed_code: "malformed_account_number",
            },
            Number { field: "ifsc", sent: "exmp0ab12cd", normalised: "EXMP0AB12CD", malformed_code: "malformed_ifsc" },
        ],
        malformed: &["87654321", "8765432109876543210", "87654321098a", "-87654321098", ""],
        needs_consent: true,
        message: "Account verified",
    },
    Kind {
        name: "ifsc",
        path: "/api/v1/ifsc/verify",
        numbers: &[Number {
            field: "ifsc",
            sent: "exmp0001234",
            normalised: "EXMP0001234",
            malformed_code: "malformed_ifsc",
        }],
        malformed: &["QWER1001234", "QWE00001234", "QWER000987", "QWER00098765", "QWER0009-87", ""],
        needs_consent: false,
        message: "IFSC verified",
    },
    Kind {
        name: "voter_id",
        path: "/api/v1/voter-id/verify",
        numbers: &[Number {
            field: "epic_number",
            sent: "xyz7654321",
            normalised: "XYZ7654321",
            malformed_code: "malformed_epic_number",
        }],
        malformed: &["XY17654321", "XYZ765432", "XYZ76543211", "XYZ765432A", ""],
        needs_consent: true,
        message: "Voter ID verified",
    },
];

/// Returns the check of a bank account, by its number and the IFSC of its branch.
fn bank_account() -> &'static Kind {
    &KINDS[1]
}

impl Kind {
    /// Returns a request that is accepted.
    fn body(&self) -> Value {
        let mut body: Value = self.numbers.iter().map(|number| (number.field.to_owned(), json!(number.sent))).collect();
        if self.needs_consent {
            body["consent"] = json!("Y");
            body["consent_text"] = json!(CONSENT_TEXT);
        }
        body
    }

    fn body_with(&self, member: &str, value: impl Into<Value>) -> Value {
        let mut body = self.body();
        body[member] = value.into();
        body
    }

    /// Requests the check, under a fixed request id.
    async fn verify(&self, backend: &Backend, body: &Value) -> Answer {
        backend.secrets.watch_for_personal_data(body);
        Answer::receive(backend.request(Method::POST, self.path).header("X-Request-ID", "req-1").json(body)).await
    }
}

#[tokio::test]
async fn each_check_returns_the_number_and_its_status_without_a_credit() {
    let fixture = FlowFixture::start().await;
    for kind in &KINDS {
        for (status, message) in [("valid", Some(kind.message)), ("invalid", None), ("not_found", None)] {
            fixture
                .upstream
                .set_behaviour(UpstreamBehaviour::Body(json!({ "status": status, "more": {} }).to_string()));
            let answer = kind.verify(&fixture.backend, &kind.body()).await.ok();
            assert_eq!(
                (&answer["success"], &answer["statusCode"], &answer["request_id"]),
                (&json!(true), &json!(200), &json!("req-1"))
            );
            assert_eq!(answer["data"]["status"], status, "{answer}");
            assert!(message.is_none_or(|message| answer["message"] == message), "{answer}");
            let order = fixture.upstream.last_order();
            assert_eq!(
                (order.flow.as_str(), &order.headers["authorization"]),
                (kind.name, &format!("Bearer {TOKEN}").parse().unwrap())
            );
            let mut expected = json!({});
            for number in kind.numbers {
                assert_eq!(answer["data"][number.field], number.normalised, "{answer}");
                expected[number.field] = json!(number.normalised);
            }
            if kind.needs_consent {
                expected["consent_text"] = json!(CONSENT_TEXT);
            }
            assert_eq!(order.body, expected);
        }
    }
    assert_eq!(fixture.node.operator().balance(&fixture.backend.client).await, 0, "a check costs no credit");
}

#[tokio::test]
async fn the_holder_of_an_account_is_compared_if_a_name_is_sent() {
    let fixture = FlowFixture::start().await;
    let account = bank_account();
    let named = account.verify(&fixture.backend, &account.body_with("name", "Asha Rao")).await.ok();
    assert_eq!(named["data"]["name_match"], true);
    assert_eq!(fixture.upstream.last_order().body["name"], "Asha Rao");
    let unnamed = account.verify(&fixture.backend, &account.body_with("name", Value::Null)).await.ok();
    assert_eq!(unnamed["data"]["name_match"], Value::Null, "no name was sent");
    assert_eq!(fixture.upstream.last_order().body.get("name"), None);
    let camel =
        json!({"accountNumber": "001234567890", "ifsc": "EXMP0AB12CD", "consent": "Y", "consentText": CONSENT_TEXT});
    account.verify(&fixture.backend, &camel).await.ok();
    assert_eq!(fixture.upstream.last_order().body["account_number"], "001234567890");
}

#[tokio::test]
async fn a_malformed_number_gets_422_without_a_request_to_the_source() {
    let fixture = FlowFixture::start().await;
    for kind in &KINDS {
        let Number { field, malformed_code, .. } = kind.numbers[0];
        for malformed in kind.malformed {
            let answer = kind.verify(&fixture.backend, &kind.body_with(field, *malformed)).await;
            assert_eq!(answer.refusal(422), malformed_code, "{malformed}");
            let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
            assert!(message.contains(field) && (malformed.is_empty() || !message.contains(malformed)), "{message}");
        }
    }
    assert_eq!(
        bank_account().verify(&fixture.backend, &bank_account().body_with("ifsc", "EXMP1001234")).await.refusal(422),
        "malformed_ifsc"
    );
    assert!(fixture.upstream.orders().is_empty());
}

#[tokio::test]
async fn a_missing_consent_or_bad_field_gets_a_400_that_names_it() {
    let fixture = FlowFixture::start().await;
    for kind in &KINDS {
        let field = kind.numbers[0].field;
        let mut cases = vec![
            (kind.body_with(field, 7), field),
            (kind.body_with(field, Value::Null), field),
            (kind.body_with("colour", "red"), "colour"),
            (kind.body_with("request_id", ""), "request_id"),
        ];
        if kind.needs_consent {
            cases.extend([
                (kind.body_with("consent", "N"), "consent"),
                (kind.body_with("consent", Value::Null), "consent"),
                (kind.body_with("consent_text", " "), "consent_text"),
            ]);
        } else {
            // This kind fetches no personal data: consent is optional, with the same rules for its fields.
            cases.extend([
                (kind.body_with("consent", "N"), "consent"),
                (kind.body_with("consent_text", " "), "consent_text"),
            ]);
        }
        for (body, field) in cases {
            assert_eq!(kind.verify(&fixture.backend, &body).await.refused_fields(), [field], "{body}");
        }
    }
    assert_eq!(
        bank_account().verify(&fixture.backend, &bank_account().body_with("name", " ")).await.refused_fields(),
        ["name"]
    );
    assert!(fixture.upstream.orders().is_empty());
}

#[tokio::test]
async fn a_failed_source_gives_502_and_a_slow_source_504() {
    let mut fixture = FlowFixture::start().await;
    for (behaviour, status, code) in [
        (UpstreamBehaviour::Status(500), 502, "upstream_failed"),
        (UpstreamBehaviour::Body(json!({ "status": "perhaps" }).to_string()), 502, "upstream_failed"),
        (UpstreamBehaviour::Hang, 504, "upstream_timed_out"),
    ] {
        if status == 504 {
            // Only now, because a busy machine may take longer for an answer.
            fixture.node.set("UPSTREAMS__TIMEOUT_MS", "400");
            fixture.node.restart().await;
        }
        fixture.upstream.set_behaviour(behaviour);
        for kind in &KINDS {
            let answer = kind.verify(&fixture.backend, &kind.body()).await;
            assert_eq!(answer.refusal(status), code, "{}", kind.name);
            assert!(kind.numbers.iter().all(|number| !answer.text.contains(number.normalised)), "{}", answer.text);
        }
    }
}

#[tokio::test]
async fn checks_require_both_headers_and_the_post_method() {
    let fixture = FlowFixture::start().await;
    for kind in &KINDS {
        let bare = fixture.node.http.post(fixture.node.addresses.public(kind.path)).json(&kind.body());
        assert_eq!(Answer::receive(bare).await.refusal(401), "unauthorized");
        assert_eq!(fixture.backend.get(kind.path).await.refusal(405), "method_not_allowed");
    }
    assert!(fixture.upstream.orders().is_empty());
}
