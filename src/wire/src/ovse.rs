//! Single verifications: init, qr-intent, the webhook and the poll (specification, "OVSE").

use std::collections::BTreeMap;
use std::fmt;

use sakshi_domain::channel::Channel;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::event::EventText;
use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use sakshi_domain::limits::{
    ANDROID_PACKAGE_CHARS_MAX, CLIENT_REFERENCE_CHARS_MAX, NAME_HINT_CHARS_MAX, TEXT_CHARS_MAX,
};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::KeyCase;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Completed, Failure, OptionalTerms, Outcome, Terms, VerifiedClaims};
use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::body::{Describe, Field, Properties, Schemas, alternatives, body};
use crate::consent::{OptionalConsent, RecordedConsent};
use crate::fields::{FieldReader, Fields};
use crate::json::Json;
use crate::text::{Always, Flag, PageAddress, Undescribed, Words};

body! { request
    /// The verification to open.
    #[derive(Clone, PartialEq)]
    pub struct InitRequest {
        /// The claims to request.
        claims: ClaimSet,
        /// The channel to the identity app.
        #[serde(flatten)]
        channel: ChannelChoice,
        /// The language of the pages and of the identity app. Default: `english`.
        language: Language,
        /// Require a face scan. Default: `true`.
        face_auth: Flag<true>,
        /// Receives the webhook. Default: no webhook.
        webhook_url: Option<WebhookUrl>,
        /// The address to which the verify page returns the person afterwards.
        redirect_url: Option<PageAddress>,
        /// The name of the person, which helps the identity app to choose a profile. Cut to 100 characters.
        name_hint: Option<NameHint>,
        /// The purpose shown to the person, 1 to 200 characters. Default: none.
        purpose: Option<EventText>,
        /// Your own reference, returned in the result and the webhook.
        client_reference_id: Option<Words<CLIENT_REFERENCE_CHARS_MAX>>,
        /// Store the signed credential as long as the result, for `getEvidence`. Default: the setting of the app.
        evidence: Option<bool>,
        /// Also return `qrPayload`. Default: `false`.
        qr: Flag<false>,
        /// Validated. The digest of the text is stored in the register of consents.
        #[serde(flatten)]
        consent: RecordedConsent,
        /// The correlation id. It overrides the header `X-Request-ID`. Default: that header, or a new id.
        request_id: Option<RequestId>,
    }
}

impl InitRequest {
    /// Builds the terms of the transaction. The arguments are the defaults for fields that the request leaves out.
    #[must_use]
    pub fn terms(self, default_request_id: RequestId, default_evidence: bool) -> Terms {
        // `qr` is a question about the response.
        let Self {
            claims,
            channel: ChannelChoice(channel),
            language,
            face_auth: Flag(face_auth),
            webhook_url,
            redirect_url,
            name_hint,
            purpose,
            client_reference_id,
            evidence,
            qr: _,
            consent: RecordedConsent(consent),
            request_id,
        } = self;
        let extras = OptionalTerms {
            evidence: evidence.unwrap_or(default_evidence),
            name_hint: name_hint.map(|hint| hint.0),
            purpose,
            consent_text: consent.as_ref().map(ConsentGiven::digest),
            client_reference_id: client_reference_id.map(|reference| reference.0),
            redirect_url: redirect_url.map(|url| url.0),
            ..OptionalTerms::default()
        };
        Terms {
            claims,
            channel,
            language,
            face_auth,
            webhook_url,
            request_id: request_id.unwrap_or(default_request_id),
            extras: (extras != OptionalTerms::default()).then(|| Box::new(extras)),
        }
    }
}

/// The name of a person, cut to [`NAME_HINT_CHARS_MAX`] characters at a grapheme boundary.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NameHint(pub String);

impl Field for NameHint {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let Words(mut name) = Words::<TEXT_CHARS_MAX>::read(value, reader)?;
        if let Some((limit, _)) = name.char_indices().nth(NAME_HINT_CHARS_MAX) {
            // A single grapheme may be longer than the limit.
            let end = name.grapheme_indices(true).map(|(start, _)| start).take_while(|start| *start <= limit).last();
            name.truncate(end.filter(|end| *end > 0).unwrap_or(limit));
        }
        Some(Self(name))
    }
}

impl Describe for NameHint {
    fn schema() -> Value {
        Words::<TEXT_CHARS_MAX>::schema()
    }
}

/// Hides the name, which is personal data.
impl fmt::Debug for NameHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameHint({} bytes redacted)", self.0.len())
    }
}

/// Pattern of an Android package id.
const PACKAGE_PATTERN: &str = "^[A-Za-z][A-Za-z0-9_]*([.][A-Za-z][A-Za-z0-9_]*)+$";
/// Pattern of 32 bytes in Base64 or hexadecimal.
const SHA_256_PATTERN: &str =
    "^([A-Za-z0-9+/_-]{42}[AEIMQUYcgkosw048]=?|[0-9A-Fa-f]{64}|([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2})$";

/// The channel of a request: `channel`, and for channel `app` on Android also `app_id` and `app_signature`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelChoice(pub Channel);

impl Field for ChannelChoice {
    fn read(_: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.refuse("must be web, qr or app")
    }

    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let channel = fields.read(name, |reader, value| match value {
            None | Some(Json::Null) => reader.refuse("is required"),
            Some(Json::Text(word)) => Some(word),
            Some(_) => reader.refuse("must be web, qr or app"),
        });
        let (app_id, app_signature) = (fields.text("app_id"), fields.text("app_signature"));
        fields.accept(Channel::parse(&channel?, app_id.as_deref(), app_signature.as_deref())).map(Self)
    }
}

impl Describe for ChannelChoice {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["web", "qr", "app"] })
    }

    fn describe(object: &mut Properties, name: &str, _: &str, _: bool) {
        let channel =
            "The channel to the identity app: `web` (browser on the phone), `qr` (QR code) or `app` (native app).";
        object.add_required(name, Self::schema(), channel);
        let app_id = json!({ "type": "string", "maxLength": ANDROID_PACKAGE_CHARS_MAX, "pattern": PACKAGE_PATTERN });
        object.add_optional(
            "app_id",
            app_id,
            "The Android package id; only for channel `app` on Android, together with `app_signature`.",
        );
        let signature =
            "The SHA-256 of the app's signing certificate in Base64 or hexadecimal; only together with `app_id`.";
        object.add_optional("app_signature", json!({ "type": "string", "pattern": SHA_256_PATTERN }), signature);
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
    /// The transaction whose QR code is requested.
    #[derive(Clone, PartialEq)]
    pub struct QrIntentRequest {
        /// The id of a pending transaction of this application.
        txn_id as "txnId": String,
        /// Validated, but not stored.
        consent: OptionalConsent,
    }
}

body! { response
    /// A verification that was opened.
    pub struct InitResponse {
        /// Identifies the transaction.
        txn_id as "txnId": TxnId,
        /// The signed intent that launches the identity app.
        intent_jwt as "intentJwt": String,
        /// The time of expiry, 15 minutes after the request.
        expires_at as "expiresAt": Timestamp,
        /// The verify page, for channels `web` and `qr`. Anyone with this link can complete the verification with their
        /// own identity.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        request_url as "requestUrl": Option<String>,
        /// The Android intent URI, for channel `app` on Android.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        national_id_app_uri as "nationalIdAppUri": Option<String>,
        /// The URL that opens the identity app on iOS, for channel `web`, and for channel `app` without `app_id`.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        ios_app_uri as "iosAppUri": Option<String>,
        /// The value of the QR code, as returned by `/qr-intent`; only if `qr` is `true` in the request.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        qr_payload as "qrPayload": Option<String>,
    }
}

body! { response
    /// Evidence of a verification: a JWS in flattened JSON form (RFC 7515). `sakshi verify-evidence` checks it. Its
    /// payload holds the SD-JWT in `credential`. Any library for RFC 9901 verifies the SD-JWT with `issuer_key`.
    pub struct EvidenceFile {
        /// The evidence, JSON in Base64url.
        payload: String,
        /// The header in Base64url. Its `jwk` is the public key that verifies the signature. The JWKS of the service
        /// has the same key.
        protected: String,
        /// The signature over header and payload in Base64url.
        signature: String,
    }
}

body! { response
    /// The value of the QR code.
    pub struct QrIntentResponse {
        /// `{qr_host}/getIntent?value=<digits>`.
        qr_payload as "qrPayload": String,
    }
}

alternatives! {
    oneOf
    /// The outcome, or a pending response while the transaction is pending.
    pub enum OvseResult {
        /// The transaction has an outcome.
        Outcome(OvseOutcome),
        /// The transaction is pending.
        Pending(OvsePending),
    }
}

body! { response
    /// The outcome: the body of the webhook and of a completed result.
    pub struct OvseOutcome {
        /// True if the verification passed.
        success: bool,
        /// Always 200, also when the verification failed.
        status_code as "statusCode": u16,
        /// The outcome in words; for a failure, its reason.
        message: String,
        /// The correlation id of the request that opened the transaction.
        request_id: RequestId,
        /// The outcome.
        data: OutcomeData,
    }
}

/// The `data` of an outcome. A setting of the app chooses the spelling of its keys. Each API document describes one
/// spelling.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OutcomeData {
    /// `snake_case`, the default.
    Snake(OvseData),
    /// `camelCase`.
    Camel(OvseDataCamelCase),
}

impl Describe for OutcomeData {
    fn schema() -> Value {
        OvseData::schema()
    }

    fn collect(schemas: &mut Schemas) {
        OvseData::collect(schemas);
        OvseDataCamelCase::collect(schemas);
    }
}

/// Declares the `data` of an outcome with one spelling of its keys: doc comment, name, and the keys.
macro_rules! ovse_data {
    ($about:literal $name:ident $txn:literal $passed:literal $claims:literal $at:literal $code:literal
     $reference:literal) => {
        body! { response
            #[doc = $about]
            pub struct $name {
                /// The id of the transaction. Deduplicate webhooks by it.
                txn_id as $txn: TxnId,
                /// Always false.
                pending: Always<false>,
                /// True if the person was verified and shared every requested claim.
                verification_passed as $passed: bool,
                /// The claims as the issuer signed them, by their names in the credential, such as `residentName`,
                /// `dob` or `address`. A value may be any JSON value.
                verified_claims as $claims: BTreeMap<String, Value>,
                /// The time of completion.
                verified_at as $at: Timestamp,
                /// The reason for a failure; absent if the verification passed.
                #[serde(skip_serializing_if = "String::is_empty", default)]
                message: String,
                /// The code of a failure: from the identity app, such as `301`, or from this service, such as
                /// `claims_missing`.
                #[serde(skip_serializing_if = "String::is_empty", default)]
                error_code as $code: String,
                /// Your own reference from the request; absent without one.
                #[serde(skip_serializing_if = "String::is_empty", default)]
                client_reference_id as $reference: String,
            }
        }
    };
}

ovse_data! { " The outcome with its keys in `snake_case`." OvseData
"txn_id" "verification_passed" "verified_claims" "verified_at" "error_code" "client_reference_id" }
ovse_data! { " The outcome with its keys in `camelCase`." OvseDataCamelCase
"txnId" "verificationPassed" "verifiedClaims" "verifiedAt" "errorCode" "clientReferenceId" }

body! { response
    /// The response to a poll while the transaction is pending.
    pub struct OvsePending {
        /// Always true.
        success: Always<true>,
        /// Always true.
        pending: Always<true>,
        /// The pending transaction.
        data: OvsePendingData,
    }
}

body! { response
    /// The pending transaction. `txn_id` repeats its id.
    pub struct OvsePendingData {
        /// The id of the transaction.
        camel_case_id as "txnId": TxnId,
        /// The id of the transaction, under its other spelling.
        txn_id: Undescribed<TxnId>,
        /// Always true.
        pending: Always<true>,
    }
}

impl OvsePending {
    /// Builds the response to a poll of a pending transaction.
    #[must_use]
    pub const fn new(txn_id: TxnId) -> Self {
        Self {
            success: Always,
            pending: Always,
            data: OvsePendingData { camel_case_id: txn_id, txn_id: Undescribed(txn_id), pending: Always },
        }
    }
}

/// The message of a verification that passed.
pub const VERIFIED_MESSAGE: &str = "Verification successful";

/// A completed transaction that serialises as an [`OvseOutcome`], without a copy of its claims.
#[derive(Clone, Copy, Debug)]
pub struct OvsePayload<'a> {
    completed: &'a Completed,
    spelling: KeyCase,
}

impl<'a> OvsePayload<'a> {
    /// Builds the payload, with this spelling of the keys in `data`.
    #[must_use]
    pub const fn new(completed: &'a Completed, spelling: KeyCase) -> Self {
        Self { completed, spelling }
    }

    fn message(&self) -> &'a str {
        match &self.completed.outcome {
            Outcome::Verified(_) => VERIFIED_MESSAGE,
            Outcome::NotVerified(failure) => &failure.message,
        }
    }
}

impl Serialize for OvsePayload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("OvsePayload", 5)?;
        body.serialize_field("success", &self.completed.outcome.passed())?;
        body.serialize_field("statusCode", &200)?;
        body.serialize_field("message", self.message())?;
        body.serialize_field("request_id", &self.completed.opened.terms.request_id)?;
        body.serialize_field("data", &PayloadData(*self))?;
        body.end()
    }
}

/// The `data` of the payload.
struct PayloadData<'a>(OvsePayload<'a>);

impl Serialize for PayloadData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let OvsePayload { completed, spelling } = self.0;
        let key = |snake_case, camel_case| match spelling {
            KeyCase::SnakeCase => snake_case,
            KeyCase::CamelCase => camel_case,
        };
        let no_claims = VerifiedClaims::default();
        let (claims, failure): (&VerifiedClaims, Option<&Failure>) = match &completed.outcome {
            Outcome::Verified(claims) => (claims, None),
            Outcome::NotVerified(failure) => (&no_claims, Some(failure)),
        };
        let mut data = serializer.serialize_map(None)?;
        data.serialize_entry(key("txn_id", "txnId"), &completed.opened.id)?;
        data.serialize_entry("pending", &false)?;
        data.serialize_entry(key("verification_passed", "verificationPassed"), &completed.outcome.passed())?;
        data.serialize_entry(key("verified_claims", "verifiedClaims"), claims)?;
        data.serialize_entry(key("verified_at", "verifiedAt"), &completed.verified_at)?;
        if let Some(failure) = failure {
            data.serialize_entry("message", &failure.message)?;
            if let Some(code) = &failure.code {
                data.serialize_entry(key("error_code", "errorCode"), code)?;
            }
        }
        let extras = completed.opened.terms.extras.as_deref();
        if let Some(reference) = extras.and_then(|extras| extras.client_reference_id.as_ref()) {
            data.serialize_entry(key("client_reference_id", "clientReferenceId"), reference)?;
        }
        data.end()
    }
}
