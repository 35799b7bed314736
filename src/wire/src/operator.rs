//! The operator's API: clients, apps, keys and credits.

use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::limits::{CLIENT_REFERENCE_CHARS_MAX, CREDITS_PER_MOVE_MAX};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{AppPatch, KeyCase};
use sakshi_domain::time::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::body::{Describe, Field, body};
use crate::fields::{Form, Place};
use crate::json::Json;
use crate::text::{Change, Label, Replace, Whole, Words};

/// The longest overlap of two keys: a year, in seconds.
pub const OVERLAP_MAX_S: u64 = 366 * 24 * 3_600;
/// What is said to a list of environments that names none.
const SOME_ENVIRONMENTS: &str = "must be an array that names some of sandbox, stage and production; leave it out for all";

body! { request
    /// A client to be created.
    #[derive(Clone, PartialEq)]
    pub struct CreateClientRequest {
        /// What the operator calls it.
        name: Label,
    }
}

body! { request
    /// An app to be created.
    #[derive(Clone, PartialEq)]
    pub struct CreateAppRequest {
        /// What the operator calls it.
        name: Label,
    }
}

body! { request
    /// What is to change of an app; null removes a URL.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchAppRequest {
        /// How its payloads are spelled.
        payload_spelling: Change<KeyCase>,
        /// Receives changes of wealth-data consents.
        consent_webhook_url: Replace<HttpUrl>,
        /// Receives wealth data.
        data_webhook_url: Replace<HttpUrl>,
        /// Receives historical wealth data.
        historical_webhook_url: Replace<HttpUrl>,
    }
}

impl PatchAppRequest {
    /// The change.
    #[must_use]
    pub fn patch(self) -> AppPatch {
        AppPatch {
            payload_spelling: self.payload_spelling.0,
            consent_webhook_url: self.consent_webhook_url.0,
            data_webhook_url: self.data_webhook_url.0,
            historical_webhook_url: self.historical_webhook_url.0,
        }
    }
}

body! { request
    /// A key to be issued.
    #[derive(Clone, Default, PartialEq)]
    pub struct IssueKeyRequest {
        /// What the operator calls it.
        label: Option<Label>,
        /// Where it works; everywhere if it is left out.
        environments: Option<Environments>,
        /// When it stops working by itself.
        expires_at: Option<Timestamp>,
    }
    check(fields) {
        if let (Some(Some(end)), Form::Request(context)) = (expires_at, fields.form())
            && end <= context.now
        {
            fields.refuse("expires_at", "must be in the future");
        }
    }
}

body! { request
    /// How one key follows another.
    #[derive(Clone, Default, PartialEq)]
    pub struct RotateKeyRequest {
        /// How long the old key works on, in seconds; a day if it is left out.
        overlap_s: Option<Whole<0, OVERLAP_MAX_S>>,
    }
}

body! { request
    /// A movement of credits.
    #[derive(Clone, PartialEq)]
    pub struct MoveCreditsRequest {
        /// `grant` adds, `adjust` corrects up or down; a grant if it is left out.
        kind: Option<MoveKind>,
        /// How many; below zero for an adjustment alone.
        amount: Amount,
        /// Unique per client and kind: the same movement again changes nothing.
        reference: Words<CLIENT_REFERENCE_CHARS_MAX>,
    }
    check(fields) {
        let is_adjustment = matches!(kind, Some(Some(MoveKind::Adjust)));
        if amount.is_some_and(|amount: Amount| amount.0 < 1 && !is_adjustment) {
            fields.refuse("amount", Amount::sentence());
        }
    }
}

impl MoveCreditsRequest {
    /// The movement.
    #[must_use]
    pub fn movement(self) -> CreditMove {
        let kind = if self.kind == Some(MoveKind::Adjust) { EntryKind::Adjust } else { EntryKind::Grant };
        CreditMove { kind, amount: self.amount.0, reference: self.reference.0 }
    }
}

/// Which movements the operator makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MoveKind {
    /// More credits.
    Grant,
    /// A correction.
    Adjust,
}

/// Credits that are moved at once, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Amount(pub i64);

/// Where a key works. A list that names nothing is refused: it would mean everywhere to the one who
/// reads it here, and nowhere to the one who wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Environments(pub Vec<Profile>);

impl Amount {
    fn sentence() -> String {
        format!("must be a whole number from 1 to {CREDITS_PER_MOVE_MAX}, or below zero for an adjustment")
    }
}

impl Field for Amount {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let amount = if let Json::Number(amount) = value { amount.as_i64() } else { None };
        let good = amount.filter(|amount| (1..=CREDITS_PER_MOVE_MAX).contains(&amount.unsigned_abs()));
        place.accept(good.map(Self).ok_or_else(Self::sentence))
    }
}

impl Describe for Amount {
    fn schema() -> Value {
        json!({ "type": "integer", "format": "int64", "minimum": -CREDITS_PER_MOVE_MAX.cast_signed(), "maximum": CREDITS_PER_MOVE_MAX })
    }
}

impl Field for MoveKind {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        one_of(&value, [("grant", Self::Grant), ("adjust", Self::Adjust)], place)
    }
}

impl Describe for MoveKind {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["grant", "adjust"], "default": "grant" })
    }
}

impl Field for KeyCase {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        one_of(&value, [("snake_case", Self::SnakeCase), ("camelCase", Self::CamelCase)], place)
    }
}

impl Describe for KeyCase {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["snake_case", "camelCase"] })
    }
}

fn one_of<T: Copy>(value: &Json, known: [(&str, T); 2], place: &mut Place<'_>) -> Option<T> {
    let found = known.iter().find(|(word, _)| matches!(value, Json::Text(text) if text == word));
    place.accept(found.map(|(_, meaning)| *meaning).ok_or_else(|| format!("must be {}", known.map(|(word, _)| word).join(" or "))))
}

impl Field for Environments {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let items = match value {
            Json::List(items) if !items.is_empty() => items,
            _ => return place.refuse(SOME_ENVIRONMENTS),
        };
        // What is no text names no environment either, as the empty one does not.
        let read = |place: &mut Place<'_>, item| place.accept(if let Json::Text(word) = item { word } else { String::new() }.parse());
        place.items(items, read).map(Self)
    }
}

impl Describe for Environments {
    fn schema() -> Value {
        let words = [Profile::Sandbox, Profile::Stage, Profile::Production].map(Profile::as_str);
        json!({ "type": "array", "minItems": 1, "items": { "type": "string", "enum": words } })
    }
}
