//! Credential status: the place where the state of a credential is published, and the issuer's signed answer from there
//! (authority protocol, section 8).
//!
//! There are two forms, which share the rules of [`Verifier::read_status`]:
//!
//! | `status` of the credential | Answer |
//! |---|---|
//! | a URL | a JWT about this credential, with a word for its state |
//! | `{"status_list": {"idx", "uri"}}` | a Token Status List (IETF `draft-ietf-oauth-status-list`) of many states |

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::limits::{STATUS_ANSWER_BYTES_MAX, STATUS_VALUES_MAX, URL_CHARS_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_wire::json::{ValuesLeft, read_object};
use serde_json::{Map, Value};
use url::Url;

use super::jose;
use super::refusal::CredentialRefusal;
use super::segments::Jws;
use super::status_list::StatusList;
use super::validity;
use super::verifier::Verifier;

/// Maximum nesting depth of a JSON object around an answer.
const DEPTH_MAX: usize = 4;

/// The `status` of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialStatus {
    /// The credential has none.
    Absent,
    /// The status has none of the known forms.
    Malformed,
    /// The place where the state is published.
    At(StatusReference),
}

/// The place where the state of one credential is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReference {
    /// The URL from which the answer is fetched.
    pub url: Url,
    /// The URL as the credential spells it.
    spelled_url: String,
    position: Position,
    /// The `iss` of the credential, whose keys sign the answer.
    issuer: String,
}

/// The position of a credential's state within an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    /// The answer is about this credential alone, which has this `id`.
    Single { credential_id: Option<String> },
    /// The answer is a list, with the state at this index.
    List { index: u64 },
}

/// The state of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialState {
    /// The credential may be used.
    Valid,
    /// The credential was revoked permanently.
    Revoked,
    /// The credential may not be used for now.
    Suspended,
    /// Any other state. The credential may not be used.
    NotValid,
}

impl CredentialState {
    /// Returns the refusal of a credential in this state; `None` if it is valid.
    #[must_use]
    pub const fn refusal(self) -> Option<CredentialRefusal> {
        match self {
            Self::Valid => None,
            Self::Revoked => Some(CredentialRefusal::Revoked),
            Self::Suspended => Some(CredentialRefusal::Suspended),
            Self::NotValid => Some(CredentialRefusal::StateNotValid),
        }
    }

    /// Reads the word for the state in a JWT about one credential.
    fn from_word(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "valid" | "active" | "issued" => Self::Valid,
            "revoked" => Self::Revoked,
            "suspended" => Self::Suspended,
            _ => Self::NotValid,
        }
    }

    /// Reads a value of a Token Status List (section 7.1 of the draft).
    const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Valid,
            1 => Self::Revoked,
            2 => Self::Suspended,
            _ => Self::NotValid,
        }
    }
}

/// The reason why a status answer cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusFault {
    /// The answer is not a JWS of JSON objects in one of the known forms.
    #[error("the status answer is malformed")]
    Malformed,
    /// The answer is not signed with ES256 by a key of the issuer.
    #[error("the status answer is not signed by the credential's issuer")]
    Unsigned,
    /// The header names a key that the issuer does not have.
    #[error("the status answer names a key that the issuer does not have")]
    KeyUnknown,
    /// The answer is about another credential, or from another issuer.
    #[error("the status answer is about another credential")]
    Foreign,
    /// The `exp` is past, or the `iat` is missing or in the future.
    #[error("the status answer is not valid now")]
    Stale,
}

impl StatusFault {
    /// Returns a stable code for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unsigned => "unsigned",
            Self::KeyUnknown => "key_unknown",
            Self::Foreign => "foreign",
            Self::Stale => "stale",
        }
    }
}

/// A verified status answer.
#[derive(Debug)]
pub struct StatusDocument {
    statement: Statement,
    /// The answer, as a compact JWS.
    pub token: String,
    /// The issuer's key that signed the answer, as a JWK.
    pub key: Arc<Value>,
    /// Time of the verification.
    pub read_at: Timestamp,
    /// The time for which the answer may be used, if it states one.
    pub lifetime: Option<Duration>,
}

/// The issuer's statement in a status answer.
#[derive(Debug)]
enum Statement {
    /// The state of one credential, with the names by which the answer identifies it: its id or its status URL.
    Single { credential_names: Vec<String>, state: CredentialState },
    /// The states of many credentials.
    List(StatusList),
}

impl StatusReference {
    /// Returns a key that identifies the answer. References with the same key share the answer.
    #[must_use]
    pub fn answer_key(&self) -> String {
        let form = match self.position {
            Position::Single { .. } => "own",
            Position::List { .. } => "list",
        };
        format!("{form} {} {}", self.spelled_url, self.issuer)
    }

    /// Returns true if the answer is a list of many credentials.
    #[must_use]
    pub const fn is_list(&self) -> bool {
        matches!(self.position, Position::List { .. })
    }
}

impl CredentialStatus {
    /// Reads `status` of a processed payload.
    pub(super) fn read(payload: &Map<String, Value>, issuer: &str) -> Self {
        let (url, position) = match payload.get("status") {
            None => return Self::Absent,
            Some(Value::String(url)) => {
                let credential_id = payload.get("id").and_then(Value::as_str).map(str::to_owned);
                (Some(url), Position::Single { credential_id })
            }
            Some(status) => {
                let list = status.get("status_list");
                let member = |name: &str| list.and_then(|list| list.get(name));
                let Some(index) = member("idx").and_then(Value::as_u64) else { return Self::Malformed };
                let url = match member("uri") {
                    Some(Value::String(url)) => Some(url),
                    _ => None,
                };
                (url, Position::List { index })
            }
        };
        let spelled_and_parsed = url
            .filter(|url| url.len() <= URL_CHARS_MAX)
            .and_then(|spelled_url| Some((spelled_url, parse_url(spelled_url)?)));
        match spelled_and_parsed {
            Some((spelled_url, url)) => {
                Self::At(StatusReference { url, spelled_url: spelled_url.clone(), position, issuer: issuer.to_owned() })
            }
            None => Self::Malformed,
        }
    }
}

/// Parses an http(s) URL with a host and without credentials.
fn parse_url(text: &str) -> Option<Url> {
    let is_usable = |url: &Url| {
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && is_anonymous
    };
    Url::parse(text).ok().filter(is_usable)
}

impl Verifier {
    /// Reads and verifies the answer from a credential's status URL.
    ///
    /// # Errors
    /// [`StatusFault`] if the answer cannot be used.
    pub fn read_status(
        &self,
        reference: &StatusReference,
        answer: &[u8],
        now: Timestamp,
    ) -> Result<StatusDocument, StatusFault> {
        let malformed = |_| StatusFault::Malformed;
        if answer.len() > STATUS_ANSWER_BYTES_MAX {
            return Err(StatusFault::Malformed);
        }
        let token = compact_jws(answer).ok_or(StatusFault::Malformed)?;
        let jws = Jws::read(&token).map_err(malformed)?;
        let key_id = jose::check_status_header(&jws.header, reference.is_list())?;
        let key = self.verify_status_signature(&jws, key_id, &reference.issuer)?;
        let payload = jws.payload(&ValuesLeft::new(STATUS_VALUES_MAX)).map_err(malformed)?;
        if payload.get("iss").is_some_and(|issuer| issuer.as_str() != Some(&reference.issuer)) {
            return Err(StatusFault::Foreign);
        }
        let lifetime = check_times(&payload, now)?;
        let statement = match &reference.position {
            Position::Single { .. } => read_single_statement(&payload)?,
            Position::List { .. } => read_list_statement(&payload, &reference.spelled_url)?,
        };
        Ok(StatusDocument { statement, token, key, read_at: now, lifetime })
    }
}

impl StatusDocument {
    /// Returns the state of the credential with this reference.
    ///
    /// # Errors
    /// [`StatusFault::Foreign`] if the answer is about another credential; [`StatusFault::Malformed`] if the index is
    /// beyond the list.
    pub fn state(&self, reference: &StatusReference) -> Result<CredentialState, StatusFault> {
        match (&self.statement, &reference.position) {
            (Statement::Single { credential_names, state }, Position::Single { credential_id }) => {
                let is_meant = |name: &String| Some(name) == credential_id.as_ref() || *name == reference.spelled_url;
                if credential_names.iter().any(is_meant) { Ok(*state) } else { Err(StatusFault::Foreign) }
            }
            (Statement::List(list), Position::List { index }) => {
                list.get(*index).map(CredentialState::from_number).ok_or(StatusFault::Malformed)
            }
            _ => Err(StatusFault::Malformed),
        }
    }

    /// Returns the size of the answer in bytes, including a decompressed list.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let list_bytes = match &self.statement {
            Statement::Single { .. } => 0,
            Statement::List(list) => list.bytes(),
        };
        self.token.len() + list_bytes
    }
}

/// Returns the `kid` of an unverified answer.
#[must_use]
pub fn status_key_id(answer: &[u8]) -> Option<String> {
    Jws::read(&compact_jws(answer)?).ok()?.header.get("kid")?.as_str().map(str::to_owned)
}

/// Returns the compact JWS of an answer: the whole body, or the only member of a JSON object.
fn compact_jws(answer: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(answer).ok()?.trim_ascii();
    if !text.starts_with('{') {
        return Some(text.to_owned());
    }
    let object = read_object(text.as_bytes(), DEPTH_MAX, &ValuesLeft::new(STATUS_VALUES_MAX)).ok()?;
    let mut members = object.into_iter();
    match (members.next(), members.next()) {
        (Some((_, Value::String(token))), None) => Some(token),
        _ => None,
    }
}

/// Checks `iat` and `exp`. Returns the time until `exp` or `ttl`, whichever is shorter.
fn check_times(payload: &Map<String, Value>, now: Timestamp) -> Result<Option<Duration>, StatusFault> {
    let read_time = |name: &str| validity::read_time(payload, name).map_err(|_| StatusFault::Malformed);
    let issued_at = read_time("iat")?.ok_or(StatusFault::Stale)?;
    let expiry = read_time("exp")?;
    if validity::is_in_future(issued_at, now) || expiry.is_some_and(|expiry| !expiry.is_after(now.seconds())) {
        return Err(StatusFault::Stale);
    }
    let until_expiry = expiry.map(|expiry| expiry.remaining(now.seconds()));
    let ttl = match payload.get("ttl") {
        None => None,
        Some(ttl) => Some(ttl.as_u64().filter(|ttl| *ttl > 0).map(Duration::from_secs).ok_or(StatusFault::Malformed)?),
    };
    Ok([until_expiry, ttl].into_iter().flatten().min())
}

/// Reads a JWT about one credential: the names of the credential, and its state. If it has two states, the one that is
/// not valid counts.
fn read_single_statement(payload: &Map<String, Value>) -> Result<Statement, StatusFault> {
    let credential_names =
        ["id", "sub", "jti"].iter().filter_map(|name| payload.get(*name)?.as_str()).map(str::to_owned).collect();
    let words: Vec<&Value> = ["status", "state"].iter().filter_map(|name| payload.get(*name)).collect();
    let states = words.iter().map(|word| word.as_str().map(CredentialState::from_word)).collect::<Option<Vec<_>>>();
    let states = states.filter(|states| !states.is_empty()).ok_or(StatusFault::Malformed)?;
    let state = states.into_iter().find(|state| *state != CredentialState::Valid).unwrap_or(CredentialState::Valid);
    Ok(Statement::Single { credential_names, state })
}

/// Reads a Token Status List, whose `sub` is its URL.
fn read_list_statement(payload: &Map<String, Value>, url: &str) -> Result<Statement, StatusFault> {
    if payload.get("sub").and_then(Value::as_str) != Some(url) {
        return Err(StatusFault::Foreign);
    }
    let list = payload.get("status_list").and_then(StatusList::read).ok_or(StatusFault::Malformed)?;
    Ok(Statement::List(list))
}
