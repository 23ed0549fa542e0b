//! Patterns: of names (`*.txt`), and regular expressions in the basic form that grep and sed read.

/// True if a pattern of names matches all of a text. A character behind a backslash stands for itself.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // Where the last star stands, and how far into the text it has gone.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match one(&pattern, at, text[place]) {
            _ if pattern.get(at) == Some(&'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(next) => (at, place) = (next, place + 1),
            None => match star {
                Some((back, gone)) => {
                    star = Some((back, gone + 1));
                    (at, place) = (back + 1, gone + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// Where the pattern goes on if its part at `at` matches a character.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '\\' => (pattern.get(at + 1) == Some(&c)).then_some(at + 2),
        '[' => {
            let close = pattern.iter().skip(at + 2).position(|c| *c == ']');
            let Some(close) = close.map(|length| at + 2 + length) else { return (c == '[').then_some(at + 1) };
            let turned = matches!(pattern[at + 1], '!' | '^');
            let inner = &pattern[at + 1 + usize::from(turned)..close];
            let mut found = false;
            let mut index = 0;
            while index < inner.len() {
                match inner[index..] {
                    [first, '-', last, ..] => {
                        found |= (first..=last).contains(&c);
                        index += 3;
                    }
                    _ => {
                        found |= inner[index] == c;
                        index += 1;
                    }
                }
            }
            (found != turned).then_some(close + 1)
        }
        wanted => (*wanted == c).then_some(at + 1),
    }
}

/// A basic regular expression as an extended one: what groups and counts there does so behind a backslash.
pub fn extended(basic: &str) -> String {
    let special = |c: char| "(){}+?|".contains(c);
    let mut text = String::new();
    let mut chars = basic.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next) if special(next) => text.push(next),
                next => text.extend(std::iter::once('\\').chain(next)),
            },
            '*' if text.is_empty() => text.push_str("\\*"),
            c if special(c) => text.extend(['\\', c]),
            c => text.push(c),
        }
    }
    text
}

/// An extended regular expression in the words of the library: classes like `[[:space:]]` it knows itself.
pub fn literal(text: &str) -> String {
    regex_lite::escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_patterns() {
        for (pattern, text, expected) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "a.txt.gz", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("*", "", true),
            ("a*b*c", "aXXbYbc", true),
            ("[", "[", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn basic_expressions_group_behind_backslashes() {
        assert_eq!(extended("\\(a\\)+(b)"), "(a)\\+\\(b\\)");
    }
}
