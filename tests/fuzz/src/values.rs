//! Values with a text form, and JSON: a value is the same after writing and reading.

use sakshi_domain::claims::Claim;
use sakshi_domain::flow::dates::{Day, LocalTime};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::{AppId, ClientId, EventId, KeyId, OperatorId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::limits::{FOREIGN_ID_CHARS_MAX, TEXT_CHARS_MAX, URL_CHARS_MAX};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::time_zone::TimeZone;
use sakshi_wire::PageUrl;
use sakshi_wire::json::{Json, JsonRefusal, ValuesLeft, read};
use serde_json::Value;

/// The identifiers that share one rule for parsing and display.
macro_rules! identifiers {
    ($text:expr, $($id:ty),+) => {
        $(if let Ok(id) = $text.parse::<$id>() {
            assert_eq!(id.to_string().parse::<$id>().ok(), Some(id.clone()));
        })+
    };
}

/// Target: a text, read as each kind of value.
pub(crate) fn values(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    identifiers!(text, TxnId, FlowId, EventId);
    for is_read in [
        text.parse::<AppId>().is_ok(),
        text.parse::<ClientId>().is_ok(),
        text.parse::<KeyId>().is_ok(),
        text.parse::<OperatorId>().is_ok(),
    ] {
        assert!(
            !is_read
                || (1..=64).contains(&text.len())
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        );
    }
    if let Ok(client) = text.parse::<ClientId>() {
        assert!(client.partition().number() < 64);
    }
    if let Some(at) = Timestamp::parse_iso8601(text) {
        assert_eq!(Timestamp::parse_iso8601(&at.to_string()), Some(at));
        let _ = TimeZone::INDIA.local(at);
    }
    if let Ok(url) = HttpUrl::parse(text, Schemes::HttpAndHttps) {
        assert!(
            url.as_str().len() <= URL_CHARS_MAX
                && HttpUrl::parse(url.as_str(), Schemes::HttpAndHttps).as_ref() == Ok(&url)
        );
        let origin = url.origin();
        assert!(url.as_str().starts_with(&origin) && !origin.contains('@'));
        assert_eq!(url::Url::parse(url.as_str()).unwrap().origin().ascii_serialization(), origin);
    }
    if let Ok(page) = PageUrl::parse(text) {
        assert_eq!(page.as_str(), text);
    }
    assert!(RequestId::parse(text).is_ok_and(|id| id.as_str() == text) || RequestId::parse(text).is_err());
    assert!(text.parse::<ForeignId>().is_err() || (1..=FOREIGN_ID_CHARS_MAX).contains(&text.chars().count()));
    assert!(
        Text::parse(text).is_ok_and(|text| text.as_str().chars().count() <= TEXT_CHARS_MAX)
            || Text::parse(text).is_err()
    );
    let _ = (Day::parse(text), LocalTime::parse(text));
    if let Ok(zone) = TimeZone::parse(text) {
        assert_eq!(TimeZone::parse(zone.name()), Ok(zone));
    }
    if let Ok(language) = Language::parse(text) {
        assert_eq!(Language::from_code(u64::from(language.code())), Ok(language));
    }
    if let Some(claim) = Claim::from_name(text) {
        assert_eq!(claim.name(), text);
    }
}

/// Target: JSON. The first byte is the maximum depth, the second the maximum number of values.
pub(crate) fn json(data: &[u8]) {
    let Some((&[depth_max, count_max], text)) = data.split_first_chunk::<2>() else { return };
    let (depth_max, count_max) = (usize::from(depth_max % 32), usize::from(count_max.max(1)));
    let values_left = || ValuesLeft::new(count_max);
    let (strict, tolerant) =
        (read::<Value>(text, depth_max, &values_left()), read::<Json>(text, depth_max, &values_left()));
    match (&strict, &tolerant) {
        (Ok(value), Ok(tree)) => {
            assert!(depth_of(value) <= depth_max && count_values(value) <= count_max);
            assert_eq!(serde_json::from_slice::<Value>(text).ok().as_ref(), Some(value), "another reader differs");
            assert_eq!(tree.clone().into_value(depth_max).as_ref(), Ok(value));
            assert!(Json::from(value.clone()) == *tree || has_many_members(value));
            let written = serde_json::to_vec(value).unwrap();
            assert_eq!(read::<Value>(&written, depth_max, &values_left()).as_ref(), Ok(value));
        }
        (Err(error), Ok(tree)) => {
            assert_eq!(error.refusal, JsonRefusal::RepeatedName, "the readers differ in more than repeated names");
            assert!(tree.clone().into_value(depth_max).is_err());
        }
        (Ok(_), Err(_)) => panic!("the stricter reader accepts more"),
        (Err(error), Err(_)) => assert!(error.line >= 1),
    }
}

/// Returns the number of nested arrays and objects.
fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(members) => members.values().map(count_values).sum(),
        _ => 0,
    }
}

/// Returns true if an object has several members, which one tree sorts and the other keeps in order.
fn has_many_members(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_many_members),
        Value::Object(members) => members.len() > 1 || members.values().any(has_many_members),
        _ => false,
    }
}
