//! `-o go-template`: Go's text/template over JSON, with the two functions that kubectl adds.
//! <https://pkg.go.dev/text/template>

mod execute;
mod format;
mod functions;
mod parse;

use serde_json::{Number, Value};

/// A template that has been read.
#[derive(Clone, Debug)]
pub struct Template {
    pub source: String,
    nodes: Vec<Node>,
    /// Templates that it defines by name.
    defined: Vec<(String, Vec<Node>)>,
}

#[derive(Clone, Debug)]
enum Node {
    Text(String),
    Print(Pipeline),
    If(Pipeline, Vec<Node>, Vec<Node>),
    With(Pipeline, Vec<Node>, Vec<Node>),
    Range(Pipeline, Vec<Node>, Vec<Node>),
    Template(String, Option<Pipeline>),
    Break,
    Continue,
}

/// `$a := f .x | g`
#[derive(Clone, Debug)]
struct Pipeline {
    variables: Vec<String>,
    /// `=` instead of `:=`.
    assigns: bool,
    commands: Vec<Command>,
}

/// A function with what it is called with, or a value.
#[derive(Clone, Debug)]
struct Command {
    operands: Vec<Operand>,
}

#[derive(Clone, Debug)]
struct Operand {
    what: What,
    /// Fields behind it.
    fields: Vec<String>,
    /// Where it stands in the source, as errors tell it.
    at: usize,
    text: String,
}

#[derive(Clone, Debug)]
enum What {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Text(String),
    Variable(String),
    Function(String),
    Pipeline(Pipeline),
}

/// # Errors
/// What is wrong, as Go says it: `template: output:1: unclosed action`.
pub fn parse(source: &str) -> Result<Template, String> {
    parse::parse(source).map_err(|(at, problem)| {
        let line = 1 + source.get(..at).unwrap_or(source).matches('\n').count();
        format!("template: output:{line}: {problem}")
    })
}

impl Template {
    /// The text that it makes of a value; also if it fails on the way, what it had made by then.
    pub fn execute(&self, value: &Value) -> (String, Result<(), String>) {
        execute::execute(self, value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn run(source: &str) -> String {
        let value = json!({
            "items": [
                {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}}, "n": 1},
                {"metadata": {"name": "b"}, "n": 2},
            ],
            "map": {"k": "v", "l": "w"}, "nothing": null, "secret": "czNjcmV0", "empty": [],
        });
        match parse(source).map(|template| template.execute(&value)) {
            Ok((text, Ok(()))) => text,
            Ok((text, Err(problem))) => format!("{text}! {problem}"),
            Err(problem) => format!("! {problem}"),
        }
    }

    #[test]
    fn templates() {
        for (source, expected) in [
            ("{{range .items}}{{.metadata.name}}={{.n}}{{\"\\n\"}}{{end}}", "a=1\nb=2\n"),
            ("{{range $i, $item := .items}}{{if $i}}, {{end}}{{$item.n}}{{end}}", "1, 2"),
            ("{{range $k, $v := .map}}{{$k}}:{{$v}};{{end}}", "k:v;l:w;"),
            ("{{range .empty}}x{{else}}none{{end}}", "none"),
            ("{{range .items}}{{if eq .n 2}}{{break}}{{end}}{{.n}}{{end}}", "1"),
            ("{{.none}} {{.none.more}} {{.nothing}}", "<no value> <no value> <no value>"),
            ("{{with .map}}{{.k}}{{end}}{{with .none}}x{{else}}!{{end}}", "v!"),
            ("{{index (index .items 0).metadata.labels \"app.kubernetes.io/name\"}}", "x"),
            ("{{.secret | base64decode}} {{len .items}} {{.map}}", "s3cret 2 map[k:v l:w]"),
            ("{{printf \"%-5s|%05d|%q|%.1f|%v\" \"ab\" 42 \"x\" 1.25 .map.k}}", "ab   |00042|\"x\"|1.2|v"),
            ("a {{- /* said */ -}} b{{- \"c\" -}} d", "abcd"),
            ("{{$x := 1}}{{range .items}}{{$x = .n}}{{end}}{{$x}}", "2"),
            ("{{define \"t\"}}<{{.}}>{{end}}{{template \"t\" .map.k}}", "<v>"),
            ("{{if and .map (not .nothing)}}yes{{else if .none}}?{{else}}no{{end}}", "yes"),
            ("{{if exists .map \"k\"}}there{{end}}{{if exists .map \"z\"}}not{{end}}", "there"),
            (
                "{{or .none \"default\"}} {{and 1 0 2}} {{print 1 2 \"a\" 3}} {{eq .map.k \"x\" \"v\"}}",
                "default 0 1 2a3 true",
            ),
            ("{{lt 1 2}} {{ge \"b\" \"a\"}} {{slice \"hello\" 1 3}} {{html \"<a>\"}}", "true true el &lt;a&gt;"),
        ] {
            assert_eq!(run(source), expected, "{source}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_gos_words() {
        for (source, expected) in [
            ("{{.data.k", "! template: output:1: unclosed action"),
            ("{{range .items}}", "! template: output:1: unexpected EOF"),
            ("\n{{end}}", "! template: output:2: unexpected {{end}}"),
            ("{{foo .}}", "! template: output:1: function \"foo\" not defined"),
            ("{{$x}}", "! template: output:1: undefined variable \"$x\""),
            ("{{if}}{{end}}", "! template: output:1: missing value for if"),
            (
                "x{{.map.k.z}}",
                "x! template: output:1:7: executing \"output\" at <.map.k.z>: can't evaluate field z in type interface {}",
            ),
            (
                "{{index .items 5}}",
                "! template: output:1:2: executing \"output\" at <index .items 5>: error calling index: index out of range: 5",
            ),
            (
                "{{range .secret}}{{end}}",
                "! template: output:1:8: executing \"output\" at <.secret>: range can't iterate over czNjcmV0",
            ),
        ] {
            assert_eq!(run(source), expected, "{source}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(source in "(\\{\\{|\\}\\}|range|end|if|[-a-c.$|:=()\"'`0-2 é/*]){0,20}") {
            run(&source);
        }
    }
}
