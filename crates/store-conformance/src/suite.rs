//! The list of all cases, in one place: `suite!` makes a test of each, and a test here finds a case that is not listed.

/// Makes one test of each case, over the stores that `$fixture` (a path that begins with `crate`) makes.
#[macro_export]
macro_rules! suite {
    ($fixture:path) => {
        $crate::suite! { @list tests $fixture }
        $crate::suite_of_jobs! { tests $fixture }
        $crate::suite_of_graphs! { tests $fixture }
    };

    (@tests $fixture:path; $($noun:ident { $($case:ident)* })*) => {
        $(
            mod $noun {
                $(
                    #[::tokio::test(flavor = "multi_thread")]
                    async fn $case() {
                        $crate::$noun::$case($fixture().await).await;
                    }
                )*
            }
        )*
    };

    (@names $fixture:path; $($noun:ident { $($case:ident)* })*) => {
        &[$((stringify!($noun), &[$(stringify!($case)),*] as &[&str])),*] as &[(&str, &[&str])]
    };

    (@list $to:ident $fixture:path) => {
        $crate::suite! { @$to $fixture;
            workspace {
                is_read_back_as_it_was_made
                an_unknown_one_is_none_everywhere
                a_name_is_unique_until_its_workspace_is_deleted
                the_limit_is_the_override_or_the_plans
                a_change_touches_only_what_it_names
                a_limit_out_of_range_is_refused
                the_list_is_by_id_without_the_deleted
                is_found_by_its_name
                a_deleted_one_is_a_tombstone
                nothing_is_enqueued_in_a_deleted_one
                what_waits_in_a_deleted_one_fails_at_the_claim
                what_runs_in_a_deleted_one_runs_on
            }
            definition {
                begins_without_a_version
                a_name_is_unique_in_its_workspace_until_deleted
                needs_a_living_workspace
                the_list_is_by_id_without_the_deleted
                is_found_by_its_name_in_its_workspace
                versions_are_numbered_and_the_newest_is_current
                a_version_is_read_back_as_it_was_published
                nothing_is_published_for_an_unknown_or_deleted_one
                versions_published_at_once_get_numbers_of_their_own
                a_deleted_one_is_gone_but_its_versions_stay
                what_waits_of_a_deleted_one_fails_at_the_claim
            }
            request_enqueue {
                begins_pending_with_all_it_was_given
                is_due_at_once_unless_told_otherwise
                a_priority_out_of_range_is_refused
                pins_the_version_of_the_moment
                an_unknown_workspace_is_not_found
                is_all_or_none
                refuses_params_checked_against_an_older_version
                answers_in_the_order_asked
                may_mix_definitions_and_options
                of_nothing_is_nothing
                refuses_an_id_that_is_taken
                of_ten_thousand_is_one_call
                from_many_places_at_once_loses_nothing
            }
            request_idempotency {
                the_same_key_returns_the_first_request
                params_are_compared_as_json
                other_params_or_another_definition_is_a_conflict
                a_key_is_its_workspaces_own
                a_key_is_free_when_its_window_has_passed
                a_key_without_a_window_holds_until_its_request_is_pruned
                the_same_rule_holds_inside_one_call
                a_hundred_at_once_with_one_key_make_one_request
                overlapping_calls_with_keys_in_opposite_order_do_not_deadlock
            }
            request_claim {
                brings_all_that_is_needed_to_start
                makes_a_running_execution
                takes_at_most_its_batch_and_says_whether_there_is_more
                going_on_while_there_is_more_drains_everything
                what_came_between_claims_is_not_forgotten
                takes_nothing_before_its_time
                what_is_not_due_stands_in_nobodys_way
                settling_says_when_the_next_is_due
                says_how_long_until_the_next_is_due
                takes_nothing_that_backs_off
                says_since_when_it_was_due
                under_a_lock_needs_the_lock
                many_at_once_claim_each_request_once
                belongs_to_its_owner
                each_limit_is_exact
                a_large_limit_admits_all_that_waits
                a_slot_is_held_from_claim_to_end
                a_paused_workspace_admits_nothing_until_resumed
                what_becomes_due_in_a_pause_is_not_forgotten
                lowering_a_limit_admits_nothing_until_fewer_run
                lowering_a_plan_counts_holders_wherever_they_are
                raising_a_limit_admits_at_once
                tells_of_each_workspace_that_it_filled
                what_takes_no_slot_fills_nothing
                a_kept_execution_is_taken_up_again
                a_kept_one_comes_first_although_its_workspace_is_full
                a_kept_one_is_claimed_in_a_pause_and_above_the_limit
                kept_ones_are_served_oldest_first
                a_kept_one_that_backs_off_keeps_its_slot
                taking_one_up_again_is_not_a_turn
                a_kept_one_is_resolved_although_its_definition_is_gone
                tells_of_a_wish_to_cancel
                within_a_workspace_priority_then_oldest
                requests_of_one_moment_go_by_id
                the_oldest_is_the_one_enqueued_first
                what_was_given_back_keeps_its_place
                workspaces_take_turns
                a_large_batch_goes_round_several_times
                a_full_workspace_is_served_within_a_round_once_it_has_room
                a_newcomer_is_served_within_a_round
                a_full_workspace_delays_nobody
                many_full_workspaces_delay_nobody
                a_rejection_counts_and_takes_a_turn
                admissions_are_numbered_in_order
            }
            request_renew {
                extends_the_lease_from_now
                keeps_a_claim_from_being_recovered
                returns_those_that_are_still_held
                an_expired_claim_is_its_owners_until_recovered
                of_nothing_is_nothing
            }
            request_dispatched {
                ends_the_lease_and_keeps_the_slot
                repeated_is_the_same
                after_the_end_is_already_finished
                answers_each_in_order
                with_an_old_token_is_lost
                with_an_old_token_what_has_ended_is_already_finished
                an_expired_claim_can_still_be_marked
                tells_of_a_wish_to_cancel
            }
            request_release {
                each_kind_counts_and_keeps_what_it_should
                frees_the_slot_for_the_next
                after_a_definite_answer_the_next_execution_is_new
                refused_as_often_as_is_tried_is_exhausted
                only_refusals_exhaust
                without_an_error_keeps_the_last_one
                with_a_wish_to_cancel_ends_when_definite
                answers_each_in_order
                twice_in_one_call_counts_once
            }
            request_fail {
                ends_the_request_and_frees_the_slot
                takes_every_reason
                without_the_claim_changes_nothing
            }
            request_recover {
                keeps_execution_and_slot
                takes_only_what_has_expired
                takes_at_most_its_limit_and_is_idempotent
                from_many_places_at_once_recovers_each_once
            }
            request_cancel {
                of_one_that_waits_is_at_once
                of_one_that_is_not_due_is_at_once
                of_one_whose_start_is_open_is_a_wish
                of_an_unknown_start_ends_its_wait
                of_one_that_runs_is_for_the_engine
                of_one_that_has_ended_changes_nothing
                of_what_runs_is_listed_until_the_engine_is_told
                forced_is_told_although_the_lesser_wish_was
                of_what_does_not_run_is_not_listed
            }
            request_redrive {
                is_a_new_request_like_the_failed_one
                at_most_one_of_each_is_live
                of_a_redrive_is_possible
                needs_a_failed_request_and_a_living_definition
                many_at_once_make_one
                in_bulk_takes_each_once
                in_bulk_skips_what_could_only_fail_again
            }
            request_list {
                has_everything_newest_first
                filters_and_pages_miss_and_repeat_nothing
                a_page_begins_after_its_key
                an_unknown_request_is_none
                one_of_any_workspace_is_found_by_its_id
            }
            request_counts {
                begin_at_zero
                follow_every_transition
                equal_a_full_listing
            }
            request_oldest {
                of_what_has_ended_is_none
                of_each_status_is_since_it_was_reached
                what_is_for_later_waits_from_its_time_on
                who_stands_behind_a_delayed_one_is_seen
                many_delayed_ones_hide_nobody
                is_of_every_line
                startable_is_whoever_has_room
                a_kept_one_waits_too
                the_first_dispatched_counts_whoever_was_admitted_first
            }
            workspace_overview {
                of_nothing_is_empty
                counts_every_request_as_a_full_listing_does
                shows_slots_as_they_are_also_of_kept_executions
                shows_the_busiest_first
                shows_no_more_than_asked_and_counts_all
                leaves_deleted_ones_out
                is_exact_while_others_write
            }
            request_timeline {
                tells_a_whole_life_in_order
                agrees_with_the_requests_own_times
                of_an_unknown_request_is_empty
            }
            request_place {
                is_how_many_a_claim_takes_first
                is_counted_as_far_as_asked
                of_what_is_not_in_line_is_none
                what_has_become_due_is_in_line
                what_was_given_back_stands_where_it_stood
                workspaces_have_lines_of_their_own
            }
            execution_finish {
                each_end_has_its_status_and_reason
                of_a_claimed_one_goes_through_dispatched
                of_a_kept_one_goes_through_every_status
                of_a_kept_one_that_backs_off_works_too
                terminated_on_a_wish_is_cancelled
                completed_in_spite_of_a_wish_is_completed
                the_first_end_wins_and_answers_are_in_order
                of_one_that_was_not_started_is_not_found
                many_in_one_call_end_all
            }
            execution_list {
                has_every_one_last_admitted_first
                filters_and_pages_miss_and_repeat_nothing
                of_what_is_not_there_is_empty
                one_of_any_workspace_is_found_by_its_id
            }
            execution_list_active {
                has_every_running_one_by_workspace_and_admission
                goes_on_behind_one_that_ended
            }
            capacity_audit {
                finds_nothing_where_nobody_wrote_by_hand
                finds_nothing_in_what_was_just_freed
                mends_nothing_that_agrees
            }
            execution_list_running {
                has_those_that_run
                of_nothing_is_nothing
                takes_many_at_once
            }
            lock {
                a_free_one_is_taken
                a_held_one_is_held_for_everyone
                names_are_apart
                one_that_is_not_kept_is_free_at_its_end
                its_holder_keeps_it
                one_that_is_lost_is_lost
                one_given_back_is_free_at_once
                one_given_back_early_stays_for_at_least_its_time
                the_token_rises_with_every_taking
                the_list_shows_each_as_it_is
                of_many_at_once_one_gets_it
            }
            key {
                is_read_back_as_it_was_made
                an_unknown_one_is_none
                of_a_workspace_needs_it_to_live
                what_cannot_be_is_refused
                the_list_is_by_id
                a_revoked_one_stays_so_since_then
                the_first_is_made_where_no_administrator_is
                the_first_is_an_administrators
                of_many_firsts_at_once_one_is_made
            }
            instance {
                is_as_it_last_said
                one_not_seen_for_long_is_forgotten
                one_that_beats_is_not_forgotten
                one_that_leaves_is_gone
                many_at_once_are_all_there
                the_time_is_the_stores
            }
            change {
                from_the_oldest_is_every_timeline
                from_now_on_is_what_happens_from_now_on
                of_an_empty_store_is_empty
                a_cursor_can_be_used_again
                goes_on_after_any_single_change
                of_one_workspace_is_its_timelines
                a_reader_of_a_quiet_workspace_moves_on
                what_is_no_cursor_is_refused
                while_many_write_misses_and_repeats_nothing
            }
            prune {
                takes_the_whole_of_a_request
                leaves_what_has_not_ended
                takes_only_what_ended_before
                takes_the_oldest_first_and_at_most_its_limit
                clears_keys_whose_window_has_passed
                leaves_a_redrive_alone
            }
            bounds {
                a_claim_takes_no_more_than_one_may
                sweeps_asked_for_everything_end
                pages_hold_no_more_than_one_may
            }
            isolation {
                anothers_definitions_do_not_exist
                anothers_requests_do_not_exist
                anothers_executions_do_not_exist
                anothers_line_does_not_exist
                anothers_changes_do_not_exist
                anothers_keys_do_not_exist
                anothers_definition_is_forbidden
                a_bulk_redrive_leaves_anothers_alone
                changes_of_one_workspace_touch_no_other
                a_workspace_nobody_made_owns_nothing
            }
            transition {
                what_is_not_claimed_is_not_renewed
                what_is_not_claimed_is_not_dispatched
                what_is_not_claimed_is_not_released
                what_is_not_claimed_is_not_failed
                what_is_not_claimed_is_not_recovered
                what_is_not_pending_is_not_claimed
                what_has_ended_stays_as_it_is
                what_was_not_started_does_not_end
                what_is_not_failed_is_not_redriven
                a_claim_obeys_only_its_owner_and_token
            }
            wake {
                new_work_wakes
                a_freed_slot_wakes
                a_claim_given_back_wakes
                a_changed_workspace_wakes
                a_ring_before_the_wait_is_not_lost
                nothing_else_wakes
                a_wish_to_cancel_what_runs_wakes
                kinds_are_apart
            }
            race {
                everything_at_once_keeps_every_promise
                changing_limits_meanwhile_keeps_every_promise
                many_claimers_never_exceed_a_limit
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// Every `pub async fn … (f: Fixture)` below `path`, as `noun::case`.
    fn cases_in(noun: &str, path: &Path, found: &mut BTreeSet<String>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                cases_in(noun, &entry.unwrap().path(), found);
            }
            return;
        }
        for line in fs::read_to_string(path).unwrap().lines() {
            let name = line
                .strip_prefix("pub async fn ")
                .and_then(|rest| rest.split_once("(f: Fixture)"));
            if let Some((name, _)) = name {
                found.insert(format!("{noun}::{name}"));
            }
        }
    }

    #[test]
    fn every_case_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut written = BTreeSet::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let noun = path.file_stem().unwrap().to_str().unwrap().to_owned();
            cases_in(&noun, &path, &mut written);
        }
        let listed: BTreeSet<String> = crate::suite!(@list names crate::clock)
            .iter()
            .chain(crate::suite_of_jobs!(names crate::clock))
            .chain(crate::suite_of_graphs!(names crate::clock))
            .flat_map(|(noun, cases)| cases.iter().map(move |case| format!("{noun}::{case}")))
            .collect();
        assert_eq!(listed, written);
    }
}
