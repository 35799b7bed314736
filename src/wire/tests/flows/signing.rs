//! The eSign flow: several signers, expired invitations, and statuses that reports may not revert.

use std::time::Duration;

use sakshi_domain::flow::esign::{EsignEnded, EsignFlow, EsignPending};
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::report::Report;
use sakshi_domain::flow::statuses::SigningStatus;
use sakshi_domain::flow::transition::{ReportRefusal, Transition};
use sakshi_domain::limits::FLOW_END_GRACE;
use sakshi_domain::time::Timestamp;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::read_report;
use serde_json::{Value, json};

use crate::fixtures::*;

/// Admits a report to a flow, and returns the transition.
fn report_to(flow: &EsignFlow, body: &[u8], now: Timestamp) -> Result<Transition<EsignFlow>, ReportRefusal> {
    let admitted = flow.admit(read_report::<Report<EsignOutcome>>(body).unwrap())?;
    flow.report(&admitted, digest(&admitted), now)
}

fn half_signed_flow() -> EsignFlow {
    match report_to(&new_esign_flow(), &connector_body(ESIGN_COMPLETED, half_signed), before_expiry()) {
        Ok(Transition::Progressed { next }) => next,
        other => panic!("{other:?}"),
    }
}

fn pending(flow: &EsignFlow) -> &EsignPending {
    let EsignFlow::Pending(pending) = flow else { panic!("{flow:?}") };
    pending
}

fn next_signer(flow: &EsignFlow) -> &str {
    pending(flow).signers.iter().find(|signer| signer.status == SigningStatus::Pending).unwrap().signer.as_str()
}

#[test]
fn the_last_signature_completes_the_document_with_one_webhook() {
    let flow = new_esign_flow();
    assert_eq!(next_signer(&flow), "signer-1");
    let flow = half_signed_flow();
    assert_eq!(next_signer(&flow), "signer-2");
    assert_eq!(
        report_to(&flow, &connector_body(ESIGN_COMPLETED, half_signed), before_expiry()),
        Ok(Transition::Repeated)
    );

    let Ok(Transition::WebhookDue { next, webhook }) =
        report_to(&flow, &connector_body(ESIGN_COMPLETED, unchanged), before_expiry())
    else {
        panic!()
    };
    assert_eq!(webhook.as_str(), format!("esign app_1 {FLOW_ID}"));
    assert!(matches!(&next, EsignFlow::Ended(EsignEnded { end,
            .. }) if end.outcome == SigningStatus::Completed && end.at == before_expiry()));
    for _ in 0..3 {
        assert_eq!(
            report_to(&next, &connector_body(ESIGN_COMPLETED, unchanged), before_expiry()),
            Ok(Transition::Repeated)
        );
    }
    let other_pdf = connector_body(ESIGN_COMPLETED, |body| body["content"] = json!("QUJD"));
    for late in [other_pdf, connector_body(ESIGN_REJECTED, unchanged), connector_body(ESIGN_COMPLETED, half_signed)] {
        assert_eq!(report_to(&next, &late, before_expiry()), Err(ReportRefusal::AlreadyEnded("Completed")));
    }
}

#[test]
fn a_repetition_is_recognised_with_and_without_the_references_of_signers() {
    let without_references = connector_body(ESIGN_COMPLETED, |body| {
        for signer in body["signerInfo"].as_array_mut().unwrap() {
            signer["signerRefId"] = Value::Null;
        }
    });
    let Ok(Transition::WebhookDue { next, .. }) = report_to(&new_esign_flow(), &without_references, before_expiry())
    else {
        panic!()
    };
    for repeated in [without_references, connector_body(ESIGN_COMPLETED, unchanged)] {
        assert_eq!(report_to(&next, &repeated, before_expiry()), Ok(Transition::Repeated));
    }
}

#[test]
fn one_rejection_ends_the_document() {
    let Ok(Transition::WebhookDue { next, .. }) =
        report_to(&half_signed_flow(), &connector_body(ESIGN_REJECTED, unchanged), before_expiry())
    else {
        panic!()
    };
    assert_eq!(
        report_to(&next, &connector_body(ESIGN_COMPLETED, unchanged), before_expiry()),
        Err(ReportRefusal::AlreadyEnded("Rejected"))
    );
}

#[test]
fn a_report_of_other_signers_another_reference_or_another_app_is_refused() {
    let flow = new_esign_flow();
    let refusal_after =
        |edit: fn(&mut Value)| report_to(&flow, &connector_body(ESIGN_COMPLETED, edit), before_expiry()).unwrap_err();
    assert_eq!(refusal_after(|body| body["app_id"] = json!("app_2")), ReportRefusal::NotThisFlow);
    assert_eq!(
        refusal_after(|body| body["documentId"] = json!("00000000-9a3e-4c55-8d2a-0b8c5e0e7f11")),
        ReportRefusal::NotThisFlow
    );
    assert_eq!(
        refusal_after(|body| body["documentReferenceId"] = json!("loan-8")),
        ReportRefusal::Contradicts("documentReferenceId")
    );
    assert_eq!(
        refusal_after(|body| body["signerInfo"][0]["signerId"] = json!("signer-3")),
        ReportRefusal::Contradicts("signerInfo")
    );
    assert_eq!(
        refusal_after(|body| body["signerInfo"].as_array_mut().unwrap().truncate(1)),
        ReportRefusal::Contradicts("signerInfo")
    );
    assert_eq!(
        refusal_after(|body| body["signerInfo"].as_array_mut().unwrap().reverse()),
        ReportRefusal::Contradicts("signerInfo")
    );
}

#[test]
fn an_older_report_does_not_withdraw_a_signature() {
    assert_eq!(
        report_to(&half_signed_flow(), &connector_body(ESIGN_COMPLETED, unsigned), before_expiry()),
        Err(ReportRefusal::Contradicts("signerInfo"))
    );
}

#[test]
fn the_deadline_is_the_earliest_expiry_of_an_open_invitation() {
    assert_eq!(pending(&new_esign_flow()).deadline(), at("2026-02-07T09:30:00Z"));
    assert_eq!(pending(&half_signed_flow()).deadline(), at("2026-02-14T09:30:00Z"));
}

#[test]
fn retention_counts_from_the_deadline_or_the_end_of_a_flow() {
    let ttl = Duration::from_secs(1);
    let kept_until = |flow: EsignFlow, before| FlowState::ESign(flow).kept_until(before, before_expiry(), ttl);
    let (deadline, late) = (pending(&new_esign_flow()).deadline(), at("2026-06-01T00:00:00Z"));
    assert!(before_expiry() < deadline && deadline < late);
    assert_eq!(kept_until(new_esign_flow(), before_expiry()), deadline + FLOW_END_GRACE, "however short the retention");
    assert_eq!(kept_until(new_esign_flow(), late), late, "never shorter than before");
    let mut signed = pending(&new_esign_flow()).clone();
    signed.signers.iter_mut().for_each(|signer| signer.status = SigningStatus::Completed);
    assert_eq!(kept_until(EsignFlow::Pending(signed), before_expiry()), before_expiry() + ttl, "no invitation is open");
    let Ok(Transition::WebhookDue { next, .. }) =
        report_to(&new_esign_flow(), &connector_body(ESIGN_COMPLETED, unchanged), before_expiry())
    else {
        panic!()
    };
    assert_eq!(kept_until(next, late), before_expiry() + ttl);
}

#[test]
fn an_expired_invitation_expires_the_document_with_one_webhook() {
    let flow = half_signed_flow();
    let latest = || read_report::<EsignOutcome>(&edited(ESIGN_COMPLETED, half_signed)).unwrap();
    let end = pending(&flow).deadline();
    assert!(flow.lapse(latest(), Timestamp::from_millis(end.millis() - 1)).is_none());
    let for_other_document =
        edited(ESIGN_COMPLETED, |body| body["documentId"] = json!("00000000-0000-4000-8000-000000000000"));
    assert!(
        flow.lapse(read_report::<EsignOutcome>(&for_other_document).unwrap(), end).is_none(),
        "the payload is of another document"
    );

    let lapsed = flow.lapse(latest(), end).unwrap();
    assert_eq!(serde_json::to_value(&lapsed).unwrap().to_string(), canonical(ESIGN_EXPIRED));
    let Ok(Transition::WebhookDue { next, webhook }) = flow.report(&lapsed, digest(&lapsed), end) else { panic!() };
    assert_eq!(webhook.as_str(), format!("esign app_1 {FLOW_ID}"));
    assert!(next.lapse(latest(), end + Duration::from_secs(1)).is_none(), "a flow lapses once");
    assert_eq!(
        report_to(&next, &connector_body(ESIGN_EXPIRED, unchanged), end),
        Ok(Transition::Repeated),
        "the upstream reports the same outcome"
    );
    assert_eq!(
        report_to(&next, &connector_body(ESIGN_COMPLETED, unchanged), end),
        Err(ReportRefusal::AlreadyEnded("Expired"))
    );
}

#[test]
fn a_signature_that_is_reported_past_the_deadline_is_in_the_expired_document() {
    let end = pending(&half_signed_flow()).deadline();
    let Ok(Transition::Progressed { next }) =
        report_to(&new_esign_flow(), &connector_body(ESIGN_COMPLETED, half_signed), end)
    else {
        panic!()
    };
    let lapsed = next.lapse(read_report::<EsignOutcome>(&edited(ESIGN_COMPLETED, half_signed)).unwrap(), end).unwrap();
    assert_eq!(serde_json::to_value(&lapsed).unwrap().to_string(), canonical(ESIGN_EXPIRED));
}

#[test]
fn a_signature_after_the_deadline_counts_and_a_pending_report_is_refused() {
    let (flow, end) = (half_signed_flow(), at("2026-02-14T09:30:00Z"));
    let still_pending = connector_body(ESIGN_COMPLETED, |body| {
        half_signed(body);
        body["signerInfo"][1]["signerName"] = json!("V. Sample");
    });
    assert_eq!(report_to(&flow, &still_pending, end), Err(ReportRefusal::InvitationExpired));
    assert!(matches!(
        report_to(&flow, &connector_body(ESIGN_COMPLETED, unchanged), end),
        Ok(Transition::WebhookDue { .. })
    ));
    let extended = connector_body(ESIGN_COMPLETED, |body| {
        half_signed(body);
        body["signerInfo"][1]["invitationExpireTimeStamp"] = json!("2026-03-01T00:00:00Z");
    });
    assert!(
        matches!(report_to(&flow, &extended, end), Ok(Transition::Progressed { .. })),
        "the upstream extended the invitation in time"
    );
}

#[test]
fn a_flow_survives_serialisation() {
    let Ok(Transition::WebhookDue { next, .. }) =
        report_to(&new_esign_flow(), &connector_body(ESIGN_COMPLETED, unchanged), before_expiry())
    else {
        panic!()
    };
    for flow in [new_esign_flow(), half_signed_flow(), next] {
        let stored = serde_json::to_string(&flow).unwrap();
        assert!(!stored.contains("Asha"), "only the payload names the signers");
        assert_eq!(serde_json::from_str::<EsignFlow>(&stored).unwrap(), flow);
    }
}
