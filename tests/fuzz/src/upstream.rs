//! Responses of upstreams: the first byte chooses the request.

use std::sync::OnceLock;

use sakshi_domain::checks::{CHECKS, CheckQuery, CheckStatus, DetailForm, DetailValue};
use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::limits::URL_CHARS_MAX;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_outbound::upstream::fuzzing::{parse_check, parse_consent, parse_locker_page, parse_signing_pages};
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::{PageUrl, read_report};
use serde_json::json;

use crate::{CANARY, choice};

/// Returns a query for each check of a number.
fn queries() -> &'static [CheckQuery] {
    static QUERIES: OnceLock<Vec<CheckQuery>> = OnceLock::new();
    QUERIES.get_or_init(|| {
        let query = |check: &'static sakshi_domain::checks::Check| CheckQuery {
            check,
            numbers: check.numbers.iter().map(|form| form.parse(form.example).unwrap()).collect(),
            consent: check.needs_consent.then(|| ConsentGiven::parse(Some("Y"), Some("I agree.")).unwrap()),
            compared: check.compared.iter().map(|_| None).collect(),
        };
        CHECKS.iter().map(query).collect()
    })
}

/// Returns a pending document with two signers.
fn document() -> &'static EsignOutcome {
    static DOCUMENT: OnceLock<EsignOutcome> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let signer = |id: &str| {
            json!({
                "signerId": id, "signerRefId": null, "signerStatus": "Pending", "signerName": "Asha Rao",
                "invitationExpireTimeStamp": "2027-01-31T09:00:00Z", "rejectReason": null, "nationalIdAuditInfo": null,
            })
        };
        let body = json!({
            "documentId": "40404040-4040-4040-4040-404040404040", "documentReferenceId": null, "content": null,
            "documentStatus": "Pending", "signerInfo": [signer("one"), signer("two")],
        });
        read_report(&serde_json::to_vec(&body).unwrap()).unwrap()
    })
}

/// Returns an accepted answer. Checks that an error says only that the answer is unreadable.
fn checked_answer<T>(answer: Result<T, UpstreamError>) -> Option<T> {
    if let Err(error) = &answer {
        assert!(matches!(error, UpstreamError::Unreadable(_)) && !format!("{error} {error:?}").contains(CANARY));
    }
    answer.ok()
}

/// Returns true if a page's URL is safe to redirect to, and hidden in debug texts.
fn is_safe_page(page: &PageUrl) -> bool {
    let text = page.as_str();
    let is_http =
        (text.starts_with("http") || text.to_ascii_lowercase().starts_with("http")) && text.len() <= URL_CHARS_MAX;
    is_http
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && PageUrl::parse(text).as_ref() == Ok(page)
        && !format!("{page:?}").contains(CANARY)
}

/// Target: the letter chooses the request, whose answer follows.
pub(crate) fn answers(data: &[u8]) {
    let Some((&first, body)) = data.split_first() else { return };
    let Some((kind, _)) = choice(&[first.wrapping_sub(b'A')], 3 + CHECKS.len()) else { return };
    match kind {
        0 => assert!(checked_answer(parse_locker_page(body)).is_none_or(|page| is_safe_page(&page))),
        1 => assert!(
            checked_answer(parse_consent(body))
                .is_none_or(|consent| consent.page.is_none_or(|page| is_safe_page(&page)))
        ),
        2 => assert!(
            checked_answer(parse_signing_pages(body, document()))
                .is_none_or(|pages| pages.len() == 2 && pages.iter().all(is_safe_page))
        ),
        _ => {
            let query = &queries()[kind - 3];
            let Some(result) = checked_answer(parse_check(body, query)) else { return };
            assert!(result.status != CheckStatus::NotFound || result.details.iter().all(Option::is_none));
            for (known, value) in query.check.details.iter().zip(&result.details) {
                match (known.form, value) {
                    (_, None) => {}
                    (DetailForm::Match(_), Some(_)) => panic!("a comparison that was not requested"),
                    (DetailForm::Word(words), Some(DetailValue::Text(text))) => assert!(words.contains(&text.as_str())),
                    (_, Some(DetailValue::Text(text))) => assert!(!text.as_str().trim().is_empty()),
                    (_, Some(_)) => panic!("a value of another form"),
                }
            }
        }
    }
}
