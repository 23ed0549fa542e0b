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
    let mut lines = code.lines().enumerate();
    let mut jobs = Vec::new();
    while let Some((index, text)) = lines.next() {
        let number = index + 1;
        let mut text = text.to_owned();
        let (node, start) = prompt(&text);
        let node = node.map(str::to_owned);
        text = text[start..].to_owned();
        // A line goes on while it ends in a backslash or inside of quotes.
        let tokens = loop {
            match tokens(&text) {
                Ok(tokens) => break tokens,
                Err(Unfinished::Quote(quote)) => match lines.next() {
                    Some((_, more)) => text = format!("{text}\n{more}"),
                    None => {
                        let message = format!("unexpected EOF while looking for matching `{quote}'");
                        return Err(Problem { line: number, message });
                    }
                },
                Err(Unfinished::Backslash) => {
                    text.pop();
                    let Some((_, more)) = lines.next() else { continue };
                    text.push_str(more);
                }
            }
        };
        let tokens = here_documents(tokens, &mut lines);
        assemble(tokens, number, node.as_deref(), &mut jobs)?;
    }
    Ok(jobs)
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

enum Unfinished {
    Quote(char),
    Backslash,
}

/// The word that ends a here-document, whether its lines may be indented, before its text is known.
const HERE: &str = "\u{0}here\u{0}";

fn tokens(text: &str) -> Result<Vec<Token>, Unfinished> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    let finish = |word: &mut Option<String>, tokens: &mut Vec<Token>| tokens.extend(word.take().map(Token::Word));
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(letter) => word.push(letter),
                        None => return Err(Unfinished::Quote('\'')),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('\\') => match letters.next() {
                            Some('\n') => {}
                            Some(letter @ ('"' | '\\' | '$' | '`')) => word.push(letter),
                            Some(letter) => word.extend(['\\', letter]),
                            None => return Err(Unfinished::Quote('"')),
                        },
                        Some(letter) => word.push(letter),
                        None => return Err(Unfinished::Quote('"')),
                    }
                }
            }
            '\\' => match letters.next() {
                Some(letter) => word.get_or_insert_default().push(letter),
                None => return Err(Unfinished::Backslash),
            },
            '#' if word.is_none() => break,
            letter if letter.is_whitespace() => finish(&mut word, &mut tokens),
            '|' | '&' | ';' | '>' | '<' => {
                let twice = letters.next_if_eq(&letter).is_some();
                // `2>file` and `&` alone are left to the words: what they ask for can't be had here.
                finish(&mut word, &mut tokens);
                match (letter, twice) {
                    ('|', false) => tokens.push(Token::Pipe),
                    ('|', true) => tokens.push(Token::Then(When::AfterFailure)),
                    ('&', true) => tokens.push(Token::Then(When::AfterSuccess)),
                    ('>', append) => tokens.push(Token::Redirect(append)),
                    ('<', false) => tokens.push(Token::ReadFile),
                    ('<', true) => {
                        let dash = letters.next_if_eq(&'-').is_some();
                        tokens.push(Token::Document(format!("{HERE}{}", if dash { "-" } else { "" })));
                    }
                    _ => tokens.push(Token::Then(When::Always)),
                }
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    finish(&mut word, &mut tokens);
    Ok(tokens)
}

/// Takes the lines of here-documents, up to the word that ends each.
fn here_documents<'a>(tokens: Vec<Token>, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Vec<Token> {
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
        for (_, line) in lines.by_ref() {
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
