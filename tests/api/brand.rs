//! The brand of a client or an event: an operator sets it, and pages show it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_kit::answer::Answer;
use sakshi_kit::event::{BROWSER, TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};

/// A minimal picture: the beginning and the end of a JPEG file.
const PICTURE: &[u8] = b"\xff\xd8\xff\xe0JFIF\xff\xd9";
/// A logo with a script, which browsers must not run.
const LOGO: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";

fn brand_path(subject: &str, id: &str) -> String {
    format!("/admin/v1/{subject}/{id}/brand")
}

async fn get_page(node: &TestNode, path: &str) -> Answer {
    Answer::receive(node.http.get(node.addresses.public(path)).header("Accept", "text/html")).await
}

#[tokio::test]
async fn a_verify_page_shows_the_brand_of_the_client() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(2).await, node.operator());
    let brand = brand_path("clients", &backend.client);
    assert_eq!(
        operator.get(&brand).await.ok(),
        json!({"name": null, "logo_url": null, "picture_url": null, "colour": null, "support": null,
            "privacy_url": null})
    );
    let change = json!({"name": "Meridian Bank", "logo": STANDARD.encode(LOGO), "colour": "#7A1F3D",
        "support": "+91 80 1234 5678",
        "privacy_url": "https://meridian.example/privacy"});
    let changed = operator.patch(&brand, &change).await.ok();
    assert_eq!((&changed["name"], &changed["colour"]), (&json!("Meridian Bank"), &json!("#7a1f3d")), "{changed}");
    assert_eq!(operator.get(&brand).await.ok(), changed);

    let opened = backend.open(&["name"]).await;
    let html = get_page(&node, &format!("/v/{}", opened.txn)).await.text;
    let logo = changed["logo_url"].as_str().unwrap();
    for part in
        [logo, "Meridian Bank", "/assets/brand/7a1f3d.css", "tel:+918012345678", "https://meridian.example/privacy"]
    {
        assert!(html.contains(part), "{part}: {html}");
    }
    let file = get_page(&node, logo).await;
    assert_eq!((file.status, file.text.as_bytes(), file.header("content-type")), (200, LOGO, Some("image/svg+xml")));
    assert!(file.header("content-security-policy").unwrap().ends_with("sandbox"), "scripts in the file do not run");
    assert_eq!(file.header("cache-control"), Some("public, max-age=86400, immutable"));
    let style = get_page(&node, "/assets/brand/7a1f3d.css").await;
    assert!(
        style.text.starts_with(":root{--accent:#7a1f3d;") && style.text.contains("prefers-color-scheme:dark"),
        "{}",
        style.text
    );

    let removed = operator.patch(&brand, &json!({"logo": null, "name": null})).await.ok();
    assert_eq!(
        (&removed["logo_url"], &removed["name"], &removed["colour"]),
        (&Value::Null, &Value::Null, &json!("#7a1f3d"))
    );
    eventually("a page without the logo", TIMEOUT, || async {
        let text = get_page(&node, &format!("/v/{}", opened.txn)).await.text;
        (!text.contains(logo) && !text.contains("Meridian")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_pages_of_an_event_show_its_own_brand_before_the_clients() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(3).await, node.operator());
    operator
        .patch(&brand_path("clients", &backend.client), &json!({"name": "Meridian Bank", "colour": "#7a1f3d"}))
        .await
        .ok();
    let event = TestEvent::open(&node, &backend, &terms(5)).await;
    let change = json!({"name": "Innovation Hub", "logo": STANDARD.encode(LOGO), "picture": STANDARD.encode(PICTURE),
        "colour": "#004d40"});
    let changed = operator.patch(&brand_path("events", &event.id), &change).await.ok();
    let (logo, picture) = (changed["logo_url"].as_str().unwrap(), changed["picture_url"].as_str().unwrap());
    let html = eventually("the brand on the event's page", TIMEOUT, || async {
        let text = Answer::receive(event.visit(reqwest::Method::GET, BROWSER)).await.text;
        text.contains("Innovation Hub").then_some(text)
    })
    .await;
    assert!(
        html.contains(&format!("<img class=\"picture\" src=\"{picture}\"")) && html.contains("/assets/picture.css"),
        "{html}"
    );
    let file = get_page(&node, picture).await;
    assert_eq!(
        (file.status, file.header("content-type"), file.header("x-content-type-options")),
        (200, Some("image/jpeg"), Some("nosniff"))
    );
    let kiosk = get_page(&node, &format!("/e/{}/kiosk", event.id)).await.text;
    let guest = get_page(&node, &format!("/v/{}", event.scan().await.txn)).await.text;
    for (name, text) in [("event", html), ("kiosk", kiosk), ("guest", guest)] {
        for part in ["Innovation Hub", "Meridian Bank", logo, "/assets/brand/004d40.css"] {
            assert!(text.contains(part), "{name}: {part}: {text}");
        }
    }
    let poster = backend.get(&format!("/api/v1/nationalid-ovse/events/{}/poster", event.id)).await.text;
    assert!(
        poster.contains(&format!("data:image/svg+xml;base64,{}", STANDARD.encode(LOGO)))
            && poster.contains("Innovation Hub")
    );
    assert_eq!(
        event.patch(&json!({"brand": {"name": "Income Tax Department"}})).await.refused_fields(),
        ["brand"],
        "a client cannot set a brand"
    );

    let other = TestEvent::open(&node, &backend, &terms(5)).await;
    let etag_before = backend.get(&other.path()).await.header("etag").unwrap().to_owned();
    let files = json!({"logo": STANDARD.encode(LOGO), "picture": STANDARD.encode(PICTURE)});
    let branded = operator.patch(&brand_path("events", &other.id), &files).await.ok();
    assert_eq!(backend.get(&other.path()).await.header("etag"), Some(&*etag_before), "the event itself is unchanged");
    operator.post("/admin/v1/erasures", &json!({"kind": "event", "id": other.id})).await.ok();
    for file in ["logo_url", "picture_url"] {
        assert_eq!(
            get_page(&node, branded[file].as_str().unwrap()).await.status,
            404,
            "an erased event leaves no {file}"
        );
    }
}

#[tokio::test]
async fn a_logo_is_followed_by_the_clients_name_and_then_the_organiser() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(1).await, node.operator());
    let mut terms = terms(5);
    terms["organiser"] = json!("State Bank");
    let event = TestEvent::open(&node, &backend, &terms).await;
    let page_text = async || Answer::receive(event.visit(reqwest::Method::GET, BROWSER)).await.text;
    assert!(
        page_text().await.contains("<strong><bdi>State Bank</bdi></strong><span class=\"of-app\"><bdi>Client</bdi>")
    );
    operator
        .patch(
            &brand_path("clients", &backend.client),
            &json!({"logo": STANDARD.encode(LOGO), "support": "help@bank.example"}),
        )
        .await
        .ok();
    let text = eventually("the logo", TIMEOUT, || async {
        Some(page_text().await).filter(|text| text.contains("/assets/logo/"))
    })
    .await;
    assert!(text.contains("<strong><bdi>Client</bdi></strong><span class=\"of-app\"><bdi>State Bank</bdi>"), "{text}");
    assert!(text.contains("<p><bdi>Client</bdi>: <a href=\"mailto:help@bank.example\">"), "{text}");
    let kiosk = get_page(&node, &format!("/e/{}/kiosk", event.id)).await.text;
    assert!(kiosk.contains("<bdi id=\"organiser\">Client · State Bank</bdi>"), "{kiosk}");
    let poster = backend.get(&format!("/api/v1/nationalid-ovse/events/{}/poster", event.id)).await.text;
    assert!(poster.contains("<p class=\"organiser\"><bdi>Client · State Bank</bdi></p>"), "{poster}");
}

#[tokio::test]
async fn an_invalid_brand_is_refused_and_changes_nothing() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(0).await, node.operator());
    let brand = brand_path("clients", &backend.client);
    let large = STANDARD.encode([b"<svg>".as_slice(), &[b' '; 16_384]].concat());
    for (field, values) in [
        ("colour", [json!("#ffcc00"), json!("red"), json!(7)]),
        ("logo", [json!(STANDARD.encode(b"GIF89a")), json!("not Base64"), json!(large)]),
        ("picture", [json!(STANDARD.encode(b"GIF89a")), json!("not Base64"), json!(STANDARD.encode([b' '; 24_577]))]),
        ("support", [json!("javascript:alert(1)"), json!("call us"), json!("")]),
        ("privacy_url", [json!("ftp://meridian.example/"), json!("privacy"), json!({})]),
        ("name", [json!(""), json!("a\u{202e}b"), json!("x".repeat(101))]),
    ] {
        for value in values {
            assert_eq!(operator.patch(&brand, &json!({field: value})).await.refused_fields(), [field]);
        }
    }
    assert!(operator.get(&brand).await.ok().as_object().unwrap().values().all(Value::is_null), "nothing was changed");
    for path in [
        "/assets/logo/x",
        "/assets/logo/00000000000000000000000000000000",
        "/assets/brand/ffcc00.css",
        "/assets/brand/x.css",
    ] {
        assert_eq!(get_page(&node, path).await.status, 404, "{path}");
    }
    for (subject, id) in [("clients", "cl_nobody"), ("events", "0fZbQ0000000000aB"), ("events", "x")] {
        assert_eq!(
            operator.patch(&brand_path(subject, id), &json!({"colour": "#7a1f3d"})).await.status,
            404,
            "{subject} {id}"
        );
    }
}
