//! The JSON format: `{"txn":…,"response":…,"errCode":…,"errInfo":…,"dateTime":…}`.

use sakshi_domain::limits::{CALLBACK_VALUES_MAX, CREDENTIAL_DEPTH_MAX};
use sakshi_wire::json::{JsonRefusal, ValuesLeft, read_object};
use serde_json::Value;

use super::message::{CallbackFault, Fields};

/// Reads the fields of a JSON callback.
pub(super) fn read(body: &[u8]) -> Result<Fields, CallbackFault> {
    let object = read_object(body, CREDENTIAL_DEPTH_MAX, &ValuesLeft::new(CALLBACK_VALUES_MAX));
    let mut object = object.map_err(|refusal| match refusal {
        JsonRefusal::Malformed => CallbackFault::Malformed,
        JsonRefusal::TooDeep | JsonRefusal::TooManyValues => CallbackFault::Structure,
        JsonRefusal::RepeatedName => CallbackFault::Repeated,
    })?;
    let mut take_text = |name| object.remove(name).map_or(Ok(None), read_text);
    Ok(Fields {
        txn: take_text("txn")?,
        credential: take_text("response")?,
        code: take_text("errCode")?,
        message: take_text("errInfo")?,
    })
}

/// Reads a string, or an integer as a string (`errCode` may be either). Null and blank mean absent.
fn read_text(value: Value) -> Result<Option<String>, CallbackFault> {
    match value {
        Value::Null => Ok(None),
        Value::Number(number) if !number.is_f64() => Ok(Some(number.to_string())),
        Value::String(text) => Ok(match text.trim() {
            "" => None,
            trimmed if trimmed.len() == text.len() => Some(text),
            trimmed => Some(trimmed.to_owned()),
        }),
        _ => Err(CallbackFault::Malformed),
    }
}
