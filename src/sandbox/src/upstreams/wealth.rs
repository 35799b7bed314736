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

use super::entry::Summary;
use super::error::FlowError;
use super::order::{Order, parse_consent_text, value_or_problems};
use super::reporter::PendingReport;

/// Validity of a consent in days.
const CONSENT_DAYS: u64 = 365;

/// The members of an order for a consent, as received.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WealthDraft {
    consent_text: Option<String>,
}

/// An account that every person of the sandbox has.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) id: &'static str,
    /// The type of financial information.
    pub(super) fi_type: &'static str,
    /// The id of the provider of the financial information.
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

/// The state of a consent.
#[derive(Clone, Copy)]
enum ConsentState {
    /// The person has not decided.
    Requested,
    /// The person agreed at `since`. `ends_soon` is true once that was reported.
    Active { since: Timestamp, ends_soon: bool },
    /// The consent has ended; `since` is the time of the person's agreement, if there was one.
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
    pub(super) fn from_name(name: &str) -> Result<Self, FlowError> {
        let action = OUTCOMES.iter().find(|(outcome, _)| *outcome == name).map(|(_, action)| *action);
        action.ok_or_else(|| FlowError::UnknownOutcome(format!("{}, {ALL}", OUTCOMES.map(|(name, _)| name).join(", "))))
    }
}

impl WealthDraft {
    /// Parses the members of the order, except its ids.
    pub(super) fn parse(self, mut invalid: Invalid) -> Result<Wealth, Invalid> {
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
        value_or_problems(invalid, consent_text.map(wealth))
    }
}

impl Wealth {
    pub(super) const fn summary(&self) -> Summary {
        match self.state {
            ConsentState::Requested => Summary::open("waits for the person"),
            ConsentState::Active { ends_soon: false, .. } => Summary::open("the consent holds"),
            ConsentState::Active { ends_soon: true, .. } => Summary::open("the consent ends soon"),
            ConsentState::Ended { status: ConsentStatus::Rejected, .. } => Summary::ended("the person declined"),
            ConsentState::Ended { status: ConsentStatus::Revoked, .. } => Summary::ended("the consent was revoked"),
            ConsentState::Ended { .. } => Summary::ended("the consent has expired"),
        }
    }

    /// Returns true from the person's agreement to the end of the consent.
    pub(super) const fn is_active(&self) -> bool {
        matches!(self.state, ConsentState::Active { .. })
    }

    /// Carries out the outcome that a script names. The person agrees first if the outcome needs it.
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
                let reports = [
                    WealthAction::Data(DataType::Raw, 0),
                    WealthAction::Data(DataType::Analysed, 0),
                    WealthAction::Historical(HistoricalStatus::Success),
                ];
                is_requested.then_some(WealthAction::SetStatus(Accepted)).into_iter().chain(reports).collect()
            }
            name => match WealthAction::from_name(name)? {
                action @ WealthAction::SetStatus(Revoked | ExpiringSoon) if is_requested => {
                    vec![WealthAction::SetStatus(Accepted), action]
                }
                action => vec![action],
            },
        };
        actions.into_iter().map(|action| self.carry_out(order, action, now)).collect()
    }

    /// Carries out an action.
    pub(super) fn carry_out(
        &mut self,
        order: &Order,
        action: WealthAction,
        now: Timestamp,
    ) -> Result<PendingReport, FlowError> {
        self.summary().require_open()?;
        match action {
            WealthAction::SetStatus(status) => self.set_status(order, status, now),
            WealthAction::Data(data_type, account) => self.build_data_report(order, data_type, account),
            WealthAction::DataFailed => Ok(self.build_failed_data_report(order)),
            WealthAction::Historical(status) => Ok(self.build_historical_report(order, status)),
        }
    }

    /// Changes the status of the consent, and builds the report of the change.
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
            (ConsentState::Ended { .. }, _) => return Err(FlowError::Ended(self.summary().text)),
        };
        // A change by the person has a session of that person; others come by the passing of time.
        let (agreed_at, is_by_person) = match self.state {
            ConsentState::Active { since, .. } => (Some(since), status == Accepted),
            ConsentState::Ended { since, .. } => (since, matches!(status, Rejected | Revoked)),
            ConsentState::Requested => (None, false),
        };
        let accounts = if agreed_at.is_some() { ACCOUNTS.iter().map(Account::to_json).collect() } else { Vec::new() };
        let payload = json!({
            "uniqueIdentifier": order.id,
            "consentHandle": self.handle,
            "status": status,
            "consentId": self.consent,
            "consentStartDate": agreed_at.map(|start| format_days_after(start, 0)),
            "consentEndDate": agreed_at.map(|start| format_days_after(start, CONSENT_DAYS)),
            "accounts": accounts,
            "userSessionId": is_by_person.then_some(&self.user_session),
        });
        Ok(PendingReport::new(order, ReportKind::WealthConsent, format!("consent: {status}"), payload))
    }

    /// Builds the report that data of an account is ready.
    fn build_data_report(
        &self,
        order: &Order,
        data_type: DataType,
        account: usize,
    ) -> Result<PendingReport, FlowError> {
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

    /// Builds the report that data could not be fetched.
    fn build_failed_data_report(&self, order: &Order) -> PendingReport {
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
    fn build_historical_report(&self, order: &Order, status: HistoricalStatus) -> PendingReport {
        let [_, account] = &ACCOUNTS;
        let years = match status {
            HistoricalStatus::Success => 1,
            HistoricalStatus::PartialSuccess => 3,
            HistoricalStatus::Failed => 5,
        };
        let last_day = date_of(order.arrived_at);
        let payload = json!({
            "uniqueIdentifier": order.id,
            "accountId": account.id,
            "consentId": self.consent,
            "status": status,
            "fromDate": last_day.checked_sub_days(Days::new(years * 365)).unwrap_or(last_day).to_string(),
            "toDate": last_day.to_string(),
            "fiType": account.fi_type,
            "consentHandleId": self.handle,
            "maskedAccountNumber": account.masked_number,
            "fipId": account.fip_id,
        });
        PendingReport::new(order, ReportKind::WealthHistorical, format!("{status}"), payload)
    }
}

impl Account {
    fn to_json(&self) -> Value {
        json!({"accountId": self.id, "fiType": self.fi_type, "fipId": self.fip_id,
            "maskedAccountNumber": self.masked_number})
    }
}

fn to_date_time(time: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(time.millis()).unwrap_or_default()
}

fn date_of(time: Timestamp) -> NaiveDate {
    to_date_time(time).date_naive()
}

/// Formats the time this number of days later.
fn format_days_after(time: Timestamp, days: u64) -> String {
    let start = to_date_time(time);
    start.checked_add_days(Days::new(days)).unwrap_or(start).format("%Y-%m-%d %H:%M:%S").to_string()
}
