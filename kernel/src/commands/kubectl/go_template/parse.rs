//! From text to nodes. (text/template/parse)

use serde_json::Number;

use super::functions::{is_known, number};
use super::{Command, Node, Operand, Pipeline, Template, What};

/// What is wrong, and where.
type Trouble = (usize, String);

/// How many templates, pipelines and parentheses may stand in each other.
const DEPTH_MAX: usize = 100;

pub fn parse(source: &str) -> Result<Template, Trouble> {
    let mut parser = Parser {
        pieces: pieces(source)?,
        at: 0,
        end: source.len(),
        variables: vec!["$".into()],
        defined: Vec::new(),
        depth: 0,
        in_range: 0,
    };
    let (nodes, ended) = parser.nodes()?;
    match ended {
        Ended::Source => Ok(Template { source: source.to_owned(), nodes, defined: parser.defined }),
        Ended::End(at) => Err((at, "unexpected {{end}}".into())),
        Ended::Else(at, _) => Err((at, "unexpected {{else}}".into())),
    }
}

/// Text, or what stands between `{{` and `}}`.
enum Piece<'a> {
    Text(&'a str),
    Action(Vec<Token<'a>>, usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Token<'a> {
    text: &'a str,
    at: usize,
    /// Blanks stand before it.
    is_apart: bool,
}

fn pieces(source: &str) -> Result<Vec<Piece<'_>>, Trouble> {
    let (mut pieces, mut at, mut trims) = (Vec::new(), 0, false);
    loop {
        let rest = &source[at..];
        let start = rest.find("{{").unwrap_or(rest.len());
        let inside = rest.get(start + 2..);
        let trims_before = inside.and_then(|inside| inside.strip_prefix('-')).is_some_and(starts_with_blank);
        let mut text = &rest[..start];
        if trims {
            text = text.trim_start_matches(is_blank);
        }
        if trims_before {
            text = text.trim_end_matches(is_blank);
        }
        pieces.push(Piece::Text(text));
        let Some(inside) = inside else { return Ok(pieces) };
        let begin = at + start + 2 + if trims_before { 2 } else { 0 };
        let after_blanks = source[begin..].trim_start_matches(is_blank);
        if inside.starts_with("/*") || trims_before && after_blanks.starts_with("/*") {
            let comment = source.len() - if inside.starts_with("/*") { inside.len() } else { after_blanks.len() };
            let close = source[comment + 2..].find("*/").ok_or((comment, "unclosed comment".to_owned()))?;
            let behind = &source[comment + close + 4..];
            let end =
                if behind.starts_with("}}") { Some((2, false)) } else { trimming_end(behind).map(|end| (end, true)) };
            let (length, trimming) = end.ok_or((comment, "comment ends before closing delimiter".to_owned()))?;
            at = comment + close + 4 + length;
            trims = trimming;
            continue;
        }
        let (tokens, end, trimming) = tokens(source, begin)?;
        pieces.push(Piece::Action(tokens, begin));
        at = end;
        trims = trimming;
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

fn starts_with_blank(text: &str) -> bool {
    text.starts_with(is_blank)
}

/// How long ` -}}` is, if it stands at the start.
fn trimming_end(text: &str) -> Option<usize> {
    let rest = text.trim_start_matches(is_blank);
    (starts_with_blank(text) && rest.starts_with("-}}")).then(|| text.len() - rest.len() + 3)
}

/// The words of an action, where it ends, and whether it trims what follows.
fn tokens(source: &str, begin: usize) -> Result<(Vec<Token<'_>>, usize, bool), Trouble> {
    let (mut tokens, mut at, mut is_apart) = (Vec::new(), begin, false);
    loop {
        let rest = &source[at..];
        if rest.starts_with("}}") {
            return Ok((tokens, at + 2, false));
        }
        if let Some(length) = trimming_end(rest) {
            return Ok((tokens, at + length, true));
        }
        let Some(letter) = rest.chars().next() else { return Err((at, "unclosed action".into())) };
        let is_word = |letter: char| letter == '_' || letter.is_alphanumeric();
        let word = |from: usize| rest[from..].find(|letter| !is_word(letter)).map_or(rest.len(), |end| end + from);
        let length = match letter {
            letter if is_blank(letter) => {
                is_apart = true;
                at += 1;
                continue;
            }
            '"' | '\'' => end_of_quote(rest, letter).ok_or((
                at,
                match letter {
                    '"' => "unterminated quoted string".to_owned(),
                    _ => "unterminated character constant".to_owned(),
                },
            ))?,
            '`' => rest[1..].find('`').ok_or((at, "unterminated raw quoted string".to_owned()))? + 2,
            ':' if rest.starts_with(":=") => 2,
            ':' => return Err((at, "expected :=".into())),
            '=' | '|' | '(' | ')' | ',' => 1,
            '.' if rest[1..].starts_with(|letter: char| letter.is_ascii_digit()) => end_of_number(rest),
            '.' | '$' => word(1),
            '+' | '-' => end_of_number(rest),
            letter if letter.is_ascii_digit() => end_of_number(rest),
            letter if is_word(letter) => word(0),
            other => {
                let code = u32::from(other);
                return Err((at, format!("unrecognized character in action: U+{code:04X} '{other}'")));
            }
        };
        tokens.push(Token { text: &rest[..length], at, is_apart });
        at += length;
        is_apart = false;
    }
}

fn end_of_quote(text: &str, quote: char) -> Option<usize> {
    let mut letters = text.char_indices().skip(1);
    while let Some((index, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next().filter(|(_, letter)| *letter != '\n')?;
            }
            '\n' => return None,
            letter if letter == quote => return Some(index + 1),
            _ => {}
        }
    }
    None
}

fn end_of_number(text: &str) -> usize {
    let sign = usize::from(text.starts_with(['+', '-']));
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_');
    text[sign..].find(|letter| !is_part(letter)).map_or(text.len(), |end| end + sign).max(1)
}

/// How a list of nodes ended.
enum Ended<'a> {
    Source,
    End(usize),
    /// With what stands behind `else`.
    Else(usize, Vec<Token<'a>>),
}

struct Parser<'a> {
    pieces: Vec<Piece<'a>>,
    at: usize,
    end: usize,
    /// Variables that are known here.
    variables: Vec<String>,
    defined: Vec<(String, Vec<Node>)>,
    depth: usize,
    in_range: usize,
}

impl<'a> Parser<'a> {
    fn nodes(&mut self) -> Result<(Vec<Node>, Ended<'a>), Trouble> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.get(self.at) {
            let at = self.at;
            self.at += 1;
            match piece {
                Piece::Text("") => {}
                Piece::Text(text) => nodes.push(Node::Text((*text).to_owned())),
                Piece::Action(tokens, begin) => {
                    let (begin, word) = (*begin, tokens.first().map(|token| token.text).unwrap_or_default());
                    let Some(Piece::Action(tokens, _)) = self.pieces.get_mut(at) else { continue };
                    let mut rest = std::mem::take(tokens);
                    match word {
                        "end" => return Ok((nodes, Ended::End(begin))),
                        "else" => {
                            rest.remove(0);
                            return Ok((nodes, Ended::Else(begin, rest)));
                        }
                        _ => nodes.extend(self.action(rest, begin)?),
                    }
                }
            }
        }
        Ok((nodes, Ended::Source))
    }

    fn action(&mut self, tokens: Vec<Token<'a>>, at: usize) -> Result<Option<Node>, Trouble> {
        let word = tokens.first().map(|token| token.text).unwrap_or_default();
        match word {
            "if" | "with" | "range" => self.control(word, &tokens[1..], at).map(Some),
            "define" | "block" => self.define(word == "block", &tokens[1..], at),
            "template" => {
                let (name, rest) = template_name(&tokens[1..], at, "template clause")?;
                let pipeline = if rest.is_empty() { None } else { Some(self.whole(rest, "template clause", at)?) };
                Ok(Some(Node::Template(name, pipeline)))
            }
            "break" | "continue" if tokens.len() == 1 => {
                if self.in_range == 0 {
                    return Err((at, format!("{{{{{word}}}}} outside {{{{range}}}}")));
                }
                Ok(Some(if word == "break" { Node::Break } else { Node::Continue }))
            }
            _ => self.whole(&tokens, "command", at).map(|pipeline| Some(Node::Print(pipeline))),
        }
    }

    fn control(&mut self, word: &str, tokens: &[Token<'a>], at: usize) -> Result<Node, Trouble> {
        self.deeper(at)?;
        let known = self.variables.len();
        let pipeline = self.whole(tokens, word, at)?;
        self.in_range += usize::from(word == "range");
        let (body, ended) = self.nodes()?;
        self.in_range -= usize::from(word == "range");
        let otherwise = match ended {
            Ended::Source => return Err((self.end, "unexpected EOF".into())),
            Ended::End(_) => Vec::new(),
            Ended::Else(at, tokens) => match tokens.first().map(|token| token.text) {
                Some(next) if next == word && word != "range" => vec![self.control(word, &tokens[1..], at)?],
                Some(other) => return Err((at, format!("unexpected <{other}> in else"))),
                None => match self.nodes()? {
                    (nodes, Ended::End(_)) => nodes,
                    (_, Ended::Else(at, _)) => return Err((at, "unexpected {{else}}".into())),
                    (_, Ended::Source) => return Err((self.end, "unexpected EOF".into())),
                },
            },
        };
        self.variables.truncate(known);
        self.depth -= 1;
        Ok(match word {
            "if" => Node::If(pipeline, body, otherwise),
            "with" => Node::With(pipeline, body, otherwise),
            _ => Node::Range(pipeline, body, otherwise),
        })
    }

    fn define(&mut self, is_block: bool, tokens: &[Token<'a>], at: usize) -> Result<Option<Node>, Trouble> {
        self.deeper(at)?;
        let (name, rest) = template_name(tokens, at, if is_block { "block clause" } else { "define clause" })?;
        let pipeline = if is_block { Some(self.whole(rest, "block clause", at)?) } else { None };
        // A template knows no variables of the place where it is written down.
        let known = std::mem::replace(&mut self.variables, vec!["$".into()]);
        let body = match self.nodes()? {
            (nodes, Ended::End(_)) => nodes,
            (_, Ended::Else(at, _)) => return Err((at, "unexpected {{else}} in define clause".into())),
            (_, Ended::Source) => return Err((self.end, "unexpected EOF".into())),
        };
        self.variables = known;
        self.depth -= 1;
        self.defined.push((name.clone(), body));
        Ok(is_block.then_some(Node::Template(name, pipeline)))
    }

    fn deeper(&mut self, at: usize) -> Result<(), Trouble> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err((at, "template is nested too deeply".into())) } else { Ok(()) }
    }

    fn whole(&mut self, tokens: &[Token<'a>], context: &str, at: usize) -> Result<Pipeline, Trouble> {
        let mut place = 0;
        let pipeline = self.pipeline(tokens, &mut place, context, at)?;
        match tokens.get(place) {
            None => Ok(pipeline),
            Some(token) => Err((token.at, format!("unexpected {:?} in {context}", token.text))),
        }
    }

    /// A pipeline up to a closing parenthesis or the end.
    fn pipeline(
        &mut self,
        tokens: &[Token<'a>],
        place: &mut usize,
        context: &str,
        at: usize,
    ) -> Result<Pipeline, Trouble> {
        let (variables, assigns) = self.declaration(tokens, place, context)?;
        let mut commands = Vec::new();
        let mut operands = Vec::new();
        let known = if assigns { Vec::new() } else { variables.clone() };
        loop {
            let token = tokens.get(*place).copied();
            match token.map(|token| token.text) {
                None | Some(")" | "|") => {
                    if operands.is_empty() {
                        return Err((at, format!("missing value for {context}")));
                    }
                    commands.push(Command { operands: std::mem::take(&mut operands) });
                    if token.is_none_or(|token| token.text == ")") {
                        break;
                    }
                    *place += 1;
                }
                Some(_) => operands.push(self.operand(tokens, place, context)?),
            }
        }
        self.variables.extend(known);
        Ok(Pipeline { variables, assigns, commands })
    }

    /// `$a :=`, `$i, $a :=`, `$a =`
    fn declaration(
        &mut self,
        tokens: &[Token<'a>],
        place: &mut usize,
        context: &str,
    ) -> Result<(Vec<String>, bool), Trouble> {
        let mut names = Vec::new();
        let mut next = *place;
        while let Some(token) = tokens.get(next).filter(|token| token.text.starts_with('$')) {
            names.push(token.text.to_owned());
            next += 1;
            match tokens.get(next).map(|token| token.text) {
                Some(sign @ (":=" | "=")) => {
                    *place = next + 1;
                    let assigns = sign == "=";
                    let unknown = names.iter().find(|name| assigns && !self.variables.contains(name));
                    return match unknown {
                        Some(name) => Err((token.at, format!("undefined variable {name:?}"))),
                        None => Ok((names, assigns)),
                    };
                }
                Some(",") if context == "range" && names.len() == 1 => next += 1,
                _ => break,
            }
        }
        Ok((Vec::new(), false))
    }

    fn operand(&mut self, tokens: &[Token<'a>], place: &mut usize, context: &str) -> Result<Operand, Trouble> {
        let first = tokens[*place];
        *place += 1;
        let (mut at, text) = (first.at, first.text);
        let mut shown = text.to_owned();
        let mut fields = Vec::new();
        let what = match text {
            "(" => {
                self.deeper(first.at)?;
                let known = self.variables.len();
                let inner = self.pipeline(tokens, place, "parenthesized pipeline", first.at)?;
                self.variables.truncate(known);
                self.depth -= 1;
                let Some(closing) = tokens.get(*place).filter(|token| token.text == ")") else {
                    return Err((first.at, "unclosed left paren".into()));
                };
                let begin = first.at;
                shown = tokens.iter().filter(|token| token.at >= begin && token.at <= closing.at).fold(
                    String::new(),
                    |text, token| {
                        if token.is_apart { format!("{text} {}", token.text) } else { text + token.text }
                    },
                );
                *place += 1;
                What::Pipeline(inner)
            }
            "." => What::Dot,
            "nil" => What::Nil,
            "true" | "false" => What::Bool(text == "true"),
            _ if text.starts_with('.') && !text[1..].starts_with(|letter: char| letter.is_ascii_digit()) => {
                fields.push(text[1..].to_owned());
                What::Dot
            }
            _ if text.starts_with('$') => {
                if !self.variables.iter().any(|known| known == text) {
                    return Err((first.at, format!("undefined variable {text:?}")));
                }
                What::Variable(text.to_owned())
            }
            _ if text.starts_with(['"', '`', '\'']) => literal(text, first.at)?,
            _ if text.starts_with(|letter: char| letter.is_ascii_digit() || matches!(letter, '+' | '-' | '.')) => {
                What::Number(number(text).ok_or((first.at, format!("bad number syntax: {text:?}")))?)
            }
            _ if text.starts_with(|letter: char| letter == '_' || letter.is_alphabetic()) => {
                if !is_known(text) {
                    return Err((first.at, format!("function {text:?} not defined")));
                }
                What::Function(text.to_owned())
            }
            other => return Err((first.at, format!("unexpected {other:?} in {context}"))),
        };
        let mut is_first = true;
        while let Some(token) =
            tokens.get(*place).filter(|token| token.text.len() > 1 && token.text.starts_with('.') && !token.is_apart)
        {
            // Go tells the place of the first field behind the operand.
            if is_first {
                at = token.at;
                is_first = false;
            }
            fields.push(token.text[1..].to_owned());
            shown.push_str(token.text);
            *place += 1;
        }
        if let Some(token) =
            tokens.get(*place).filter(|token| !token.is_apart && !matches!(token.text, ")" | "|" | ","))
        {
            return Err((token.at, format!("unexpected {:?} in operand", token.text)));
        }
        Ok(Operand { what, fields, at, text: shown })
    }
}

fn template_name<'t, 'a>(
    tokens: &'t [Token<'a>],
    at: usize,
    context: &str,
) -> Result<(String, &'t [Token<'a>]), Trouble> {
    match tokens.split_first() {
        Some((name, rest)) if name.text.starts_with(['"', '`']) => match literal(name.text, name.at)? {
            What::Text(name) => Ok((name, rest)),
            _ => Err((at, format!("unexpected name in {context}"))),
        },
        Some((other, _)) => Err((at, format!("unexpected {:?} in {context}", other.text))),
        None => Err((at, format!("unexpected \"}}}}\" in {context}"))),
    }
}

/// A text in quotes, or a letter, which is a number.
fn literal(text: &str, at: usize) -> Result<What, Trouble> {
    let inside = &text[1..text.len() - 1];
    if text.starts_with('`') {
        return Ok(What::Text(inside.to_owned()));
    }
    let quote = if text.starts_with('"') { '"' } else { '\'' };
    let plain = super::super::jsonpath::unquoted(inside, quote).ok_or((at, "invalid syntax".to_owned()))?;
    match (quote, plain.chars().next()) {
        ('"', _) => Ok(What::Text(plain)),
        (_, Some(letter)) if letter.len_utf8() == plain.len() => Ok(What::Number(Number::from(u32::from(letter)))),
        _ => Err((at, format!("malformed character constant: {text}"))),
    }
}
