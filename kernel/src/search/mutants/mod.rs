//! The grader's own test: in each case the reference controller holds in every schedule, and the mutant, which is wrong in
//! one place, breaks the property that is named.

mod deletion;
mod kit;
pub mod memory;
pub mod names;
mod ownership;
mod stale;
mod status;
mod writers;

use kit::Case;

/// A case and its number in the catalogue.
type Numbered = (u32, fn() -> Case);

const ALL: &[Numbered] = &[
    (1, stale::recreated_owner),
    (2, stale::down_and_up),
    (3, stale::grow_only),
    (4, memory::half_resized),
    (5, memory::phase_in_memory),
    (6, stale::unobserved),
    (7, deletion::goes_on_after_finalizer),
    (8, deletion::foreground),
    (9, deletion::never_created),
    (10, deletion::deleted_while_down),
    (11, ownership::unwatched_child),
    (12, ownership::cluster_scoped_child),
    (13, names::random_name),
    (14, names::foreign_child),
    (15, names::shared_prefix),
    (16, writers::blind_puts),
    (17, writers::sent_again),
    (18, writers::two_owners_of_a_field),
    (19, status::fresh_timestamp),
    (20, status::unordered_list),
    (21, writers::ping_pong),
    (22, status::stuck_generation),
    (23, status::wrong_generation),
    (24, ownership::set_free),
    (25, ownership::adopted_again),
    (26, ownership::overlapping_selectors),
    (27, status::past_the_limiter),
    (28, writers::error_dropped),
    (29, names::lost_answer),
    (30, memory::deadline_in_a_timer),
];

#[test]
fn references_hold_and_mutants_break_what_is_named() {
    let mut told = Vec::new();
    for (number, case) in ALL {
        let case = case();
        if let Some(story) = &case.search(true).failure {
            told.push(format!("{number}: the reference breaks {story}"));
        }
        match &case.search(false).failure {
            Some(story) if story.property == case.breaks => {}
            Some(story) => told.push(format!("{number}: expected {}, the mutant breaks {story}", case.breaks)),
            None => told.push(format!("{number}: the mutant breaks nothing")),
        }
    }
    assert!(told.is_empty(), "\n{}", told.join("\n"));
}
