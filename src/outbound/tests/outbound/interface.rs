//! The code that reads reports accepts the examples in the documentation of the interface for connectors.

use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_wire::reports::FlowReport;

const INTERFACE: &str = include_str!("../../README.md");

#[test]
fn every_kind_of_report_has_an_accepted_example() {
    let mut kinds = Vec::new();
    for section in INTERFACE.split("\n### ").skip(1) {
        let kind: ReportKind = section.split('`').nth(1).unwrap().parse().unwrap();
        let example = section.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let report = FlowReport::parse(kind, example.as_bytes());
        assert!(report.is_ok(), "{kind:?}: {}", report.unwrap_err());
        kinds.push(kind);
    }
    assert_eq!(kinds, ReportKind::ALL);
}
