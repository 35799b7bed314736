//! Repeated registration of a person, and check-in of guests at a door and through the API.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::header::{ACCEPT, COOKIE, LOCATION};
use reqwest::{Method, StatusCode};
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::event::{BROWSER, TestEvent, cookie_of, terms, timestamp_in};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};

/// A door of an event: a page at its entrance that checks guests in, open in a browser that has entered the PIN.
struct Door<'a> {
    node: &'a TestNode,
    path: String,
    pin: String,
    cookie: String,
}

impl<'a> Door<'a> {
    /// Creates a door with this name, and enters its PIN.
    async fn open(node: &'a TestNode, event: &TestEvent, name: &str) -> Self {
        Self::open_with(node, event, &json!({ "name": name })).await
    }

    /// Creates a door on these terms, and enters its PIN.
    async fn open_with(node: &'a TestNode, event: &TestEvent, terms: &Value) -> Self {
        let created = event.organiser.post(&format!("{}/doors", event.path()), terms).await.ok();
        let url = created["door_url"].as_str().expect("a URL");
        let path = url.split_once("/d/").map(|(_, door)| format!("/d/{door}")).expect("a path");
        let mut door =
            Self { node, path, pin: created["pin"].as_str().expect("a PIN").to_owned(), cookie: String::new() };
        let answer = door.enter_pin(&door.pin).await;
        assert_eq!((answer.status, answer.header(LOCATION.as_str())), (303, Some(&*door.path)), "{}", answer.text);
        door.cookie = cookie_of(&answer);
        door
    }

    /// Posts a PIN to the page.
    async fn enter_pin(&self, pin: &str) -> Answer {
        let form = format!("pin={pin}");
        Answer::receive(
            self.request(Method::POST, "").header("content-type", "application/x-www-form-urlencoded").body(form),
        )
        .await
    }

    /// Builds a request of the browser to a path below the door's page.
    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = self.node.addresses.public(&format!("{}{path}", self.path));
        self.node.http.request(method, url).header("sec-fetch-site", "same-origin").header(COOKIE, &self.cookie)
    }

    async fn get(&self, path: &str) -> Answer {
        Answer::receive(self.request(Method::GET, path).header(ACCEPT, BROWSER)).await
    }

    /// Posts the form of a check-in, as the page's script does.
    async fn check_in(&self, form: &str) -> Answer {
        let request = self.request(Method::POST, "/check-ins").header(ACCEPT, "application/json");
        Answer::receive(request.header("content-type", "application/x-www-form-urlencoded").body(form.to_owned())).await
    }
}

/// Registers these residents one after another, and returns the registration codes of all guests.
async fn register(node: &TestNode, event: &TestEvent, residents: &[&str]) -> Vec<String> {
    let identity_app = node.identity_app();
    for resident in residents {
        identity_app.approve(&event.scan().await, resident).await;
    }
    let listed = event.registrations().await;
    listed.iter().map(|guest| guest["registration_code"].as_str().expect("a code").to_owned()).collect()
}

/// Opens an event for ten guests, with some terms changed, and returns it with its organiser.
async fn open_event(node: &TestNode, changes: &[(&str, Value)]) -> (Backend, TestEvent) {
    let organiser = node.backend_with_credits(20).await;
    let mut event_terms = terms(10);
    for (field, value) in changes {
        event_terms[*field] = value.clone();
    }
    let event = TestEvent::open(node, &organiser, &event_terms).await;
    (organiser, event)
}

/// Returns the address at which a guest's ticket fetches its current code.
async fn ticket_code_address(event: &TestEvent, node: &TestNode, txn: &str) -> String {
    let page = node.get(&format!("/v/{txn}")).await;
    let address = page
        .text
        .split("data-later=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("the address of the code");
    let address = address.replace("&#38;", "&").replace("&amp;", "&");
    assert!(address.starts_with(&format!("/e/{}/ticket?code=", event.id)), "{address}");
    address
}

#[tokio::test]
async fn a_repeated_registration_is_flagged_or_refused_as_configured() {
    let node = TestNode::start().await;
    let (_, flagging) = open_event(&node, &[]).await;
    register(&node, &flagging, &["asha", "vikram", "asha"]).await;
    let listed = flagging.registrations().await;
    let marks: Vec<&Value> = listed.iter().map(|guest| &guest["possible_duplicate_of"]).collect();
    assert_eq!(marks, [&Value::Null, &Value::Null, &listed[0]["txn_id"]]);
    assert_eq!(flagging.state().await["duplicate_count"], 1);

    let (organiser, strict) = open_event(&node, &[("on_duplicate", json!("refuse"))]).await;
    let (identity_app, first) = (node.identity_app(), strict.scan().await);
    identity_app.approve(&first, "asha").await;
    let second = strict.scan().await;
    let credential = identity_app.credential(&second, "asha");
    let refused = identity_app.present(&second, &credential).await;
    assert_eq!((refused.status, refused.text.contains("already registered")), (409, true), "{}", refused.text);
    let result = organiser.result(&second.txn).await.ok();
    assert_eq!(
        (&result["success"], &result["data"]["error_code"]),
        (&json!(false), &json!("already_registered")),
        "{result}"
    );
    let page = node.get(&format!("/v/{}", second.txn)).await;
    assert!(page.text.contains("You are already registered for this event"), "{}", page.text);
    assert_eq!(strict.registered_txns().await, [first.txn]);
    // The second scan costs a credit too: the person had to be identified.
    assert_eq!(node.operator().balance(&organiser.client).await, 18);

    let (_, allowing) = open_event(&node, &[("on_duplicate", json!("allow"))]).await;
    register(&node, &allowing, &["asha", "asha"]).await;
    assert!(allowing.registrations().await.iter().all(|guest| guest["possible_duplicate_of"].is_null()));
}

#[tokio::test]
async fn the_api_checks_in_a_guest_once() {
    let node = TestNode::start().await;
    let (organiser, event) = open_event(&node, &[]).await;
    let codes = register(&node, &event, &["asha", "vikram"]).await;
    let path = format!("{}/check-ins", event.path());
    let code_as_typed = format!("{}-{}", codes[0][..3].to_lowercase(), &codes[0][3..]);
    let first = organiser.post(&path, &json!({ "code": code_as_typed, "gate": "North" })).await.ok();
    assert_eq!((&first["already"], &first["gate"]), (&json!(false), &json!("North")), "{first}");
    let repeated = organiser.post(&path, &json!({ "code": codes[0] })).await.ok();
    assert_eq!(
        (&repeated["already"], &repeated["checked_in_at"], &repeated["gate"]),
        (&json!(true), &first["checked_in_at"], &json!("North"))
    );
    let listed = event.registrations().await;
    assert_eq!(
        (&listed[0]["txn_id"], &listed[0]["checked_in_at"], &listed[0]["gate"]),
        (&first["txn_id"], &first["checked_in_at"], &json!("North"))
    );
    assert!(listed[1]["checked_in_at"].is_null() && listed[1]["gate"].is_null());
    assert_eq!(event.state().await["checked_in_count"], 1);

    for (body, field) in
        [(json!({}), "code"), (json!({ "code": "7KMQ2" }), "code"), (json!({ "code": codes[1], "gate": " " }), "gate")]
    {
        let refused = organiser.post(&path, &body).await;
        assert_eq!((refused.status, &refused.json()["errors"][0]["field"]), (400, &json!(field)), "{body}");
    }
    let unknown = if codes.contains(&"222222".to_owned()) { "222223" } else { "222222" };
    assert_eq!(organiser.post(&path, &json!({ "code": unknown })).await.status, 404);
    let other = node.backend_with_credits(1).await;
    assert_eq!(other.post(&path, &json!({ "code": codes[1] })).await.status, 404, "the event of another app");
}

#[tokio::test]
async fn a_door_opens_with_its_pin_and_ends_with_its_link() {
    let node = TestNode::start().await;
    let (organiser, event) = open_event(&node, &[]).await;
    register(&node, &event, &["asha"]).await;
    let door = Door::open(&node, &event, "Gate B").await;
    let stranger = Door { node: &node, path: door.path.clone(), pin: String::new(), cookie: String::new() };
    let page = stranger.get("").await;
    assert!(
        page.status == 200 && page.text.contains("PIN of this door") && !page.text.contains("Asha"),
        "{}",
        page.text
    );
    for path in ["/guests", "/photo/222222"] {
        assert_eq!(stranger.get(path).await.status, 401, "{path}");
    }
    assert_eq!(stranger.check_in("code=222222").await.status, 401);
    let wrong_pin = if door.pin == "00000000" { "00000001" } else { "00000000" };
    assert_eq!(stranger.enter_pin(wrong_pin).await.status, 403);
    let attempts = join_all((0..12).map(|_| stranger.enter_pin(wrong_pin))).await;
    let limited: Vec<&Answer> = attempts.iter().filter(|answer| answer.status == 429).collect();
    assert!(!limited.is_empty(), "attempts are limited");
    for answer in limited {
        let seconds = answer.header("retry-after").expect("a Retry-After");
        let words = format!("Too many attempts. Try again in {seconds} seconds.");
        assert!(answer.text.contains(&words), "{}", answer.text);
    }
    let with_forged_cookie = Door {
        cookie: door.cookie.replace('.', ".A"),
        ..Door { node: &node, path: door.path.clone(), pin: String::new(), cookie: String::new() }
    };
    assert_eq!(with_forged_cookie.get("/guests").await.status, 401);
    assert!(door.get("").await.text.contains("Gate B"));

    let doors = organiser.get(&format!("{}/doors", event.path())).await.ok();
    let listed = &doors["doors"][0];
    assert!(listed["name"] == "Gate B" && listed["pin"].is_null(), "{doors}");
    let door_path = format!("{}/doors/{}", event.path(), listed["door_id"].as_str().expect("an id"));
    assert_eq!(node.backend_with_credits(1).await.delete(&door_path).await.status, 404, "another app");
    assert_eq!(organiser.delete(&door_path).await.status, 204);
    assert_eq!((door.get("").await.status, door.get("/guests").await.status), (404, 404));
    assert_eq!(organiser.delete(&door_path).await.status, 404);

    let short_lived = organiser
        .post(&format!("{}/doors", event.path()), &json!({ "expires_at": timestamp_in(Duration::from_secs(4)) }))
        .await
        .ok();
    let path = short_lived["door_url"]
        .as_str()
        .expect("a URL")
        .split_once("/d/")
        .map(|(_, door)| format!("/d/{door}"))
        .expect("a path");
    eventually("the end of the link", TIMEOUT, || async { (node.get(&path).await.status == 404).then_some(()) }).await;
    let ended_door_path = format!("{}/doors/{}", event.path(), short_lived["door_id"].as_str().expect("an id"));
    assert_eq!(organiser.delete(&ended_door_path).await.status, 204, "a deleted door accepts no earlier scans either");
    for expires_at in [timestamp_in(Duration::from_secs(3 * 86_400)), "2020-01-01T00:00:00Z".to_owned()] {
        let refused = organiser.post(&format!("{}/doors", event.path()), &json!({ "expires_at": expires_at })).await;
        assert_eq!((refused.status, &refused.json()["errors"][0]["field"]), (400, &json!("expires_at")));
    }
}

#[tokio::test]
async fn a_door_without_its_own_end_ends_with_the_event() {
    let node = TestNode::start().await;
    let (organiser, event) = open_event(&node, &[]).await;
    let door = Door::open(&node, &event, "B").await;
    let later = timestamp_in(Duration::from_secs(30 * 86_400));
    event.patch(&json!({ "expires_at": later })).await.ok();
    assert_eq!(
        organiser.get(&format!("{}/doors", event.path())).await.ok()["doors"][0]["expires_at"],
        event.state().await["expires_at"]
    );
    event.end_soon().await;
    eventually("the end of the event", TIMEOUT, || async { (door.get("/guests").await.status == 404).then_some(()) })
        .await;
    assert_eq!(organiser.get(&format!("{}/doors", event.path())).await.ok()["doors"], json!([]));
}

#[tokio::test]
async fn three_doors_check_in_each_guest_once_and_show_the_same() {
    let node = TestNode::start().await;
    let (_, event) = open_event(&node, &[]).await;
    let codes = register(&node, &event, &["asha", "vikram", "meena"]).await;
    let doors = [
        Door::open(&node, &event, "A").await,
        Door::open(&node, &event, "B").await,
        Door::open(&node, &event, "C").await,
    ];
    for code in &codes {
        let answers =
            join_all(doors.iter().map(|door| async move { door.check_in(&format!("code={code}")).await.ok() })).await;
        let states: Vec<&str> = answers.iter().map(|answer| answer["state"].as_str().expect("a state")).collect();
        assert_eq!(states.iter().filter(|state| **state == "in").count(), 1, "{answers:?}");
        assert_eq!(states.iter().filter(|state| **state == "already").count(), 2, "{answers:?}");
        assert!(
            answers.iter().all(|answer| answer["when"] == answers[0]["when"] && answer["name"] == answers[0]["name"]),
            "{answers:?}"
        );
    }
    let list = doors[0].get("/guests?after=0").await.ok();
    assert_eq!((&list["registered"], &list["inside"], &list["many"]), (&json!(3), &json!(3), &json!(false)), "{list}");
    let names: Vec<&str> =
        list["guests"].as_array().expect("guests").iter().map(|guest| guest[1].as_str().expect("a name")).collect();
    assert_eq!(names, ["Asha Rao", "Vikram Namuna", "Meena Mathiri"]);
    assert_eq!(list["checked_in"], "4A==", "a bit for each of three guests");
    assert_eq!(event.state().await["checked_in_count"], 3);
}

/// Checks that a door shows an old or unknown code and checks nobody in.
async fn assert_old_code_is_refused(node: &TestNode, door: &Door<'_>, code: &str) {
    // A ticket shows a code with a proof, which changes. This proof was never current.
    let old_proof = "A".repeat(24);
    let answer = door.check_in(&format!("code={code}&proof={old_proof}")).await.ok();
    assert_eq!(
        (&answer["state"], &answer["name"], &answer["when"]),
        (&json!("old"), &json!("Asha Rao"), &Value::Null),
        "{answer}"
    );
    let unknown = door.check_in(&format!("code=222222&proof={old_proof}")).await.ok();
    assert_eq!(unknown["state"], "unknown");
    // Scanned without a door, the code opens a ticket and nothing else.
    let url = node.addresses.public(&format!("/d/t/{code}.{old_proof}"));
    assert_eq!(node.http.get(&url).send().await.expect("an answer").status(), StatusCode::FORBIDDEN);
    let redirect = Answer::receive(node.http.get(&url).header(COOKIE, &door.cookie)).await;
    assert_eq!(
        redirect.header("location"),
        Some(&*format!("{}?guest={code}&state=old", door.path)),
        "{}",
        redirect.text
    );
    let page = door.get(&format!("?guest={code}&state=old")).await.text;
    assert!(page.contains("This code is old") && page.contains("Check in") && page.contains("Asha Rao"), "{page}");
}

/// Checks that a scan made without a network is recorded once, even if it is sent twice under one id.
async fn assert_offline_scan_counts_once(event: &TestEvent, door: &Door<'_>, code: &str) {
    // A minute ago, in milliseconds.
    let scanned_at = door.get("/guests").await.ok()["now"].as_i64().expect("a time") - 60_000;
    let first = door.check_in(&format!("code={code}&at={scanned_at}&id=7")).await.ok();
    assert_eq!((&first["state"], &first["inside"]), (&json!("in"), &json!(1)));
    let checked_in_at = event.registrations().await[0]["checked_in_at"].clone();
    let repeated = door.check_in(&format!("code={code}&at={scanned_at}&id=7")).await.ok();
    assert_eq!((&repeated["state"], &repeated["inside"]), (&json!("in"), &json!(1)), "a retry of the same scan");
    assert_eq!(
        door.check_in(&format!("code={code}&at={scanned_at}")).await.ok()["state"],
        "already",
        "another scan at that moment"
    );
    let picture = door.check_in(&format!("code={code}&proof={}", "A".repeat(24))).await.ok();
    assert_eq!(
        (&picture["state"], picture["when"].is_string()),
        (&json!("already"), true),
        "a picture of the ticket of a checked-in guest"
    );
    assert_eq!(door.check_in(&format!("code={code}")).await.ok()["state"], "already");
    // A check-in is never recorded before the registration.
    let verified_at = event.registrations().await[0]["verified_at"].clone();
    assert_eq!((checked_in_at, event.state().await["checked_in_count"].as_u64()), (verified_at, Some(1)));
}

/// Checks that a scan made before the end of a door is still accepted after that end.
async fn assert_scan_before_the_end_is_accepted(node: &TestNode, event: &TestEvent, code: &str) {
    let terms = json!({ "expires_at": timestamp_in(Duration::from_secs(6)) });
    let door = Door::open_with(node, event, &terms).await;
    let scanned_at = door.get("/guests").await.ok()["now"].as_i64().expect("a time");
    eventually("the end of the link", TIMEOUT, || async { (door.get("").await.status == 404).then_some(()) }).await;
    assert_eq!(door.check_in(&format!("code={code}&at={scanned_at}")).await.ok()["state"], "already");
    assert_eq!(door.check_in(&format!("code={code}")).await.status, 404, "no scan after the end is accepted");
}

#[tokio::test]
async fn a_ticket_needs_its_current_code_and_an_offline_scan_keeps_its_time() {
    let node = TestNode::start().await;
    let (_, event) = open_event(&node, &[]).await;
    let (identity_app, opened) = (node.identity_app(), event.scan().await);
    identity_app.approve(&opened, "asha").await;
    let code = event.registrations().await[0]["registration_code"].as_str().expect("a code").to_owned();
    let address = ticket_code_address(&event, &node, &opened.txn).await;
    let ticket_code = node.get(&address).await.ok();
    assert!(ticket_code["path"].as_str().expect("a path").starts_with("M4 4.5h7"), "{ticket_code}");
    for forged in
        [address.replace("key=", "key=A"), address.replace(&code, "222222"), format!("/e/{}/ticket", event.id)]
    {
        assert_eq!(node.get(&forged).await.status, 404, "{forged}");
    }
    let door = Door::open(&node, &event, "B").await;
    assert_old_code_is_refused(&node, &door, &code).await;
    assert_offline_scan_counts_once(&event, &door, &code).await;
    assert_scan_before_the_end_is_accepted(&node, &event, &code).await;
    for bad in [
        "code=1",
        "code=",
        "",
        &format!("code={code}&at=soon"),
        &format!("code={code}&at=1"),
        &format!("code={code}&id=-1"),
    ] {
        assert_eq!(door.check_in(bad).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn a_door_works_without_javascript() {
    let node = TestNode::start().await;
    let (_, event) = open_event(&node, &[("claims", json!(["name", "photo"]))]).await;
    let codes = register(&node, &event, &["asha", "vikram"]).await;
    let door = Door::open(&node, &event, "B").await;
    let search = door.get("?q=ash").await;
    assert!(
        search.text.contains("Asha Rao") && search.text.contains(&codes[0]) && !search.text.contains("Vikram"),
        "{}",
        search.text
    );
    assert!(door.get(&format!("?q={}", codes[1].to_lowercase())).await.text.contains("Vikram"));
    assert!(door.get("?q=nobody").await.text.contains("No guest has this name or code"));
    let guest = door.get(&format!("?guest={}", codes[0])).await;
    assert!(
        guest.text.contains("Not checked in yet") && guest.text.contains(&format!("{}/photo/{}", door.path, codes[0])),
        "{}",
        guest.text
    );
    let photo = door.get(&format!("/photo/{}", codes[0])).await;
    assert_eq!((photo.status, photo.header("content-type")), (200, Some("image/jpeg")));
    let form = Answer::receive(
        door.request(Method::POST, "/check-ins")
            .header(ACCEPT, BROWSER)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("code={}&id=7", codes[0])),
    )
    .await;
    let confirmation = form.header("location").expect("a page").to_owned();
    assert_eq!((form.status, &*confirmation), (303, &*format!("{}?guest={}&done=7", door.path, codes[0])));
    assert!(door.get(confirmation.strip_prefix(&door.path).expect("of the door")).await.text.contains("Checked in at"));
    for further_query in ["", "&done=8", "&state=in"] {
        assert!(
            door.get(&format!("?guest={}{further_query}", codes[0])).await.text.contains("Already in at"),
            "{further_query}"
        );
    }
    // Opening the address checks nobody in.
    assert!(door.get(&format!("?guest={}&state=in", codes[1])).await.text.contains("Not checked in yet"));
    let url = node.addresses.public(&format!("{}/check-ins", door.path));
    let from_other_site = node
        .http
        .post(url)
        .header(COOKIE, &door.cookie)
        .header("sec-fetch-site", "cross-site")
        .body(format!("code={}", codes[1]));
    assert_eq!(Answer::receive(from_other_site).await.status, 403);
}
