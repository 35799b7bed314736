//! The e-stamp upstream: it stamps or refuses a document, lets it expire, or lets the signatories sign one by one.

use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::estamp::EStampKind;
use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::WorkflowStatus;
use sakshi_domain::flow::text::Text;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::SIGNERS_MAX;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::Summary;
use super::error::FlowError;
use super::order::{Order, check_list, parse_file, parse_text, value_or_problems};
use super::pdf;
use super::reporter::PendingReport;

/// Outcomes that a script can choose.
const OUTCOMES: [&str; 4] = ["completed", "rejected", "expired", "pending"];
/// Remarks of a refusal by a script.
const SCRIPT_REMARKS: &str = "Refused in the sandbox";

/// The members of an order for an e-stamp, as received.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EStampDraft {
    api_type: Option<String>,
    document: Option<DocumentDraft>,
    signatories_info: Option<Vec<SignatoryDraft>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DocumentDraft {
    document_name: Option<String>,
    #[serde(rename = "base64FileData")]
    file_data: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SignatoryDraft {
    name: Option<String>,
    #[serde(rename = "emailID")]
    email_id: Option<String>,
    sign_type: Option<String>,
}

/// A document to be stamped.
pub(super) struct EStamp {
    pub(super) api_type: ApiType,
    pub(super) document_name: Text,
    /// `None` once nothing is left to decide.
    content: Option<Base64File>,
    pub(super) signatories: Vec<Signatory>,
    status: WorkflowStatus,
}

/// A person who signs the document.
pub(super) struct Signatory {
    pub(super) name: Text,
    pub(super) email: Text,
    pub(super) sign_type: Text,
    pub(super) status: WorkflowStatus,
    signed_at: Option<Timestamp>,
    remarks: Option<Text>,
}

impl EStampDraft {
    /// Parses the members of the order, except its ids.
    pub(super) fn parse(self, mut invalid: Invalid) -> Result<EStamp, Invalid> {
        let api_type: Option<ApiType> = self.api_type.and_then(|word| word.parse().ok());
        let api_type = api_type.filter(|api_type| EStampKind::from_api_type(*api_type).is_ok());
        let api_type = invalid.check("apiType", api_type.ok_or("must be RegistryEStamp or PhysicalEStamp"));
        let document = self.document.unwrap_or_default();
        let document_name = parse_text(&mut invalid, "document.documentName", document.document_name.as_deref());
        let content = parse_file(&mut invalid, "document.base64FileData", document.file_data);
        let drafts = check_list(&mut invalid, "signatoriesInfo", self.signatories_info, SIGNERS_MAX);
        let parse_signatory = |(index, draft): (usize, SignatoryDraft)| draft.parse(index, &mut invalid);
        let signatories: Option<Vec<Signatory>> = drafts.into_iter().enumerate().map(parse_signatory).collect();
        let stamp = || {
            let status = WorkflowStatus::Pending;
            Some(EStamp {
                api_type: api_type?,
                document_name: document_name?,
                content: Some(content?),
                signatories: signatories?,
                status,
            })
        };
        value_or_problems(invalid, stamp())
    }
}

impl SignatoryDraft {
    /// Parses the signatory at this index of the list.
    fn parse(self, index: usize, invalid: &mut Invalid) -> Option<Signatory> {
        let field = |name: &str| format!("signatoriesInfo[{index}].{name}");
        let name = parse_text(invalid, &field("name"), self.name.as_deref());
        let email = parse_text(invalid, &field("emailID"), self.email_id.as_deref());
        let sign_type = parse_text(invalid, &field("signType"), self.sign_type.as_deref());
        let status = WorkflowStatus::Pending;
        Some(Signatory { name: name?, email: email?, sign_type: sign_type?, status, signed_at: None, remarks: None })
    }
}

impl EStamp {
    pub(super) fn bytes_in_memory(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.as_str().len())
    }

    pub(super) fn summary(&self) -> Summary {
        match self.status {
            WorkflowStatus::Completed => Summary::ended("stamped"),
            WorkflowStatus::Rejected => Summary::ended("the desk refused it"),
            WorkflowStatus::Expired => Summary::ended("it ran out of time"),
            WorkflowStatus::Pending if self.signatories.iter().any(|signatory| signatory.signed_at.is_some()) => {
                Summary::open("signatories are signing")
            }
            WorkflowStatus::Pending => Summary::open("waits at the desk"),
        }
    }

    /// Carries out the outcome that a script or a form names.
    pub(super) fn play(&mut self, order: &Order, outcome: &str, now: Timestamp) -> Result<PendingReport, FlowError> {
        let remarks = || Text::parse(SCRIPT_REMARKS).map_err(|_| FlowError::MalformedBody);
        match outcome {
            "completed" => self.stamp(order, now),
            "rejected" => self.refuse(order, remarks()?),
            "expired" => self.expire(order),
            "pending" => self.sign_next(order, now),
            _ => Err(FlowError::UnknownOutcome(OUTCOMES.join(", "))),
        }
    }

    /// Stamps the document, signed by all signatories.
    pub(super) fn stamp(&mut self, order: &Order, now: Timestamp) -> Result<PendingReport, FlowError> {
        self.summary().require_open()?;
        self.signatories.iter_mut().for_each(|signatory| signatory.sign(now));
        self.status = WorkflowStatus::Completed;
        let files = self.content.take().map(|content| {
            let lines = [format!("Sandbox e-stamp {} of {now}; no legal stamp.", order.id)];
            let stamped = pdf::annotate(content.as_str(), &lines).unwrap_or_else(|| content.as_str().to_owned());
            let name = &self.document_name;
            // `json!` would copy the file.
            let mut file = json!({"documentName": name});
            file["base64FileData"] = stamped.into();
            file
        });
        let result = ReportResult { success: true, status_code: 200, message: "E-stamp completed" };
        Ok(self.build_report(order, &result, files.into_iter().collect()))
    }

    /// Refuses the document, with remarks for the first signatory who has not signed.
    pub(super) fn refuse(&mut self, order: &Order, remarks: Text) -> Result<PendingReport, FlowError> {
        self.summary().require_open()?;
        if let Some(waiting) = self.signatories.iter_mut().find(|signatory| signatory.status == WorkflowStatus::Pending)
        {
            waiting.status = WorkflowStatus::Rejected;
            waiting.remarks = Some(remarks);
        }
        self.status = WorkflowStatus::Rejected;
        self.content = None;
        let result = ReportResult { success: false, status_code: 422, message: "The registry refused the document" };
        Ok(self.build_report(order, &result, Vec::new()))
    }

    /// Expires the document.
    pub(super) fn expire(&mut self, order: &Order) -> Result<PendingReport, FlowError> {
        self.summary().require_open()?;
        let waiting = self.signatories.iter_mut().filter(|signatory| signatory.status == WorkflowStatus::Pending);
        waiting.for_each(|signatory| signatory.status = WorkflowStatus::Expired);
        self.status = WorkflowStatus::Expired;
        self.content = None;
        let result = ReportResult { success: false, status_code: 410, message: "The e-stamp was not finished in time" };
        Ok(self.build_report(order, &result, Vec::new()))
    }

    /// Signs as the next signatory. The last signatory signs only when the document is stamped.
    pub(super) fn sign_next(&mut self, order: &Order, now: Timestamp) -> Result<PendingReport, FlowError> {
        self.summary().require_open()?;
        let all_but_last = self.signatories.len().saturating_sub(1);
        let next = self.signatories.iter_mut().take(all_but_last).find(|signatory| signatory.signed_at.is_none());
        if let Some(next) = next {
            next.sign(now);
        }
        let result = ReportResult { success: true, status_code: 202, message: "E-stamp in progress" };
        Ok(self.build_report(order, &result, Vec::new()))
    }

    /// Builds the report of the current state, with the stamped files.
    fn build_report(&self, order: &Order, result: &ReportResult, files: Vec<Value>) -> PendingReport {
        let ReportResult { success, status_code, message } = *result;
        let signatories: Vec<Value> = self.signatories.iter().map(Signatory::to_json).collect();
        let mut payload = json!({
            "success": success,
            "statusCode": status_code,
            "message": message,
            "data": {"eStampId": order.id, "workflowStatus": self.status, "signatoriesInfo": signatories},
        });
        payload["data"]["fileList"] = Value::Array(files);
        PendingReport::new(order, ReportKind::EStamp, message, payload)
    }
}

/// The result that a report states.
struct ReportResult {
    success: bool,
    status_code: u16,
    message: &'static str,
}

impl Signatory {
    /// Signs; an earlier signature keeps its time.
    fn sign(&mut self, now: Timestamp) {
        self.status = WorkflowStatus::Completed;
        self.signed_at.get_or_insert(now);
    }

    fn to_json(&self) -> Value {
        json!({
            "emailID": self.email,
            "name": self.name,
            "status": self.status,
            "remarks": self.remarks,
            "signType": self.sign_type,
            "signedDate": self.signed_at,
        })
    }
}
