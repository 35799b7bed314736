//! Secrets seen by a test, which must not be logged: keys, tokens, intents, credentials, personal data and files.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// Shortest secret; shorter texts occur in logs by chance.
const SECRET_CHARS_MIN: usize = 8;

/// Members of bodies with personal data, in both spellings.
const PERSONAL: &[&str] = &[
    "name",
    "signerName",
    "signer_name",
    "rejectReason",
    "remarks",
    "emailID",
    "email_id",
    "maskedAccountNumber",
    "uri",
    "dob",
    "pan",
    "gstin",
    "account_number",
    "accountNumber",
    "epic_number",
    "epicNumber",
    "name_as_per_pan",
    "nameAsPerPan",
    "date_of_birth",
    "dateOfBirth",
    "consent_text",
    "consentText",
    "responseUrl",
    "response_url",
    "webhookUrl",
    "webhook_url",
    "signingUrl",
    "requestUrl",
];

/// Members that hold a file. A log would contain at most the beginning of one.
const FILES: &[&str] = &["content", "dataPdf", "base64FileData", "base64_file_data"];
/// Characters at the beginning of a file that identify it.
const FILE_PREFIX_CHARS: usize = 24;

/// Texts that must not appear in any log line.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<Mutex<BTreeSet<String>>>);

impl Secrets {
    /// Registers a text, unless it is too short.
    pub fn watch_for(&self, text: &str) {
        if text.len() >= SECRET_CHARS_MIN {
            self.0.lock().unwrap().insert(text.to_owned());
        }
    }

    /// Registers the personal data of a body, and the beginning of every file.
    pub fn watch_for_personal_data(&self, body: &Value) {
        match body {
            Value::Object(members) => {
                for (name, value) in members {
                    match value.as_str() {
                        Some(text) if FILES.contains(&&**name) => {
                            self.watch_for(&text[..text.len().min(FILE_PREFIX_CHARS)])
                        }
                        Some(text) if PERSONAL.contains(&&**name) => self.watch_for(text),
                        _ => self.watch_for_personal_data(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.watch_for_personal_data(item)),
            _ => {}
        }
    }

    /// Fails if a secret appears in a line.
    pub fn assert_absent_from(&self, line: &str) {
        for secret in self.0.lock().unwrap().iter() {
            // The secret itself must not appear in the test's output either.
            assert!(!line.contains(secret.as_str()), "a secret of {} characters is in the log", secret.len());
        }
    }
}
