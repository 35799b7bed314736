//! The wealth-data upstream: a person decides on a consent for two accounts, its status changes, and data is sent.
//!
//! Consent, data and historical fetches are independent, so a script may send data before the person has decided. Ids
//! are generated with the order, and the data does not depend on time, so that a repeated report is identical.

use chrono::{DateTime, Days, NaiveDate, Utc};
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::{ConsentStatus, DataType, FiDataStatus, HistoricalStatus};
use sakshi_domain::flow::text::ForeignId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::FlowError;
use super::order::{Order, or_problems, parse_consent_text};
use super::reporter::PendingReport;

/// Validity of a consent in days.
const CONSENT_DAYS: u64 = 365;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WealthDraft {
    consent_text: Option<String>,
}

/// An account that every person of the sandbox has.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) id: &'static str,
    pub(super) fi_type: &'static str,
    pub(super) fip_id: &'static str,
    pub(super) masked_number: &'static str,
    pub(super) about: &'static str,
    data_origin: &'static str,
}

/// The accounts of every person.
pub(super) const ACCOUNTS: [Account; 2] = [
    Account {
        id: "account-1",
        fi_type: "DEPOSIT",
        fip_id: "example-bank",
        masked_number: "XX1234",
        about: "Savings account at Example Bank",
        data_origin: "ACCOUNT_AGGREGATOR",
    },
    Account {
        id: "account-2",
        fi_type: "MUTUAL_FUNDS",
        fip_id: "example-funds",
        masked_number: "XX5678",
        about: "Fund folio at Example Funds",
        data_origin: "FUND_REGISTRAR",
    },
];

/// A consent, and the ids of its data.
pub(super) struct Wealth {
    pub(super) consent_text: String,
    pub(super) handle: ForeignId,
    consent: ForeignId,
    user_session: ForeignId,
    fetch_session: ForeignId,
    /// Ids of the fetches of raw and analysed data, for each account.
    fetches: [[ForeignId; 2]; 2],
    failing_fetch: ForeignId,
    state: ConsentState,
}

#[derive(Clone, Copy)]
enum ConsentState {
    Requested,
    Active { since: Timestamp, ends_soon: bool },
    Ended { since: Option<Timestamp>, status: ConsentStatus },
}

/// A change of the consent, or a delivery of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WealthAction {
    /// The consent changes to a status.
    SetStatus(ConsentStatus),
    /// Data of a type is ready, for the account with an index.
    Data(DataType, usize),
    /// The data could not be fetched.
    DataFailed,
    /// A historical fetch has ended with a status.
    Historical(HistoricalStatus),
}

/// Outcome for scripts: accepts the consent, and sends both types of data and a historical fetch.
const ALL: &str = "all";
/// The other outcomes that a script or a form can choose.
const OUTCOMES: [(&str, WealthAction); 11] = [
    ("accepted", WealthAction::SetStatus(ConsentStatus::Accepted)),
    ("rejected", WealthAction::SetStatus(ConsentStatus::Rejected)),
    ("revoked", WealthAction::SetStatus(ConsentStatus::Revoked)),
    ("expiring-soon", WealthAction::SetStatus(ConsentStatus::ExpiringSoon)),
    ("expired", WealthAction::SetStatus(ConsentStatus::Expired)),
    ("raw", WealthAction::Data(DataType::Raw, 0)),
    ("analysed", WealthAction::Data(DataType::Analysed, 0)),
    ("data-failed", WealthAction::DataFailed),
    ("historical", WealthAction::Historical(HistoricalStatus::Success)),
    ("historical-partial", WealthAction::Historical(HistoricalStatus::PartialSuccess)),
    ("historical-failed", WealthAction::Historical(HistoricalStatus::Failed)),
];

impl WealthAction {
    /// Parses the name in a script or a form.
    pub(super) fn from_name(word: &str) -> Result<Self, FlowError> {
        let action = OUTCOMES.iter().find(|(name, _)| *name == word).map(|(_, action)| *action);
        action.ok_or_else(|| FlowError::UnknownOutcome(format!("{}, {ALL}", OUTCOMES.map(|(name, _)| name).join(", "))))
    }
}

impl WealthDraft {
    /// Parses the members of the order, except its ids.
    pub(super) fn check(self, mut invalid: Invalid) -> Result<Wealth, Invalid> {
        let consent_text = parse_consent_text(&mut invalid, self.consent_text);
        let [handle, consent, user_session, fetch_session, failing_fetch] = [(); 5].map(|()| ForeignId::mint());
        let fetches = [[(); 2]; 2].map(|account| account.map(|()| ForeignId::mint()));
        let wealth = |consent_text| Wealth {
            consent_text,
            handle,
            consent,
            user_session,
            fetch_session,
            fetches,
            failing_fetch,
            state: ConsentState::Requested,
        };
        or_problems(invalid, consent_text.map(wealth))
    }
}

impl Wealth {
    pub(super) const fn summary(&self) -> (&'static str, bool) {
        match self.state {
            ConsentState::Requested => ("waits for the person", true),
            ConsentState::Active { ends_soon: false, .. } => ("the consent holds", true),
            ConsentState::Active { ends_soon: true, .. } => ("the consent ends soon", true),
            ConsentState::Ended { status: ConsentStatus::Rejected, .. } => ("the person declined", false),
            ConsentState::Ended { status: ConsentStatus::Revoked, .. } => ("the consent was revoked", false),
            ConsentState::Ended { .. } => ("the consent has expired", false),
        }
    }

    /// Returns true from the person's agreement to the end of the consent.
    pub(super) const fn is_active(&self) -> bool {
        matches!(self.state, ConsentState::Active { .. })
    }

    pub(super) fn play(
        &mut self,
        order: &Order,
        outcome: &str,
        now: Timestamp,
    ) -> Result<Vec<PendingReport>, FlowError> {
        use ConsentStatus::{Accepted, ExpiringSoon, Revoked};
        let is_requested = matches!(self.state, ConsentState::Requested);
        let actions: Vec<WealthAction> = match outcome {
            ALL => {
                let parts = [
                    WealthAction::Data(DataType::Raw, 0),
                    WealthAction::Data(DataType::Analysed, 0),
                    WealthAction::Historical(HistoricalStatus::Success),
                ];
                is_requested.then_some(WealthAction::SetStatus(Accepted)).into_iter().chain(parts).collect()
            }
            word => match WealthAction::from_name(word)? {
                action @ WealthAction::SetStatus(Revoked | ExpiringSoon) if is_requested => {
                    vec![WealthAction::SetStatus(Accepted), action]
                }
                action => vec![action],
            },
        };
        actions.into_iter().map(|action| self.act(order, action, now)).collect()
    }

    /// Carries out an action.
    pub(super) fn act(
        &mut self,
        order: &Order,
        action: WealthAction,
        now: Timestamp,
    ) -> Result<PendingReport, FlowError> {
        let (summary, is_open) = self.summary();
        if !is_open {
            return Err(FlowError::Ended(summary));
        }
        match action {
            WealthAction::SetStatus(status) => self.set_status(order, status, now),
            WealthAction::Data(data_type, account) => self.data_report(order, data_type, account),
            WealthAction::DataFailed => Ok(self.failed_data_report(order)),
            WealthAction::Historical(status) => Ok(self.historical_report(order, status)),
        }
    }

    fn set_status(&mut self, order: &Order, status: ConsentStatus, now: Timestamp) -> Result<PendingReport, FlowError> {
        use ConsentStatus::{Accepted, Expired, ExpiringSoon, Rejected, Revoked};
        self.state = match (self.state, status) {
            (ConsentState::Requested, Accepted) => ConsentState::Active { since: now, ends_soon: false },
            (ConsentState::Requested, Rejected | Expired) => ConsentState::Ended { since: None, status },
            (ConsentState::Requested, Revoked | ExpiringSoon) => {
                return Err(FlowError::NotNow("The person has not agreed yet."));
            }
            (ConsentState::Active { since, ends_soon: false }, ExpiringSoon) => {
                ConsentState::Active { since, ends_soon: true }
            }
            (ConsentState::Active { .. }, ExpiringSoon) => {
                return Err(FlowError::NotNow("The service already knows that the consent ends soon."));
            }
            (ConsentState::Active { since, .. }, Revoked | Expired) => {
                ConsentState::Ended { since: Some(since), status }
            }
            (ConsentState::Active { .. }, Accepted | Rejected) => {
                return Err(FlowError::NotNow("The person has agreed already."));
            }
            (ConsentState::Ended { .. }, _) => return Err(FlowError::Ended(self.summary().0)),
        };
        let (since, decided) = match self.state {
            ConsentState::Active { since, .. } => (Some(since), status == Accepted),
            ConsentState::Ended { since, .. } => (since, matches!(status, Rejected | Revoked)),
            ConsentState::Requested => (None, false),
        };
        let accounts = if since.is_some() { ACCOUNTS.iter().map(Account::json).collect() } else { Vec::new() };
        let payload = json!({
            "uniqueIdentifier": order.id,
            "consentHandle": self.handle,
            "status": status,
            "consentId": self.consent,
            "consentStartDate": since.map(|since| format_days_after(since, 0)),
            "consentEndDate": since.map(|since| format_days_after(since, CONSENT_DAYS)),
            "accounts": accounts,
            "userSessionId": decided.then_some(&self.user_session),
        });
        Ok(PendingReport::new(order, ReportKind::WealthConsent, format!("consent: {status}"), payload))
    }

    fn data_report(&self, order: &Order, data_type: DataType, account: usize) -> Result<PendingReport, FlowError> {
        let (Some(account), Some([raw, analysed])) = (ACCOUNTS.get(account), self.fetches.get(account)) else {
            return Err(FlowError::MalformedBody);
        };
        // The deduplication key of wealth data is `txnId`, so each type of data has its own.
        let fetch = match data_type {
            DataType::Raw => raw,
            DataType::Analysed => analysed,
        };
        let payload = json!({
            "uniqueIdentifier": order.id,
            "consentId": self.consent,
            "consentHandle": self.handle,
            "sessionId": self.fetch_session,
            "accountId": account.id,
            "fiType": account.fi_type,
            "fiDataStatus": FiDataStatus::Success,
            "dataType": data_type,
            "dataOrigin": account.data_origin,
            "fipId": account.fip_id,
            "desc": account.about,
            "fiRequestTrigger": "CONSENT",
            "maskedAccountNumber": account.masked_number,
            "txnId": fetch,
        });
        Ok(PendingReport::new(order, ReportKind::WealthData, format!("{data_type} data of {}", account.id), payload))
    }

    fn failed_data_report(&self, order: &Order) -> PendingReport {
        let payload = json!({
            "uniqueIdentifier": order.id,
            "consentId": self.consent,
            "consentHandle": self.handle,
            "fiDataStatus": FiDataStatus::Failed,
            "dataType": DataType::Raw,
            "dataOrigin": "ACCOUNT_AGGREGATOR",
            "errMsg": "The provider did not answer",
            "errStage": "FI_REQUEST",
            "txnId": self.failing_fetch,
        });
        PendingReport::new(order, ReportKind::WealthData, "data failed", payload)
    }

    /// Builds the report of a historical fetch of the second account. Each status has a different range of days,
    /// because a fetch ends once.
    fn historical_report(&self, order: &Order, status: HistoricalStatus) -> PendingReport {
        let [_, account] = &ACCOUNTS;
        let years = match status {
            HistoricalStatus::Success => 1,
            HistoricalStatus::PartialSuccess => 3,
            HistoricalStatus::Failed => 5,
        };
        let to = date_after(order.arrived_at, 0);
        let payload = json!({
            "uniqueIdentifier": order.id,
            "accountId": account.id,
            "consentId": self.consent,
            "status": status,
            "fromDate": to.checked_sub_days(Days::new(years * 365)).unwrap_or(to).to_string(),
            "toDate": to.to_string(),
            "fiType": account.fi_type,
            "consentHandleId": self.handle,
            "maskedAccountNumber": account.masked_number,
            "fipId": account.fip_id,
        });
        PendingReport::new(order, ReportKind::WealthHistorical, format!("{status}"), payload)
    }
}

impl Account {
    fn json(&self) -> Value {
        json!({"accountId": self.id, "fiType": self.fi_type, "fipId": self.fip_id,
            "maskedAccountNumber": self.masked_number})
    }
}

fn days_after(at: Timestamp, days: u64) -> DateTime<Utc> {
    let at = DateTime::from_timestamp_millis(at.millis()).unwrap_or_default();
    at.checked_add_days(Days::new(days)).unwrap_or(at)
}

fn date_after(at: Timestamp, days: u64) -> NaiveDate {
    days_after(at, days).date_naive()
}

fn format_days_after(at: Timestamp, days: u64) -> String {
    days_after(at, days).format("%Y-%m-%d %H:%M:%S").to_string()
}
