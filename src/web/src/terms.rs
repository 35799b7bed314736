//! Fields that more than one request has: claims, a language, an end.

use sakshi_domain::claims::ClaimSet;
use sakshi_domain::event::MaxGuests;
use sakshi_domain::http_url::{HttpUrl, WebhookUrl};
use sakshi_domain::language::Language;
use sakshi_domain::time::Timestamp;
use sakshi_service::url_policy::UrlPolicy;

use super::fields::{Problem, text};
use super::json::Json;

/// The claims to ask for.
///
/// # Errors
/// Every item that names none.
pub fn claims(value: &Json) -> Result<ClaimSet, Problem> {
    let Json::List(items) = value else { return Err("must be an array of the names of claims".into()) };
    // What is no text is no claim's name either, as the empty one is not.
    let names: Vec<&str> = items.iter().map(|item| if let Json::Text(name) = item { name } else { "" }).collect();
    Ok(ClaimSet::parse(&names)?)
}

/// A language by its name in any case, or by its code as number or text.
///
/// # Errors
/// The accepted values.
pub fn language(value: &Json) -> Result<Language, Problem> {
    // Zero is no code, and what is no code at all is refused as it is.
    let read = match value {
        Json::Text(name) => Language::parse(name),
        Json::Whole(code) => Language::from_code(u64::try_from(*code).unwrap_or(0)),
        _ => Language::from_code(0),
    };
    Ok(read?)
}

/// How many guests an event takes.
///
/// # Errors
/// The bounds.
pub fn max_guests(value: &Json) -> Result<MaxGuests, Problem> {
    // Zero is no number of guests, and what is no number at all is refused as it is.
    let count = if let Json::Whole(count) = value { u64::try_from(*count).unwrap_or(0) } else { 0 };
    Ok(MaxGuests::new(count)?)
}

/// A moment.
///
/// # Errors
/// The form that is read.
pub fn timestamp(value: &Json) -> Result<Timestamp, Problem> {
    let moment = if let Json::Text(text) = value { Timestamp::parse_rfc3339(text) } else { None };
    moment.ok_or_else(|| "must be an RFC 3339 timestamp such as 2026-12-31T18:30:00Z".into())
}

/// A URL that a webhook is sent to.
pub fn webhook(addresses: UrlPolicy) -> impl FnOnce(&Json) -> Result<WebhookUrl, Problem> {
    text(move |url| addresses.webhook(url))
}

/// A URL that a person is sent to.
pub fn page(addresses: UrlPolicy) -> impl FnOnce(&Json) -> Result<HttpUrl, Problem> {
    text(move |url| addresses.page(url))
}
