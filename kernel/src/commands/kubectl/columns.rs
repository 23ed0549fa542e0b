//! Tables in columns, as kubectl aligns them.

const PADDING: usize = 3;
const WIDTH_MIN: usize = 6;

/// Lines of cells that stand below each other. Each column is as wide as its widest cell and three spaces more; the
/// last one is not filled up.
pub fn align(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let widest = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        (widest.unwrap_or(0) + PADDING).max(WIDTH_MIN)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            text.push_str(cell);
            if column + 1 < row.len() {
                let filled = cell.chars().count();
                text.extend(std::iter::repeat_n(' ', widths[column].saturating_sub(filled)));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_three_apart_and_at_least_six_wide() {
        let rows = [["NAME", "A", "LAST"], ["longer-name", "1", "x"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(align(&rows), "NAME          A     LAST\nlonger-name   1     x\n");
    }
}
