//! The document locker upstream: the person shares all documents, one of them cannot be fetched, or the
//! person declines.

use sakshi_domain::claims::Claim;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::LockerStatus;
use sakshi_domain::flow::text::Text;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::DOCUMENTS_MAX;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::FlowError;
use super::order::{Order, checked, declaration, list, text};
use super::reporter::PendingReport;
use super::{pdf, person};
use crate::residents::Resident;

/// Characters of a document's title.
const TITLE_CHARS_MAX: usize = 200;
/// The outcomes that a script or form may ask for.
const OUTCOMES: [(&str, LockerAction); 4] = [
    ("fetched", LockerAction::Share),
    ("partly", LockerAction::SharePartly),
    ("pending", LockerAction::Begin),
    ("failed", LockerAction::Decline),
];

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LockerDraft {
    docs: Option<Vec<String>>,
    consent_text: Option<String>,
}

/// The documents that a person is asked for.
pub(super) struct Locker {
    pub(super) docs: Vec<Text>,
    pub(super) declaration: String,
    state: LockerState,
}

enum LockerState {
    Asked,
    /// The first document was fetched; the resident's others are pending.
    Begun {
        resident: &'static Resident,
        at: Timestamp,
    },
    Over(&'static str),
}

/// The person's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockerAction {
    /// Shares all documents.
    Share,
    /// Shares all documents, but the last cannot be fetched.
    SharePartly,
    /// Shares all documents; the first is fetched now, the others later.
    Begin,
    /// Shares nothing.
    Decline,
}

impl LockerAction {
    /// Reads the name from a script or form.
    pub(super) fn named(word: &str) -> Result<Self, FlowError> {
        let found = OUTCOMES.iter().find(|(name, _)| *name == word).map(|(_, action)| *action);
        found.ok_or_else(|| FlowError::UnknownOutcome(OUTCOMES.map(|(name, _)| name).join(", ")))
    }
}

impl LockerDraft {
    /// Checks the members of the order besides its ids.
    pub(super) fn check(self, mut invalid: Invalid) -> Result<Locker, Invalid> {
        let docs = list(&mut invalid, "docs", self.docs, DOCUMENTS_MAX);
        let docs: Option<Vec<Text>> = docs
            .iter()
            .enumerate()
            .map(|(index, doc)| text(&mut invalid, &format!("docs[{index}]"), Some(doc)))
            .collect();
        let declaration = declaration(&mut invalid, self.consent_text);
        let locker = || Some(Locker { docs: docs?, declaration: declaration?, state: LockerState::Asked });
        checked(invalid, locker())
    }
}

impl Locker {
    pub(super) const fn summary(&self) -> (&'static str, bool) {
        match self.state {
            LockerState::Asked => ("waits for the person", true),
            LockerState::Begun { .. } => ("the first document has come", true),
            LockerState::Over(how) => (how, false),
        }
    }

    pub(super) fn play(&mut self, order: &Order, outcome: &str, now: Timestamp) -> Result<PendingReport, FlowError> {
        self.act(order, LockerAction::named(outcome)?, person::adult_at(0, now)?, now)
    }

    /// Carries out the person's decision.
    pub(super) fn act(
        &mut self,
        order: &Order,
        action: LockerAction,
        resident: &'static Resident,
        now: Timestamp,
    ) -> Result<PendingReport, FlowError> {
        let begun = match self.state {
            LockerState::Over(how) => return Err(FlowError::Over(how)),
            LockerState::Begun { resident, at } => Some((resident, at)),
            LockerState::Asked => None,
        };
        if action != LockerAction::Decline && action != LockerAction::Share && self.docs.len() < 2 {
            return Err(FlowError::NotNow("Only one document was asked for, so it comes or it does not."));
        }
        // After the first document, the others belong to the same person.
        let (resident, first) = begun.unwrap_or((resident, now));
        let fetched = |index: usize| self.document(index, resident, if index == 0 { first } else { now });
        let missing = |index: usize, status| json!({"docType": self.docs.get(index), "status": status});
        let all = 0..self.docs.len();
        let last = all.end.saturating_sub(1);
        let (message, docs, state): (&str, Vec<Value>, LockerState) = match action {
            LockerAction::Share => {
                ("Documents fetched", all.map(fetched).collect(), LockerState::Over("every document was fetched"))
            }
            LockerAction::SharePartly => {
                let docs =
                    all.map(|index| if index == last { missing(index, LockerStatus::Failed) } else { fetched(index) });
                ("Documents fetched in part", docs.collect(), LockerState::Over("one document could not be fetched"))
            }
            LockerAction::Begin => {
                let docs =
                    all.map(|index| if index == 0 { fetched(index) } else { missing(index, LockerStatus::Pending) });
                ("Documents are being fetched", docs.collect(), LockerState::Begun { resident, at: first })
            }
            LockerAction::Decline => {
                ("The user declined to share documents", Vec::new(), LockerState::Over("the person declined"))
            }
        };
        let (success, status) = if docs.is_empty() { (false, 403) } else { (true, 200) };
        let payload = json!({
            "success": success,
            "statusCode": status,
            "message": message,
            "request_id": order.request_id,
            "data": {"transactionId": order.id, "docs": docs},
        });
        self.state = state;
        Ok(PendingReport::new(order, ReportKind::DocLocker, message, payload))
    }

    fn document(&self, index: usize, resident: &Resident, at: Timestamp) -> Value {
        let kind = self.docs.get(index).map_or("", Text::as_str);
        let title = title(kind);
        let born = resident.claim(Claim::Dob, at);
        let lines = [format!("{title} (sandbox specimen, not a document)"), format!("Holder: {}", resident.name)];
        let pdf = pdf::page(&lines);
        let code: String =
            kind.chars().filter(char::is_ascii_alphanumeric).take(12).collect::<String>().to_ascii_uppercase();
        let code = if code.is_empty() { "DOCUMENT".to_owned() } else { code };
        json!({
            "docType": kind,
            "status": LockerStatus::Fetched,
            "fetchedAt": at,
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
            "details": {"name": resident.name, "dob": born, "documentNumber": format!("DEMO{index:07}")},
        })
    }
}

/// Formats a kind such as `driving_licence` as a title.
fn title(kind: &str) -> String {
    let words = kind.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    };
    let title: String = words.map(capital).collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS_MAX).collect();
    if title.is_empty() { "Document".to_owned() } else { title }
}
