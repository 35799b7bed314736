//! Properties of every store, run against any [`Store`].
//!
//! [`store_conformance!`](crate::store_conformance) makes one test of each property. The store under test comes from an
//! expression that makes a fresh [`TestStore`] for each of them. Properties check outcomes only, never the layout of
//! the data.
// These are tests, in a library so that every implementation can run them: a broken expectation
// must end the test.
#![allow(clippy::unwrap_used, clippy::panic)]

pub(crate) mod audit_log;
pub(crate) mod business;
pub(crate) mod client_log;
pub(crate) mod completion;
pub(crate) mod consents;
pub(crate) mod console;
pub(crate) mod credits;
pub(crate) mod erasure;
pub(crate) mod events;
pub(crate) mod fixture;
pub(crate) mod flips;
pub(crate) mod flow_fixture;
pub(crate) mod flows;
pub(crate) mod guests;
pub(crate) mod intent_key;
pub(crate) mod lists;
pub(crate) mod models;
pub(crate) mod next_schema;
pub(crate) mod operators;
pub(crate) mod outbox;
pub(crate) mod people;
pub(crate) mod reading;
pub(crate) mod refusals;
pub(crate) mod reseal;
pub(crate) mod sessions;
pub(crate) mod tenancy;
pub(crate) mod transactions;
pub(crate) mod transfers;
pub(crate) mod upkeep;
pub(crate) mod users;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::time::Timestamp;

use crate::Store;

/// A fresh store and its clock.
pub(crate) trait TestStore {
    /// Returns the store under test.
    fn store(&self) -> &Store;
    /// Returns the store's clock.
    fn now(&self) -> Timestamp;
    /// Moves the store's clock forward.
    fn advance(&self, span: Duration);
    /// Returns true if the store loses answers and repeats them.
    fn loses_answers(&self) -> bool {
        false
    }
}

/// A store and its clock, which the test moves.
pub(crate) struct ClockedStore<S> {
    pub(crate) store: S,
    pub(crate) clock: Arc<ManualClock>,
}

impl<S: Deref<Target = Store>> TestStore for ClockedStore<S> {
    fn store(&self) -> &Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

/// Runs one property to its end.
///
/// # Panics
/// When the property does not hold.
pub(crate) fn run<T>(property: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(property)
}

/// Makes one `#[test]` for each property, on the fresh [`TestStore`] from the expression; or one test for all of them,
/// on stores that share slow-starting servers.
#[macro_export]
macro_rules! store_conformance {
    ($name:ident: $servers:ident = $start:expr => $test:expr) => {
        $crate::store_conformance! { @properties (@all $name, $servers, $start, $test) }
    };
    ($test:expr) => {
        $crate::store_conformance! { @properties (@each $test) }
    };
    (@properties ($($how:tt)+)) => {
        $crate::store_conformance! { $($how)+;
            transactions::opening_debits_the_balance_and_keeps_what_was_asked_for,
            transactions::eighty_concurrent_opens_on_25_credits_open_exactly_25,
            transactions::an_open_repeated_under_its_id_debits_once,
            transactions::an_unknown_client_has_no_credits,
            transactions::an_idempotency_key_replays_its_first_answer_and_refuses_another_body,
            transactions::concurrent_requests_under_one_idempotency_key_open_one_transaction,
            transactions::an_idempotency_key_is_forgotten_after_its_time,
            transactions::an_open_repeated_under_its_id_and_idempotency_key_is_no_replay,
            transactions::a_refused_open_leaves_no_idempotency_record,
            transactions::an_unknown_transaction_is_not_found,
            transactions::what_pages_make_the_intent_of_is_kept_while_the_transaction_waits,
            completion::completing_keeps_the_result_and_queues_one_webhook,
            completion::without_a_webhook_url_nothing_is_queued,
            completion::the_same_answer_again_is_repeated_and_another_one_is_refused,
            completion::of_two_racing_answers_one_wins,
            completion::a_transaction_expires_by_the_clock_of_the_store,
            completion::a_window_that_is_ended_before_its_time_stays_over,
            completion::of_an_answer_and_an_end_of_the_window_that_race_one_wins,
            completion::a_credential_is_refused_under_another_transaction_while_its_window_lasts,
            completion::a_credential_that_its_holder_bound_to_a_transaction_is_no_replay,
            completion::one_credential_racing_under_two_transactions_completes_one,
            completion::an_unknown_transaction_cannot_be_completed,
            completion::what_a_caller_knows_of_a_transaction_changes_no_outcome,
            completion::evidence_is_kept_beside_the_result_and_goes_with_it,
            lists::a_summary_tells_the_steps_of_a_transaction_each_at_its_first_time,
            lists::figures_of_a_day_are_added_up_and_a_repeated_call_counts_once,
            lists::flows_are_listed_for_their_app_while_they_are_kept,
            credits::grants_and_adjustments_move_the_balance_and_are_repeatable,
            credits::a_reference_means_one_amount_and_one_kind,
            credits::the_balance_never_leaves_its_range,
            credits::a_statement_has_every_entry_once_on_its_pages,
            credits::concurrent_movements_add_up,
            credits::an_audit_covers_every_client,
            outbox::a_delivery_is_claimed_at_most_once,
            outbox::due_deliveries_come_in_order_after_a_position_and_of_one_receiver,
            outbox::a_delivery_that_waits_longer_than_its_result_can_be_polled_is_still_made,
            outbox::the_backlog_counts_what_has_not_ended_and_knows_the_oldest,
            outbox::the_first_record_of_an_attempt_stands,
            outbox::a_delivery_that_was_not_claimed_cannot_be_settled,
            outbox::abandoned_attempts_are_unknown_and_never_due_again,
            outbox::who_made_an_attempt_that_was_given_up_may_still_say_how_it_ended,
            tenancy::clients_apps_and_keys_are_created_once,
            tenancy::apps_and_keys_need_their_client,
            tenancy::clients_are_listed_by_creation_on_pages,
            tenancy::a_client_is_renamed_limited_suspended_and_resumed,
            tenancy::a_logo_is_kept_until_it_is_removed,
            tenancy::a_patch_changes_what_it_names,
            tenancy::a_key_is_found_by_its_digest_with_the_app_that_was_named,
            tenancy::a_rotated_key_works_until_its_overlap_ends,
            tenancy::a_revoked_key_stays_revoked_as_of_the_first_time,
            transfers::an_export_has_all_of_a_client_but_its_credits,
            transfers::an_imported_client_is_exported_as_it_came_and_a_second_import_changes_nothing,
            transfers::an_import_with_changes_makes_them_and_leaves_what_is_here_alone,
            transfers::no_import_brings_a_revoked_key_back,
            transfers::ids_and_digests_of_others_are_named_and_nothing_is_imported,
            transfers::an_import_of_what_was_created_here_marks_nothing_until_it_changes_something,
            transfers::racing_imports_of_one_client_end_as_one,
            refusals::refused_requests_are_kept_for_their_app_the_newest_first_and_not_too_many,
            refusals::a_refused_request_is_forgotten_after_its_time,
            audit_log::entries_of_the_audit_log_follow_each_other_in_one_chain,
            audit_log::entries_that_race_are_all_in_the_audit_log,
            audit_log::the_receiver_of_the_audit_log_gets_every_entry_in_order,
            client_log::the_log_of_a_client_is_read_in_parts_the_newest_entry_first,
            client_log::entries_that_race_for_a_new_month_are_all_in_the_log,
            client_log::the_log_goes_with_what_is_erased_of_its_client,
            consents::a_verification_that_is_answered_is_in_the_register_once,
            consents::a_guest_without_a_place_has_shared_all_the_same,
            consents::the_register_is_read_in_parts_by_the_time_of_the_question,
            consents::the_register_stays_as_it_is_until_its_own_time_is_over,
            consents::consents_that_race_for_a_new_week_are_all_kept,
            consents::a_period_of_which_little_is_asked_for_is_read_all_the_same,
            operators::an_operator_is_found_by_its_token_and_listed_by_creation,
            operators::a_revoked_operator_stays_revoked_as_of_the_first_time,
            console::a_session_of_the_console_is_kept_while_it_is_used_and_never_beyond_its_end,
            console::a_session_of_the_console_that_was_ended_is_gone_at_once,
            console::the_end_of_sessions_at_a_provider_is_known_by_issuer_and_name,
            console::a_grant_waits_for_a_second_person_and_is_decided_once,
            console::a_grant_that_nobody_decides_ends_after_a_day_and_can_be_asked_for_again,
            sessions::a_session_is_kept_once_under_its_digest_and_no_other,
            sessions::a_session_is_taken_by_one_caller_at_most_and_by_none_after_its_end,
            sessions::a_session_ends_when_it_was_idle_for_too_long_and_is_not_brought_back,
            sessions::use_prolongs_a_session_and_never_beyond_its_end,
            sessions::a_session_that_was_ended_is_gone_at_once,
            users::a_user_is_invited_by_a_link_that_works_once_and_for_its_time,
            users::an_address_has_one_user_and_a_user_needs_a_client,
            users::each_code_works_once_in_a_race,
            users::a_user_who_is_disabled_or_reset_does_not_sign_in,
            users::the_sessions_of_a_user_are_listed_switched_and_ended,
            users::a_user_is_found_with_the_client_and_the_app_that_was_named,
            users::what_is_erased_of_a_client_is_that_of_its_users_too,
            tenancy::the_use_of_a_key_is_noted_once_in_an_interval,
            erasure::an_erased_transaction_is_gone_with_its_webhook_and_its_kept_answer_and_the_ledger_stays,
            erasure::an_erased_transaction_that_waits_cannot_be_completed,
            erasure::an_erased_guest_keeps_the_place_and_nothing_else,
            erasure::an_erased_event_is_gone_with_all_that_guests_have_begun,
            erasure::what_is_erased_of_an_app_leaves_other_apps_alone,
            erasure::what_is_erased_of_a_client_is_that_of_all_its_apps,
            events::an_event_is_created_once_and_read_as_it_is,
            events::an_event_needs_its_client,
            events::an_idempotency_key_creates_one_event,
            events::the_events_of_an_app_are_listed_by_creation_with_their_counts,
            events::a_patch_of_an_event_changes_what_it_names,
            events::patches_that_race_for_an_event_are_all_made,
            events::of_two_changes_that_have_seen_the_same_event_one_is_made,
            events::a_patch_that_contradicts_what_has_happened_changes_nothing,
            events::an_event_of_another_app_cannot_be_changed,
            events::an_app_has_no_more_events_than_its_client_may,
            events::a_suspended_client_takes_no_guests_and_keeps_those_that_have_begun,
            events::transactions_without_an_event_do_not_touch_one,
            guests::a_scan_costs_a_credit_and_takes_no_place,
            guests::a_scan_is_refused_as_not_found_then_disabled_then_expired_then_full_then_unpaid,
            guests::a_guest_who_passes_is_registered_and_reported_to_the_url_of_the_moment,
            guests::a_guest_is_reported_to_its_own_url_first_and_without_any_to_none,
            guests::a_guest_who_does_not_pass_takes_no_place_and_is_not_reported,
            guests::a_guest_whose_answer_finds_no_place_ends_as_refused,
            guests::forty_guests_racing_for_ten_places_are_ten_registered_and_thirty_refused,
            guests::a_credential_used_elsewhere_takes_no_place,
            guests::no_more_scans_wait_than_may_and_those_whose_window_has_passed_wait_no_more,
            guests::guests_spend_no_more_than_the_budget_however_many_scan_at_once,
            guests::registrations_are_listed_in_order_and_pages_are_stable,
            people::a_person_with_a_trait_of_a_guest_is_marked_with_the_first_one,
            people::a_person_is_refused_where_nobody_registers_twice_and_not_looked_for_where_all_may,
            people::of_many_who_come_at_once_as_one_person_one_is_the_first,
            people::a_person_is_not_recognised_at_another_event,
            people::a_guest_is_checked_in_once_however_many_doors_try,
            people::nothing_says_of_an_erased_guest_who_the_person_is,
            people::an_erased_guest_has_no_name_and_is_not_recognised_and_stays_checked_in,
            flows::the_result_of_a_flow_goes_after_the_clients_own_time,
            flows::a_flow_opened_twice_is_opened_once,
            flows::an_idempotency_key_opens_one_flow_and_an_unknown_client_none,
            flows::three_identical_reports_queue_one_delivery,
            flows::raw_then_analysed_then_raw_again_queues_two,
            flows::accepted_accepted_revoked_queues_two_with_a_body_each,
            flows::a_key_that_two_flows_of_an_app_report_has_one_webhook,
            flows::of_two_racing_contradicting_reports_one_wins,
            flows::racing_reports_of_one_flow_are_all_taken_in,
            flows::without_a_url_a_flow_completes_silently_and_can_be_fetched,
            flows::a_registered_url_holds_at_once_and_a_response_url_comes_first,
            flows::racing_registrations_of_one_app_all_hold,
            flows::another_apps_flow_is_not_found,
            flows::a_flow_whose_delivery_has_not_ended_is_kept,
            flows::the_attempt_of_a_flow_is_recorded_as_that_of_a_transaction,
            flows::the_operator_sees_every_delivery_of_a_flow_in_order_with_what_it_tells,
            flows::a_document_lapses_by_the_clock_of_the_store_and_is_reported_once,
            flows::a_document_of_ten_mebibytes_is_kept_once_and_handed_out,
            flows::flows_and_transactions_wait_in_one_order,
            intent_key::the_last_choice_of_an_intent_key_stands_until_the_settings_decide_again,
            reseal::a_pass_looks_at_the_values_of_every_client,
            upkeep::an_event_of_a_client_with_a_shorter_time_goes_earlier,
            upkeep::abandoned_scans_are_counted_at_any_moment_and_after_they_are_swept,
            upkeep::a_scan_whose_window_is_ended_is_abandoned_once,
            upkeep::an_event_goes_with_its_registrations_after_its_time_and_its_deliveries_do_not,
            upkeep::nobody_sees_half_of_an_event,
            upkeep::every_page_of_a_long_list_of_events_is_found_before_and_after_some_have_gone,
            upkeep::a_result_can_be_fetched_for_its_time_and_no_longer,
            upkeep::an_expired_transaction_can_be_read_until_its_grace_has_passed,
            upkeep::a_transaction_whose_delivery_has_not_ended_is_never_swept,
            upkeep::a_sweep_is_bounded,
            upkeep::idempotency_records_and_credentials_are_forgotten_after_their_time,
            upkeep::sweeping_leaves_the_ledger_as_it_is,
            upkeep::a_working_store_says_that_a_write_would_succeed,
        }
    };
    (@each $test:expr; $($topic:ident::$property:ident),+ $(,)?) => {
        $(
            #[test]
            fn $property() {
                let test = $test;
                $crate::conformance::run($crate::conformance::$topic::$property(&test));
            }
        )+
    };
    (@all $name:ident, $servers:ident, $start:expr, $test:expr; $($topic:ident::$property:ident),+ $(,)?) => {
        #[test]
        fn $name() {
            let $servers = $start;
            $(
                let test = $test;
                $crate::conformance::run($crate::conformance::$topic::$property(&test));
            )+
        }
    };
}
