//! Coverage gaps: pairs of close faults, routes and webhook outcomes that no run has produced.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sakshi_domain::delivery::FailureReason;
use sakshi_web::routing::Row;

use crate::world::Shape;

/// Two faults this close count as a pair.
pub(crate) const CLOSE: Duration = Duration::from_secs(5);

/// Returns the name of a pair of faults.
pub(crate) fn pair(one: &str, other: &str) -> String {
    let (first, second) = if one <= other { (one, other) } else { (other, one) };
    format!("{first} + {second}")
}

/// Returns the name under which a route is counted, without ids and versions.
pub(crate) fn route(path: &str) -> String {
    let path = if path.starts_with("/cb/") { "/cb" } else { path };
    let is_word = |part: &&str| !part.starts_with('{') && !part.chars().any(|letter| letter.is_ascii_digit());
    let route = path.split('/').filter(is_word).collect::<Vec<_>>().join("/");
    route.split('?').next().unwrap_or_default().to_owned()
}

/// A kind of coverage, and its cases that no run has produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The kind.
    pub kind: &'static str,
    /// Number of all cases of the kind.
    pub all: usize,
    /// Cases that no run has produced.
    pub missing: Vec<String>,
}

fn gap(kind: &'static str, all: BTreeSet<String>, is_produced: impl Fn(&str) -> bool) -> Gap {
    Gap { kind, all: all.len(), missing: all.into_iter().filter(|one| !is_produced(one)).collect() }
}

/// Returns the gaps left by runs that produced `reached` and `pairs`.
#[must_use]
pub fn gaps(reached: &BTreeMap<String, u64>, pairs: &BTreeSet<String>) -> Vec<Gap> {
    let faults = Shape::FAULTS.iter().enumerate();
    let all = faults
        .flat_map(|(number, one)| Shape::FAULTS[number + 1..].iter().map(move |other| pair(one, other)))
        .collect();
    let rows = [sakshi_api::ROUTES, sakshi_pages::ROUTES, sakshi_portal::ROUTES].into_iter().flatten();
    let of_public = rows.map(|Row { method, path, .. }| format!("{method} {}", route(path)));
    let of_operators = sakshi_operator::operations()
        .into_iter()
        .map(|operation| format!("{} {}", operation.method, route(operation.path)));
    // The first word is the status of the answer.
    let asked: BTreeSet<&str> =
        reached.keys().filter_map(|what| what.split_once(' ')).map(|(_, route)| route).collect();
    let reasons = FailureReason::ALL.iter().map(|reason| reason.as_str().to_owned()).collect();
    vec![
        gap("pairs of faults within five seconds", all, |pair| pairs.contains(pair)),
        gap("routes", of_public.chain(of_operators).collect(), |route| asked.contains(route)),
        gap("reasons of failed webhooks", reasons, |reason| reached.contains_key(&format!("webhook failed: {reason}"))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_produced_is_no_gap() {
        let reached = BTreeMap::from([
            ("200 POST /api/nationalid-ovse/init".to_owned(), 1),
            ("webhook failed: reset".to_owned(), 2),
        ]);
        let pairs = BTreeSet::from([pair("outages", "kills")]);
        let [of_pairs, of_routes, of_reasons] = gaps(&reached, &pairs).try_into().unwrap();
        assert_eq!((of_pairs.all, of_pairs.missing.len()), (325, 324));
        assert!(!of_pairs.missing.contains(&"kills + outages".to_owned()));
        assert!(!of_routes.missing.iter().any(|route| route.ends_with("ovse/init")), "{of_routes:?}");
        assert_eq!(of_routes.missing.len() + 1, of_routes.all);
        assert_eq!(of_reasons.missing.len() + 1, of_reasons.all);
    }

    #[test]
    fn a_route_has_neither_ids_nor_versions() {
        assert_eq!(route("/api/v1/nationalid-ovse/events/{eventId}/doors"), "/api/nationalid-ovse/events/doors");
        assert_eq!(route("/api/v1/nationalid-ovse/events/4f1c/doors?a=b"), "/api/nationalid-ovse/events/doors");
        assert_eq!(route("/cb/abc/def"), "/cb");
        assert_eq!(route("/cb/{txnId}/{capability}"), "/cb");
    }
}
