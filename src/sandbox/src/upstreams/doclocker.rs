//! The document locker upstream: the person shares all documents, a document cannot be fetched, or the person declines.

use sakshi_domain::claims::Claim;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::LockerStatus;
use sakshi_domain::flow::text::Text;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::DOCUMENTS_MAX;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::Summary;
use super::error::FlowError;
use super::order::{Order, check_list, parse_consent_text, parse_text, value_or_problems};
use super::reporter::PendingReport;
use super::{pdf, person};
use crate::residents::Resident;

/// Maximum characters of a document's title.
const TITLE_CHARS_MAX: usize = 200;
/// Outcomes that a script or a form can choose.
const OUTCOMES: [(&str, LockerAction); 4] = [
    ("fetched", LockerAction::Share),
    ("partly", LockerAction::SharePartly),
    ("pending", LockerAction::ShareFirst),
    ("failed", LockerAction::Decline),
];

/// The members of an order for documents, as received.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LockerDraft {
    docs: Option<Vec<String>>,
    consent_text: Option<String>,
}

/// An order for a person's documents.
pub(super) struct Locker {
    pub(super) docs: Vec<Text>,
    pub(super) consent_text: String,
    state: LockerState,
}

enum LockerState {
    /// The person has not decided.
    Requested,
    /// The resident's first document was fetched; the other documents are pending.
    Started { resident: &'static Resident, at: Timestamp },
    /// No decision is left; the text says why.
    Ended(&'static str),
}

/// The action of the person who owns the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockerAction {
    /// Shares all documents.
    Share,
    /// Shares all documents, but the last cannot be fetched.
    SharePartly,
    /// Shares all documents; the first document is fetched now, the others later.
    ShareFirst,
    /// Shares nothing.
    Decline,
}

impl LockerAction {
    /// Parses the name in a script or a form.
    pub(super) fn from_name(name: &str) -> Result<Self, FlowError> {
        let action = OUTCOMES.iter().find(|(outcome, _)| *outcome == name).map(|(_, action)| *action);
        action.ok_or_else(|| FlowError::UnknownOutcome(OUTCOMES.map(|(name, _)| name).join(", ")))
    }
}

impl LockerDraft {
    /// Parses the members of the order, except its ids.
    pub(super) fn parse(self, mut invalid: Invalid) -> Result<Locker, Invalid> {
        let docs = check_list(&mut invalid, "docs", self.docs, DOCUMENTS_MAX);
        let docs: Option<Vec<Text>> = docs
            .iter()
            .enumerate()
            .map(|(index, doc)| parse_text(&mut invalid, &format!("docs[{index}]"), Some(doc)))
            .collect();
        let consent_text = parse_consent_text(&mut invalid, self.consent_text);
        let locker = || Some(Locker { docs: docs?, consent_text: consent_text?, state: LockerState::Requested });
        value_or_problems(invalid, locker())
    }
}

impl Locker {
    pub(super) const fn summary(&self) -> Summary {
        match self.state {
            LockerState::Requested => Summary::open("waits for the person"),
            LockerState::Started { .. } => Summary::open("the first document has come"),
            LockerState::Ended(summary) => Summary::ended(summary),
        }
    }

    /// Carries out the outcome that a script names, as the first adult resident.
    pub(super) fn play(&mut self, order: &Order, outcome: &str, now: Timestamp) -> Result<PendingReport, FlowError> {
        self.decide(order, LockerAction::from_name(outcome)?, person::adult_at(0, now)?, now)
    }

    /// Carries out the person's decision.
    pub(super) fn decide(
        &mut self,
        order: &Order,
        action: LockerAction,
        resident: &'static Resident,
        now: Timestamp,
    ) -> Result<PendingReport, FlowError> {
        let started = match self.state {
            LockerState::Ended(summary) => return Err(FlowError::Ended(summary)),
            LockerState::Started { resident, at } => Some((resident, at)),
            LockerState::Requested => None,
        };
        if action != LockerAction::Decline && action != LockerAction::Share && self.docs.len() < 2 {
            return Err(FlowError::NotNow(
                "Only one document was requested, so no part of the documents can be shared.",
            ));
        }
        // All documents belong to the person of the first document.
        let (resident, first_fetched_at) = started.unwrap_or((resident, now));
        let fetched_at = |index: usize| if index == 0 { first_fetched_at } else { now };
        let fetched = |index: usize| self.build_document(index, resident, fetched_at(index));
        let missing = |index: usize, status| json!({"docType": self.docs.get(index), "status": status});
        let indices = 0..self.docs.len();
        let last = indices.end.saturating_sub(1);
        let (message, docs, state): (&str, Vec<Value>, LockerState) = match action {
            LockerAction::Share => {
                ("Documents fetched", indices.map(fetched).collect(), LockerState::Ended("every document was fetched"))
            }
            LockerAction::SharePartly => {
                let docs = indices
                    .map(|index| if index == last { missing(index, LockerStatus::Failed) } else { fetched(index) });
                ("Documents fetched in part", docs.collect(), LockerState::Ended("one document could not be fetched"))
            }
            LockerAction::ShareFirst => {
                let docs = indices
                    .map(|index| if index == 0 { fetched(index) } else { missing(index, LockerStatus::Pending) });
                ("Documents are being fetched", docs.collect(), LockerState::Started { resident, at: first_fetched_at })
            }
            LockerAction::Decline => {
                ("The user declined to share documents", Vec::new(), LockerState::Ended("the person declined"))
            }
        };
        let (success, status_code) = if docs.is_empty() { (false, 403) } else { (true, 200) };
        let payload = json!({
            "success": success,
            "statusCode": status_code,
            "message": message,
            "request_id": order.request_id,
            "data": {"transactionId": order.id, "docs": docs},
        });
        self.state = state;
        Ok(PendingReport::new(order, ReportKind::DocLocker, message, payload))
    }

    /// Builds the requested document at an index: a PDF that names the resident, with its description.
    fn build_document(&self, index: usize, resident: &Resident, fetched_at: Timestamp) -> Value {
        let kind = self.docs.get(index).map_or("", Text::as_str);
        let title = format_title(kind);
        let date_of_birth = resident.claim(Claim::Dob, fetched_at);
        let lines = [format!("{title} (sandbox specimen, not a document)"), format!("Holder: {}", resident.name)];
        let pdf = pdf::build_page(&lines);
        let code: String =
            kind.chars().filter(char::is_ascii_alphanumeric).take(12).collect::<String>().to_ascii_uppercase();
        let code = if code.is_empty() { "DOCUMENT".to_owned() } else { code };
        json!({
            "docType": kind,
            "status": LockerStatus::Fetched,
            "fetchedAt": fetched_at,
            "issued": {
                "name": title,
                "type": "file",
                // The decoded length: Base64 has four characters for three bytes, with padding.
                "size": (pdf.len() / 4 * 3 - pdf.bytes().rev().take_while(|byte| *byte == b'=').count()).to_string(),
                "date": "2019-05-02",
                "uri": format!("in.example.sandbox-{code}-DEMO{index:07}"),
                "doctype": code,
                "issuer": "Example Department of Records",
            },
            "dataPdf": pdf,
            "details": {"name": resident.name, "dob": date_of_birth, "documentNumber": format!("DEMO{index:07}")},
        })
    }
}

/// Formats a document kind such as `driving_licence` as a title.
fn format_title(kind: &str) -> String {
    let words = kind.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    let capitalise = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    };
    let title: String = words.map(capitalise).collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS_MAX).collect();
    if title.is_empty() { "Document".to_owned() } else { title }
}
