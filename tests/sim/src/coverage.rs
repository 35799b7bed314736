//! Coverage gaps: pairs of close faults, routes and webhook outcomes that no run has produced.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sakshi_domain::delivery::FailureReason;
use sakshi_web::routing::Row;

use crate::exempt::{EXEMPT, Exempt};
use crate::pairs;

/// Longest time between two faults that count as a pair.
pub(crate) const PAIR_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// Returns the name of a pair of faults.
pub(crate) fn pair_name(one: &str, other: &str) -> String {
    let (first, second) = if one <= other { (one, other) } else { (other, one) };
    format!("{first} + {second}")
}

/// Returns the name under which runs count a route: its path without ids and versions.
pub(crate) fn route_name(path: &str) -> String {
    // The parts after these prefixes may look like words.
    let prefix = ["/cb", "/internal/v1/flows"].into_iter().find(|prefix| path.starts_with(&format!("{prefix}/")));
    let path = prefix.unwrap_or(path);
    let is_word = |part: &&str| !part.starts_with('{') && !part.chars().any(|letter| letter.is_ascii_digit());
    let path = path.split('?').next().unwrap_or_default();
    path.split('/').filter(is_word).collect::<Vec<_>>().join("/")
}

/// The coverage gaps of one kind of cases, such as routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The kind of cases.
    pub kind: &'static str,
    /// Number of all cases of the kind.
    pub all: usize,
    /// Cases that no run produces, each with the reason and the tests that have it instead.
    pub exempt: Vec<(String, String)>,
    /// Other cases that no run has produced.
    pub missing: Vec<String>,
    /// Cases that a run has produced although `exempt.rs` lists them.
    pub produced: Vec<String>,
}

const PAIRS: &str = "pairs of faults within five seconds";
const ROUTES: &str = "routes";
const REASONS: &str = "reasons of failed webhooks";

/// Returns every case that runs should produce, by kind.
pub(crate) fn all_cases() -> [(&'static str, BTreeSet<String>); 3] {
    let rows = [sakshi_api::ROUTES, sakshi_pages::ROUTES, sakshi_portal::ROUTES].into_iter().flatten();
    let public_routes = rows.map(|Row { method, path, .. }| format!("{method} {}", route_name(path)));
    let operator_routes = sakshi_operator::operations()
        .into_iter()
        .map(|operation| format!("{} {}", operation.method, route_name(operation.path)));
    [
        (PAIRS, pairs::all_pairs().map(|[one, other]| pair_name(one, other)).collect()),
        (ROUTES, public_routes.chain(operator_routes).collect()),
        (REASONS, FailureReason::ALL.iter().map(|reason| reason.as_str().to_owned()).collect()),
    ]
}

/// Returns the coverage gaps of finished runs, given what happened in them and the pairs of faults that met.
#[must_use]
pub fn gaps(occurrences: &BTreeMap<String, u64>, met_pairs: &BTreeSet<String>) -> Vec<Gap> {
    // An answered request is counted as "<status> <method> <route>".
    let requested_routes: BTreeSet<&str> =
        occurrences.keys().filter_map(|occurrence| occurrence.split_once(' ')).map(|(_, route)| route).collect();
    let is_produced = |kind: &str, case: &str| match kind {
        PAIRS => met_pairs.contains(case),
        ROUTES => requested_routes.contains(case),
        _ => occurrences.contains_key(&format!("webhook failed: {case}")),
    };
    let reason = |case: &str| EXEMPT.iter().find(|exempt| exempt.cases.contains(&case)).map(Exempt::to_string);
    let gap = |(kind, cases): (&'static str, BTreeSet<String>)| {
        let mut gap = Gap { kind, all: cases.len(), exempt: Vec::new(), missing: Vec::new(), produced: Vec::new() };
        for case in cases {
            match (reason(&case), is_produced(kind, &case)) {
                (None, true) => {}
                (None, false) => gap.missing.push(case),
                (Some(_), true) => gap.produced.push(case),
                (Some(reason), false) => gap.exempt.push((case, reason)),
            }
        }
        gap
    };
    all_cases().into_iter().map(gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[test]
    fn a_case_that_a_run_has_produced_is_no_gap() {
        let occurrences = BTreeMap::from([
            ("200 POST /api/nationalid-ovse/init".to_owned(), 1),
            ("webhook failed: reset".to_owned(), 2),
        ]);
        let pairs = BTreeSet::from([pair_name("outages", "kills")]);
        let [pair_gap, route_gap, reason_gap] = gaps(&occurrences, &pairs).try_into().unwrap();
        let all_pairs = Shape::FAULTS.len() * (Shape::FAULTS.len() - 1) / 2;
        assert_eq!((pair_gap.all, pair_gap.exempt.len(), pair_gap.missing.len()), (all_pairs, 0, all_pairs - 1));
        assert!(!pair_gap.missing.contains(&"kills + outages".to_owned()));
        assert!(!route_gap.missing.iter().any(|route| route.ends_with("ovse/init")), "{route_gap:?}");
        assert_eq!(route_gap.missing.len() + route_gap.exempt.len() + 1, route_gap.all);
        assert_eq!(reason_gap.missing.len() + 1, reason_gap.all);
    }

    #[test]
    fn an_exempt_case_that_was_produced_is_reported() {
        let case = EXEMPT.iter().flat_map(|exempt| exempt.cases).next().unwrap();
        let occurrences = BTreeMap::from([(format!("200 {case}"), 1)]);
        let produced: Vec<String> =
            gaps(&occurrences, &BTreeSet::new()).into_iter().flat_map(|gap| gap.produced).collect();
        assert_eq!(produced, [*case]);
    }

    #[test]
    fn a_route_has_neither_ids_nor_versions() {
        assert_eq!(route_name("/api/v1/nationalid-ovse/events/{eventId}/doors"), "/api/nationalid-ovse/events/doors");
        assert_eq!(route_name("/api/v1/nationalid-ovse/events/4f1c/doors?a=b"), "/api/nationalid-ovse/events/doors");
        assert_eq!(route_name("/api/v1/credits/statement?page_size=100"), "/api/credits/statement");
        assert_eq!(route_name("/internal/v1/flows/esign"), "/internal/flows");
        assert_eq!(route_name("/cb/abc/def"), "/cb");
        assert_eq!(route_name("/cb/{txnId}/{capability}"), "/cb");
    }
}
