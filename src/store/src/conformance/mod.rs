//! The conformance suite: properties that every [`Store`] must have.
//!
//! [`store_conformance!`](crate::store_conformance) generates one test for each property, from an expression that
//! creates a fresh [`TestStore`]. Properties check outcomes only, never the layout of the data.
// These are tests, in the library so that the tests of every store can run them. A failed expectation must panic.
#![allow(clippy::unwrap_used, clippy::panic)]

pub(crate) mod audit_log;
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
pub(crate) mod wealth;
pub(crate) mod workload;

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
    /// Returns the time by the store's clock.
    fn now(&self) -> Timestamp;
    /// Advances the store's clock.
    fn advance(&self, span: Duration);
    /// Returns true if the store loses responses and retries calls.
    fn loses_answers(&self) -> bool {
        false
    }
}

/// A store with a clock that the test advances.
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

/// Runs a property to completion.
///
/// # Panics
/// If the property does not hold.
pub(crate) fn run<T>(property: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(property)
}

/// Generates one `#[test]` per property, each on a fresh [`TestStore`] from the expression. The form with servers
/// generates one test for all properties, on stores that share servers that are slow to start.
#[macro_export]
macro_rules! store_conformance {
    ($(#[$attribute:meta])* $name:ident: $servers:ident = $start:expr => $test:expr) => {
        $crate::store_conformance! { @properties (@all $(#[$attribute])* $name, $servers, $start, $test) }
    };
    ($test:expr) => {
        $crate::store_conformance! { @properties (@each $test) }
    };
    (@properties ($($how:tt)+)) => {
        $crate::store_conformance! { $($how)+;
            transactions::opening_debits_the_balance_and_stores_the_transaction,
            transactions::eighty_concurrent_opens_on_25_credits_open_exactly_25,
            transactions::repeating_an_open_under_its_id_debits_once,
            transactions::an_unknown_client_has_no_credits,
            transactions::an_idempotency_key_replays_its_first_answer_and_refuses_another_body,
            transactions::concurrent_requests_under_one_idempotency_key_open_one_transaction,
            transactions::an_idempotency_key_expires,
            transactions::repeating_an_open_under_its_id_and_idempotency_key_is_not_a_replay,
            transactions::a_refused_open_leaves_no_idempotency_record,
            transactions::an_unknown_transaction_is_not_found,
            transactions::the_bytes_of_an_intent_are_stored_while_the_transaction_is_pending,
            completion::completing_stores_the_result_and_queues_one_webhook,
            completion::a_transaction_without_a_webhook_url_queues_no_delivery,
            completion::an_equal_answer_is_a_repetition_and_a_different_one_is_refused,
            completion::one_of_several_racing_answers_wins,
            completion::a_transaction_expires_by_the_clock_of_the_store,
            completion::a_window_that_was_ended_early_stays_ended,
            completion::either_an_answer_or_the_end_of_the_window_wins_a_race,
            completion::a_credential_is_refused_under_another_transaction_in_the_replay_window,
            completion::a_holder_bound_credential_is_not_a_replay,
            completion::one_credential_racing_under_two_transactions_completes_one,
            completion::an_unknown_transaction_cannot_be_completed,
            completion::passing_the_known_transaction_changes_no_outcome,
            completion::evidence_is_stored_and_removed_with_the_result,
            lists::a_summary_has_the_first_time_of_each_step_of_a_transaction,
            lists::the_figures_of_a_day_add_up_and_a_repeated_call_counts_once,
            lists::flows_are_listed_for_their_app_while_they_are_retained,
            credits::grants_and_adjustments_move_the_balance_and_are_repeatable,
            credits::a_reference_identifies_one_amount_of_one_kind,
            credits::the_balance_never_leaves_its_range,
            credits::a_statement_has_every_entry_once_on_its_pages,
            credits::concurrent_movements_add_up,
            credits::an_audit_covers_every_client,
            outbox::a_delivery_is_claimed_at_most_once,
            outbox::due_deliveries_are_ordered_and_can_be_filtered_by_receiver,
            outbox::a_delivery_can_be_attempted_after_its_result_has_expired,
            outbox::the_backlog_counts_unfinished_deliveries_and_has_the_oldest_time,
            outbox::the_first_outcome_of_an_attempt_stands,
            outbox::an_unclaimed_delivery_cannot_be_settled,
            outbox::abandoned_attempts_are_unknown_and_never_due_again,
            outbox::an_abandoned_attempt_can_still_get_its_real_outcome,
            tenancy::clients_apps_and_keys_are_created_once,
            tenancy::apps_and_keys_require_an_existing_client,
            tenancy::clients_are_listed_by_creation_on_pages,
            tenancy::a_client_is_renamed_limited_suspended_and_resumed,
            tenancy::a_logo_is_stored_until_it_is_removed,
            tenancy::a_patch_of_an_app_changes_only_the_named_fields,
            tenancy::a_key_is_found_by_its_digest_together_with_the_requested_app,
            tenancy::a_rotated_key_works_until_its_overlap_ends,
            tenancy::a_revoked_key_keeps_the_time_of_its_first_revocation,
            transfers::an_export_contains_everything_of_a_client_except_credits,
            transfers::an_import_reproduces_the_export_and_can_be_repeated,
            transfers::an_import_applies_its_changes_and_keeps_other_records,
            transfers::an_import_does_not_restore_a_revoked_key,
            transfers::an_import_with_foreign_ids_or_digests_names_them_and_changes_nothing,
            transfers::an_import_that_changes_nothing_does_not_mark_the_client_as_imported,
            transfers::racing_imports_of_one_client_create_it_once,
            refusals::the_newest_refused_requests_of_an_app_are_stored_newest_first,
            refusals::a_refused_request_expires,
            audit_log::entries_of_the_audit_log_form_one_chain,
            audit_log::racing_entries_are_all_in_the_audit_log,
            audit_log::the_receiver_of_the_audit_log_gets_every_entry_in_order,
            client_log::the_log_of_a_client_is_read_in_pages_newest_entry_first,
            client_log::concurrent_first_entries_of_a_month_are_all_in_the_log,
            client_log::erasing_a_client_erases_its_log,
            consents::an_answered_verification_is_in_the_register_once,
            consents::a_guest_who_is_refused_a_place_has_given_consent,
            consents::the_register_is_read_in_pages_by_the_time_of_asking,
            consents::the_register_survives_erasure_until_its_retention_ends,
            consents::concurrent_first_consents_of_a_week_are_all_stored,
            consents::a_query_finds_the_only_match_among_many_entries_of_its_week,
            operators::an_operator_is_found_by_its_token_and_listed_by_creation,
            operators::a_revoked_operator_keeps_the_time_of_the_first_revocation,
            console::use_extends_a_console_session_up_to_its_end,
            console::an_ended_console_session_is_gone_immediately,
            console::the_end_of_provider_sessions_is_found_by_issuer_and_name,
            console::a_grant_request_is_decided_once_by_a_second_operator,
            console::an_undecided_grant_request_expires_and_can_be_made_again,
            sessions::a_session_is_stored_once_under_its_digest,
            sessions::at_most_one_caller_takes_a_session_and_none_after_its_end,
            sessions::an_idle_session_ends_permanently,
            sessions::use_extends_a_session_up_to_its_end,
            sessions::an_ended_session_is_gone_immediately,
            users::an_invitation_link_works_once_until_it_expires,
            users::an_email_address_has_one_user_and_a_user_needs_a_client,
            users::each_code_works_once_in_a_race,
            users::a_disabled_or_reset_user_cannot_sign_in,
            users::the_sessions_of_a_user_are_listed_switched_and_ended,
            users::a_user_is_found_together_with_the_client_and_the_requested_app,
            users::erasing_a_client_erases_its_users,
            tenancy::the_use_of_a_key_is_recorded_once_in_an_interval,
            erasure::erasing_a_transaction_removes_its_webhook_and_response_but_no_ledger_entry,
            erasure::an_erased_pending_transaction_cannot_be_completed,
            erasure::an_erased_guest_keeps_only_the_place,
            erasure::erasing_an_event_erases_its_guests_and_their_transactions,
            erasure::erasing_an_app_does_not_affect_other_apps,
            erasure::erasing_a_client_erases_the_data_of_all_its_apps,
            erasure::erasing_an_owner_erases_reports_that_outlive_their_flows,
            events::an_event_is_created_once_and_read_unchanged,
            events::an_event_requires_an_existing_client,
            events::an_idempotency_key_creates_one_event,
            events::the_events_of_an_app_are_listed_by_creation_with_their_counts,
            events::a_patch_of_an_event_changes_only_the_named_fields,
            events::racing_patches_of_an_event_are_all_applied,
            events::one_of_several_patches_of_the_same_version_is_applied,
            events::a_patch_that_contradicts_the_event_changes_nothing,
            events::an_event_of_another_app_cannot_be_changed,
            events::the_number_of_events_of_an_app_is_limited,
            events::a_suspended_client_takes_no_new_guests_but_pending_ones_can_finish,
            events::transactions_without_an_event_change_no_event,
            guests::a_scan_costs_a_credit_and_takes_no_place,
            guests::the_refusals_of_a_scan_have_a_fixed_precedence,
            guests::a_guest_who_passes_is_registered_and_reported_to_the_current_url,
            guests::the_url_of_a_guest_has_priority_over_the_url_of_the_event,
            guests::a_guest_who_does_not_pass_takes_no_place_and_is_not_reported,
            guests::a_guest_who_finds_no_place_at_completion_is_refused,
            guests::ten_of_forty_guests_racing_for_ten_places_are_registered,
            guests::a_credential_used_elsewhere_takes_no_place,
            guests::pending_scans_are_limited_and_end_with_their_windows,
            guests::concurrent_scans_spend_at_most_the_budget,
            guests::registrations_are_listed_in_order_and_pages_are_stable,
            people::a_person_with_a_known_trait_is_marked_as_a_duplicate,
            people::duplicates_are_refused_or_ignored_as_the_event_says,
            people::one_of_many_concurrent_registrations_of_a_person_is_the_first,
            people::a_person_is_not_recognised_at_another_event,
            people::a_guest_is_checked_in_once_by_concurrent_gates,
            people::erasing_a_guest_removes_the_duplicate_marks_that_name_the_guest,
            people::a_person_is_recognised_after_the_first_registration_is_erased,
            people::concurrent_registrations_after_an_erasure_are_all_duplicates,
            people::an_erased_guest_has_no_name_and_no_traits_but_stays_checked_in,
            flows::the_result_of_a_flow_expires_after_the_retention_of_its_client,
            flows::opening_a_flow_twice_opens_it_once,
            flows::an_idempotency_key_opens_one_flow_and_an_unknown_client_none,
            flows::three_identical_reports_queue_one_delivery,
            flows::raw_then_analysed_then_raw_again_queues_two,
            flows::accepted_accepted_revoked_queues_two_webhooks,
            flows::a_deduplication_key_of_two_flows_has_one_webhook,
            flows::one_of_several_racing_contradictory_reports_wins,
            flows::racing_reports_of_one_flow_are_all_accepted,
            flows::a_flow_without_a_url_completes_without_a_webhook_and_can_be_fetched,
            flows::a_registered_url_applies_immediately_and_a_response_url_has_priority,
            flows::racing_registrations_of_urls_all_apply,
            flows::a_flow_of_another_app_is_not_found,
            flows::a_report_with_an_unfinished_delivery_is_retained,
            flows::the_outcome_of_an_attempt_for_a_flow_is_recorded,
            flows::the_operator_sees_the_deliveries_of_a_flow_in_order_with_summaries,
            flows::a_document_lapses_by_the_clock_of_the_store_and_is_reported_once,
            flows::a_document_still_lapses_at_the_end_of_the_grace_after_its_deadline,
            flows::a_document_of_ten_mebibytes_is_stored_once_and_returned,
            flows::deliveries_of_flows_and_transactions_share_one_order,
            wealth::a_consent_gets_its_notices_until_its_reported_end_and_some_days,
            wealth::each_report_keeps_a_consent_for_the_next_one_until_it_has_ended,
            intent_key::the_last_chosen_intent_key_stands_until_the_settings_decide_again,
            reseal::a_pass_checks_the_values_of_every_client,
            upkeep::an_event_of_a_client_with_a_shorter_retention_expires_earlier,
            upkeep::abandoned_scans_are_counted_before_and_after_they_are_swept,
            upkeep::a_scan_whose_window_has_ended_counts_as_abandoned_once,
            upkeep::an_expired_event_is_removed_with_its_registrations_but_not_deliveries,
            upkeep::a_partly_removed_event_is_hidden,
            upkeep::pages_of_a_long_list_of_events_are_complete_after_removals,
            upkeep::a_result_can_be_fetched_until_it_expires,
            upkeep::an_expired_transaction_can_be_read_during_the_grace_period,
            upkeep::a_transaction_with_an_unfinished_delivery_is_not_swept,
            upkeep::a_sweep_is_bounded,
            upkeep::idempotency_records_and_credentials_expire,
            upkeep::sweeping_does_not_change_the_ledger,
            upkeep::a_working_store_passes_the_write_check,
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
    (@all $(#[$attribute:meta])* $name:ident, $servers:ident, $start:expr, $test:expr;
        $($topic:ident::$property:ident),+ $(,)?) => {
        $(#[$attribute])*
        fn $name() {
            let $servers = $start;
            // Each store is closed before the next is opened.
            $({
                let test = $test;
                $crate::conformance::run($crate::conformance::$topic::$property(&test));
            })+
        }
    };
}
