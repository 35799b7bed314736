//! The documentation: its pages, as HTML and as Markdown, and its search.

use reqwest::Method;

use crate::in_process::InProcessNode;

#[actix_rt::test]
async fn the_documentation_covers_every_operation_and_loads_nothing_external() {
    let node = InProcessNode::start().await;
    let redirect = node.http.get(node.url("/docs/")).send().await.unwrap();
    assert_eq!((redirect.status().as_u16(), redirect.headers()["location"].to_str().unwrap()), (308, "/docs"));
    let page = node.http.get(node.url("/docs")).send().await.unwrap();
    assert_eq!((page.status().as_u16(), page.headers()["x-robots-tag"].to_str().unwrap()), (200, "noindex"));
    assert!(page.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    let html = all_pages(&node).await;
    let loading_tags =
        html.split(['<', '>']).filter(|tag| ["link ", "script ", "img "].iter().any(|kind| tag.starts_with(kind)));
    assert!(loading_tags.clone().count() > 0);
    for tag in loading_tags {
        assert!(!tag.contains("://") && !tag.contains("=\"//"), "{tag}");
    }
    let document: serde_json::Value =
        node.http.get(node.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let heading = format!(">{}</span> <code>{path}<", method.to_uppercase());
            assert!(html.contains(&heading), "{heading}");
        }
    }
    for name in document["webhooks"].as_object().unwrap().keys() {
        assert!(html.contains(&format!("id=\"webhook-{name}\"")), "{name}");
    }
    node.stop().await;
}

/// Returns the paths of all pages in the navigation.
async fn navigation_paths(node: &InProcessNode) -> Vec<String> {
    let html = node.http.get(node.url("/docs")).send().await.unwrap().text().await.unwrap();
    let nav = html.split("aria-label=\"Documentation\">").nth(1).unwrap().split("</nav>").next().unwrap();
    nav.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Returns the HTML of all pages in the navigation.
async fn all_pages(node: &InProcessNode) -> String {
    let mut all = String::new();
    for path in navigation_paths(node).await {
        let page = node.http.get(node.url(&path)).send().await.unwrap();
        assert_eq!(page.status().as_u16(), 200, "{path}");
        all.push_str(&page.text().await.unwrap());
    }
    all
}

#[actix_rt::test]
async fn an_error_links_to_the_entry_of_its_code() {
    let node = InProcessNode::start().await;
    for (path, code) in
        [("/api/v1/credits", "unauthorized"), ("/nowhere", "not_found"), ("/api/v1/pan/verify", "method_not_allowed")]
    {
        let refusal: serde_json::Value = node.http.get(node.url(path)).send().await.unwrap().json().await.unwrap();
        let url = refusal["docUrl"].as_str().unwrap_or_default();
        assert_eq!((&refusal["code"], url), (&code.into(), &*node.url(&format!("/docs/errors#{code}"))), "{refusal}");
        let page = node.http.get(url).send().await.unwrap();
        assert_eq!(page.status().as_u16(), 200);
        let html = page.text().await.unwrap();
        assert!(html.contains(&format!("<tr id=\"{code}\">")), "{code}: {html}");
    }
    node.stop().await;
}

#[actix_rt::test]
async fn every_guide_has_its_own_page_in_the_navigation() {
    let node = InProcessNode::start().await;
    let guides = navigation_paths(&node).await;
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides")).unwrap();
    for file in files.map(|file| file.unwrap().path()) {
        let path = match file.file_stem().unwrap().to_str().unwrap() {
            "start" => "/docs".to_owned(),
            name => format!("/docs/guides/{name}"),
        };
        assert!(guides.contains(&path), "{path} is not in {guides:?}");
        let html = node.http.get(node.url(&path)).send().await.unwrap().text().await.unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let title = text.lines().next().unwrap().trim_start_matches("# ");
        assert!(html.contains(&format!(">{title}</h1>")) && html.matches("<h1").count() == 1, "{path}: {html}");
        assert!(html.contains(&format!("href=\"{path}\" aria-current=\"page\"")), "{path}: {html}");
    }
    assert_eq!(node.get_unsigned("/docs/guides/none").await.0, 404);
    node.stop().await;
}

#[actix_rt::test]
async fn every_page_exists_as_markdown_with_links_to_markdown() {
    let node = InProcessNode::start().await;
    let list = node.http.get(node.url("/llms.txt")).send().await.unwrap();
    assert_eq!(
        (list.status().as_u16(), list.headers()["content-type"].to_str().unwrap()),
        (200, "text/plain; charset=utf-8")
    );
    let list = list.text().await.unwrap();
    let mut links = Vec::new();
    for path in navigation_paths(&node).await {
        let address = node.url(&format!("{path}.md"));
        assert!(list.contains(&format!("({address})")), "{address}: {list}");
        let page = node.http.get(address).send().await.unwrap();
        assert_eq!(
            (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
            (200, "text/markdown; charset=utf-8"),
            "{path}"
        );
        let text = page.text().await.unwrap();
        let is_document = !path.starts_with("/docs/reference");
        assert!(text.starts_with("# ") && !text.contains("<!-- "), "{path}: {text}");
        assert!(!is_document || !text.contains("verify.example"), "{path}: {text}");
        links.extend(
            text.split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
                .filter(|target| target.contains("/docs"))
                .map(str::to_owned),
        );
    }
    assert!(links.len() > 50, "{links:?}");
    links.sort();
    links.dedup_by_key(|link| link.split('#').next().unwrap().to_owned());
    for link in links {
        let target = link.split('#').next().unwrap();
        assert!(target.ends_with(".md") || target.ends_with(".json"), "{link}");
        assert_eq!(node.http.get(&link).send().await.unwrap().status().as_u16(), 200, "{link}");
    }
    node.stop().await;
}

#[actix_rt::test]
async fn the_search_finds_headings_operations_and_codes_without_a_script() {
    let node = InProcessNode::start().await;
    let search = async |words: &str| {
        node.http.get(node.url(&format!("/docs/search?q={words}"))).send().await.unwrap().text().await.unwrap()
    };
    assert!(search("repeating+REQUEST").await.contains("href=\"/docs/guides/errors#repeating-a-request\""));
    assert!(search("insufficient_credits").await.contains("href=\"/docs/errors#insufficient_credits\""));
    assert!(
        search("qr-intent")
            .await
            .contains("href=\"/docs/reference/verification#post-api-v1-nationalid-ovse-qr-intent\"")
    );
    assert!(search("%3Cscript%3E").await.contains("“&#60;script&#62;”"));
    assert_eq!(node.get_unsigned("/docs/search?page=1").await.0, 400);
    let index: serde_json::Value =
        node.http.get(node.url("/docs/search.json")).send().await.unwrap().json().await.unwrap();
    assert!(index.as_array().unwrap().len() > 200, "{index}");
    node.stop().await;
}

#[actix_rt::test]
async fn a_field_is_described_with_its_bounds_values_and_place() {
    let node = InProcessNode::start().await;
    let page = async |name: &str| {
        node.http.get(node.url(&format!("/docs/reference/{name}"))).send().await.unwrap().text().await.unwrap()
    };
    let row = |html: &str, field: &str| {
        html.split("<tr>")
            .skip(1)
            .find(|row| row.contains(&format!("<code>{field}</code>")))
            .unwrap_or_default()
            .to_owned()
    };
    let html = page("verification").await;
    let claims = row(&html, "claims");
    assert!(claims.contains("array") && claims.contains("1 to 30") && claims.contains("required"), "{claims}");
    let channel = row(&html, "channel");
    assert!(channel.contains("web") && channel.contains("qr") && channel.contains("app"), "{channel}");
    let signer = row(&page("esign").await, "signerInfo[].signerName");
    assert!(signer.contains("string"), "{signer}");
    node.stop().await;
}

#[actix_rt::test]
async fn unknown_files_below_the_documentation_get_404() {
    let node = InProcessNode::start().await;
    for file in ["nothing.js", "../Cargo.toml", "..%2f..%2fetc%2fpasswd", "a/b"] {
        assert_eq!(node.get_unsigned(&format!("/docs/{file}")).await.0, 404, "{file}");
    }
    node.stop().await;
}

#[actix_rt::test]
async fn gzip_shortens_documents_and_files_and_head_matches_get() {
    let node = InProcessNode::start().await;
    for path in [
        "/docs",
        "/docs/errors",
        "/docs/guides/event",
        "/docs/guides/event.md",
        "/docs/reference/events",
        "/docs/search.json",
        "/openapi.json",
        "/assets/portal.css",
        "/assets/docs.css",
        "/assets/page.css",
        "/assets/page.js",
    ] {
        let call = |method, accepted| {
            let request = node.http.request(method, node.url(path)).header("accept-encoding", accepted);
            async move {
                let response = request.send().await.unwrap();
                let headers = response.headers().clone();
                let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
                let headers_of_interest =
                    ["content-encoding", "content-length", "vary", "etag", "content-type"].map(text);
                (headers_of_interest, response.bytes().await.unwrap().len())
            }
        };
        let (plain, plain_bytes) = call(Method::GET, "identity").await;
        let (gzip, gzip_bytes) = call(Method::GET, "br, gzip;q=0.9").await;
        assert_eq!((plain[0].as_deref(), gzip[0].as_deref()), (None, Some("gzip")), "{path}");
        assert!(gzip_bytes * 10 < plain_bytes * 7, "{path}: {gzip_bytes} of {plain_bytes}");
        assert_eq!(
            [&plain[1], &gzip[1]].map(Option::as_deref),
            [Some(&*plain_bytes.to_string()), Some(&*gzip_bytes.to_string())]
        );
        assert!(plain[2] == gzip[2] && plain[3] != gzip[3] && plain[4] == gzip[4], "{path}: {plain:?} {gzip:?}");
        assert_eq!(call(Method::HEAD, "gzip").await, (gzip, 0), "{path}");
    }
    node.stop().await;
}
