//! Common properties of all pages: no script, one style sheet, a strict policy, and escaping.

use actix_web::test::TestRequest;

use super::scene::{PDF, Scene, read_text};

#[actix_rt::test]
async fn pages_need_no_script_load_only_local_files_and_have_a_strict_policy() {
    let scene = Scene::new().await;
    let (document, signers) = scene.order_esign(&["Asha <script>", "Vikram"], PDF).await;
    let (locker, stamp, wealth) =
        (scene.order_doclocker(&["<script>"]).await, scene.order_estamp(PDF).await, scene.order_wealth().await);
    scene.play("wealth", wealth, "accepted").await;
    let cases = [
        ("/sandbox/flows".to_owned(), 200, "flows/flows.css"),
        (format!("/sandbox/esign/{document}/{}", signers[0]), 200, "../../flows/flows.css"),
        (format!("/sandbox/esign/{document}/{}", signers[1]), 200, "../../flows/flows.css"),
        (format!("/sandbox/doclocker/{locker}"), 200, "../flows/flows.css"),
        (format!("/sandbox/estamp/{stamp}"), 200, "../flows/flows.css"),
        (format!("/sandbox/wealth/{wealth}"), 200, "../flows/flows.css"),
        ("/sandbox/wealth/nonsense".to_owned(), 404, "../flows/flows.css"),
        (format!("/sandbox/esign/{document}/nobody"), 404, "../../flows/flows.css"),
    ];
    for (path, status, style) in cases {
        let response = scene.call(TestRequest::get().uri(&path)).await;
        assert_eq!(response.status().as_u16(), status, "{path}");
        let policy = response.headers().get("content-security-policy").unwrap().to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        assert_eq!(response.headers().get("cache-control").unwrap(), "no-store");
        let html = read_text(response).await;
        let inline =
            |word: &str| word.starts_with("<script") || word.starts_with("<style") || word.starts_with("style=");
        let handler = |word: &str| word.starts_with("on") && word.contains('=');
        let elsewhere = |word: &str| word.starts_with("href=\"http") || word.starts_with("src=");
        assert!(!html.split_whitespace().any(|word| inline(word) || handler(word) || elsewhere(word)), "{html}");
        assert!(html.contains(&format!("href=\"{style}\"")), "{path}");
        assert!(html.contains("Sandbox · no real data") && html.contains("<html lang=\"en\">"));
    }
    let style = scene.call(TestRequest::get().uri("/sandbox/flows/flows.css")).await;
    assert_eq!(style.headers().get("content-type").unwrap(), "text/css; charset=utf-8");
}

#[actix_rt::test]
async fn the_index_lists_open_orders_newest_first_and_ended_orders_apart() {
    let scene = Scene::new().await;
    let (_, html) = scene.page("/sandbox/flows").await;
    assert_eq!(html.matches("No open order").count(), 4);
    let (first, second) = (scene.order_doclocker(&["a"]).await, scene.order_doclocker(&["b"]).await);
    let (document, signers) = scene.order_esign(&["Asha Rao", "Vikram"], PDF).await;
    let (_, html) = scene.page("/sandbox/flows").await;
    let position = |text: String| html.find(&text).unwrap();
    assert!(position(format!("href=\"doclocker/{second}\"")) < position(format!("href=\"doclocker/{first}\"")));
    for signer in &signers {
        assert!(html.contains(&format!("href=\"esign/{document}/{signer}\"")));
    }
    assert!(html.contains("loan &#60;agreement&#62;.pdf") && !html.contains("Over ("));
    scene.play("doclocker", second, "failed").await;
    let (_, html) = scene.page("/sandbox/flows").await;
    assert!(html.contains("Over (1)") && html.contains("the person declined"));
}

#[actix_rt::test]
async fn a_malformed_form_gets_a_page_and_a_malformed_body_gets_json() {
    let scene = Scene::new().await;
    let locker = scene.order_doclocker(&["a"]).await;
    for fields in [&[("nothing", "x")][..], &[("action", "nonsense"), ("resident", "asha")]] {
        let (status, html) = scene.submit(&format!("/sandbox/doclocker/{locker}"), fields).await;
        assert_eq!((status, html.contains("This cannot be done")), (400, true));
        assert!(html.contains(&format!("href=\"{locker}\"")));
    }
    let request = TestRequest::post().uri(&format!("/sandbox/flows/doclocker/{locker}")).set_payload("{");
    let response = scene.call(request.insert_header(("content-type", "application/json"))).await;
    assert_eq!(response.status(), 400);
    assert!(read_text(response).await.contains("malformed_body"));
}
