//! The list of all cases about jobs and their queues; `suite!` takes it in.

/// Hands the cases about jobs to one of the arms of `suite!`.
#[macro_export]
#[doc(hidden)]
macro_rules! suite_of_jobs {
    ($to:ident $fixture:path) => {
        $crate::suite! { @$to $fixture;
            queue {
                an_unknown_one_is_none
                the_first_job_makes_it
                is_read_back_as_it_was_set
                a_change_touches_only_what_it_names
                the_list_is_by_name
                queues_are_apart
                counts_say_where_jobs_are
                a_paused_one_gives_nothing
                settings_hold_for_jobs_that_wait
            }
            queue_overview {
                of_nothing_is_empty
                says_what_runs_and_what_waits
                counts_what_waits_as_far_as_asked
                counts_what_waits_in_every_place
                shows_the_busiest_first_and_no_more_than_asked
            }
            job_enqueue {
                is_read_back_as_it_was_given
                a_plain_one_follows_its_queue
                payloads_are_kept_to_the_letter
                the_past_is_now
                a_wait_counts_from_now
                answers_in_the_order_asked
                of_nothing_is_nothing
                is_all_or_none
                of_many_is_one_call
                from_many_places_at_once_loses_nothing
            }
            job_dedup {
                a_key_answers_its_job_until_that_has_ended
                every_end_frees_a_key
                a_window_holds_whatever_becomes_of_the_job
                a_passed_window_is_taken_over
                a_window_outlives_its_job
                of_equal_keys_in_one_call_the_first_is_put_in
                a_key_is_its_queues_own
                keys_are_compared_to_the_letter
                a_key_is_kept_through_the_queue
                a_hundred_at_once_with_one_key_make_one_job
                keys_in_opposite_orders_do_not_deadlock
                an_enqueue_that_races_the_end_makes_at_most_one
            }
            job_claim {
                brings_all_that_is_needed_to_work
                a_later_attempt_knows_of_the_earlier
                the_lease_is_the_claims_or_the_queues
                a_lease_out_of_bounds_is_the_nearest
                takes_at_most_what_was_asked_for
                priority_then_oldest_then_id
                what_waited_is_merged_with_what_is_fresh
                a_line_that_was_read_is_not_closed
                takes_nothing_before_its_time
                tells_when_the_next_is_due
                due_times_are_exact
                the_token_rises_with_each_claim
                two_hundred_at_once_are_claimed_and_ended_alone
                takes_no_more_than_one_may
                many_that_become_due_at_once_are_all_claimed
                every_priority_has_its_line
                of_a_paused_queue_is_nothing
            }
            job_renew {
                extends_the_lease_from_now
                may_shorten_the_lease
                keeps_only_those_that_are_named
                returns_those_that_are_held
                an_expired_lease_cannot_be_renewed
                an_earlier_claim_of_the_same_worker_is_lost
                renews_many_at_once
                progress_is_the_holders
                progress_is_kept_until_the_end
            }
            job_finish {
                completed_keeps_its_result
                failed_for_good_keeps_its_error
                failed_is_tried_again_by_its_policy
                waits_are_jittered_as_the_core_says
                the_queues_policy_of_now_holds
                failed_is_tried_again_when_the_worker_says
                snoozed_and_given_back_are_no_attempts
                a_wait_for_ever_is_a_long_one
                completed_ones_are_forgotten_where_the_queue_says_so
                answers_each_in_order
                the_first_of_two_counts
                without_the_lease_changes_nothing
                an_expired_lease_cannot_finish
                a_long_error_is_clipped
            }
            job_requeue {
                a_sweep_queues_it_again_at_once
                on_the_last_attempt_it_fails
                a_claim_takes_it_back_itself
                a_claim_fails_what_is_exhausted
                takes_at_most_its_limit_and_is_idempotent
                a_sweep_of_everything_ends
                takes_only_what_has_expired
                leases_of_one_claim_expire_one_by_one
                what_was_taken_back_keeps_its_place
                every_queue_is_swept
                from_many_places_at_once_takes_each_back_once
                the_slow_worker_cannot_end_what_another_took_over
            }
            job_limit {
                a_queues_limit_is_exact
                without_a_limit_there_is_no_end
                a_limit_that_is_not_reached_is_not_told
                every_end_makes_room
                room_is_counted_job_by_job
                lowered_below_what_runs_it_admits_nothing
                of_nothing_admits_nothing
                the_limit_of_all_holds_over_queues
                the_tighter_of_two_limits_counts
                an_expired_lease_makes_room_for_a_claim
                an_exhausted_lease_makes_room_for_a_claim
                an_expired_lease_elsewhere_makes_room_under_the_limit_of_all
                what_the_limit_held_back_keeps_its_place
            }
            job_cancel {
                of_what_waits_is_at_once
                of_what_waits_for_its_time_is_at_once
                of_what_runs_changes_nothing
                of_what_has_ended_changes_nothing
                that_races_a_claim_is_either
            }
            job_list {
                has_everything_newest_first
                filters_pass_what_fits
                a_page_begins_after_its_key
                a_page_holds_no_more_than_one_may
                an_unknown_job_is_none
            }
            job_prune {
                takes_only_what_ended_before
                leaves_what_has_not_ended
                takes_the_oldest_first_and_at_most_its_limit
                of_everything_ends
                deletes_keys_whose_window_has_passed
                disturbs_nobody_at_work
            }
            job_wake {
                a_new_job_rings
                a_job_that_comes_back_rings
                room_rings
                room_under_the_limit_of_all_rings
                a_ring_before_the_wait_is_not_lost
                everyone_who_listens_hears_it
                nothing_else_rings
            }
            job_race {
                everything_at_once_keeps_every_promise
                many_claimers_never_exceed_a_limit
                a_renewal_that_races_expiry_holds_or_is_lost
                of_many_finishes_at_once_one_counts
                claims_that_race_sweeps_bring_each_once
            }
            seed_004 {
                rule_4_2_1_the_states_are_queued_running_completed_failed
                rule_4_2_1_work_starts_by_moving_one_job_from_queued_to_running
                rule_4_2_1_only_the_lease_owner_completes_or_fails
                rule_4_2_2_claiming_sets_owner_and_lease_end
                rule_4_2_2_renewing_before_expiry_keeps_the_lease
                rule_4_2_2_heartbeat_is_guarded_by_owner_status_and_token
                rule_4_2_2_a_heartbeat_of_nothing_is_a_lost_lease
                rule_4_2_3_a_lease_that_ends_now_is_owned_by_nobody
                rule_4_2_3_requeue_clears_owner_and_lease
                rule_4_2_3_requeue_runs_in_a_sweep_and_in_a_claim
                rule_4_2_3_requeue_is_idempotent_and_safe_under_concurrency
                rule_4_2_4_a_crashed_workers_job_is_claimed_again
                rule_4_2_4_recovery_is_driven_by_the_lease_alone
                rule_4_2_4_at_most_w_jobs_run
                rule_4_2_4_capacity_of_expired_leases_comes_back
                rule_4_2_5_a_claim_is_one_transaction
                rule_4_2_5_two_workers_never_claim_the_same_job
                rule_4_2_5_owner_updates_need_id_owner_and_running
                rule_4_2_5_candidates_are_due_and_go_by_priority_and_age
                step_6_1_cleanup_requeues_expired_leases
                step_6_2_a_claim_brings_a_job_or_how_long_to_sleep
                step_6_3_heartbeats_move_the_end_of_the_lease
                step_6_4_finalizing_clears_the_lease
                step_6_5_lease_loss_is_a_value_and_changes_nothing
                step_6_6_a_crash_leads_to_another_attempt_under_a_higher_token
                step_6_7_only_living_leases_count_against_the_bound
            }
        }
    };
}
