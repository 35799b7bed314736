//! `curl` commands equivalent to the portal's actions, with `$KEY` and `$APP` for the credentials.

use std::time::Duration;

use sakshi_domain::channel::Channel;
use sakshi_domain::checks::Check;
use sakshi_domain::event::EventTerms;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Terms;
use sakshi_wire::LanguageName;
use serde_json::{Map, Value, json};

const OVSE: &str = "/api/v1/nationalid-ovse";
/// Time by which the command "Extend it" moves the end of an event.
const EXTENSION: Duration = Duration::from_secs(24 * 3_600);

/// Places that the command "Raise the cap" adds to an event.
const MORE_GUESTS: u32 = 10;

/// A command to copy.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) title: &'static str,
    pub(super) text: String,
}

impl Command {
    /// Returns the command as the content of an element, where quotes need no escaping.
    pub(super) fn html(&self) -> String {
        self.text.replace('&', "&#38;").replace('<', "&#60;")
    }
}

/// Writes commands for the service at this base URL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curl<'a>(pub(super) &'a str);

impl Curl<'_> {
    /// Builds the command for a request of the API.
    fn command(self, title: &'static str, method: &str, path: &str, body: Option<&Value>) -> Command {
        let mut text = "curl -sS".to_owned();
        if method != "GET" && !(method == "POST" && body.is_some()) {
            text.push_str(" -X ");
            text.push_str(method);
        }
        text.push(' ');
        text.push_str(&shell_quote(&format!("{}{path}", self.0)));
        text.push_str(" \\\n  -H \"X-API-KEY: $KEY\" -H \"X-API-APP-ID: $APP\"");
        if let Some(body) = body {
            text.push_str(" -H 'Content-Type: application/json' \\\n  -d ");
            text.push_str(&shell_quote(&body.to_string()));
        }
        Command { title, text }
    }

    /// Builds the command that opens a transaction with `terms`.
    pub(super) fn init(self, terms: &Terms) -> Command {
        self.command("Open a transaction", "POST", &format!("{OVSE}/init"), Some(&init_body(terms)))
    }

    pub(super) fn qr_intent(self, id: TxnId) -> Command {
        self.command(
            "Get a code for the app’s scanner",
            "POST",
            &format!("{OVSE}/qr-intent"),
            Some(&json!({ "txnId": id.to_string() })),
        )
    }

    pub(super) fn result(self, id: TxnId) -> Command {
        self.command("Poll the result", "GET", &format!("{OVSE}/result/{id}?wait=30"), None)
    }

    pub(super) fn create_event(self, terms: &EventTerms) -> Command {
        let mut body = Map::new();
        body.insert("name".into(), json!(terms.name.as_str()));
        body.insert("claims".into(), json!(terms.claims));
        body.insert("language".into(), json!(LanguageName(terms.language)));
        body.insert("max_guests".into(), json!(terms.max_guests.get()));
        body.insert("expires_at".into(), json!(terms.expires_at));
        body.extend(terms.webhook_url.iter().map(|url| ("webhook_url".to_owned(), json!(url.as_str()))));
        self.command("Create one like this", "POST", &format!("{OVSE}/events"), Some(&body.into()))
    }

    /// Returns the commands for an existing event.
    pub(super) fn event(self, id: EventId, terms: &EventTerms, now: Timestamp) -> Vec<Command> {
        let path = format!("{OVSE}/events/{id}");
        let guests = terms.max_guests.get();
        let later_end = terms.expires_at.max(now) + EXTENSION;
        let toggle_title = if terms.is_active { "Disable it" } else { "Enable it" };
        vec![
            self.create_event(terms),
            self.command("Read its status", "GET", &path, None),
            self.command("List its registrations", "GET", &format!("{path}/registrations?page=1&page_size=20"), None),
            self.command(
                "Raise the cap",
                "PATCH",
                &path,
                Some(&json!({ "max_guests": guests.saturating_add(MORE_GUESTS) })),
            ),
            self.command("Extend it", "PATCH", &path, Some(&json!({ "expires_at": later_end }))),
            self.command(toggle_title, "PATCH", &path, Some(&json!({ "is_active": !terms.is_active }))),
            self.command("Get the poster", "GET", &format!("{path}/poster.svg"), None),
        ]
    }

    pub(super) fn events(self) -> Command {
        self.command("List events", "GET", &format!("{OVSE}/events?page=1&page_size=20"), None)
    }

    /// Builds the command that fetches the result of an order. E-stamps and wealth data report results by webhook only.
    pub(super) fn order(self, kind: &str, id: FlowId) -> Option<Command> {
        const TITLE: &str = "Fetch the result";
        match kind {
            "esign" => Some(self.command(
                TITLE,
                "POST",
                "/api/v1/esign/status",
                Some(&json!({ "documentId": id.to_string() })),
            )),
            "doclocker" => Some(self.command(TITLE, "GET", &format!("/api/v1/doclocker/details/{id}"), None)),
            _ => None,
        }
    }

    pub(super) fn webhooks(self) -> Vec<Command> {
        let path = "/api/v1/user/webhook";
        let set = json!({ "apiType": "ESign", "webhookUrl": "https://client.example/hook" });
        vec![
            self.command("Show the registered URLs", "GET", path, None),
            self.command("Set a URL", "PUT", path, Some(&set)),
            self.command("Remove it", "PUT", path, Some(&json!({ "apiType": "ESign", "webhookUrl": null }))),
        ]
    }

    /// Builds the command that prints webhooks of a sandbox as they arrive.
    pub(super) fn listen(self, app: &AppId) -> String {
        format!("SAKSHI_API_KEY=\"$KEY\" sakshi listen --base {} --app {app}", shell_quote(self.0))
    }

    pub(super) fn check(self, check: &Check, body: &Value) -> Command {
        self.command("Run the same check", "POST", check.path, Some(body))
    }

    pub(super) fn credits(self) -> Vec<Command> {
        vec![
            self.command("Read the balance", "GET", "/api/v1/credits", None),
            self.command("Read the statement", "GET", "/api/v1/credits/statement?page=1&page_size=20", None),
        ]
    }
}

/// Builds the body of `init` for `terms`.
fn init_body(terms: &Terms) -> Value {
    let mut body = Map::new();
    body.insert("claims".into(), json!(terms.claims));
    body.insert("channel".into(), json!(terms.channel.name()));
    body.insert("language".into(), json!(LanguageName(terms.language)));
    if let Channel::Android(app) = &terms.channel {
        body.insert("app_id".into(), json!(app.app_id));
        body.insert("app_signature".into(), json!(app.app_signature));
    }
    if !terms.face_auth {
        body.insert("face_auth".into(), json!(false));
    }
    body.extend(terms.webhook_url.iter().map(|url| ("webhook_url".to_owned(), json!(url.as_str()))));
    if let Some(extras) = &terms.extras {
        let texts = [("name_hint", &extras.name_hint), ("client_reference_id", &extras.client_reference_id)];
        body.extend(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?)))));
        body.extend(extras.evidence.then(|| ("evidence".to_owned(), json!(true))));
        body.extend(extras.purpose.iter().map(|purpose| ("purpose".to_owned(), json!(purpose))));
        body.extend(extras.redirect_url.iter().map(|url| ("redirect_url".to_owned(), json!(url.as_str()))));
    }
    body.into()
}

/// Quotes a text as one shell word.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use sakshi_domain::channel::AndroidApp;
    use sakshi_domain::claims::Claim;
    use sakshi_domain::event::{EventText, MaxGuests};
    use sakshi_domain::ids::ClientId;
    use sakshi_domain::language::Language;
    use sakshi_domain::request_id::RequestId;
    use sakshi_domain::transaction::OptionalTerms;
    use sakshi_kit::records;
    use sakshi_service::url_policy::UrlPolicy;
    use sakshi_wire::ovse::InitRequest;
    use sakshi_wire::{ReceivedObject, UrlRules as _};

    use super::*;

    #[test]
    fn the_body_of_an_init_is_parsed_into_the_same_terms() {
        let url_policy = UrlPolicy::PUBLIC;
        let signature = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".to_owned();
        let channels = [
            Channel::Web,
            Channel::Qr,
            Channel::Ios,
            Channel::Android(Box::new(AndroidApp { app_id: "com.example.app".into(), app_signature: signature })),
        ];
        let extras = OptionalTerms {
            name_hint: Some("O’Neil's".into()),
            client_reference_id: Some("order 7".into()),
            evidence: true,
            purpose: Some(EventText::parse("To open your savings account").unwrap()),
            redirect_url: Some(url_policy.page("https://shop.example/back?x=1").unwrap()),
            ..OptionalTerms::default()
        };
        for (channel, extras) in channels.into_iter().zip([None, Some(Box::new(extras)), None, None]) {
            let terms = Terms {
                claims: [Claim::Name, Claim::Photo].into_iter().collect(),
                channel,
                language: Language::parse("tamil").unwrap(),
                face_auth: extras.is_none(),
                webhook_url: Some(url_policy.webhook("https://client.example/hook?a='b'").unwrap()),
                request_id: RequestId::mint(),
                extras,
            };
            let body = init_body(&terms).to_string();
            let received = ReceivedObject::read(body.as_bytes()).unwrap();
            let request: InitRequest = received.into_request(url_policy.at(Timestamp::from_millis(0))).unwrap();
            let default_evidence = false;
            assert_eq!(request.terms(terms.request_id.clone(), default_evidence), terms, "{body}");
        }
    }

    #[test]
    fn the_commands_of_an_event_change_it() {
        let (now, past) = (Timestamp::from_millis(1_800_000_000_000), Timestamp::from_millis(1_700_000_000_000));
        for (expires_at, is_active) in [(now + EXTENSION, true), (past, false)] {
            let id = "0Fbt8Z0halkTIXrz9".parse().unwrap();
            let usual = records::event(id, ClientId::generate(), AppId::generate(), now, EXTENSION).terms;
            let terms = EventTerms { max_guests: MaxGuests::new(3).unwrap(), expires_at, is_active, ..usual };
            let commands = Curl("https://v.example").event(id, &terms, now);
            let body = |title| {
                let command = commands.iter().find(|command| command.title == title).unwrap();
                let (_, body) = command.text.split_once("-d '").unwrap();
                serde_json::from_str::<Value>(body.trim_end_matches('\'')).unwrap()
            };
            let later = body("Extend it")["expires_at"].as_str().and_then(Timestamp::parse_iso8601).unwrap();
            assert!(later > now && later > expires_at, "{later}");
            assert_eq!(body("Raise the cap")["max_guests"], 3 + MORE_GUESTS);
            assert_eq!(body(if is_active { "Disable it" } else { "Enable it" })["is_active"], !is_active);
        }
    }

    #[test]
    fn a_shell_reads_a_quoted_text_as_one_word() {
        assert_eq!(shell_quote("a'; rm -rf $HOME #"), r"'a'\''; rm -rf $HOME #'");
        let command = Curl("https://v.example").command("title", "PATCH", "/p", Some(&json!({ "name": "it's" })));
        let expected = "curl -sS -X PATCH 'https://v.example/p' \\\n  -H \"X-API-KEY: $KEY\" -H \"X-API-APP-ID: \
            $APP\" -H 'Content-Type: application/json' \\\n  -d '{\"name\":\"it'\\''s\"}'";
        assert_eq!(command.text, expected);
    }
}
