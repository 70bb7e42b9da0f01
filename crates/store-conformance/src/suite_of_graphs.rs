//! The list of all cases about graphs that run in a store; `suite!` takes it in.

/// Hands the cases about graphs to one of the arms of `suite!`.
#[macro_export]
#[doc(hidden)]
macro_rules! suite_of_graphs {
    ($to:ident $fixture:path) => {
        $crate::suite! { @$to $fixture;
            graph_start {
                puts_the_first_nodes_into_their_queues
                a_nodes_own_retry_and_timeout_hold
                calls_and_pauses_have_queues_of_their_own
                twice_is_once
                many_at_once_start_one
                of_what_does_not_run_is_not_found
                of_a_binding_is_refused
                a_first_node_without_its_input_fails_the_execution
            }
            graph_nodes {
                are_in_the_order_of_the_graph_with_their_times
                tell_of_attempts_while_they_run
                of_an_unknown_execution_are_none
                outputs_that_do_not_fit_are_left_out
                outputs_outlive_their_jobs
                go_with_their_request
            }
            graph_stop {
                each_has_its_status_and_reason
                jobs_are_failed_and_leases_are_lost
                others_are_left_alone
                of_one_that_has_ended_changes_nothing
                of_an_unknown_one_is_not_found
                before_it_was_dispatched_goes_through_every_status
                many_at_once_stop_it_once
            }
            graph_settle {
                a_job_that_lost_its_last_lease_fails_its_node
                a_lease_that_a_claim_took_back_counts_too
                a_lost_lease_with_attempts_left_fails_nothing
                a_timeout_that_has_passed_ends_the_graph
                what_ended_in_time_is_left_alone
                what_was_spent_in_an_ended_graph_means_nothing
                two_spent_nodes_end_a_graph_once
                takes_at_most_its_limit
                from_many_places_at_once_settles_each_once
            }
            node_finish {
                a_diamond_runs_to_its_end
                outputs_are_kept_and_passed_on
                giving_a_nodes_job_back_costs_no_attempt
                a_nodes_job_is_not_cancelled_by_itself
                without_the_lease_nothing_is_changed
                a_lost_failure_takes_nothing_from_the_others
                of_two_for_one_claim_the_first_counts
                coming_back_is_only_the_jobs_matter
                a_failed_node_fails_the_execution
                ends_of_one_call_follow_each_other
                a_node_without_its_input_fails_the_execution
                an_end_before_dispatched_goes_through_every_status
                a_queue_that_keeps_nothing_keeps_outputs
                a_thousand_nodes_run_to_their_end
                nodes_ring_for_workers_and_the_end_for_dispatchers
            }
            job_finish_kinds {
                one_call_ends_jobs_of_every_kind
                a_call_without_claims_answers_nothing
            }
            node_told {
                tells_which_executions_it_ended
                jobs_go_on_with_the_trace_of_their_request
            }
            node_race {
                the_last_of_a_fan_in_begins_the_next_once
                everything_at_once_keeps_every_promise
            }
        }
    };
}
