//! The documentation of the interface for connectors: the code accepts its examples, and has the stated bounds.

use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::limits::{
    ACCOUNTS_MAX, DETAILS_DEPTH_MAX, DOCUMENTS_MAX, FOREIGN_ID_CHARS_MAX, REPORT_BYTES_MAX, REPORT_VALUES_MAX,
    SIGNERS_MAX, TEXT_CHARS_MAX,
};
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

#[test]
fn the_bounds_of_a_report_are_documented() {
    let reports = INTERFACE.split("\n## Reports\n").nth(1).expect("a section about reports");
    let thousands = |number: usize| format!("{},{:03}", number / 1_000, number % 1_000);
    assert_eq!(SIGNERS_MAX, DOCUMENTS_MAX);
    for bound in [
        format!("The limit is {} MiB", REPORT_BYTES_MAX >> 20),
        format!("1 to {FOREIGN_ID_CHARS_MAX} visible ASCII characters"),
        format!("at most {} characters", thousands(TEXT_CHARS_MAX)),
        format!("at most {SIGNERS_MAX} signers, signatories, documents or files, or {ACCOUNTS_MAX} accounts"),
        format!("at most {} JSON values", thousands(REPORT_VALUES_MAX)),
        format!("at most {DETAILS_DEPTH_MAX} deep"),
    ] {
        assert!(reports.contains(&bound), "{bound}");
    }
}
