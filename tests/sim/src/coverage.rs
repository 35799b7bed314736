//! Coverage gaps: pairs of close faults, routes and webhook outcomes that no run has produced.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sakshi_domain::delivery::FailureReason;
use sakshi_web::routing::Row;

use crate::exempt::{EXEMPT, Exempt};
use crate::pairs;

/// Two faults this close count as a pair.
pub(crate) const CLOSE: Duration = Duration::from_secs(5);

/// Returns the name of a pair of faults.
pub(crate) fn pair(one: &str, other: &str) -> String {
    let (first, second) = if one <= other { (one, other) } else { (other, one) };
    format!("{first} + {second}")
}

/// Returns the name under which a route is counted, without ids and versions.
pub(crate) fn route(path: &str) -> String {
    // Their last parts may be words.
    let shortened = ["/cb", "/internal/v1/flows"].into_iter().find(|start| path.starts_with(&format!("{start}/")));
    let path = shortened.unwrap_or(path);
    let is_word = |part: &&str| !part.starts_with('{') && !part.chars().any(|letter| letter.is_ascii_digit());
    let path = path.split('?').next().unwrap_or_default();
    path.split('/').filter(is_word).collect::<Vec<_>>().join("/")
}

/// A kind of coverage, and its cases that runs should have produced, or should not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The kind.
    pub kind: &'static str,
    /// Number of all cases of the kind.
    pub all: usize,
    /// Cases that no run produces, each with the reason and the tests that have it instead.
    pub exempt: Vec<(String, String)>,
    /// Other cases that no run has produced.
    pub missing: Vec<String>,
    /// Cases that are exempt and were produced.
    pub produced: Vec<String>,
}

const PAIRS: &str = "pairs of faults within five seconds";
const ROUTES: &str = "routes";
const REASONS: &str = "reasons of failed webhooks";

/// Returns every case, by kind.
pub(crate) fn universe() -> [(&'static str, BTreeSet<String>); 3] {
    let rows = [sakshi_api::ROUTES, sakshi_pages::ROUTES, sakshi_portal::ROUTES].into_iter().flatten();
    let of_public = rows.map(|Row { method, path, .. }| format!("{method} {}", route(path)));
    let of_operators = sakshi_operator::operations()
        .into_iter()
        .map(|operation| format!("{} {}", operation.method, route(operation.path)));
    [
        (PAIRS, pairs::all().map(|[one, other]| pair(one, other)).collect()),
        (ROUTES, of_public.chain(of_operators).collect()),
        (REASONS, FailureReason::ALL.iter().map(|reason| reason.as_str().to_owned()).collect()),
    ]
}

/// Returns the gaps left by runs that produced `reached` and `met`.
#[must_use]
pub fn gaps(reached: &BTreeMap<String, u64>, met: &BTreeSet<String>) -> Vec<Gap> {
    // The first word is the status of the answer.
    let asked: BTreeSet<&str> =
        reached.keys().filter_map(|what| what.split_once(' ')).map(|(_, route)| route).collect();
    let is_produced = |kind: &str, case: &str| match kind {
        PAIRS => met.contains(case),
        ROUTES => asked.contains(case),
        _ => reached.contains_key(&format!("webhook failed: {case}")),
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
    universe().into_iter().map(gap).collect()
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
        assert_eq!((of_pairs.all, of_pairs.exempt.len(), of_pairs.missing.len()), (325, 0, 324));
        assert!(!of_pairs.missing.contains(&"kills + outages".to_owned()));
        assert!(!of_routes.missing.iter().any(|route| route.ends_with("ovse/init")), "{of_routes:?}");
        assert_eq!(of_routes.missing.len() + of_routes.exempt.len() + 1, of_routes.all);
        assert_eq!(of_reasons.missing.len() + 1, of_reasons.all);
    }

    #[test]
    fn an_exempt_case_that_was_produced_is_reported() {
        let case = EXEMPT.iter().flat_map(|exempt| exempt.cases).next().unwrap();
        let reached = BTreeMap::from([(format!("200 {case}"), 1)]);
        let produced: Vec<String> = gaps(&reached, &BTreeSet::new()).into_iter().flat_map(|gap| gap.produced).collect();
        assert_eq!(produced, [*case]);
    }

    #[test]
    fn a_route_has_neither_ids_nor_versions() {
        assert_eq!(route("/api/v1/nationalid-ovse/events/{eventId}/doors"), "/api/nationalid-ovse/events/doors");
        assert_eq!(route("/api/v1/nationalid-ovse/events/4f1c/doors?a=b"), "/api/nationalid-ovse/events/doors");
        assert_eq!(route("/api/v1/credits/statement?page_size=100"), "/api/credits/statement");
        assert_eq!(route("/internal/v1/flows/esign"), "/internal/flows");
        assert_eq!(route("/cb/abc/def"), "/cb");
        assert_eq!(route("/cb/{txnId}/{capability}"), "/cb");
    }
}
