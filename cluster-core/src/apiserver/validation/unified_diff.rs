//! Two texts compared line by line, with three lines around each change, as Kubernetes' messages show them. Which lines
//! belong together is decided as in Python's difflib: the longest run that both have, then the same before and behind it.

use std::collections::BTreeMap;
use std::ops::Range;

const CONTEXT: usize = 3;

/// In texts of so many lines, a line that fills more than a hundredth of them begins no run.
const POPULAR_LINES_MIN: usize = 200;

/// The changes that make `new` of `old`; empty if there are none.
pub fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut text = String::new();
    for hunk in hunks(&changes(&old, &new)) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let before = first.old.start.saturating_sub(CONTEXT);
        let after = CONTEXT.min(old.len() - last.old.end);
        let shown_old = before..last.old.end + after;
        let shown_new = first.new.start - (first.old.start - before)..last.new.end + after;
        text.push_str(&format!("@@ -{} +{} @@\n", range(&shown_old), range(&shown_new)));
        let mut lines =
            |mark: char, lines: &[&str]| lines.iter().for_each(|line| text.push_str(&format!("{mark}{line}\n")));
        let mut at = before;
        for change in hunk {
            lines(' ', &old[at..change.old.start]);
            lines('-', &old[change.old.clone()]);
            lines('+', &new[change.new.clone()]);
            at = change.old.end;
        }
        lines(' ', &old[at..shown_old.end]);
    }
    text
}

/// Lines of the old text that became other lines.
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// Changes with little between them are shown together.
fn hunks(changes: &[Change]) -> impl Iterator<Item = &[Change]> {
    changes.chunk_by(|one, next| next.old.start - one.old.end <= 2 * CONTEXT)
}

/// First line and number of lines; the number is left out if it is one, and nothing stands behind the line before.
fn range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, &line) in new.iter().enumerate() {
        places.entry(line).or_default().push(place);
    }
    if new.len() >= POPULAR_LINES_MIN {
        places.retain(|_, places| places.len() <= new.len() / 100 + 1);
    }
    let mut runs = Vec::new();
    common_runs((old, 0..old.len()), (new, 0..new.len()), &places, &mut runs);
    runs.push((old.len(), new.len(), 0));
    let (mut changes, mut old_at, mut new_at) = (Vec::new(), 0, 0);
    for (old_start, new_start, length) in runs {
        if old_at < old_start || new_at < new_start {
            changes.push(Change { old: old_at..old_start, new: new_at..new_start });
        }
        (old_at, new_at) = (old_start + length, new_start + length);
    }
    changes
}

/// The runs of lines that both texts have in these ranges, in their order: where each begins in either, and how long it is.
fn common_runs(
    (old, old_range): (&[&str], Range<usize>),
    (new, new_range): (&[&str], Range<usize>),
    places: &BTreeMap<&str, Vec<usize>>,
    runs: &mut Vec<(usize, usize, usize)>,
) {
    let (old_start, new_start, length) = longest_run((old, &old_range), (new, &new_range), places);
    if length == 0 {
        return;
    }
    common_runs((old, old_range.start..old_start), (new, new_range.start..new_start), places, runs);
    runs.push((old_start, new_start, length));
    common_runs((old, old_start + length..old_range.end), (new, new_start + length..new_range.end), places, runs);
}

fn longest_run(
    (old, old_range): (&[&str], &Range<usize>),
    (new, new_range): (&[&str], &Range<usize>),
    places: &BTreeMap<&str, Vec<usize>>,
) -> (usize, usize, usize) {
    let mut best = (old_range.start, new_range.start, 0);
    // By its last line in the new text, the length of the run that ends at the line of the old text before this one.
    let mut ending: BTreeMap<usize, usize> = BTreeMap::new();
    for place in old_range.clone() {
        let mut ending_here = BTreeMap::new();
        for &other in places.get(old[place]).into_iter().flatten().filter(|other| new_range.contains(*other)) {
            let length = 1 + other.checked_sub(1).and_then(|before| ending.get(&before)).copied().unwrap_or(0);
            ending_here.insert(other, length);
            if length > best.2 {
                best = (place + 1 - length, other + 1 - length, length);
            }
        }
        ending = ending_here;
    }
    // Lines that begin no run lengthen one.
    let (mut old_start, mut new_start, mut length) = best;
    while old_start > old_range.start && new_start > new_range.start && old[old_start - 1] == new[new_start - 1] {
        (old_start, new_start, length) = (old_start - 1, new_start - 1, length + 1);
    }
    while old_start + length < old_range.end
        && new_start + length < new_range.end
        && old[old_start + length] == new[new_start + length]
    {
        length += 1;
    }
    (old_start, new_start, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        assert_eq!(
            unified(old, "1\n2\n3\n4\nfive\n6\n7\n8\n9"),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!(unified(old, old), "");
    }

    #[test]
    fn changes_that_are_far_apart_stand_apart() {
        let old: Vec<String> = (1..=20).map(|line| line.to_string()).collect();
        let mut new = old.clone();
        new[1] = "two".into();
        new.insert(18, "more".into());
        assert_eq!(
            unified(&old.join("\n"), &new.join("\n")),
            "@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -16,5 +16,6 @@\n 16\n 17\n 18\n+more\n 19\n 20\n"
        );
    }
}
