//! Single verifications: init and qr-intent (specification, "OVSE").

use sakshi_domain::channel::Channel;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use sakshi_domain::limits::{ANDROID_PACKAGE_CHARS_MAX, CLIENT_REFERENCE_CHARS_MAX, NAME_HINT_CHARS_MAX};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::transaction::{OptionalTerms, Terms};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::body::{Describe, Field, Properties, body};
use crate::fields::{Fields, Place};
use crate::json::Json;
use crate::text::{Flag, PageAddress, Words};

body! { request
    /// What a client asks for.
    #[derive(Clone, PartialEq)]
    pub struct InitRequest {
        /// The claims that the person is asked to share.
        claims: ClaimSet,
        /// How the person reaches the identity app.
        #[serde(flatten)]
        channel: ChannelChoice,
        /// The language of the pages and of the identity app.
        language: Language,
        /// Whether a face scan is required.
        face_auth: Flag<true>,
        /// Receives one webhook when the transaction completes.
        webhook_url: Option<WebhookUrl>,
        /// Where the verify page sends the user afterwards.
        redirect_url: Option<PageAddress>,
        /// Helps the identity app to choose a profile.
        name_hint: Option<Words<NAME_HINT_CHARS_MAX>>,
        /// The client's own reference, echoed in result and webhook.
        client_reference_id: Option<Words<CLIENT_REFERENCE_CHARS_MAX>>,
        /// The correlation id, when it is not sent as `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}

impl InitRequest {
    /// The terms of the transaction; `minted` is its correlation id unless the request names one.
    #[must_use]
    pub fn terms(self, minted: RequestId) -> Terms {
        let extras = OptionalTerms {
            name_hint: self.name_hint.map(|hint| hint.0),
            client_reference_id: self.client_reference_id.map(|reference| reference.0),
            redirect_url: self.redirect_url.map(|url| url.0),
        };
        Terms {
            claims: self.claims,
            channel: self.channel.0,
            language: self.language,
            face_auth: self.face_auth.0,
            webhook_url: self.webhook_url,
            request_id: self.request_id.unwrap_or(minted),
            extras: (extras != OptionalTerms::default()).then(|| Box::new(extras)),
        }
    }
}

/// `channel`, and for the app on Android `app_id` and `app_signature`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelChoice(pub Channel);

impl Field for ChannelChoice {
    fn read(_: Json, place: &mut Place<'_>) -> Option<Self> {
        place.refuse("must be web, qr or app")
    }

    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let channel = fields.read(name, |place, value| match value {
            None | Some(Json::Null) => place.refuse("is required"),
            Some(Json::Text(word)) => Some(word),
            Some(_) => place.refuse("must be web, qr or app"),
        });
        let (app_id, app_signature) = (fields.text("app_id"), fields.text("app_signature"));
        fields.agreed(Channel::parse(&channel?, app_id.as_deref(), app_signature.as_deref())).map(Self)
    }
}

impl Describe for ChannelChoice {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["web", "qr", "app"] })
    }

    fn describe(object: &mut Properties, name: &str, _: &str, _: bool) {
        let channel = "How the person reaches the identity app: a mobile browser, a QR code, or a native app.";
        object.add(name, Self::schema(), channel, true);
        let app_id = json!({ "type": ["string", "null"], "maxLength": ANDROID_PACKAGE_CHARS_MAX });
        object.add("app_id", app_id, "Android package id; channel `app` on Android only, together with `app_signature`.", false);
        let signature = "Base64 SHA-256 of the signing certificate; together with `app_id`.";
        object.add("app_signature", json!({ "type": ["string", "null"] }), signature, false);
    }
}

impl Serialize for ChannelChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("channel", self.0.name())?;
        if let Channel::Android(app) = &self.0 {
            fields.serialize_entry("app_id", &app.app_id)?;
            fields.serialize_entry("app_signature", &app.app_signature)?;
        }
        fields.end()
    }
}

body! { request
    /// Which transaction.
    #[derive(Clone, PartialEq)]
    pub struct QrIntentRequest {
        /// A pending transaction of the calling app.
        txn_id as "txnId": TxnId,
    }
}
