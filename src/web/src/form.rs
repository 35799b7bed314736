//! Converts the forms of browsers to the fields of API requests.

use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use sakshi_wire::ReceivedObject;
use sakshi_wire::json::Json;
use url::form_urlencoded;

use crate::error::ApiError;

/// The names and values of a form's fields.
pub type Pairs = Vec<(String, String)>;

/// Field that carries the CSRF token of the session.
pub const CSRF_FIELD: &str = "form_word";

/// The conversion from a field's text to a value of the request.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text; omitted when empty.
    Text,
    /// A text; null when empty, which removes the stored value.
    Removable,
    /// An item of a list of texts.
    Words,
    /// A whole number.
    Whole,
    /// A whole number; null when empty, which removes the stored value.
    RemovableWhole,
    /// A moment in UTC, in the browsers' format.
    Moment,
    /// A moment in UTC, in the browsers' format; null when empty, which removes the stored value.
    RemovableMoment,
    /// `true` or `false`.
    Flag,
}

impl Kind {
    /// Converts a text to a value of the request; `None` for an omitted field.
    #[must_use]
    pub fn value(self, text: &str) -> Option<Json> {
        let text = text.trim();
        let as_text = || Json::Text(text.to_owned());
        match self {
            Self::Removable | Self::RemovableWhole | Self::RemovableMoment if text.is_empty() => Some(Json::Null),
            _ if text.is_empty() => None,
            Self::Text | Self::Removable => Some(as_text()),
            Self::Words => Some(Json::List(vec![as_text()])),
            Self::Whole | Self::RemovableWhole => {
                Some(text.parse::<i64>().map_or_else(|_| as_text(), |number| Json::Number(number.into())))
            }
            // By length, `2026-12-31T18:30` or with seconds; browsers send neither zone nor offset.
            Self::Moment | Self::RemovableMoment => Some(Json::Text(match text.len() {
                16 => format!("{text}:00Z"),
                19 => format!("{text}Z"),
                _ => text.to_owned(),
            })),
            Self::Flag => Some(match text {
                "true" => Json::Flag(true),
                "false" => Json::Flag(false),
                _ => as_text(),
            }),
        }
    }
}

/// Parses the body of a form.
#[must_use]
pub fn parse(bytes: &[u8]) -> Pairs {
    form_urlencoded::parse(bytes).into_owned().collect()
}

/// Converts the fields of a form to those of a request. Unknown fields stay, as texts: the reader of the request
/// refuses them.
pub fn request_fields<'a>(pairs: impl Iterator<Item = &'a (String, String)>, kinds: &[(&str, Kind)]) -> ReceivedObject {
    let mut members: Vec<(String, Json)> = Vec::new();
    for (name, text) in pairs {
        let kind = kinds.iter().find(|(known, _)| known == name).map_or(Kind::Text, |(_, kind)| *kind);
        if let (Kind::Words, Some((_, Json::List(items)))) = (kind, members.iter_mut().find(|(known, _)| known == name))
        {
            items.push(Json::Text(text.clone()));
        } else if let Some(value) = kind.value(text) {
            members.push((name.clone(), value));
        }
    }
    ReceivedObject(members)
}

/// Checks the media type of a form.
///
/// # Errors
/// [`ApiError::UnsupportedMediaType`] for any other media type.
pub fn check_media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let is_form = essence.eq_ignore_ascii_case("application/x-www-form-urlencoded");
    is_form.then_some(()).ok_or(ApiError::UnsupportedMediaType("A form is sent as application/x-www-form-urlencoded."))
}
