//! `GET /portal/deliveries`: the webhooks of the app, counted by receiver and result, and listed. Nothing is resent
//! here.

use std::collections::BTreeMap;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::delivery::{DeliveryRecord, Subject, WebhookState};
use sakshi_domain::time::Timestamp;
use sakshi_service::Service;
use sakshi_service::deliveries::{DeliveryLog, LoggedDelivery, ORDERS_MAX, delivery_log};
use sakshi_web::query::Query;
use url::form_urlencoded;

use super::delivery::{DeliveryTag, advice};
use super::error::PortalError;
use super::layout::{Layout, Section, page};
use super::list_filters::WEBHOOKS;
use super::portal_user::PortalUser;
use super::trial::Choice;
use super::when::When;

/// Most webhooks listed; all webhooks are counted.
const LISTED_MAX: usize = 100;

/// The webhooks of a receiver with one result and one cause.
struct Count {
    receiver: String,
    tag: DeliveryTag,
    /// Advice for the receiver's developer.
    advice: &'static str,
    count: usize,
    /// Query that limits the list to webhooks of the receiver with the result.
    address: String,
}

/// A listed webhook.
struct Row {
    at: When,
    receiver: String,
    tag: DeliveryTag,
    duration: String,
    /// Page of the verification or order.
    path: String,
    /// Kind and short id of the verification or order.
    subject: String,
}

/// The delivery log.
#[derive(Template)]
#[template(path = "deliveries.html")]
struct Page {
    layout: Layout,
    states: Vec<Choice>,
    /// Receiver and result to which the list is limited.
    selection: Option<String>,
    counts: Vec<Count>,
    rows: Vec<Row>,
    /// Number of webhooks that match the filters.
    matching: usize,
    /// Time of the oldest webhook read, if there are older ones.
    older_than: Option<When>,
    /// Number of orders whose webhooks are read at most.
    orders_max: u32,
}

/// Returns the advice on the failure of a webhook; empty without a failure.
fn advice_on(delivery: &DeliveryRecord) -> &'static str {
    delivery.attempt.and_then(|attempt| attempt.failure).map_or("", advice)
}

impl Row {
    fn new(logged: &LoggedDelivery, now: Timestamp) -> Self {
        let id = logged.subject.to_string();
        let (path, kind) = match logged.subject {
            Subject::Transaction(_) => (format!("/portal/transactions/{id}"), "Verification"),
            Subject::Flow { .. } => (format!("/portal/orders/{id}"), logged.summary.as_deref().unwrap_or("Order")),
        };
        let short_id = id.rsplit('-').next().unwrap_or_default();
        Self {
            at: When::recent(logged.delivery.claimed_at.unwrap_or(logged.delivery.queued_at), now),
            receiver: logged.delivery.origin.clone(),
            tag: DeliveryTag::summarize(&logged.delivery),
            duration: logged.delivery.attempt.map(|attempt| format!("{} ms", attempt.duration_ms)).unwrap_or_default(),
            subject: format!("{kind} {short_id}"),
            path,
        }
    }
}

/// Shows the log.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let mut query = Query::parse(request.query_string());
    let (state, receiver, result) = (query.text("state"), query.text("receiver"), query.text("result"));
    query.finish()?;
    let state: Option<WebhookState> = state.as_deref().and_then(|state| state.parse().ok());
    let DeliveryLog { deliveries, older_than } = delivery_log(&service, &user.caller).await?;
    let matches = |logged: &&LoggedDelivery| {
        state.is_none_or(|state| state == WebhookState::from_delivery(Some(&logged.delivery)))
            && receiver.as_ref().is_none_or(|receiver| *receiver == logged.delivery.origin)
            && result.as_ref().is_none_or(|result| *result == DeliveryTag::summarize(&logged.delivery).label)
    };
    let now = service.clock.now();
    let matching: Vec<_> = deliveries.iter().filter(matches).collect();
    let choice = |(value, label): (WebhookState, &str)| Choice {
        value: value.as_str(),
        label: label.to_owned(),
        chosen: Some(value) == state,
    };
    let template = Page {
        layout: user.layout(Section::Webhooks, &service),
        states: WEBHOOKS.into_iter().filter(|(state, _)| *state != WebhookState::None).map(choice).collect(),
        selection: receiver.as_ref().map(|receiver| {
            [Some(receiver.clone()), result.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }),
        counts: count_by_result(&deliveries),
        rows: matching.iter().take(LISTED_MAX).map(|logged| Row::new(logged, now)).collect(),
        matching: matching.len(),
        older_than: older_than.map(When::minute),
        orders_max: ORDERS_MAX,
    };
    Ok(page(StatusCode::OK, &template))
}

/// Counts webhooks by receiver, result and advice, lost webhooks first. A timeout, for example, has several causes.
fn count_by_result(deliveries: &[LoggedDelivery]) -> Vec<Count> {
    let mut counts = BTreeMap::new();
    for LoggedDelivery { delivery, .. } in deliveries {
        let (tag, advice) = (DeliveryTag::summarize(delivery), advice_on(delivery));
        let count = counts.entry((delivery.origin.as_str(), tag.label.clone(), advice)).or_insert_with(|| {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("receiver", &delivery.origin)
                .append_pair("result", &tag.label)
                .finish();
            Count { receiver: delivery.origin.clone(), tag, advice, count: 0, address: format!("?{query}") }
        });
        count.count += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_by_key(|count| (count.tag.style != "not_verified", std::cmp::Reverse(count.count)));
    counts
}

#[cfg(test)]
mod tests {
    use sakshi_domain::delivery::{Attempt, AttemptPart, DeliveryId, DeliveryOutcome, FailureReason};
    use sakshi_domain::ids::{ClientId, TxnId};

    use super::*;

    #[test]
    fn webhooks_are_counted_by_receiver_and_result_with_lost_ones_first() {
        let client = ClientId::generate();
        let logged = |origin: &str, attempt| LoggedDelivery {
            subject: Subject::Transaction(TxnId::generate(client.partition(), 0)),
            summary: None,
            delivery: DeliveryRecord {
                id: DeliveryId(1),
                origin: origin.to_owned(),
                queued_at: Timestamp::from_millis(0),
                claimed_at: None,
                attempt,
            },
        };
        let [a, b] = ["https://a.example", "https://b.example"];
        let attempt_with = |status| Some(Attempt::from_status(status, 3));
        let log = [
            logged(a, attempt_with(200)),
            logged(a, attempt_with(200)),
            logged(b, attempt_with(503)),
            logged(a, attempt_with(200)),
            logged(a, attempt_with(503)),
            logged(b, attempt_with(503)),
            logged(b, None),
        ];
        let counts: Vec<_> =
            count_by_result(&log).into_iter().map(|count| (count.receiver, count.tag.label, count.count)).collect();
        let expected = [(b, "503", 2), (a, "503", 1), (a, "200", 3), (b, "waiting", 1)];
        assert_eq!(counts, expected.map(|(receiver, label, count)| (receiver.to_owned(), label.to_owned(), count)));
        assert_eq!(count_by_result(&log)[0].address, "?receiver=https%3A%2F%2Fb.example&result=503");
        let timed_out_in = |part| {
            let outcome = DeliveryOutcome::Unreachable;
            logged(a, Some(Attempt::unanswered(outcome, FailureReason::TimedOut, Some(part), 3)))
        };
        let log = [AttemptPart::Tls, AttemptPart::Connection, AttemptPart::Tls].map(timed_out_in);
        let meanings: Vec<_> = count_by_result(&log).into_iter().map(|count| (count.advice, count.count)).collect();
        let expected =
            [("the TLS handshake did not end in time", 2), ("the receiver did not accept a connection in time", 1)];
        assert_eq!(meanings, expected);
    }
}
