//! Text in columns, with wide letters counted as wide.

use unicode_width::UnicodeWidthStr;

/// Columns three spaces apart, as kubectl aligns them; the last is not padded.
pub fn table(columns: &[String], rows: &[Vec<String>]) -> String {
    let lines: Vec<&[String]> = std::iter::once(columns).chain(rows.iter().map(Vec::as_slice)).collect();
    let width =
        |index: usize| lines.iter().filter_map(|line| line.get(index)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        for (index, cell) in line.iter().enumerate() {
            text.push_str(cell);
            if index + 1 < line.len() {
                text.push_str(&" ".repeat(widths.get(index).copied().unwrap_or(0).saturating_sub(cell.width()) + 3));
            }
        }
        text.push('\n');
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// A word for an error message: what is longer than a line is cut.
pub fn short(word: &str) -> std::borrow::Cow<'_, str> {
    const LETTERS_MAX: usize = 100;
    match word.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{}…", &word[..end]).into(),
        None => word.into(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_long_word_is_cut_between_letters() {
        assert_eq!(super::short("日本"), "日本");
        assert_eq!(super::short(&"日".repeat(200)), "日".repeat(100) + "…");
    }

    #[test]
    fn wide_letters_take_two_places() {
        let columns = ["名前".to_owned(), "数".to_owned()];
        let rows = [vec!["web".to_owned(), "3".to_owned()]];
        assert_eq!(super::table(&columns, &rows), "名前   数\nweb    3");
    }
}
