//! Names of tests: a test that fails says by its name what broke, in few words.

use crate::{files, none, shown};
use syn::visit::Visit;

/// Characters of a test's name at most.
const NAME_MAX: usize = 60;

/// Tests whose names are still longer, a line each. None may be added.
const LONG: &str = "
a_backup_that_is_cut_or_changed_is_refused_and_nothing_is_written
a_certificate_of_another_authority_is_rejected_by_the_coordinator
a_check_that_takes_long_is_copied_and_the_first_opinion_ends_it
a_coordinator_notifies_when_listening_and_stops_when_it_hangs
a_crash_between_mark_and_sweep_and_a_clock_that_jumps_let_nothing_go
a_damaged_record_is_refused_by_name_and_the_rest_can_be_exported
a_denied_identity_is_out_at_once_and_after_a_restart_until_it_is_allowed
a_flipped_bit_anywhere_in_the_journal_loses_nothing_in_silence
a_frame_has_its_first_round_whatever_that_takes_and_no_more_than_its_last
a_frame_is_resolved_when_another_node_has_rendered_its_checked_units_alike
a_frame_that_is_complete_is_finished_though_its_job_is_paused
a_fresh_certificate_is_not_renewed_and_the_coordinator_says_when
a_job_submitted_before_any_node_waits_for_a_device_that_can_hold_it
a_job_that_ran_out_of_memory_everywhere_ends_with_both_numbers
a_job_that_was_paused_at_its_end_can_be_retried_and_paused_again
a_job_with_an_option_that_is_unknown_here_is_given_back_as_not_able
a_lease_gets_what_is_missing_and_a_check_the_part_that_it_is_about
a_lease_that_was_taken_back_is_not_displaced_by_a_lie_about_its_epoch
a_missing_unit_of_a_round_is_an_error_and_so_is_one_of_no_tile
a_node_whose_certificate_ended_in_a_partition_renews_it_before_all_else
a_node_whose_devices_are_all_quarantined_is_unfit_and_says_what_ends_it
a_part_may_come_after_the_end_of_its_lease_and_after_a_restart
a_part_that_arrives_twice_counts_once_and_is_acknowledged_twice
a_pause_outlives_a_restart_and_so_does_what_a_node_has_finished
a_restart_knows_what_was_spent_and_forgets_the_round_that_is_open
a_result_is_offered_once_stored_and_removed_once_acknowledged
a_thin_pane_lets_through_in_its_colour_what_it_does_not_reflect
a_triangle_without_area_in_its_uvs_takes_its_neighbours_tangents
a_unit_has_four_parts_and_a_fifth_is_as_if_it_had_been_given_back
a_unit_in_parts_is_their_sum_and_parts_that_were_dropped_do_not_count
a_unit_that_does_not_get_on_is_taken_back_and_the_device_is_named
a_unit_that_gets_on_slowly_and_one_of_a_device_that_tells_nothing_are_left
a_unit_that_lacks_a_file_waits_costs_no_attempt_and_fails_after_the_bound
a_unit_that_takes_long_is_copied_once_and_the_copy_may_be_first
after_a_reconnect_the_outbox_is_offered_again_and_work_goes_on
an_entry_that_a_crash_tore_is_no_damage_and_damage_is_told_from_then_on
an_expired_certificate_ends_its_connection_and_says_what_to_do
an_incomplete_or_foreign_spool_is_an_error_and_leaves_nothing
an_order_to_measure_is_void_when_units_are_taken_back_meanwhile
an_order_to_resolve_is_void_when_units_are_taken_back_meanwhile
devices_without_a_result_count_like_the_slowest_and_strangers_not_at_all
every_light_is_at_the_end_of_its_trail_and_inside_of_every_part_on_it
every_sample_is_in_one_pass_and_every_pass_in_the_round_that_has_its_samples
every_wait_of_the_documents_is_a_setting_and_the_other_way_round
failed_frames_have_their_attempts_anew_and_finished_ones_stay
frames_of_a_job_that_goes_on_are_opened_again_beside_the_others
lights_in_one_place_and_lights_whose_places_grow_make_no_deep_tree
names_that_lead_elsewhere_are_refused_and_the_folder_stays_unfinished
nobody_is_told_before_the_commit_has_returned_and_groups_keep_the_order
of_many_nodes_that_would_all_take_long_somebody_gets_the_unit
of_three_nodes_the_one_that_says_something_else_is_quarantined_and_its_work_is_done_again
of_two_leases_the_first_to_fail_is_no_attempt_and_the_last_is
of_two_nodes_that_insist_none_is_believed_and_the_frame_fails_with_the_reason
one_node_of_ten_that_flips_a_bit_in_a_hundredth_of_its_results_is_found_and_no_picture_is_wrong
parts_of_a_node_that_is_found_out_elsewhere_are_dropped_and_the_rest_is_not_wanted
pausing_and_resuming_twice_is_harmless_and_a_job_that_ended_is_neither
rounds_that_a_liar_voids_are_rendered_again_whatever_the_time
running_out_of_memory_costs_no_attempt_and_takes_the_unit_to_a_larger_device
samples_of_a_node_that_leaves_count_and_another_renders_the_rest
samples_of_a_square_of_pixels_are_nets_for_any_number_of_them
scenes_that_cannot_be_prepared_end_their_jobs_and_are_no_nodes_fault
sine_and_cosine_are_right_to_two_units_in_the_last_place_of_one
tiles_go_on_that_are_too_noisy_and_those_beside_one_that_is_far_too_noisy
units_that_stand_still_together_may_end_their_frame_with_the_first
what_a_liar_said_before_it_was_found_out_is_not_heard_again_after_a_restart
what_is_known_of_liars_and_checks_survives_a_restart_and_a_snapshot
what_is_restored_is_the_farm_and_its_keys_are_readable_by_their_owner_alone
what_was_decided_of_lies_is_decided_again_and_every_frame_has_the_rounds_of_the_truth
what_was_measured_of_a_liars_units_is_void_and_so_is_what_came_after
where_bodies_overlap_the_place_belongs_to_the_higher_priority
";

/// Names of the tests of a file, in order.
#[derive(Default)]
struct Tests(Vec<String>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let is_test = function.attrs.iter().any(|attribute| {
            // `#[tokio::test]` too.
            attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
        });
        if is_test {
            self.0.push(function.sig.ident.to_string());
        }
        syn::visit::visit_item_fn(self, function);
    }
}

fn tests(text: &str) -> Result<Vec<String>, syn::Error> {
    let mut tests = Tests::default();
    tests.visit_file(&syn::parse_file(text)?);
    Ok(tests.0)
}

#[test]
fn names_of_tests_are_short() {
    let (mut findings, mut count) = (Vec::new(), 0);
    for path in files(&["rs"]) {
        let shown = shown(&path);
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        let tests = tests(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        count += tests.len();
        for name in tests {
            let length = name.chars().count();
            if length > NAME_MAX && !LONG.lines().any(|listed| listed == name) {
                findings.push(format!("{shown}: {name}: {length}"));
            }
        }
    }
    assert!(count > 1000, "{count} tests are found");
    none("names of tests above 60 characters", findings);
}

#[test]
fn tests_are_told_from_other_functions() {
    let text = "#[test]\nfn a() {}\nfn none() {}\nmod tests {\n#[tokio::test(flavor = \"x\")]\n\
                #[should_panic]\nasync fn b() {}\n#[cfg(test)]\nfn helper() {}\n}\n";
    assert_eq!(tests(text).expect("this is Rust"), ["a", "b"]);
}
