//! Errors of Rust cells as a learner reads them: rustc's own text, with the lines of the cell.

use std::sync::LazyLock;

use super::protocol::CompileError;
use crate::output::CellError;

/// What rustc says, its line numbers turned into those of the cell.
pub fn compile_errors(code: &str, errors: &[CompileError]) -> CellError {
    let rendered: Vec<String> = errors.iter().map(|error| render(code, error)).collect();
    let evalue = match errors {
        [] => "the cell does not compile".to_owned(),
        [first, rest @ ..] => {
            let place = first.line.map_or(String::new(), |(_, line)| format!("line {line}: "));
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            format!("{place}{}{more}", first.message)
        }
    };
    let traceback = if errors.is_empty() { vec![evalue.clone()] } else { rendered };
    CellError { ename: "CompileError".to_owned(), evalue, traceback }
}

fn render(code: &str, error: &CompileError) -> String {
    if error.rendered.is_empty() {
        return format!("error: {}", error.message);
    }
    let shift = error.line.map(|(source, cell)| source as i64 - cell as i64);
    let cell_line = |source: i64, text: Option<&str>| -> Option<i64> {
        let near = shift.map(|shift| source - shift).filter(|line| (1..=code.lines().count() as i64).contains(line));
        match text {
            None => near,
            Some(text) => near.filter(|line| code.lines().nth(*line as usize - 1) == Some(text)).or_else(|| {
                let mut same = code.lines().zip(1..).filter(|(line, _)| *line == text).map(|(_, number)| number);
                same.next().filter(|_| same.next().is_none())
            }),
        }
    };
    let mut in_cell = false;
    let lines = error.rendered.trim_end().lines().map(|line| {
        if let Some((before, place)) = place(line) {
            in_cell = place.starts_with(SOURCE);
            let Some(place) = place.strip_prefix(SOURCE) else { return format!("{before} {}", without_home(place)) };
            let (number, column) = place.split_once(':').unwrap_or((place, ""));
            return match number.parse().ok().and_then(|source| cell_line(source, None)) {
                Some(number) => format!("{before} cell:{number}:{column}"),
                None => format!("{before} cell"),
            };
        }
        let Some((number, rest)) = gutter(line).filter(|_| in_cell) else { return line.to_owned() };
        let text = rest.strip_prefix("| ").map(|text| text.strip_prefix("/ ").unwrap_or(text));
        let text = text.map(|text| text.strip_prefix("| ").unwrap_or(text));
        let width = line.len() - rest.len() - 1;
        match cell_line(number, text) {
            Some(number) => format!("{number:>width$} {rest}"),
            None => format!("{:width$} {rest}", ""),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// As evcxr names the source that it generates.
const SOURCE: &str = "src/lib.rs:";

/// A line that names a place: `  --> src/lib.rs:12:5`.
fn place(line: &str) -> Option<(&str, &str)> {
    let end = line.len() - line.trim_start().len() + "-->".len();
    let (before, place) = line.split_at_checked(end)?;
    (before.ends_with("-->") || before.ends_with(":::")).then_some((before, place.trim_start()))
}

/// A path as it reads on every machine: from the root of the standard library, or of the registry's crate.
fn without_home(path: &str) -> &str {
    let library = path.split_once("/lib/rustlib/src/rust/").map(|(_, path)| path);
    let registry = || path.split_once("/registry/src/")?.1.split_once('/').map(|(_, path)| path);
    library.or_else(registry).unwrap_or(path)
}

/// The number in front of a source line, and the rest: `12 | let x = 1;`.
fn gutter(line: &str) -> Option<(i64, &str)> {
    let (number, _) = line.trim_start().split_once(' ')?;
    let rest = line.trim_start().strip_prefix(number)?.trim_start();
    let source = ["|", "+", "-", "~"].iter().any(|mark| rest.starts_with(mark));
    source.then(|| number.parse().ok().map(|number| (number, rest)))?
}

/// A panic, with the line of the cell if it is known.
pub fn panic(code: &str, message: &str, source_line: Option<&str>) -> CellError {
    let mut error = CellError::new("Panic", message);
    if let Some(text) = source_line.map(str::trim) {
        let mut found = code.lines().zip(1..).filter(|(line, _)| line.trim() == text);
        if let (Some((_, number)), None) = (found.next(), found.next()) {
            error.traceback.push(format!("  at cell:{number}: {text}"));
        }
    }
    error
}

/// What evcxr says of a runtime that ended, without what only concerns evcxr.
pub fn terminated(how: &str) -> CellError {
    static STATUS: LazyLock<&str> = LazyLock::new(|| "Subprocess terminated with status: ");
    let status = how.lines().find_map(|line| line.split_once(*STATUS)).map_or(how.trim(), |(_, status)| status);
    CellError::new("Terminated", format!("the cell ended the process that runs Rust cells ({status}). {LOST}"))
}

pub fn interrupted() -> CellError {
    CellError::new("Interrupted", format!("the cell was stopped. {LOST}"))
}

const LOST: &str = "What it defined is lost; the earlier Rust cells that succeeded run again, without their output.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rustc_speaks_of_the_lines_of_the_cell() {
        let code = "let a = 1;\nlet b: i32 = \"x\";\na + b";
        let rendered = "error[E0308]: mismatched types\n  --> src/lib.rs:112:14\n    |\n112 | let b: i32 = \"x\";\n    |        ---   ^^^ expected `i32`, found `&str`\n...\n987 | generated();\n    | -\n   ::: /opt/rust/lib/rustlib/src/rust/library/core/src/ops/arith.rs:99:9\n    |\n112 |         impl Add\n\n";
        let error = CompileError {
            message: "mismatched types".to_owned(),
            code: Some("E0308".to_owned()),
            rendered: rendered.to_owned(),
            line: Some((112, 2)),
        };
        let shown = compile_errors(code, &[error]);
        assert_eq!(shown.evalue, "line 2: mismatched types");
        assert_eq!(
            shown.traceback[0],
            "error[E0308]: mismatched types\n  --> cell:2:14\n    |\n  2 | let b: i32 = \"x\";\n    |        ---   ^^^ expected `i32`, found `&str`\n...\n    | generated();\n    | -\n   ::: library/core/src/ops/arith.rs:99:9\n    |\n112 |         impl Add"
        );
    }

    #[test]
    fn an_error_without_a_place_is_still_told() {
        let error =
            CompileError { message: "no such crate".to_owned(), code: None, rendered: String::new(), line: None };
        assert_eq!(compile_errors("", &[error]).traceback, ["error: no such crate"]);
    }

    #[test]
    fn a_panic_names_the_line_if_only_one_reads_like_it() {
        let code = "let v = vec![1];\n  v[5]\n;";
        assert_eq!(panic(code, "out of bounds", Some("v[5]")).traceback[1], "  at cell:2: v[5]");
        assert_eq!(panic("x\nx", "oh", Some("x")).traceback.len(), 1);
    }

    #[test]
    fn an_end_is_told_by_its_status() {
        let error = terminated("Subprocess terminated with status: exit status: 3");
        assert!(error.evalue.contains("(exit status: 3)"), "{}", error.evalue);
    }
}
