//! The filters of the list of verifications: read from the query, shown as chips, and written into links.

use sakshi_domain::delivery::WebhookState;
use sakshi_domain::event::Event;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;
use sakshi_service::authentication::Caller;
use sakshi_service::statement::count_entries_before;
use sakshi_service::verifications::Filter;
use sakshi_service::{Service, ServiceError};
use sakshi_web::query::Query;
use url::form_urlencoded;

use super::trial::Choice;
use super::when::format_for_input;
use super::why::failure_words;

/// Statuses: the value in the query, the label, and the status.
pub(super) const STATUSES: [(&str, &str, TransactionStatus); 4] = [
    ("waiting", "Waiting", TransactionStatus::Pending),
    ("verified", "Verified", TransactionStatus::Passed),
    ("not_verified", "Not verified", TransactionStatus::Failed),
    ("expired", "Expired", TransactionStatus::Expired),
];
pub(super) const CHANNELS: [(&str, &str); 3] = [("web", "Web"), ("qr", "QR code"), ("app", "Native app")];
pub(super) const WEBHOOKS: [(WebhookState, &str); 4] = [
    (WebhookState::Lost, "Not delivered"),
    (WebhookState::Delivered, "Delivered"),
    (WebhookState::Waiting, "On its way"),
    (WebhookState::None, "None"),
];

/// Filters: the name in the query, and the label.
const FIELDS: [(&str, &str); 8] = [
    ("find", "Search"),
    ("status", "Status"),
    ("why", "Why"),
    ("webhook", "Webhook"),
    ("event", "Event"),
    ("channel", "Channel"),
    ("from", "From"),
    ("to", "Before"),
];

/// The values of the filters.
pub(super) struct ListFilters {
    values: [String; FIELDS.len()],
    /// Number of the ledger entry before which the list begins; `None` for its start.
    before: Option<u64>,
}

/// An event that the filter offers.
pub(super) struct EventChoice {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) is_chosen: bool,
}

/// An active filter: its words, and the query without the filter.
pub(super) struct Chip {
    pub(super) words: String,
    pub(super) query_without: String,
}

impl ListFilters {
    pub(super) fn from_query(query: &str) -> Self {
        let mut query = Query::parse(query);
        let before = query.number(&["before"], 0..=u64::MAX, 0);
        Self {
            values: FIELDS.map(|(name, _)| query.text(name).unwrap_or_default()),
            before: (before > 0).then_some(before),
        }
    }

    /// Returns the value of a filter; empty if it is off.
    pub(super) fn get(&self, name: &str) -> &str {
        FIELDS.iter().position(|(known, _)| *known == name).map_or("", |index| &self.values[index])
    }

    /// Returns the value of a time filter, formatted for an input of a form.
    pub(super) fn time_input(&self, name: &str) -> String {
        parse_time(self.get(name)).map(format_for_input).unwrap_or_default()
    }

    /// Returns true for a page of older entries, below the start of the list.
    pub(super) const fn is_older_page(&self) -> bool {
        self.before.is_some()
    }

    /// Returns true if a filter is on.
    pub(super) fn is_filtered(&self) -> bool {
        self.values.iter().any(|value| !value.is_empty())
    }

    /// Returns the choices of a filter.
    pub(super) fn choices<const N: usize>(&self, name: &str, known: [(&'static str, &'static str); N]) -> Vec<Choice> {
        let current = self.get(name);
        known.map(|(value, label)| Choice { value, label: label.to_owned(), chosen: value == current }).into()
    }

    /// Returns the query of the filters with changes; an empty value removes a filter.
    pub(super) fn query_with(&self, changes: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for ((name, _), value) in FIELDS.iter().zip(&self.values) {
            let value = changes.iter().find(|(changed, _)| changed == name).map_or(value.as_str(), |(_, value)| value);
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        // `before` is not a filter but a place in the list, which another filter would change.
        for (name, value) in changes.iter().filter(|(name, _)| *name == "before") {
            query.append_pair(name, value);
        }
        format!("?{}", query.finish())
    }

    /// Returns the query of the filters.
    pub(super) fn query(&self) -> String {
        self.query_with(&[])
    }

    /// Returns the active filters.
    pub(super) fn chips(&self, events: &[EventChoice]) -> Vec<Chip> {
        let value_label = |name: &str, value: &str| {
            let label: Option<&str> = match name {
                "status" => STATUSES.iter().find(|(known, ..)| *known == value).map(|(_, label, _)| *label),
                "why" => Some(failure_words(Some(value))),
                "webhook" => WEBHOOKS.iter().find(|(known, _)| known.as_str() == value).map(|(_, label)| *label),
                "channel" => CHANNELS.iter().find(|(known, _)| *known == value).map(|(_, label)| *label),
                "event" => events.iter().find(|event| event.id == value).map(|event| event.name.as_str()),
                _ => None,
            };
            label.unwrap_or(value).to_owned()
        };
        let active = FIELDS.iter().zip(&self.values).filter(|(_, value)| !value.is_empty());
        active
            .map(|((name, label), value)| Chip {
                words: format!("{label}: {}", value_label(name, value)),
                query_without: self.query_with(&[(name, "")]),
            })
            .collect()
    }

    /// Returns the filter, and the number of the ledger entry before which the list begins.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) async fn filter(
        &self,
        service: &Service,
        caller: &Caller,
        events: &[Event],
    ) -> Result<(Filter, Option<u64>), ServiceError> {
        let active = |name| Some(self.get(name)).filter(|value| !value.is_empty());
        let find = active("find");
        let events_named = |text: &str| {
            let text = text.to_lowercase();
            let contains_text = move |event: &&Event| event.terms.name.as_str().to_lowercase().contains(&text);
            events.iter().filter(contains_text).map(|event| event.id).collect()
        };
        let mut before = self.before;
        if let Some(to) = active("to").and_then(parse_time) {
            let end = count_entries_before(&service.store, &caller.client, to).await? + 1;
            before = Some(before.map_or(end, |before| before.min(end)));
        }
        let filter = Filter {
            status: active("status")
                .and_then(|name| STATUSES.iter().find(|(known, ..)| *known == name))
                .map(|(.., status)| *status),
            channel: active("channel").map(str::to_owned),
            // People also search for an event's id.
            event: active("event").or(find).and_then(|id| id.parse().ok()),
            code: active("why").map(str::to_owned),
            webhook: active("webhook").and_then(|state| state.parse().ok()),
            text: find.filter(|text| text.parse::<sakshi_domain::ids::EventId>().is_err()).map(str::to_owned),
            events: find.map(events_named).unwrap_or_default(),
            exact_reference: None,
            from: active("from").and_then(parse_time),
        };
        Ok((filter, before))
    }
}

/// Parses a time as browsers send it: with a zone, or in UTC without a zone.
fn parse_time(text: &str) -> Option<Timestamp> {
    Timestamp::parse_iso8601(text).or_else(|| Timestamp::parse_iso8601(&format!("{text}:00Z")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_older_entries_keeps_the_filters() {
        let filters = ListFilters::from_query("status=verified&find=order+7%265&channel=&before=x");
        assert_eq!(filters.query_with(&[("before", "41")]), "?find=order+7%265&status=verified&before=41");
        assert_eq!(ListFilters::from_query(&filters.query_with(&[("before", "41")])[1..]).before, Some(41));
        assert!(filters.is_filtered() && !ListFilters::from_query("before=41").is_filtered());
    }

    #[test]
    fn a_chip_names_its_filter_and_links_to_the_list_without_it() {
        let filters = ListFilters::from_query("status=not_verified&why=301&webhook=lost");
        let chips: Vec<_> = filters.chips(&[]).into_iter().map(|chip| (chip.words, chip.query_without)).collect();
        let chip = |words: &str, without: &str| (words.to_owned(), without.to_owned());
        assert_eq!(
            chips,
            [
                chip("Status: Not verified", "?why=301&webhook=lost"),
                chip("Why: Person declined", "?status=not_verified&webhook=lost"),
                chip("Webhook: Not delivered", "?status=not_verified&why=301"),
            ]
        );
    }

    #[test]
    fn a_time_has_its_zone_or_is_in_utc() {
        let at = Timestamp::parse_iso8601("2026-03-01T10:00:00Z");
        assert_eq!(
            [parse_time("2026-03-01T10:00"), parse_time("2026-03-01T10:00:00.000Z"), parse_time("soon")],
            [at, at, None]
        );
    }
}
