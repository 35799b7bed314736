//! The filters of the verifications' list: read from the address, shown as chips, and written into further addresses.

use sakshi_domain::delivery::WebhookState;
use sakshi_domain::event::Event;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;
use sakshi_service::authentication::Caller;
use sakshi_service::statement::entries_before;
use sakshi_service::verifications::Filter;
use sakshi_service::{Service, ServiceError};
use sakshi_web::query::Query;
use url::form_urlencoded;

use super::trial::Choice;
use super::when::input;
use super::why::why;

/// Statuses: in the address, for people, and as values.
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

/// Filters with their names on chips.
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
    before: Option<u64>,
}

/// An active filter: its words, and the address without it.
pub(super) struct Chip {
    pub(super) words: String,
    pub(super) without: String,
}

impl ListFilters {
    pub(super) fn of(query: &str) -> Self {
        let mut query = Query::parse(query);
        let before = query.number(&["before"], 0..=u64::MAX, 0);
        Self {
            values: FIELDS.map(|(name, _)| query.text(name).unwrap_or_default()),
            before: (before > 0).then_some(before),
        }
    }

    /// Returns the value of a filter; empty if it is off.
    pub(super) fn get(&self, name: &str) -> &str {
        FIELDS.iter().position(|(known, _)| *known == name).map_or("", |place| &self.values[place])
    }

    /// Returns the value of a moment, formatted for an input of a form.
    pub(super) fn moment(&self, name: &str) -> String {
        moment(self.get(name)).map(input).unwrap_or_default()
    }

    /// Returns true unless this is the start of the list.
    pub(super) const fn is_further(&self) -> bool {
        self.before.is_some()
    }

    /// Returns true if a filter is on.
    pub(super) fn is_filtered(&self) -> bool {
        self.values.iter().any(|value| !value.is_empty())
    }

    /// Returns the choices of a filter.
    pub(super) fn choices<const N: usize>(&self, name: &str, known: [(&'static str, &'static str); N]) -> Vec<Choice> {
        let asked = self.get(name);
        known.map(|(value, label)| Choice { value, label: label.to_owned(), chosen: value == asked }).into()
    }

    /// Returns the query of the same filters with these changes; an empty value removes one.
    pub(super) fn address(&self, changes: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for ((name, _), value) in FIELDS.iter().zip(&self.values) {
            let value = changes.iter().find(|(changed, _)| changed == name).map_or(value.as_str(), |(_, value)| value);
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        for (name, value) in changes.iter().filter(|(name, _)| *name == "before") {
            query.append_pair(name, value);
        }
        format!("?{}", query.finish())
    }

    /// Returns the query of the same filters.
    pub(super) fn same(&self) -> String {
        self.address(&[])
    }

    /// Returns the active filters.
    pub(super) fn chips(&self, events: &[(String, String, bool)]) -> Vec<Chip> {
        let words = |name: &str, value: &str| {
            let known: Option<&str> = match name {
                "status" => STATUSES.iter().find(|(known, ..)| *known == value).map(|(_, label, _)| *label),
                "why" => Some(why(Some(value))),
                "webhook" => WEBHOOKS.iter().find(|(known, _)| known.as_str() == value).map(|(_, label)| *label),
                "channel" => CHANNELS.iter().find(|(known, _)| *known == value).map(|(_, label)| *label),
                "event" => events.iter().find(|(id, ..)| id == value).map(|(_, name, _)| name.as_str()),
                _ => None,
            };
            known.unwrap_or(value).to_owned()
        };
        let on = FIELDS.iter().zip(&self.values).filter(|(_, value)| !value.is_empty());
        on.map(|((name, label), value)| Chip {
            words: format!("{label}: {}", words(name, value)),
            without: self.address(&[(name, "")]),
        })
        .collect()
    }

    /// Returns the filter, and the number of the ledger's entry before which the list begins.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn filter(
        &self,
        service: &Service,
        caller: &Caller,
        events: &[Event],
    ) -> Result<(Filter, Option<u64>), ServiceError> {
        let set = |name| Some(self.get(name)).filter(|value| !value.is_empty());
        let find = set("find");
        let named = |text: &str| {
            let text = text.to_lowercase();
            let has_it = move |event: &&Event| event.terms.name.as_str().to_lowercase().contains(&text);
            events.iter().filter(has_it).map(|event| event.id).collect()
        };
        let mut before = self.before;
        if let Some(to) = set("to").and_then(moment) {
            let end = entries_before(&service.store, &caller.client, to).await? + 1;
            before = Some(before.map_or(end, |before| before.min(end)));
        }
        let filter = Filter {
            status: set("status")
                .and_then(|name| STATUSES.iter().find(|(known, ..)| *known == name))
                .map(|(.., status)| *status),
            channel: set("channel").map(str::to_owned),
            // An id of an event may also be searched for.
            event: set("event").or(find).and_then(|id| id.parse().ok()),
            code: set("why").map(str::to_owned),
            webhook: set("webhook").and_then(|state| state.parse().ok()),
            text: find.filter(|text| text.parse::<sakshi_domain::ids::EventId>().is_err()).map(str::to_owned),
            events: find.map(named).unwrap_or_default(),
            exact_reference: None,
            from: set("from").and_then(moment),
        };
        Ok((filter, before))
    }
}

/// Parses a moment as browsers send it: with its zone, or in UTC without one.
fn moment(text: &str) -> Option<Timestamp> {
    Timestamp::parse_iso8601(text).or_else(|| Timestamp::parse_iso8601(&format!("{text}:00Z")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_older_ones_asks_the_same() {
        let asked = ListFilters::of("status=verified&find=order+7%265&channel=&before=x");
        assert_eq!(asked.address(&[("before", "41")]), "?find=order+7%265&status=verified&before=41");
        assert_eq!(ListFilters::of(&asked.address(&[("before", "41")])[1..]).before, Some(41));
        assert!(asked.is_filtered() && !ListFilters::of("before=41").is_filtered());
    }

    #[test]
    fn a_chip_tells_its_filter_and_takes_it_off() {
        let asked = ListFilters::of("status=not_verified&why=301&webhook=lost");
        let chips: Vec<_> = asked.chips(&[]).into_iter().map(|chip| (chip.words, chip.without)).collect();
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
    fn a_moment_has_its_zone_or_is_in_utc() {
        let at = Timestamp::parse_iso8601("2026-03-01T10:00:00Z");
        assert_eq!([moment("2026-03-01T10:00"), moment("2026-03-01T10:00:00.000Z"), moment("soon")], [at, at, None]);
    }
}
