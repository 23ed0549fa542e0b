//! Tables in columns, as kubectl aligns them.

const PADDING: usize = 3;
const WIDTH_MIN: usize = 6;

/// Keeps columns as wide as they have been.
#[derive(Default)]
pub struct Aligner {
    widths: Vec<usize>,
}

impl Aligner {
    /// Lines of cells that stand below each other. Each column is as wide as its widest cell and three spaces more, and
    /// no narrower than before; the last one is not filled up.
    pub fn align(&mut self, rows: &[Vec<String>]) -> String {
        for row in rows {
            self.widths.resize(self.widths.len().max(row.len()), WIDTH_MIN);
            let filled = row.len().saturating_sub(1);
            for (width, cell) in self.widths.iter_mut().zip(&row[..filled]) {
                *width = (*width).max(cell.chars().count() + PADDING);
            }
        }
        let mut text = String::new();
        for row in rows {
            for (column, cell) in row.iter().enumerate() {
                text.push_str(cell);
                if column + 1 < row.len() {
                    let filled = cell.chars().count();
                    text.extend(std::iter::repeat_n(' ', self.widths[column].saturating_sub(filled)));
                }
            }
            text.push('\n');
        }
        text
    }
}

/// Lines of cells that stand below each other once.
pub fn align(rows: &[Vec<String>]) -> String {
    Aligner::default().align(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_three_apart_and_at_least_six_wide() {
        let rows = [["NAME", "A", "LAST"], ["longer-name", "1", "x"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(align(&rows), "NAME          A     LAST\nlonger-name   1     x\n");
    }

    #[test]
    fn columns_stay_as_wide_as_they_were() {
        let mut aligner = Aligner::default();
        let line = |cells: [&str; 2]| vec![cells.map(String::from).to_vec()];
        assert_eq!(aligner.align(&line(["a-long-name", "x"])), "a-long-name   x\n");
        assert_eq!(aligner.align(&line(["b", "y"])), "b             y\n");
    }
}
