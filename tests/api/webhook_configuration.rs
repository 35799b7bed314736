//! Webhook URLs of an account (specification, "Webhook configuration and polling").

use reqwest::Method;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::flow_fixture::API_TYPES;
use sakshi_kit::node::TestNode;

const PATH: &str = "/api/v1/user/webhook";

/// Returns the registered URLs, by API.
async fn registered_urls(backend: &Backend) -> Vec<(String, String)> {
    let answer = backend.get(PATH).await.ok();
    assert_eq!(answer["success"], true, "{answer}");
    let mut rows: Vec<(String, String)> = answer["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            assert_eq!(row.as_object().expect("an object").len(), 2, "{row}");
            (
                row["apiType"].as_str().expect("an apiType").to_owned(),
                row["webhookUrl"].as_str().expect("a URL").to_owned(),
            )
        })
        .collect();
    rows.sort_unstable();
    rows
}

#[tokio::test]
async fn a_url_can_be_registered_replaced_and_removed_for_each_api() {
    let node = TestNode::start().await;
    let (backend, neighbour) = (node.backend_with_credits(0).await, node.backend_with_credits(0).await);
    assert!(registered_urls(&backend).await.is_empty());
    for api_type in API_TYPES {
        backend.register(api_type, &format!("https://client.example/hooks/{api_type}")).await;
    }
    let mut expected =
        API_TYPES.map(|api_type| (api_type.to_owned(), format!("https://client.example/hooks/{api_type}")));
    expected.sort_unstable();
    assert_eq!(registered_urls(&backend).await, expected);
    assert!(registered_urls(&neighbour).await.is_empty(), "each app has its own URLs");

    backend.register("ESign", "https://client.example/elsewhere").await;
    assert!(
        registered_urls(&backend).await.contains(&("ESign".to_owned(), "https://client.example/elsewhere".to_owned()))
    );
    assert_eq!(registered_urls(&backend).await.len(), 4);

    for _ in 0..2 {
        let removed = backend.configure(&json!({"apiType": "ESign", "webhookUrl": null})).await.ok();
        assert_eq!(removed, json!({"success": true, "data": {"apiType": "ESign", "webhookUrl": null}}));
        assert_eq!(registered_urls(&backend).await.len(), 3);
    }
    let in_snake_case = json!({"api_type": "ESign", "webhook_url": "https://client.example/snake"});
    assert_eq!(
        backend.configure(&in_snake_case).await.ok()["data"],
        json!({"apiType": "ESign", "webhookUrl": "https://client.example/snake"})
    );
}

#[tokio::test]
async fn registered_urls_survive_a_restart() {
    let mut node = TestNode::start().await;
    let backend = node.backend_with_credits(0).await;
    backend.register("DocLocker", "https://client.example/hooks").await;
    node.kill().await;
    node.launch().await;
    assert_eq!(registered_urls(&backend).await, [("DocLocker".to_owned(), "https://client.example/hooks".to_owned())]);
}

#[tokio::test]
async fn every_bad_field_gets_a_400_that_names_it_and_registers_nothing() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(0).await;
    let url = "https://client.example/hooks";
    let long = format!("https://client.example/{}", "x".repeat(2_048));
    // Body, and the field that the error names.
    let cases = [
        (json!({"webhookUrl": url}), "apiType"),
        (json!({"apiType": "OVSE", "webhookUrl": url}), "apiType"),
        (json!({"apiType": "esign", "webhookUrl": url}), "apiType"),
        (json!({"apiType": "Wealth", "webhookUrl": url}), "apiType"),
        (json!({"apiType": null, "webhookUrl": url}), "apiType"),
        (json!({"apiType": ["ESign"], "webhookUrl": url}), "apiType"),
        (json!({"apiType": "ESign"}), "webhookUrl"),
        (json!({"apiType": "ESign", "webhookUrl": ""}), "webhookUrl"),
        (json!({"apiType": "ESign", "webhookUrl": 7}), "webhookUrl"),
        (json!({"apiType": "ESign", "webhookUrl": "client.example"}), "webhookUrl"),
        (json!({"apiType": "ESign", "webhookUrl": "ftp://client.example/"}), "webhookUrl"),
        (json!({"apiType": "ESign", "webhookUrl": "https://user:pass@client.example/"}), "webhookUrl"),
        (json!({"apiType": "ESign", "webhookUrl": "https://client.example/#part"}), "webhookUrl"),
        (json!({"apiType": "ESign", "webhookUrl": long}), "webhookUrl"),
        (json!({"apiType": "ESign", "webhookUrl": url, "colour": "red"}), "colour"),
    ];
    for (body, field) in cases {
        assert_eq!(backend.configure(&body).await.refused_fields(), [field], "{body}");
    }
    let both_spellings =
        backend.configure(&json!({"apiType": "ESign", "api_type": "ESign", "webhookUrl": url})).await.refused_fields();
    assert!(both_spellings == ["apiType"] || both_spellings == ["api_type"], "{both_spellings:?}");
    let mut problems = backend.configure(&json!({"apiType": "OVSE", "webhookUrl": "nowhere"})).await.refused_fields();
    problems.sort_unstable();
    assert_eq!(problems, ["apiType", "webhookUrl"]);
    assert!(registered_urls(&backend).await.is_empty());
}

#[tokio::test]
async fn http_and_internal_urls_are_refused_unless_allowed() {
    let node =
        TestNode::start_with(&[("WEBHOOKS__ALLOW_HTTP", "false"), ("WEBHOOKS__ALLOW_PRIVATE_TARGETS", "false")]).await;
    let backend = node.backend_with_credits(0).await;
    for host in ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]", "0x7f000001"] {
        let refused =
            backend.configure(&json!({"apiType": "ESign", "webhookUrl": format!("https://{host}/hook")})).await;
        assert_eq!(refused.refused_fields(), ["webhookUrl"], "{host}");
    }
    let plain = backend.configure(&json!({"apiType": "ESign", "webhookUrl": "http://client.example/hook"})).await;
    assert_eq!(plain.refused_fields(), ["webhookUrl"]);
    backend.register("ESign", "https://client.example/hook").await;
}

#[tokio::test]
async fn an_account_configures_its_own_webhooks_with_its_own_credentials() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(0).await;
    for method in [Method::GET, Method::PUT] {
        let bare = node
            .http
            .request(method.clone(), node.addresses.public(PATH))
            .json(&json!({"apiType": "ESign", "webhookUrl": null}));
        assert_eq!(Answer::receive(bare).await.refusal(401), "unauthorized");
        let without_app = backend.with_credentials(&backend.key, "");
        assert_eq!(Answer::receive(without_app.request(method, PATH)).await.refusal(401), "unauthorized");
    }
    let post = backend.post(PATH, &json!({"apiType": "ESign", "webhookUrl": null})).await;
    assert_eq!(post.refusal(405), "method_not_allowed");
    let allowed = post.header("allow").expect("Allow");
    assert!(allowed.contains("GET") && allowed.contains("PUT"), "{allowed}");
    let text = backend.request(Method::PUT, PATH).header("content-type", "text/plain").body("ESign");
    assert_eq!(Answer::receive(text).await.refusal(415), "unsupported_media_type");
    assert_eq!(registered_urls(&backend).await, Vec::<(String, String)>::new());
}

#[tokio::test]
async fn an_operator_sets_and_removes_the_three_urls_of_wealth_data() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(0).await, node.operator());
    let path = format!("/admin/v1/apps/{}", backend.app);
    let names = ["consent_webhook_url", "data_webhook_url", "historical_webhook_url"];
    for name in names {
        let app = operator.patch(&path, &json!({name: format!("https://client.example/{name}")})).await.ok();
        assert_eq!(app[name], format!("https://client.example/{name}"), "{app}");
    }
    let app = operator.get(&path).await.ok();
    assert!(names.iter().all(|name| app[name] == format!("https://client.example/{name}")), "{app}");
    operator.patch(&path, &json!({"data_webhook_url": null})).await.ok();
    let app = operator.get(&path).await.ok();
    assert_eq!((&app[names[0]], &app[names[1]]), (&json!("https://client.example/consent_webhook_url"), &Value::Null));
    assert_eq!(
        operator.patch(&path, &json!({"data_webhook_url": "nowhere"})).await.refused_fields(),
        ["data_webhook_url"]
    );
    assert!(registered_urls(&backend).await.is_empty(), "wealth URLs are not URLs of the account");
}
