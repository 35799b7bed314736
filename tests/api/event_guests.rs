//! Rights of guests and strangers at the address of an event, and the cost to the organiser.

use futures_util::future::join_all;
use reqwest::Method;
use reqwest::header::{ACCEPT, ORIGIN, SET_COOKIE};

use sakshi_kit::answer::Answer;
use sakshi_kit::event::{
    BROWSER, EVENTS, EventCounts, IDENTITY_APP, PROGRAM, TestEvent, cookie_of, redirect_txn, terms,
};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

use crate::init::intent_count;

#[tokio::test]
async fn guests_cannot_choose_the_request_id_that_the_organiser_sees() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    for request in [event.visit(Method::GET, IDENTITY_APP), event.button(BROWSER)] {
        let answer = Answer::receive(request.header("X-Request-ID", "order-4711")).await;
        // The identity app gets the intent at once; a browser is redirected to the verify page.
        let opened = match answer.status {
            200 => {
                event.read_intent(&sakshi_authority::intent::decode_unverified(&answer.text).unwrap().txn, &answer.text)
            }
            _ => event.follow(&answer).await,
        };
        identity_app.approve(&opened, "asha").await;
        let result = organiser.result(&opened.txn).await.ok();
        assert_eq!(result["request_id"].as_str().map(str::len), Some(36), "{result}");
        assert_eq!(Some(result["request_id"].as_str().unwrap()), answer.header("x-request-id"));
    }
}

#[tokio::test]
async fn the_intent_of_a_guest_is_signed_once_for_all_pages() {
    let mut node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let organiser = node.backend_with_credits(3).await;
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    let scanned = event.scan().await;
    let jwt = scanned.answer["intentJwt"].as_str().unwrap();
    let page_request = |node: &TestNode| {
        node.http.get(node.addresses.public(&format!("/v/{}", scanned.txn))).header("user-agent", "Android 15")
    };
    assert!(Answer::receive(page_request(&node)).await.text.contains(jwt));
    assert_eq!(intent_count(&node, "signed").await, 1);
    // Another process, as another node would be.
    node.restart().await;
    assert!(Answer::receive(page_request(&node)).await.text.contains(jwt));
    assert_eq!(intent_count(&node, "signed").await, 0);
    let fetched_by_app = Answer::receive(event.through(&node.addresses).visit(Method::GET, IDENTITY_APP)).await;
    assert_eq!(
        (fetched_by_app.status, intent_count(&node, "signed").await),
        (200, 1),
        "only the identity app gets another one"
    );
}

#[tokio::test]
async fn viewing_an_event_never_spends_a_credit() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(3).await;
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    for _ in 0..20 {
        for accept in [BROWSER, "*/*", PROGRAM] {
            for method in [Method::GET, Method::HEAD] {
                let answer = Answer::receive(event.visit(method, accept).header("sec-purpose", "prefetch")).await;
                assert_eq!((answer.status, answer.header(SET_COOKIE.as_str())), (200, None), "{accept}");
            }
        }
        assert_eq!(Answer::receive(event.visit(Method::HEAD, IDENTITY_APP)).await.status, 200);
        for accept in
            ["application/jwt;q=0, text/html", "text/html, application/jwt;q=0.1", "text/html, application/jwt"]
        {
            assert_eq!(
                Answer::receive(event.visit(Method::GET, accept)).await.header("content-type"),
                Some("text/html; charset=utf-8")
            );
        }
        for (name, purpose) in [("sec-purpose", "prefetch;prerender"), ("purpose", "prefetch"), ("x-moz", "prefetch")] {
            let prefetched = Answer::receive(event.visit(Method::GET, IDENTITY_APP).header(name, purpose)).await;
            assert_eq!(
                (prefetched.status, prefetched.header("content-type")),
                (200, Some("text/html; charset=utf-8")),
                "{name}"
            );
        }
    }
    let start_link = node.get(&format!("/e/{}/start", event.id)).await;
    let event_page = format!("/e/{}", event.id);
    assert_eq!(
        (start_link.status, start_link.header("location")),
        (303, Some(&*event_page)),
        "a link to the start redirects to the page with the button"
    );
    assert_eq!(event.counts().await, EventCounts { status: "active", registered: 0, scanned: 0, abandoned: 0 });
    assert_eq!(node.operator().balance(&organiser.client).await, 3);
}

#[tokio::test]
async fn an_event_without_credits_shows_unavailable_to_guests_and_402_to_programs() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    let pressed = event.press_in_new_browser().await;
    let paid = event.follow(&pressed).await;
    for page in [event.press_in_new_browser().await, Answer::receive(event.visit(Method::GET, BROWSER)).await] {
        assert_eq!(
            (page.status, page.header("location"), page.header(SET_COOKIE.as_str())),
            (200, None, None),
            "{}",
            page.text
        );
        assert!(page.text.contains("This event is not available") && !page.text.contains("<form"), "{}", page.text);
        for hint in ["credit", "balance", "bill", "pay"] {
            assert!(!page.text.to_lowercase().contains(hint), "guests read nothing about {hint}");
        }
    }
    let page_of_paid_guest =
        Answer::receive(event.visit(Method::GET, BROWSER).header("cookie", cookie_of(&pressed))).await;
    assert!(
        page_of_paid_guest.text.contains("Continue</a>"),
        "a paid verification continues: {}",
        page_of_paid_guest.text
    );
    let state = event.state().await;
    assert_eq!((&state["status"], &state["status_reason"]), (&json!("active"), &json!("credits_exhausted")));
    assert_eq!(organiser.get(EVENTS).await.ok()["events"][0]["status_reason"], "credits_exhausted");
    let kiosk = node.get(&format!("/e/{}/kiosk", event.id)).await;
    assert!(kiosk.status == 200 && kiosk.text.contains("data-state=\"unavailable\""), "{}", kiosk.text);
    for request in [event.button(PROGRAM), event.visit(Method::GET, PROGRAM), event.visit(Method::GET, IDENTITY_APP)] {
        assert_eq!(Answer::receive(request).await.refusal(402), "insufficient_credits");
    }
    assert_eq!(
        event.counts().await,
        EventCounts { status: "active", registered: 0, scanned: 1, abandoned: 0 },
        "unpaid scans are not counted"
    );
    identity_app.approve(&paid, "asha").await;
    node.operator().grant(&organiser.client, 1, "later").await;
    identity_app.approve(&event.scan().await, "asha").await;
    assert_eq!(event.counts().await, EventCounts { status: "active", registered: 2, scanned: 2, abandoned: 0 });
}

#[tokio::test]
async fn concurrent_guests_start_exactly_as_many_verifications_as_credits_remain() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(7).await;
    let event = TestEvent::open(&node, &organiser, &terms(50)).await;
    let answers = join_all((0..25).map(|_| Answer::receive(event.button(PROGRAM)))).await;
    let started = answers.iter().filter(|answer| answer.status == 303).count();
    let refused = answers.iter().filter(|answer| answer.status == 402).count();
    assert_eq!((started, refused), (7, 25 - 7));
    assert_eq!((event.counts().await.scanned, node.operator().balance(&organiser.client).await), (7, 0));
}

#[tokio::test]
async fn another_site_cannot_press_the_button() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(3).await;
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    let foreign_headers: [&[(&str, &str)]; 5] = [
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", "https://evil.example")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("sec-fetch-site", "same-origin"), ("origin", "https://evil.example")],
    ];
    for headers in foreign_headers {
        let from_other_site = |request: reqwest::RequestBuilder| {
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
        };
        let refused = Answer::receive(from_other_site(event.bare_button()).header(ACCEPT, PROGRAM)).await;
        assert_eq!(refused.refusal(403), "cross_site", "{headers:?}");
        let page = Answer::receive(from_other_site(event.bare_button()).header(ACCEPT, BROWSER)).await;
        assert!(
            page.status == 403 && page.text.contains(&format!("href=\"/e/{}\"", event.id)),
            "{headers:?}: {}",
            page.text
        );
        let fetched = Answer::receive(from_other_site(event.visit(Method::GET, IDENTITY_APP))).await;
        assert_eq!(fetched.refusal(403), "cross_site", "{headers:?}");
    }
    assert_eq!((event.counts().await.scanned, node.operator().balance(&organiser.client).await), (0, 3));
    let own_origin = node.addresses.public("");
    assert_eq!(
        Answer::receive(event.button(BROWSER).header(ORIGIN, own_origin)).await.status,
        303,
        "the event's own page may press it"
    );
    assert_eq!(Answer::receive(event.bare_button()).await.status, 303, "a program without these headers may, too");
}

#[tokio::test]
async fn a_browser_resumes_its_verification_without_a_second_charge() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(13).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    let first = event.press_in_new_browser().await;
    let cookie = cookie_of(&first);
    for _ in 0..3 {
        let again = event.press_with_cookies(&cookie).await;
        assert_eq!(
            (again.status, redirect_txn(&again), again.header(SET_COOKIE.as_str())),
            (303, redirect_txn(&first), None)
        );
    }
    let page = Answer::receive(event.visit(Method::GET, BROWSER).header("cookie", &cookie)).await;
    let continue_link = format!("href=\"/v/{}\">Continue</a>", redirect_txn(&first));
    assert!(page.status == 200 && page.text.contains(&continue_link) && !page.text.contains("<form"), "{}", page.text);
    assert_eq!(node.operator().balance(&organiser.client).await, 12);

    let other_event = TestEvent::open(&node, &organiser, &terms(5)).await;
    assert_ne!(
        redirect_txn(&other_event.press_with_cookies(&cookie).await),
        redirect_txn(&first),
        "another event is another visit"
    );
    assert_ne!(
        redirect_txn(&event.press_in_new_browser().await),
        redirect_txn(&first),
        "another browser is another guest"
    );
    identity_app.approve(&event.follow(&first).await, "asha").await;
    let registered = event.press_with_cookies(&cookie).await;
    assert_eq!(
        registered.header("location"),
        Some(&*format!("/e/{}", event.id)),
        "a registered guest does not start again by mistake"
    );
    let other_guest = event.press_for_another_guest(&cookie).await;
    assert_ne!(redirect_txn(&other_guest), redirect_txn(&first));
    let both_cookies = format!("{cookie}; {}", cookie_of(&other_guest));
    assert_eq!(
        redirect_txn(&event.press_with_cookies(&both_cookies).await),
        redirect_txn(&other_guest),
        "each guest of one phone has a visit"
    );
    identity_app.fail(&event.follow(&other_guest).await, "301", "User Reject").await;
    let ended_cookie = cookie_of(&other_guest);
    assert_ne!(
        redirect_txn(&event.press_with_cookies(&ended_cookie).await),
        redirect_txn(&other_guest),
        "an ended verification is not resumed"
    );
    let txn_without_event = organiser.open(&["name"]).await.txn;
    let unknown = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
    let forged = format!("{txn_without_event}=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    // Cookies that name no pending visit of this event.
    for visit in [
        "=",
        "seven=started",
        "=\"",
        "",
        &format!("{txn_without_event}=started"),
        &format!("{unknown}=started"),
        &forged,
    ] {
        let started = event.press_with_cookies(&format!("other=1; sakshi_visit_{visit}")).await;
        assert!(started.status == 303 && ![&*txn_without_event, unknown].contains(&redirect_txn(&started)), "{visit}");
    }
    assert_eq!((event.counts().await.scanned, other_event.counts().await.scanned), (11, 1));
    assert_eq!(node.operator().balance(&organiser.client).await, 0);
}

#[tokio::test]
async fn a_guest_with_many_attempts_is_still_recognised() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(20).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    // A browser sends its cookies in the order of their arrival.
    let mut cookies = Vec::new();
    for _ in 0..12 {
        let pressed = event.press_with_cookies(&cookies.join("; ")).await;
        cookies.push(cookie_of(&pressed));
        identity_app.fail(&event.follow(&pressed).await, "301", "User Reject").await;
    }
    let pressed = event.press_with_cookies(&cookies.join("; ")).await;
    cookies.push(cookie_of(&pressed));
    identity_app.approve(&event.follow(&pressed).await, "asha").await;
    let page = Answer::receive(event.visit(Method::GET, BROWSER).header("cookie", cookies.join("; "))).await;
    let code = event.registrations().await[0]["registration_code"].as_str().expect("a code").to_owned();
    assert!(page.text.contains("You are registered") && page.text.contains(&code), "{}", page.text);
    let cleared: Vec<&str> = page
        .headers
        .get_all(SET_COOKIE)
        .iter()
        .filter_map(|cookie| cookie.to_str().ok())
        .filter(|cookie| cookie.contains("Max-Age=0"))
        .collect();
    assert!(
        !cleared.is_empty() && cleared.iter().all(|cookie| !cookie.contains(redirect_txn(&pressed))),
        "{cleared:?}"
    );
    let pressed_again = event.press_with_cookies(&cookies.join("; ")).await;
    assert_eq!(pressed_again.header("location"), Some(&*format!("/e/{}", event.id)));
    assert_eq!(node.operator().balance(&organiser.client).await, 7);
}

#[tokio::test]
async fn a_registered_guest_still_sees_the_ticket_after_the_result_is_deleted() {
    let node = TestNode::start_with(&[("OVSE__RESULT_TTL_S", "5")]).await;
    let (organiser, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(1)).await;
    let other_event = TestEvent::open(&node, &organiser, &terms(1)).await;
    let pressed = event.press_in_new_browser().await;
    let opened = event.follow(&pressed).await;
    identity_app.approve(&opened, "asha").await;
    let page = |cookie: &str| Answer::receive(event.visit(Method::GET, BROWSER).header("cookie", cookie));
    let code = event.registrations().await[0]["registration_code"].as_str().expect("a code").to_owned();
    let is_ticket = |answer: &Answer| {
        // The ticket does not show the id of its transaction, because the id opens the ticket.
        let shows_id = answer.text.contains(&format!("<bdi dir=\"ltr\">{}</bdi>", opened.txn));
        answer.status == 200
            && !shows_id
            && ["You are registered", "Open day", &code].iter().all(|part| answer.text.contains(part))
    };

    // The verify page sets the same cookie.
    for answer in [page(&cookie_of(&pressed)).await, node.get(&format!("/v/{}", opened.txn)).await] {
        assert!(
            is_ticket(&answer) && !answer.text.contains("<form") && answer.text.contains("A••• R••"),
            "{}",
            answer.text
        );
        let cookie = cookie_of(&answer);
        eventually("the end of the result", TIMEOUT, || async {
            (organiser.result(&opened.txn).await.status == 404).then_some(())
        })
        .await;
        let with_first_cookie = page(&cookie_of(&pressed)).await;
        assert_eq!(with_first_cookie.status, 409, "the guest is unknown: {}", with_first_cookie.text);
        let with_ticket_cookie = page(&cookie).await;
        assert!(
            is_ticket(&with_ticket_cookie) && with_ticket_cookie.header(SET_COOKIE.as_str()).is_none(),
            "{}",
            with_ticket_cookie.text
        );
        assert!(
            !with_ticket_cookie.text.contains('•'),
            "the cookie holds nothing that was shared: {}",
            with_ticket_cookie.text
        );
        let (name, value) = cookie.split_once('=').expect("a name and value");
        let other = name.replace(&opened.txn, "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11");
        for forged in [format!("{other}={value}"), format!("{name}={}", value.replace('A', "B"))] {
            assert!(forged == cookie || page(&forged).await.status == 409, "{forged}");
        }
        let at_other_event = Answer::receive(other_event.visit(Method::GET, BROWSER).header("cookie", &cookie)).await;
        assert!(
            at_other_event.text.contains("<form") && !at_other_event.text.contains(&opened.txn),
            "{}",
            at_other_event.text
        );
        assert_eq!(event.patch(&json!({"is_active": false})).await.ok()["status"], "disabled");
        assert!(is_ticket(&page(&cookie).await));
        assert_eq!(event.patch(&json!({"is_active": true})).await.ok()["status"], "at_capacity");
    }
    assert_eq!(event.counts().await, EventCounts { status: "at_capacity", registered: 1, scanned: 1, abandoned: 0 });
}

#[tokio::test]
async fn an_identity_app_that_scans_the_event_code_gets_an_intent() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(3).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(1)).await;
    let fetched = Answer::receive(event.visit(Method::GET, IDENTITY_APP)).await;
    assert_eq!((fetched.status, fetched.header("content-type")), (200, Some(IDENTITY_APP)), "{}", fetched.text);
    let intent = sakshi_authority::intent::decode_unverified(&fetched.text).expect("an intent");
    let opened = event.read_intent(&intent.txn.to_string(), &fetched.text);
    assert_eq!((event.counts().await.scanned, node.operator().balance(&organiser.client).await), (1, 2));
    identity_app.approve(&opened, "asha").await;
    assert_eq!(event.registered_txns().await, [opened.txn]);
    let fetched_later = Answer::receive(event.visit(Method::GET, IDENTITY_APP)).await;
    assert_eq!(fetched_later.refusal(409), "event_full");
    assert_eq!(node.operator().balance(&organiser.client).await, 2);
}

#[tokio::test]
async fn starts_of_guests_at_one_address_are_limited_as_configured() {
    let node = TestNode::start_with(&[("LIMITS__EVENT_STARTS_PER_SECOND_PER_ADDRESS", "2")]).await;
    let organiser = node.backend_with_credits(500).await;
    let event = TestEvent::open(&node, &organiser, &terms(500)).await;
    let answers = join_all((0..60).map(|_| Answer::receive(event.button(PROGRAM)))).await;
    let limited: Vec<&Answer> = answers.iter().filter(|answer| answer.status != 303).collect();
    assert!(!limited.is_empty() && limited.len() < 60);
    for answer in &limited {
        assert_eq!(answer.refusal(429), "rate_limited");
        assert!(answer.header("retry-after").expect("a Retry-After").parse::<u32>().unwrap() >= 1);
    }
    let started = 60 - limited.len() as u64;
    assert_eq!(
        (event.counts().await.scanned, node.operator().balance(&organiser.client).await),
        (started, 500 - started)
    );
    assert_eq!(Answer::receive(event.visit(Method::GET, BROWSER)).await.status, 200, "viewing has its own limit");
}
