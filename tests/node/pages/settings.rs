//! The operator's texts on pages: the identity app's name, icon and stores, and the footer of every page.

use std::num::NonZeroU32;

use actix_web::test::TestRequest;
use sakshi_domain::retention::ClientRetention;
use sakshi_domain::transaction::{OptionalTerms, Terms};

use crate::pages_fixture::{ANDROID, DESKTOP, IPHONE, PagesFixture};

const PLAY: &str = "https://play.example/app?id=a&hl=b";
const APPLE: &str = "https://apple.example/app";

/// Returns the links to stores, with their texts.
fn stores(html: &str) -> Vec<(&str, &str)> {
    let links = html.split("<a href=\"https://").skip(1);
    let pairs = links.filter_map(|link| link.split_once("</a>")?.0.split_once("\">"));
    pairs.filter(|(address, _)| address.contains("/app")).collect()
}

#[actix_rt::test]
async fn the_identity_app_has_the_name_icon_and_stores_of_the_settings() {
    let directory = tempfile::tempdir().unwrap();
    let icon = directory.path().join("icon.svg");
    std::fs::write(&icon, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    let fixture = PagesFixture::with_settings(&[
        ("pages.app_name", "Parichay <1>"),
        ("pages.app_names", "hindi=परिचय"),
        ("pages.app_icon_path", icon.to_str().unwrap()),
        ("pages.app_store_android", PLAY),
        ("pages.app_store_ios", APPLE),
    ])
    .await;
    let path = format!("/v/{}", fixture.open(|_| {}).await.id);

    let (_, html) = fixture.page(&path, ANDROID).await;
    let button = html.split_once("data-opens>").unwrap().1.split_once("</a>").unwrap().0;
    assert!(
        button.contains("src=\"/assets/app-icon\" alt=\"\"") && button.contains("<bdi>Parichay &#60;1&#62;</bdi>"),
        "{button}"
    );
    assert_eq!(html.matches("Identity app: <bdi>").count(), 1, "in the help");
    assert!(html.contains("id=\"install\" hidden>App didn’t open?"), "{html}");
    let android_link = ("play.example/app?id=a&#38;hl=b", "Install it");
    assert_eq!(stores(&html), [android_link, android_link], "under the button and in the help");
    let ios_link = ("apple.example/app", "Install it");
    assert_eq!(stores(&fixture.page(&path, IPHONE).await.1), [ios_link, ios_link]);

    let (_, html) = fixture.page(&path, DESKTOP).await;
    assert_eq!(html.matches("Identity app: <bdi>").count(), 2, "under the code and in the help");
    assert_eq!(stores(&html), [(android_link.0, "Install it (Android)"), (ios_link.0, "Install it (iPhone, iPad)")]);
    assert!(fixture.page(&format!("{path}?lang=hi"), ANDROID).await.1.contains("<bdi>परिचय</bdi>"));
    assert!(fixture.page(&format!("{path}?lang=ta"), ANDROID).await.1.contains("<bdi>Parichay"));

    let response = fixture.call(TestRequest::get().uri("/assets/app-icon")).await;
    let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!((response.status().as_u16(), header("content-type").as_str()), (200, "image/svg+xml"));
    assert_eq!(
        header("content-security-policy"),
        "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        "scripts in the file do not run"
    );
}

#[actix_rt::test]
async fn an_identity_app_without_settings_has_neither_icon_nor_stores() {
    let fixture = PagesFixture::new().await;
    let path = format!("/v/{}", fixture.open(|_| {}).await.id);
    for agent in [ANDROID, IPHONE, DESKTOP] {
        let (_, html) = fixture.page(&path, agent).await;
        assert!(
            !html.contains("<img")
                && !html.contains("Identity app:")
                && !html.contains("id=\"install\"")
                && stores(&html).is_empty()
        );
    }
    assert_eq!(fixture.page("/assets/app-icon", "").await.0, 404);
}

#[actix_rt::test]
async fn the_footer_of_every_page_shows_provider_retention_and_privacy_notice() {
    let fixture = PagesFixture::with_settings(&[("pages.privacy_url", "https://bank.example/privacy")]).await;
    let (pending, event) = (fixture.open(|_| {}).await, fixture.create_event(|_| {}).await);
    let (results, guests) =
        ("Results are kept for 60\u{a0}minutes.", "The guest list is kept for 30\u{a0}days after the event.");
    for (path, expected, unexpected) in [
        (format!("/v/{}", pending.id), results, guests),
        ("/v/none".to_owned(), results, guests),
        (format!("/e/{}", event.id), guests, results),
        (format!("/e/{}/kiosk", event.id), guests, results),
        ("/e/none".to_owned(), guests, results),
    ] {
        let (_, html) = fixture.page(&path, ANDROID).await;
        let footer = html.split_once("<footer>").unwrap().1;
        assert_eq!(
            footer.contains("<b lang=\"en\">sakshi</b> checks identities for the service that asks."),
            !path.contains(&pending.id.to_string())
        );
        assert!(
            html.contains(" checks identities for the service that asks."),
            "{path}: the page shows it, in its footer or above"
        );
        assert!(footer.contains(expected) && !footer.contains(unexpected), "{path}: {footer}");
        assert!(footer.contains(" <a href=\"https://bank.example/privacy\">Privacy</a></p>"), "{footer}");
    }
    let without_notice = PagesFixture::new().await;
    assert!(!without_notice.page("/v/none", ANDROID).await.1.contains(">Privacy<"));
}

#[actix_rt::test]
async fn the_footer_shows_the_shorter_retention_of_a_client() {
    let fixture = PagesFixture::new().await;
    let retention = ClientRetention { result_ttl_s: NonZeroU32::new(1_200), registration_ttl_days: NonZeroU32::new(7) };
    let with_retention =
        |terms: &mut Terms| terms.extras = Some(Box::new(OptionalTerms { retention, ..OptionalTerms::default() }));
    let (pending, event) =
        (fixture.open(with_retention).await, fixture.create_event(|terms| terms.retention = retention).await);
    for (path, expected) in [
        (format!("/v/{}", pending.id), "Results are kept for 20\u{a0}minutes."),
        (format!("/e/{}", event.id), "The guest list is kept for 7\u{a0}days after the event."),
        (format!("/e/{}/kiosk", event.id), "The guest list is kept for 7\u{a0}days after the event."),
    ] {
        let (_, html) = fixture.page(&path, ANDROID).await;
        assert!(html.contains(expected), "{path}: {html}");
    }
}
