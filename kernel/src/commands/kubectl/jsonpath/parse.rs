//! From text to nodes, with the words of client-go's own parser for what is wrong.

use super::{Bound, Node};

/// The nodes of a template: text, and one list for each pair of braces.
///
/// # Errors
/// What is wrong, as kubectl says it.
pub fn parse(text: &str) -> Result<Vec<Node>, String> {
    let mut parser = Parser { rest: text };
    let mut nodes = Vec::new();
    while !parser.rest.is_empty() {
        let start = parser.rest.find('{').unwrap_or(parser.rest.len());
        let (before, action) = parser.rest.split_at(start);
        if !before.is_empty() {
            nodes.push(Node::Text(before.to_owned()));
        }
        if let Some(inside) = action.strip_prefix('{') {
            parser.rest = inside;
            nodes.push(Node::List(parser.action()?));
        } else {
            break;
        }
    }
    Ok(nodes)
}

/// The nodes of one pair of braces around a text.
fn action(text: &str) -> Result<Vec<Node>, String> {
    match parse(&format!("{{{text}}}"))?.into_iter().next() {
        Some(Node::List(nodes)) => Ok(nodes),
        _ => Ok(Vec::new()),
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes so many bytes off.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// Takes what stands before the first letter that ends it.
    fn take_until(&mut self, ends: impl Fn(char) -> bool) -> &'a str {
        self.take(self.rest.find(ends).unwrap_or(self.rest.len()))
    }

    /// What stands before the closing brace, which is taken, too.
    fn action(&mut self) -> Result<Vec<Node>, String> {
        let mut nodes = Vec::new();
        loop {
            if self.rest.starts_with('}') {
                self.take(1);
                return Ok(nodes);
            }
            if self.rest.starts_with("[?(") {
                self.take(3);
                nodes.push(self.filter()?);
                continue;
            }
            if self.rest.starts_with("..") {
                self.take(2);
                if matches!(nodes.last(), Some(Node::Recursive)) {
                    return Err("invalid multiple recursive descent".into());
                }
                nodes.push(Node::Recursive);
                if self.peek().is_some_and(is_word) {
                    nodes.push(self.field());
                }
                continue;
            }
            match self.peek() {
                None | Some('\r' | '\n') => return Err("unclosed action".into()),
                Some(' ' | '@' | '$') => {
                    self.take(1);
                }
                Some('[') => {
                    self.take(1);
                    nodes.extend(self.array()?);
                }
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(quote)?),
                Some('.') => {
                    self.take(1);
                    nodes.push(self.field());
                }
                Some(letter) if letter == '+' || letter == '-' || letter.is_numeric() => nodes.push(self.number()?),
                Some(letter) if is_word(letter) => nodes.push(match self.take_until(is_terminator) {
                    "true" => Node::Bool(true),
                    "false" => Node::Bool(false),
                    name => Node::Identifier(name.to_owned()),
                }),
                Some(other) => {
                    let code = u32::from(other);
                    return Err(format!("unrecognized character in action: U+{code:04X} '{other}'"));
                }
            }
        }
    }

    /// A field's name, in which a backslash makes any letter one of the name.
    fn field(&mut self) -> Node {
        let mut end = 0;
        let mut letters = self.rest.char_indices();
        while let Some((index, letter)) = letters.next() {
            if is_terminator(letter) {
                break;
            }
            end = index + letter.len_utf8();
            if letter == '\\'
                && let Some((index, escaped)) = letters.next()
            {
                end = index + escaped.len_utf8();
            }
        }
        match self.take(end) {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn number(&mut self) -> Result<Node, String> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|letter: char| letter != '.' && !letter.is_numeric());
        let text = self.take(digits.map_or(self.rest.len(), |digits| digits + sign));
        let integer = text.parse::<i64>().ok().map(|number| Node::Number(number.into()));
        let float = || text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Node::Number);
        integer.or_else(float).ok_or_else(|| format!("cannot parse number {text}"))
    }

    fn quoted(&mut self, quote: char) -> Result<Node, String> {
        let end = self.end_of_quote(quote).ok_or("unterminated quoted string")?;
        let text = self.take(end);
        let inside = &text[1..text.len() - 1];
        let plain = unquoted(inside, quote).ok_or_else(|| format!("unquote string {text} error invalid syntax"))?;
        Ok(Node::Text(plain))
    }

    /// Behind the quote that ends the one at the start; one behind a backslash does not.
    fn end_of_quote(&self, quote: char) -> Option<usize> {
        let mut before = quote;
        for (index, letter) in self.rest.char_indices().skip(1) {
            match letter {
                '\n' => return None,
                letter if letter == quote && before != '\\' => return Some(index + 1),
                letter => before = letter,
            }
        }
        None
    }

    /// `[0]`, `[1:3]`, `[*]`, `['key']`, `[0,1]`: the opening bracket is taken already.
    fn array(&mut self) -> Result<Vec<Node>, String> {
        let end = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']'));
        let text = self.take(end.ok_or("unterminated array")?);
        self.take(1);
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let parts = text.split(',').map(|part| action(&format!("[{}]", part.trim_matches(' '))));
            return Ok(vec![Node::Union(parts.collect::<Result<_, _>>()?)]);
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            return action(&format!(".{key}"));
        }
        let wrong = || format!("invalid array index {text}");
        let parts: Vec<&str> = text.split(':').collect();
        let is_integer = |part: &&str| part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() > 3 || !parts.iter().all(is_integer) {
            return Err(wrong());
        }
        let bound = |part: &str| match part {
            "" => Ok(None),
            number => number.parse().map(Some).map_err(|_| format!("array index {number} is not a number")),
        };
        let from = bound(parts[0])?;
        let to = match parts.get(1) {
            Some(part) => Bound { value: bound(part)?, derived: false },
            // A single index is a slice of one.
            None => Bound { value: Some(from.unwrap_or(0) + 1), derived: true },
        };
        Ok(vec![Node::Array(from, to, parts.get(2).map_or(Ok(None), |part| bound(part))?)])
    }

    /// `@.n>1)]` and the like: what opens it is taken already.
    fn filter(&mut self) -> Result<Node, String> {
        let (mut open, mut closed, mut before) = (None, false, '(');
        let mut end = None;
        for (index, letter) in self.rest.char_indices() {
            match letter {
                '\n' => break,
                '"' | '\'' if open.is_none() => open = Some(letter),
                letter if Some(letter) == open && before != '\\' => closed = true,
                ')' if open.is_some() == closed => {
                    end = Some(index);
                    break;
                }
                _ => {}
            }
            before = letter;
        }
        let text = self.take(end.ok_or("unterminated filter")?);
        self.take(1);
        if self.peek() != Some(']') {
            return Err("unclosed array expect ]".into());
        }
        self.take(1);
        let is_operator = |letter: char| "!<>=".contains(letter);
        let start = text.find(is_operator).filter(|start| *start > 0);
        let length = start.and_then(|start| text[start..].find(|letter| !is_operator(letter)));
        let (Some(start), Some(length)) = (start, length) else {
            return Ok(Node::Filter(action(text)?, Vec::new(), "exists".into()));
        };
        let (operator, right) = text[start..].split_at(length);
        Ok(Node::Filter(action(&text[..start])?, action(right)?, operator.to_owned()))
    }
}

fn is_terminator(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// What a quoted text stands for, as Go reads it.
pub fn unquoted(text: &str, quote: char) -> Option<String> {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        let code = |letters: &mut std::str::Chars<'_>, digits: usize| {
            let digits: String = letters.by_ref().take(digits).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
        };
        plain.push(match letters.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => code(&mut letters, 2)?,
            'u' => code(&mut letters, 4)?,
            'U' => code(&mut letters, 8)?,
            '\\' => '\\',
            escaped if escaped == quote => quote,
            _ => return None,
        });
    }
    Some(plain)
}
