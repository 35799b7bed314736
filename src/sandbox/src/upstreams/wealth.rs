//! The wealth-data upstream: a person decides on a consent for two accounts, its status changes, and data
//! is sent under it.
//!
//! The three streams are independent, so a script may send data before the person has decided. Ids are
//! generated with the order, and the data does not depend on time, so that a repeated report is identical.

use chrono::{DateTime, Days, NaiveDate, Utc};
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::{ConsentStatus, DataType, FiDataStatus, HistoricalStatus};
use sakshi_domain::flow::text::ForeignId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::FlowError;
use super::order::{Order, checked, declaration};
use super::reporter::PendingReport;

/// Days for which a consent is valid.
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

/// A consent and the data sent under it.
pub(super) struct Wealth {
    pub(super) declaration: String,
    pub(super) handle: ForeignId,
    consent: ForeignId,
    user_session: ForeignId,
    fetch_session: ForeignId,
    /// The fetches of each account's raw and analysed data.
    fetches: [[ForeignId; 2]; 2],
    failing_fetch: ForeignId,
    state: ConsentState,
}

#[derive(Clone, Copy)]
enum ConsentState {
    Asked,
    Held { since: Timestamp, ends_soon: bool },
    Over { since: Option<Timestamp>, status: ConsentStatus },
}

/// A change of the consent, or data under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WealthAction {
    /// The consent gets this status.
    Move(ConsentStatus),
    /// This form of the data of an account is ready.
    Data(DataType, usize),
    /// The data could not be fetched.
    DataFailed,
    /// A historical fetch ended with this status.
    Historical(HistoricalStatus),
}

/// The outcome of a script that accepts the consent and sends both forms of data and a historical fetch.
const ALL: &str = "all";
/// The other outcomes that a script or form may ask for.
const OUTCOMES: [(&str, WealthAction); 11] = [
    ("accepted", WealthAction::Move(ConsentStatus::Accepted)),
    ("rejected", WealthAction::Move(ConsentStatus::Rejected)),
    ("revoked", WealthAction::Move(ConsentStatus::Revoked)),
    ("expiring-soon", WealthAction::Move(ConsentStatus::ExpiringSoon)),
    ("expired", WealthAction::Move(ConsentStatus::Expired)),
    ("raw", WealthAction::Data(DataType::Raw, 0)),
    ("analysed", WealthAction::Data(DataType::Analysed, 0)),
    ("data-failed", WealthAction::DataFailed),
    ("historical", WealthAction::Historical(HistoricalStatus::Success)),
    ("historical-partial", WealthAction::Historical(HistoricalStatus::PartialSuccess)),
    ("historical-failed", WealthAction::Historical(HistoricalStatus::Failed)),
];

impl WealthAction {
    /// Reads the name from a script or form.
    pub(super) fn named(word: &str) -> Result<Self, FlowError> {
        let found = OUTCOMES.iter().find(|(name, _)| *name == word).map(|(_, action)| *action);
        found.ok_or_else(|| FlowError::UnknownOutcome(format!("{}, {ALL}", OUTCOMES.map(|(name, _)| name).join(", "))))
    }
}

impl WealthDraft {
    /// Checks the members of the order besides its ids.
    pub(super) fn check(self, mut invalid: Invalid) -> Result<Wealth, Invalid> {
        let declaration = declaration(&mut invalid, self.consent_text);
        let [handle, consent, user_session, fetch_session, failing_fetch] = [(); 5].map(|()| ForeignId::mint());
        let fetches = [[(); 2]; 2].map(|account| account.map(|()| ForeignId::mint()));
        let wealth = |declaration| Wealth {
            declaration,
            handle,
            consent,
            user_session,
            fetch_session,
            fetches,
            failing_fetch,
            state: ConsentState::Asked,
        };
        checked(invalid, declaration.map(wealth))
    }
}

impl Wealth {
    pub(super) const fn summary(&self) -> (&'static str, bool) {
        match self.state {
            ConsentState::Asked => ("waits for the person", true),
            ConsentState::Held { ends_soon: false, .. } => ("the consent holds", true),
            ConsentState::Held { ends_soon: true, .. } => ("the consent ends soon", true),
            ConsentState::Over { status: ConsentStatus::Rejected, .. } => ("the person declined", false),
            ConsentState::Over { status: ConsentStatus::Revoked, .. } => ("the consent was revoked", false),
            ConsentState::Over { .. } => ("the consent has expired", false),
        }
    }

    /// Returns true if the person has agreed and the consent still holds.
    pub(super) const fn is_held(&self) -> bool {
        matches!(self.state, ConsentState::Held { .. })
    }

    pub(super) fn play(
        &mut self,
        order: &Order,
        outcome: &str,
        now: Timestamp,
    ) -> Result<Vec<PendingReport>, FlowError> {
        use ConsentStatus::{Accepted, ExpiringSoon, Revoked};
        let asked = matches!(self.state, ConsentState::Asked);
        let actions: Vec<WealthAction> = match outcome {
            ALL => {
                let parts = [
                    WealthAction::Data(DataType::Raw, 0),
                    WealthAction::Data(DataType::Analysed, 0),
                    WealthAction::Historical(HistoricalStatus::Success),
                ];
                asked.then_some(WealthAction::Move(Accepted)).into_iter().chain(parts).collect()
            }
            word => match WealthAction::named(word)? {
                action @ WealthAction::Move(Revoked | ExpiringSoon) if asked => {
                    vec![WealthAction::Move(Accepted), action]
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
        let (summary, open) = self.summary();
        if !open {
            return Err(FlowError::Over(summary));
        }
        match action {
            WealthAction::Move(status) => self.to(order, status, now),
            WealthAction::Data(data_type, account) => self.data(order, data_type, account),
            WealthAction::DataFailed => Ok(self.failed(order)),
            WealthAction::Historical(status) => Ok(self.historical(order, status)),
        }
    }

    fn to(&mut self, order: &Order, status: ConsentStatus, now: Timestamp) -> Result<PendingReport, FlowError> {
        use ConsentStatus::{Accepted, Expired, ExpiringSoon, Rejected, Revoked};
        self.state = match (self.state, status) {
            (ConsentState::Asked, Accepted) => ConsentState::Held { since: now, ends_soon: false },
            (ConsentState::Asked, Rejected | Expired) => ConsentState::Over { since: None, status },
            (ConsentState::Asked, Revoked | ExpiringSoon) => {
                return Err(FlowError::NotNow("The person has not agreed yet."));
            }
            (ConsentState::Held { since, ends_soon: false }, ExpiringSoon) => {
                ConsentState::Held { since, ends_soon: true }
            }
            (ConsentState::Held { .. }, ExpiringSoon) => {
                return Err(FlowError::NotNow("It was reported already that the consent ends soon."));
            }
            (ConsentState::Held { since, .. }, Revoked | Expired) => ConsentState::Over { since: Some(since), status },
            (ConsentState::Held { .. }, Accepted | Rejected) => {
                return Err(FlowError::NotNow("The person has agreed already."));
            }
            (ConsentState::Over { .. }, _) => return Err(FlowError::Over(self.summary().0)),
        };
        let (since, decided) = match self.state {
            ConsentState::Held { since, .. } => (Some(since), status == Accepted),
            ConsentState::Over { since, .. } => (since, matches!(status, Rejected | Revoked)),
            ConsentState::Asked => (None, false),
        };
        let accounts = if since.is_some() { ACCOUNTS.iter().map(Account::json).collect() } else { Vec::new() };
        let payload = json!({
            "uniqueIdentifier": order.id,
            "consentHandle": self.handle,
            "status": status,
            "consentId": self.consent,
            "consentStartDate": since.map(|since| local(since, 0)),
            "consentEndDate": since.map(|since| local(since, CONSENT_DAYS)),
            "accounts": accounts,
            "userSessionId": decided.then_some(&self.user_session),
        });
        Ok(PendingReport::new(order, ReportKind::WealthConsent, format!("consent: {status}"), payload))
    }

    fn data(&self, order: &Order, data_type: DataType, account: usize) -> Result<PendingReport, FlowError> {
        let (Some(account), Some([raw, analysed])) = (ACCOUNTS.get(account), self.fetches.get(account)) else {
            return Err(FlowError::MalformedBody);
        };
        // The deduplication key of wealth data is its `txnId`, and both are sent.
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

    fn failed(&self, order: &Order) -> PendingReport {
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

    /// Builds a historical fetch of the second account. Each status has its own range of days, because a fetch ends
    /// once.
    fn historical(&self, order: &Order, status: HistoricalStatus) -> PendingReport {
        let [_, account] = &ACCOUNTS;
        let years = match status {
            HistoricalStatus::Success => 1,
            HistoricalStatus::PartialSuccess => 3,
            HistoricalStatus::Failed => 5,
        };
        let to = day(order.taken_at, 0);
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

fn moment(at: Timestamp, later_days: u64) -> DateTime<Utc> {
    let at = DateTime::from_timestamp_millis(at.millis()).unwrap_or_default();
    at.checked_add_days(Days::new(later_days)).unwrap_or(at)
}

fn day(at: Timestamp, later_days: u64) -> NaiveDate {
    moment(at, later_days).date_naive()
}

fn local(at: Timestamp, later_days: u64) -> String {
    moment(at, later_days).format("%Y-%m-%d %H:%M:%S").to_string()
}
