//! What Go's encoder does to the text of JSON.

use std::borrow::Cow;

/// JSON in which nothing is left that HTML or JavaScript could take for their own: such signs stand only in strings, and
/// are written there by their numbers. <https://pkg.go.dev/encoding/json#HTMLEscape>
pub fn escape_html(json: &str) -> Cow<'_, str> {
    // 0xe2 begins U+2028 and U+2029 in UTF-8.
    if !json.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2)) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + json.len() / 16);
    for sign in json.chars() {
        match sign {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => escaped.push_str(&format!("\\u{:04x}", sign as u32)),
            _ => escaped.push(sign),
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_html_are_written_by_their_numbers() {
        assert_eq!(escape_html("[\"a && b > c\u{2028}\"]"), "[\"a \\u0026\\u0026 b \\u003e c\\u2028\"]");
        assert!(matches!(escape_html("[\"caf\u{e9}\"]"), Cow::Borrowed(_)));
    }
}
