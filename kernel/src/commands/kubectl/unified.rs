//! Two texts compared line by line, as `diff -u` shows what is different.
//! <https://www.gnu.org/software/diffutils/manual/html_node/Detailed-Unified.html>

use std::ops::Range;

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// The hunks that make one text of the other; `None` if they are equal.
pub fn diff(old: &str, new: &str) -> Option<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let changes = changes(&old, &new);
    let mut text = String::new();
    let mut rest = changes.as_slice();
    while let [first, ..] = rest {
        // Changes between which there is no more than their context share a hunk.
        let together = |pair: &[Change]| pair[1].old.start - pair[0].old.end <= 2 * CONTEXT;
        let count = 1 + rest.windows(2).take_while(|pair| together(pair)).count();
        let (hunk, later) = rest.split_at(count);
        let last = &hunk[count - 1];
        let before = first.old.start.min(CONTEXT);
        let after = (old.len() - last.old.end).min(CONTEXT);
        let lines = |of: fn(&Change) -> &Range<usize>| of(first).start - before..of(last).end + after;
        text.push_str(&format!("@@ -{} +{} @@\n", place(lines(|c| &c.old)), place(lines(|c| &c.new))));
        let mut at = first.old.start - before;
        for change in hunk {
            push(&mut text, ' ', &old[at..change.old.start]);
            push(&mut text, '-', &old[change.old.clone()]);
            push(&mut text, '+', &new[change.new.clone()]);
            at = change.old.end;
        }
        push(&mut text, ' ', &old[at..at + after]);
        rest = later;
    }
    (!text.is_empty()).then_some(text)
}

fn push(text: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        text.push(mark);
        text.push_str(line);
        text.push('\n');
    }
}

/// Where lines stand: the number of the first and how many; of none, the number of the line before.
fn place(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

/// Lines of the old text in whose place lines of the new one stand.
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// The largest table that is made; texts that differ in more are told as wholly different.
const CELLS_MAX: usize = 16_000_000;

/// The fewest changes, each as late as it can be. Equal beginnings and ends are set aside before the table of the
/// longest common subsequence is made, so it is as large as what changed.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tail = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (a, b) = (&old[start..old.len() - tail], &new[start..new.len() - tail]);
    let width = b.len() + 1;
    if (a.len() + 1).saturating_mul(width) > CELLS_MAX {
        return vec![Change { old: start..start + a.len(), new: start..start + b.len() }];
    }
    let mut common = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = match a[i] == b[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let mut changes: Vec<Change> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let (from_i, from_j) = (i, j);
        while (i < a.len() || j < b.len()) && !(i < a.len() && j < b.len() && a[i] == b[j]) {
            if j == b.len() || i < a.len() && common[(i + 1) * width + j] >= common[i * width + j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
        changes.push(Change { old: start + from_i..start + i, new: start + from_j..start + j });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_with_the_lines_around_them() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n15\n16\n";
        assert_eq!(
            diff(old, new).unwrap(),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -11,5 +11,5 @@\n 11\n 12\n 13\n-14\n 15\n+16\n"
        );
        assert_eq!(diff(old, old), None);
        assert_eq!(diff("", "a\nb\n").unwrap(), "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(diff("a\n", "").unwrap(), "@@ -1 +0,0 @@\n-a\n");
    }
}
