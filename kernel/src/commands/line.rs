//! The lines of a cell of commands: words with a shell's quotes, pipes, redirections, here-documents.

use std::fmt;

/// A pipeline with what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The line on which it starts, from 1.
    pub line: usize,
    /// The node whose shell it is meant for: `node-1$ crictl ps`.
    pub node: Option<String>,
    /// Programs with their words; the output of each is the input of the next.
    pub pipeline: Vec<Vec<String>>,
    /// The file that the output goes to, and whether to its end.
    pub redirect: Option<(String, bool)>,
    /// The text of a here-document, or the file that is read.
    pub input: Option<Input>,
    /// When it runs, given how the job before ended.
    pub when: When,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Text(String),
    File(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// `&&`
    AfterSuccess,
    /// `||`
    AfterFailure,
}

/// A line that can't be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sh: line {}: {}", self.line, self.message)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Pipe,
    Then(When),
    Redirect(bool),
    ReadFile,
    /// A here-document's text.
    Document(String),
}

/// The jobs of a cell.
pub fn parse(code: &str) -> Result<Vec<Job>, Problem> {
    let code = code.replace("\r\n", "\n");
    let mut lines = Lines { rest: &code, number: 0 };
    let mut jobs = Vec::new();
    while let Some(line) = lines.peek() {
        let (node, start) = prompt(line);
        let number = lines.number + 1;
        // A line goes on while it ends in a backslash or inside of quotes.
        let (tokens, length) = tokens(&lines.rest[start..]).map_err(|message| Problem { line: number, message })?;
        lines.advance(start + length);
        let tokens = here_documents(tokens, &mut lines);
        assemble(tokens, number, node, &mut jobs)?;
    }
    Ok(jobs)
}

/// What is left of a cell.
struct Lines<'a> {
    rest: &'a str,
    /// How many lines have been taken.
    number: usize,
}

impl<'a> Lines<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.rest.lines().next()
    }

    /// Takes so many bytes, up to the end of a line or of the cell.
    fn advance(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.number += taken.lines().count();
        self.rest = rest;
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.advance(self.rest.find('\n').map_or(self.rest.len(), |end| end + 1));
        Some(line)
    }
}

/// `$ ` or `node-1$ ` at the start of a line, and where the command begins.
fn prompt(line: &str) -> (Option<&str>, usize) {
    let indent = line.len() - line.trim_start().len();
    let Some(end) = line.find("$ ").filter(|end| *end >= indent) else { return (None, indent) };
    let node = &line[indent..end];
    let is_name =
        node.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter));
    match (is_name, node) {
        (true, "") => (None, end + 2),
        (true, node) => (Some(node), end + 2),
        _ => (None, indent),
    }
}

/// The word that ends a here-document, whether its lines may be indented, before its text is known.
const HERE: &str = "\u{0}here\u{0}";

/// The tokens of a line, and where in the text it ends: behind the first line break that is neither quoted nor escaped.
fn tokens(text: &str) -> Result<(Vec<Token>, usize), String> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.char_indices().peekable();
    let unclosed = |quote: char| format!("unexpected EOF while looking for matching `{quote}'");
    let finish = |word: &mut Option<String>, tokens: &mut Vec<Token>| tokens.extend(word.take().map(Token::Word));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' => {
                let end = text[at + 1..].find('\'').ok_or_else(|| unclosed('\''))? + at + 1;
                word.get_or_insert_default().push_str(&text[at + 1..end]);
                while letters.next_if(|(at, _)| *at <= end).is_some() {}
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().map(|(_, letter)| letter) {
                        Some('"') => break,
                        Some('\\') => match letters.next().map(|(_, letter)| letter) {
                            Some('\n') => {}
                            Some(letter @ ('"' | '\\' | '$' | '`')) => word.push(letter),
                            Some(letter) => word.extend(['\\', letter]),
                            None => return Err(unclosed('"')),
                        },
                        Some(letter) => word.push(letter),
                        None => return Err(unclosed('"')),
                    }
                }
            }
            '\\' => match letters.next() {
                // The line goes on with the next one, or the cell ends here.
                Some((_, '\n')) | None => {}
                Some((_, letter)) => word.get_or_insert_default().push(letter),
            },
            '#' if word.is_none() => while letters.next_if(|(_, letter)| *letter != '\n').is_some() {},
            '\n' => break,
            letter if letter.is_whitespace() => finish(&mut word, &mut tokens),
            '|' | '&' | ';' | '>' | '<' => {
                let twice = letters.next_if(|(_, next)| *next == letter).is_some();
                // `2>file` and `&` alone are left to the words: what they ask for can't be had here.
                finish(&mut word, &mut tokens);
                match (letter, twice) {
                    ('|', false) => tokens.push(Token::Pipe),
                    ('|', true) => tokens.push(Token::Then(When::AfterFailure)),
                    ('&', true) => tokens.push(Token::Then(When::AfterSuccess)),
                    ('>', append) => tokens.push(Token::Redirect(append)),
                    ('<', false) => tokens.push(Token::ReadFile),
                    ('<', true) => {
                        let dash = letters.next_if(|(_, next)| *next == '-').is_some();
                        tokens.push(Token::Document(format!("{HERE}{}", if dash { "-" } else { "" })));
                    }
                    _ => tokens.push(Token::Then(When::Always)),
                }
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    finish(&mut word, &mut tokens);
    let end = letters.peek().map_or(text.len(), |(at, _)| *at);
    Ok((tokens, end))
}

/// Takes the lines of here-documents, up to the word that ends each.
fn here_documents<'a>(tokens: Vec<Token>, lines: &mut impl Iterator<Item = &'a str>) -> Vec<Token> {
    let mut done = Vec::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        let Token::Document(mark) = token else {
            done.push(token);
            continue;
        };
        let Some(Token::Word(end)) = tokens.next() else {
            done.push(Token::Document(String::new()));
            continue;
        };
        let strip_tabs = mark.ends_with('-');
        let mut text = String::new();
        for line in lines.by_ref() {
            let line = if strip_tabs { line.trim_start_matches('\t') } else { line };
            if line == end {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        done.push(Token::Document(text));
    }
    done
}

fn assemble(tokens: Vec<Token>, line: usize, node: Option<&str>, jobs: &mut Vec<Job>) -> Result<(), Problem> {
    let fresh = |when| Job {
        line,
        node: node.map(str::to_owned),
        pipeline: vec![Vec::new()],
        redirect: None,
        input: None,
        when,
    };
    let unexpected = |token: &str| Problem { line, message: format!("syntax error near unexpected token `{token}'") };
    let mut job = fresh(When::Always);
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => {
                if let Some(command) = job.pipeline.last_mut() {
                    command.push(word);
                }
            }
            Token::Pipe if job.pipeline.last().is_none_or(Vec::is_empty) => return Err(unexpected("|")),
            Token::Pipe => job.pipeline.push(Vec::new()),
            Token::Redirect(append) => match tokens.next() {
                Some(Token::Word(file)) => job.redirect = Some((file, append)),
                _ => return Err(unexpected("newline")),
            },
            Token::ReadFile => match tokens.next() {
                Some(Token::Word(file)) => job.input = Some(Input::File(file)),
                _ => return Err(unexpected("newline")),
            },
            Token::Document(text) => job.input = Some(Input::Text(text)),
            Token::Then(when) => {
                if job.pipeline.last().is_none_or(Vec::is_empty) {
                    return Err(unexpected(match when {
                        When::Always => ";",
                        When::AfterSuccess => "&&",
                        When::AfterFailure => "||",
                    }));
                }
                jobs.push(std::mem::replace(&mut job, fresh(when)));
            }
        }
    }
    match (job.pipeline.last().is_none_or(Vec::is_empty), job.pipeline.len(), job.when) {
        (false, ..) => jobs.push(job),
        (true, 1, When::Always) if job.redirect.is_none() && job.input.is_none() => {}
        _ => return Err(unexpected("newline")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(code: &str) -> Job {
        let mut jobs = parse(code).unwrap();
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        jobs.remove(0)
    }

    #[test]
    fn words_pipes_and_files() {
        let job = one("$ kubectl get pods -o jsonpath='{.items[*].metadata.name}' | grep \"a b\" > out.txt # names");
        assert_eq!(job.pipeline[0], ["kubectl", "get", "pods", "-o", "jsonpath={.items[*].metadata.name}"]);
        assert_eq!(job.pipeline[1], ["grep", "a b"]);
        assert_eq!(job.redirect, Some(("out.txt".into(), false)));
        assert_eq!(one("node-1$ crictl ps").node.as_deref(), Some("node-1"));
        assert_eq!(one("kubectl get \\\n  pods").pipeline[0], ["kubectl", "get", "pods"]);
        assert_eq!(parse("# nothing\n\n").unwrap(), []);
    }

    #[test]
    fn a_here_document_is_the_input() {
        let jobs = parse("kubectl apply -f - <<EOF\nkind: Pod\nEOF\nkubectl get pods").unwrap();
        assert_eq!(jobs[0].input, Some(Input::Text("kind: Pod\n".into())));
        assert_eq!((jobs[1].line, jobs[1].pipeline[0].len()), (4, 3));
    }

    #[test]
    fn jobs_depend_on_the_one_before() {
        let when: Vec<When> = parse("a; b && c || d").unwrap().iter().map(|job| job.when).collect();
        assert_eq!(when, [When::Always, When::Always, When::AfterSuccess, When::AfterFailure]);
    }

    #[test]
    fn lines_that_go_on_are_one_and_the_next_is_counted_right() {
        let jobs = parse("echo 'a\nb' \\\n  c # d\n\r\necho \\\r\n e\necho \\").unwrap();
        let words: Vec<_> = jobs.iter().map(|job| (job.line, job.pipeline[0].join(","))).collect();
        assert_eq!(words, [(1, "echo,a\nb,c".into()), (5, "echo,e".into()), (7, "echo".into())]);
    }

    #[test]
    fn a_cell_of_a_million_lines_is_read_in_one_pass() {
        let code = "echo \\\n".repeat(100_000);
        assert_eq!(one(&code).pipeline[0].len(), 100_000);
    }

    #[test]
    fn what_is_unfinished_is_named_with_its_line() {
        assert_eq!(
            parse("\necho 'a").unwrap_err().to_string(),
            "sh: line 2: unexpected EOF while looking for matching `''"
        );
        assert_eq!(parse("a | ").unwrap_err().to_string(), "sh: line 1: syntax error near unexpected token `newline'");
    }

    proptest! {
        #[test]
        fn nothing_panics(code in "[a-c'\"\\\\|&;<>#$ \n-]{0,40}") {
            let _ = parse(&code);
        }
    }
}
