//! Losses that a node concludes from the replies of its servers.

use super::*;

/// The marks of a store that has lost nothing, after three starts and one accepted loss.
const WHOLE: OwnMarks =
    OwnMarks { has_canary: true, single_starts: 3, scripted_starts: 3, lost_since: None, acceptances: 1, schema: None };
const NOW: Timestamp = Timestamp::from_millis(9);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Returns the loss that a node detects which has opened the store and knows of one accepted loss.
fn detected_loss(own: OwnMarks) -> Option<Timestamp> {
    let known = Knowledge { has_opened_store: true, acceptances: Some(1), ..Knowledge::default() };
    known.detect_loss(Some(own), &[], NOW)
}

#[test]
fn a_store_whose_marks_went_back_has_lost_data() {
    assert_eq!(detected_loss(WHOLE), None);
    assert_eq!(detected_loss(OwnMarks { scripted_starts: 4, ..WHOLE }), None, "a node may end between its two counts");
    assert_eq!(
        detected_loss(OwnMarks { acceptances: 2, has_canary: false, ..WHOLE }),
        None,
        "an operator has accepted the loss meanwhile"
    );
    assert_eq!(
        detected_loss(OwnMarks { lost_since: Some(at(4)), acceptances: 2, ..WHOLE }),
        Some(at(4)),
        "another node has noticed"
    );
    for own in [
        OwnMarks { scripted_starts: 2, ..WHOLE },
        OwnMarks { has_canary: false, ..WHOLE },
        OwnMarks { has_canary: false, single_starts: 0, scripted_starts: 0, ..WHOLE },
        OwnMarks { acceptances: 0, ..WHOLE },
    ] {
        assert_eq!(detected_loss(own), Some(NOW), "{own:?}");
    }
}

#[test]
fn an_empty_store_that_nobody_has_opened_has_lost_nothing() {
    let empty = OwnMarks { has_canary: false, single_starts: 0, scripted_starts: 0, acceptances: 0, ..WHOLE };
    assert_eq!(Knowledge::default().detect_loss(Some(empty), &[], NOW), None);
    let started = OwnMarks { single_starts: 1, scripted_starts: 1, ..empty };
    assert_eq!(Knowledge::default().detect_loss(Some(started), &[], NOW), Some(NOW), "a started store has a canary");
}

#[test]
fn a_shorter_list_reveals_when_its_missing_data_was_last_seen() {
    let known_length = |length, time| KnownLength { list_key: vec![], length, noted_at: at(time) };
    let (older, newer) = (known_length(5, 100), known_length(7, 200));
    let known = Knowledge::default();
    assert_eq!(known.detect_loss(None, &[(&older, 5), (&newer, 8)], at(900)), None);
    assert_eq!(known.detect_loss(None, &[(&older, 5), (&newer, 6)], at(900)), Some(at(200)));
    assert_eq!(known.detect_loss(None, &[(&older, 0), (&newer, 0)], at(900)), Some(at(100)));
}

#[test]
fn a_guard_remembers_the_latest_list_with_a_number_and_its_greatest_length() {
    let guard = LossGuard::default();
    for (list, length) in [(b"a", 2), (b"a", 3), (b"a", 1)] {
        guard.record_length(0, list.to_vec(), length);
    }
    guard.record_length(AUDIT_LOG_NUMBER, b"audit".to_vec(), 9);
    let lengths = |guard: &LossGuard| guard.comparison().lengths.iter().map(|known| known.length).collect::<Vec<_>>();
    assert_eq!(lengths(&guard), [3, 9]);
    guard.record_length(0, b"b".to_vec(), 1);
    assert_eq!(lengths(&guard), [1, 9]);
}

/// Returns the marks of a store as its servers reply.
fn marks(scripted_starts: &str, lost_since: &str, acceptances: &str) -> Value {
    // Canary, starts by single commands and by scripts, time of the loss, acceptances, schema.
    let marks = ["c", "3", scripted_starts, lost_since, acceptances, ""];
    Value::Array(marks.map(|mark| Value::BulkString(mark.into())).to_vec())
}

#[test]
fn replies_from_before_an_operator_accepted_a_loss_do_not_stop_the_node_afterwards() {
    let shorter = || Some(Value::Int(1));
    let with_list = |guard: &LossGuard| {
        guard.record_length(3, b"list".to_vec(), 2);
        guard.comparison()
    };
    let check = |guard: &LossGuard, acceptances| {
        let marks = Some(marks("3", "", acceptances));
        guard.evaluate(&LossGuard::comparison_without_lists(), vec![marks], Coverage::AllServers).unwrap()
    };
    for marks in [None, Some(marks("3", "4", "1")), Some(marks("3", "", "1"))] {
        let guard = LossGuard::default();
        check(&guard, "1");
        let asked = with_list(&guard);
        check(&guard, "2");
        guard.evaluate_server(&asked, vec![marks, shorter()]).unwrap();
        assert!(guard.admit().is_ok(), "a connection was being opened while the loss was accepted");
    }
    let guard = LossGuard::default();
    check(&guard, "1");
    let asked = with_list(&guard);
    guard.evaluate_server(&asked, vec![None, shorter()]).unwrap();
    assert!(guard.admit().is_err());
    assert_eq!(check(&guard, "2").0, None, "a loss that this node noticed after its acceptance");
    assert!(guard.admit().is_ok());
    guard.evaluate_server(&with_list(&guard), vec![None, shorter()]).unwrap();
    assert!(guard.admit().is_err(), "another loss");
}

#[test]
fn a_recorded_loss_is_distinguished_from_an_unrecorded_one() {
    let guard = LossGuard::default();
    let recorded_loss = |lost| {
        let marks = marks("2", lost, "0");
        let comparison = LossGuard::comparison_without_lists();
        let (lost_since, own) = guard.evaluate(&comparison, vec![Some(marks)], Coverage::AllServers).unwrap();
        assert!(lost_since.is_some() && guard.admit().is_err());
        own.unwrap().lost_since
    };
    assert_eq!(recorded_loss(""), None, "this node is the first to notice");
    assert_eq!(recorded_loss("4"), Some(at(4)));
}

#[test]
fn a_single_server_or_a_comparison_without_lists_never_ends_a_loss() {
    let guard = LossGuard::default();
    guard.record_length(3, b"list".to_vec(), 2);
    let comparison = guard.comparison();
    // This server does not have the store's own marks.
    let answers = |length| vec![None, Some(Value::Int(length))];
    guard.evaluate_server(&comparison, answers(1)).unwrap();
    assert!(guard.admit().is_err());
    guard.evaluate_server(&comparison, answers(2)).unwrap();
    assert!(guard.admit().is_err(), "another server may still lack something");
    let without_lists = LossGuard::comparison_without_lists();
    guard.evaluate(&without_lists, vec![Some(marks("3", "", "0"))], Coverage::AllServers).unwrap();
    assert!(guard.admit().is_err(), "the lists were not compared");
    guard.evaluate(&comparison, answers(2), Coverage::AllServers).unwrap();
    assert!(guard.admit().is_ok());
}
