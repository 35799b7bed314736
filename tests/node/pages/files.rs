//! The files of the pages.

use actix_web::test::TestRequest;

use crate::pages_fixture::{PagesFixture, text};

#[actix_rt::test]
async fn files_are_addressed_by_content_and_cached() {
    let fixture = PagesFixture::new().await;
    let (_, html) = fixture.page("/v/none", "").await;
    for (link_start, media_type) in [
        ("href=\"/assets/page.css?v=", "text/css; charset=utf-8"),
        ("src=\"/assets/page.js?v=", "text/javascript; charset=utf-8"),
    ] {
        let from = html.find(link_start).unwrap() + link_start.find('/').unwrap();
        let address = html[from..].split('"').next().unwrap();
        let response = fixture.call(TestRequest::get().uri(address)).await;
        assert_eq!(response.headers().get("content-type").unwrap(), media_type);
        assert_eq!(response.headers().get("cache-control").unwrap(), "public, max-age=31536000, immutable");
        let tag = response.headers().get("etag").unwrap().to_str().unwrap().to_owned();
        assert!(!text(response).await.is_empty());

        let unchanged = fixture.call(TestRequest::get().uri(address).insert_header(("if-none-match", tag))).await;
        assert_eq!(unchanged.status(), 304);
        let without_version = fixture
            .call(
                TestRequest::get()
                    .uri(address.split('?').next().unwrap())
                    .insert_header(("if-none-match", "\"older\"")),
            )
            .await;
        assert_eq!(
            (
                without_version.status().as_u16(),
                without_version.headers().get("cache-control").unwrap().to_str().unwrap()
            ),
            (200, "no-cache")
        );
    }
}
