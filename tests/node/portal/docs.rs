//! The page of the API.

use reqwest::Method;

use crate::in_process::InProcessNode;

#[actix_rt::test]
async fn the_page_tells_every_operation_and_loads_nothing_from_elsewhere() {
    let live = InProcessNode::start().await;
    let entered = live.http.get(live.url("/docs/")).send().await.unwrap();
    assert_eq!((entered.status().as_u16(), entered.headers()["location"].to_str().unwrap()), (308, "/docs"));
    let page = live.http.get(live.url("/docs")).send().await.unwrap();
    assert_eq!((page.status().as_u16(), page.headers()["x-robots-tag"].to_str().unwrap()), (200, "noindex"));
    assert!(page.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    let html = page.text().await.unwrap();
    let loads = html.split(['<', '>']).filter(|tag| ["link ", "script ", "img "].iter().any(|kind| tag.starts_with(kind)));
    assert!(loads.clone().count() > 0);
    for tag in loads {
        assert!(!tag.contains("://") && !tag.contains("=\"//"), "{tag}");
    }
    let document: serde_json::Value = live.http.get(live.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let told = format!("<b>{}</b> {path}<", method.to_uppercase());
            assert!(html.contains(&told), "{told}");
        }
    }
    for name in document["webhooks"].as_object().unwrap().keys() {
        assert!(html.contains(&format!("id=\"webhook-{name}\"")), "{name}");
    }
    live.stop().await;
}

#[actix_rt::test]
async fn a_refusal_leads_to_the_entry_of_its_code() {
    let live = InProcessNode::start().await;
    for (path, code) in [("/api/v1/credits", "unauthorized"), ("/nowhere", "not_found"), ("/api/v1/pan/verify", "method_not_allowed")] {
        let refusal: serde_json::Value = live.http.get(live.url(path)).send().await.unwrap().json().await.unwrap();
        let url = refusal["docUrl"].as_str().unwrap_or_default();
        assert_eq!((&refusal["code"], url), (&code.into(), &*live.url(&format!("/docs/errors#{code}"))), "{refusal}");
        let page = live.http.get(url).send().await.unwrap();
        assert_eq!(page.status().as_u16(), 200);
        let html = page.text().await.unwrap();
        assert!(html.contains(&format!("<tr id=\"{code}\">")), "{code}: {html}");
    }
    live.stop().await;
}

#[actix_rt::test]
async fn every_guide_is_a_page_of_its_own_that_the_page_of_the_api_leads_to() {
    let live = InProcessNode::start().await;
    let html = live.http.get(live.url("/docs")).send().await.unwrap().text().await.unwrap();
    let guides: Vec<&str> =
        html.split("href=\"").filter_map(|rest| rest.split('"').next()).filter(|link| link.starts_with("/docs/")).collect();
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides")).unwrap();
    for file in files.map(|file| file.unwrap().path()) {
        let path = format!("/docs/guides/{}", file.file_stem().unwrap().to_str().unwrap());
        assert!(guides.contains(&&*path), "{path} is not in {guides:?}");
        let page = live.http.get(live.url(&path)).send().await.unwrap();
        assert_eq!(page.status().as_u16(), 200, "{path}");
        let (shown, text) = (page.text().await.unwrap(), std::fs::read_to_string(&file).unwrap());
        let title = text.lines().next().unwrap().trim_start_matches("# ");
        assert!(shown.contains(&format!(">{title}</h1>")) && shown.matches("<h1").count() == 1, "{path}: {shown}");
    }
    assert_eq!(live.stranger("/docs/guides/none").await.0, 404);
    live.stop().await;
}

#[actix_rt::test]
async fn a_field_is_told_with_its_bounds_its_words_and_where_it_stands() {
    let live = InProcessNode::start().await;
    let html = live.http.get(live.url("/docs")).send().await.unwrap().text().await.unwrap();
    let row = |field: &str| html.split("<tr>").find(|row| row.contains(&format!("<code>{field}</code>"))).unwrap_or_default().to_owned();
    assert!(
        row("claims").contains("array") && row("claims").contains("1 to 30") && row("claims").contains("required"),
        "{}",
        row("claims")
    );
    assert!(row("channel").contains("web") && row("channel").contains("qr") && row("channel").contains("app"), "{}", row("channel"));
    assert!(row("signerInfo[].signerName").contains("string"), "{}", row("signerInfo[].signerName"));
    live.stop().await;
}

#[actix_rt::test]
async fn there_is_nothing_below_the_page() {
    let live = InProcessNode::start().await;
    for file in ["nothing.js", "../Cargo.toml", "..%2f..%2fetc%2fpasswd", "a/b"] {
        assert_eq!(live.stranger(&format!("/docs/{file}")).await.0, 404, "{file}");
    }
    live.stop().await;
}

#[actix_rt::test]
async fn whoever_accepts_gzip_gets_shorter_documents_and_files_and_head_says_the_same() {
    let live = InProcessNode::start().await;
    for path in [
        "/docs",
        "/docs/errors",
        "/docs/guides/event",
        "/openapi.json",
        "/assets/portal.css",
        "/assets/docs.css",
        "/assets/page.css",
        "/assets/page.js",
    ] {
        let ask = |method, accepted| {
            let request = live.http.request(method, live.url(path)).header("accept-encoding", accepted);
            async move {
                let response = request.send().await.unwrap();
                let headers = response.headers().clone();
                let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
                let about = ["content-encoding", "content-length", "vary", "etag", "content-type"].map(text);
                (about, response.bytes().await.unwrap().len())
            }
        };
        let (plain, plain_bytes) = ask(Method::GET, "identity").await;
        let (gzip, gzip_bytes) = ask(Method::GET, "br, gzip;q=0.9").await;
        assert_eq!((plain[0].as_deref(), gzip[0].as_deref()), (None, Some("gzip")), "{path}");
        assert!(gzip_bytes * 10 < plain_bytes * 7, "{path}: {gzip_bytes} of {plain_bytes}");
        assert_eq!([&plain[1], &gzip[1]].map(Option::as_deref), [Some(&*plain_bytes.to_string()), Some(&*gzip_bytes.to_string())]);
        assert!(plain[2] == gzip[2] && plain[3] != gzip[3] && plain[4] == gzip[4], "{path}: {plain:?} {gzip:?}");
        assert_eq!(ask(Method::HEAD, "gzip").await, (gzip, 0), "{path}");
    }
    live.stop().await;
}
