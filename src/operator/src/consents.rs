//! `GET /admin/v1/clients/{client_id}/consents`: the register of consents.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::web::Json;
use actix_web::{FromRequest, HttpRequest};
use sakshi_domain::ids::ClientId;
use sakshi_domain::limits::{CONSENT_SEARCH_AHEAD, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_service::ServiceError;
use sakshi_store::{ConsentPosition, ConsentQuery, StoredConsent};
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_wire::LanguageName;
use sakshi_wire::operator::consents::{ConsentEntry, ConsentsPage};

use super::arguments::Id;
use super::bearer::Operator;

/// The requested range of a client's register of consents.
#[derive(Debug)]
pub(super) struct Period {
    path: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// Position after which the page begins.
    after: ConsentPosition,
    limit: u32,
}

impl FromRequest for Period {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let mut query = Query::parse(request.query_string());
        let (from, to) = (query.time("from"), query.time("to"));
        let after = query.parse_with("after", parse_place, "must be from the `next` of an answer");
        let limit = query.number(&["limit"], 1..=PAGE_SIZE_MAX, PAGE_SIZE_DEFAULT);
        let after = after.unwrap_or_default();
        ready(query.finish().map(|()| Self { path: request.path().to_owned(), from, to, after, limit }))
    }
}

/// Parses a position in the register: `week.number`.
fn parse_place(text: &str) -> Option<ConsentPosition> {
    let (week, number) = text.split_once('.')?;
    Some(ConsentPosition {
        week: week.parse().ok()?,
        number: number.parse::<u64>().ok().filter(|number| *number < i64::MAX.cast_unsigned())?,
    })
}

impl Period {
    /// Returns path and query of the entries after a place.
    fn next(&self, ConsentPosition { week, number }: ConsentPosition) -> String {
        let time = |name: &str, at: Option<Timestamp>| at.map(|at| format!("{name}={at}&")).unwrap_or_default();
        let (from, to) = (time("from", self.from), time("to", self.to));
        format!("{}?{from}{to}after={week}.{number}&limit={}", self.path, self.limit)
    }
}

pub(super) async fn list(
    Operator(deps): Operator,
    Id(client): Id<ClientId>,
    period: Period,
) -> Result<Json<ConsentsPage>, ApiError> {
    deps.store.load_client(client.clone()).await?.ok_or(ServiceError::NotFound("client"))?;
    let latest = deps.clock.now() + CONSENT_SEARCH_AHEAD;
    let query = ConsentQuery {
        client: client.clone(),
        from: period.from.unwrap_or(Timestamp::from_millis(0)).max(Timestamp::from_millis(0)),
        to: period.to.unwrap_or(latest).min(latest),
        after: period.after,
        limit: period.limit,
    };
    let page = deps.store.consents(query).await?;
    let consents = page.entries.into_iter().map(|(_, consent)| entry_response(client.clone(), consent)).collect();
    Ok(Json(ConsentsPage { consents, next: page.next.map(|place| period.next(place)) }))
}

fn entry_response(client_id: ClientId, StoredConsent { consent, answered_at }: StoredConsent) -> ConsentEntry {
    ConsentEntry {
        kind: consent.kind,
        id: consent.id,
        client_id,
        app_id: consent.app,
        event_id: consent.event,
        purpose: consent.purpose,
        asked: consent.requested,
        language: consent.language.map(LanguageName),
        consent_text_sha256: consent.text,
        release: consent.release,
        opened_at: consent.opened_at,
        answered_at,
        answer: consent.answer,
        code: consent.code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_week_and_a_number() {
        assert_eq!(parse_place("2970.17"), Some(ConsentPosition { week: 2_970, number: 17 }));
        for text in ["", "2970", "2970.", ".17", "2970.-1", "x.1", "1.18446744073709551615", "1.9223372036854775807"] {
            assert_eq!(parse_place(text), None, "{text}");
        }
    }
}
