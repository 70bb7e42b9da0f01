//! The list of all cases, in one place: `suite!` makes a test of each, and a test here finds a case that is not listed.

/// Makes one test of each case, over the fixtures that `$fixture` (a path that begins with `crate`) makes.
#[macro_export]
macro_rules! suite {
    ($fixture:path) => {
        $crate::suite! { @list tests $fixture }
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
            start {
                a_repeated_one_is_the_same
                of_many_at_once_one_counts
                leads_to_an_open_execution
                what_had_none_is_unknown
                is_served_by_an_engine_that_is_well
            }
            stop {
                a_cancellation_before_anybody_works_on_it
                a_cancellation_while_somebody_works_on_it
                a_cancellation_in_a_pause
                a_cancellation_after_the_end_changes_nothing
                a_repeated_cancellation_is_the_same
                a_termination_ends_it
            }
            ending {
                completed_is_without_an_error
                failed_names_the_node_and_cancels_the_rest
                timed_out_by_the_executions_timeout
                failed_where_an_input_cannot_be_made
            }
            flow {
                fans_out_and_in
                a_node_waits_for_all_before_it
                passes_params_and_outputs
                a_delay_takes_its_time
            }
            retry {
                what_fails_is_tried_again
                the_last_attempt_is_the_last
                an_attempt_that_hangs_is_cut_off
                what_a_dead_worker_had_is_done_by_another
                what_a_dead_worker_had_at_the_last_attempt_has_failed
            }
            call {
                sends_its_input_and_comes_to_the_answer
                a_404_is_for_good
                a_503_is_tried_again
                a_503_that_stays_fails_after_the_last_attempt
                a_retry_after_is_obeyed
                a_call_that_hangs_is_cut_off
            }
            trace {
                tasks_and_calls_are_part_of_the_requests
                a_call_with_a_header_of_its_own_keeps_it
            }
            many {
                a_graph_of_200_nodes
                random_graphs_end_as_foretold
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_case_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut written = BTreeSet::new();
        for entry in std::fs::read_dir(folder).expect("the sources are here") {
            let path = entry.expect("a file").path();
            let noun = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let text = std::fs::read_to_string(&path).expect("a source");
            for line in text.lines() {
                let case = line
                    .strip_prefix("pub async fn ")
                    .and_then(|rest| rest.split_once("(g: EngineFixture)"));
                written.extend(case.map(|(case, _)| format!("{noun}::{case}")));
            }
        }
        let listed: BTreeSet<String> = crate::suite!(@list names crate::fixture)
            .iter()
            .flat_map(|(noun, cases)| cases.iter().map(move |case| format!("{noun}::{case}")))
            .collect();
        assert_eq!(listed, written);
    }
}
