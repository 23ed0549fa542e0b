//! From a script's text to tokens, and what words are made of.
//! <https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html>

/// How deep `${X:-…}` may be nested.
const DEPTH_MAX: usize = 20;

/// A word before its expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word(pub Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// As it stands; it may be a pattern of names.
    Text(String),
    Quoted(String),
    Parameter {
        name: String,
        action: Option<(&'static str, Word)>,
        quoted: bool,
    },
    /// `$((…))`
    Sum {
        sum: Word,
        quoted: bool,
    },
    /// `$(…)`
    Output {
        script: String,
        quoted: bool,
    },
}

impl Word {
    /// Its text, if nothing in it is quoted or expanded: only such words are keywords.
    pub fn plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub fn is_quoted(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Quoted(_)))
    }
}

/// A word that stays as it is.
pub fn literal(text: &str) -> Word {
    Word(vec![Piece::Quoted(text.to_owned())])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read,
    Write,
    Append,
    /// `>&N`
    Same,
    /// The word is the input itself (`<<END`).
    Here,
}

/// `2> file`, `< file`, `2>&1`, `<<END`
#[derive(Clone, Debug, PartialEq)]
pub struct Redirection {
    pub stream: u32,
    pub mode: Mode,
    pub word: Word,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Word(Word),
    Op(&'static str),
    Redirection(Redirection),
}

const OPERATORS: &[&str] = &["&&", "||", ";;", ";", "\n", "|", "&", "(", ")"];
const REDIRECTIONS: &[(&str, u32, Mode)] = &[
    ("<<-", 0, Mode::Here),
    ("<<", 0, Mode::Here),
    ("<&", 0, Mode::Same),
    ("<", 0, Mode::Read),
    (">>", 1, Mode::Append),
    (">&", 1, Mode::Same),
    (">|", 1, Mode::Write),
    (">", 1, Mode::Write),
];
/// What may stand between a parameter's name and the word that goes with it, longer ones first.
const ACTIONS: &[&str] = &[":-", ":=", ":+", ":?", "-", "=", "+", "?", "%%", "%", "##", "#", "//", "/", ":"];

/// # Errors
/// What the shell says of a text that it can't read.
pub fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0, depth: 0 };
    let mut tokens = Vec::new();
    let mut waiting: Vec<(usize, bool)> = Vec::new();
    while let Some(c) = lexer.peek() {
        if c == '#' {
            while lexer.peek().is_some_and(|c| c != '\n') {
                lexer.at += 1;
            }
        } else if c == ' ' || c == '\t' || c == '\r' || lexer.rest_is("\\\n") {
            lexer.at += if c == '\\' { 2 } else { 1 };
        } else if let Some((mut redirection, strips)) = lexer.redirection()? {
            if redirection.mode == Mode::Here {
                waiting.push((tokens.len(), strips));
            } else if redirection.mode == Mode::Same && redirection.word.plain().is_some_and(|to| to == "-") {
                (redirection.mode, redirection.word) = (Mode::Write, literal("/dev/null"));
            }
            tokens.push(Token::Redirection(redirection));
        } else if let Some(op) = OPERATORS.iter().find(|op| lexer.rest_is(op)) {
            lexer.at += op.len();
            tokens.push(Token::Op(op));
            if *op == "\n" {
                for (index, strips) in waiting.drain(..) {
                    if let Some(Token::Redirection(redirection)) = tokens.get_mut(index) {
                        redirection.word = lexer.document(&redirection.word, strips)?;
                    }
                }
            }
        } else {
            tokens.push(Token::Word(lexer.word()?));
        }
    }
    Ok(tokens)
}

/// The pieces of a text as between double quotes.
///
/// # Errors
/// As of [`tokens`].
pub fn quoted(text: &str) -> Result<Word, String> {
    Lexer { chars: text.chars().collect(), at: 0, depth: 0 }.quoted(None)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Lexer {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn rest_is(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(index, want)| self.chars.get(self.at + index) == Some(&want))
    }

    /// A redirection with its word, and whether tabs are taken off its lines.
    fn redirection(&mut self) -> Result<Option<(Redirection, bool)>, String> {
        let number: String = self.chars[self.at..].iter().take_while(|c| c.is_ascii_digit()).take(3).collect();
        let (before, both) = (self.at, self.rest_is("&>"));
        self.at += if both { 1 } else { number.len() };
        let Some((sign, usual, mode)) = REDIRECTIONS.iter().find(|(sign, ..)| self.rest_is(sign)) else {
            self.at = before;
            return Ok(None);
        };
        self.at += sign.len();
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        let word = self.word()?;
        let stream = if both { 1 } else { number.parse().unwrap_or(*usual) };
        Ok(Some((Redirection { stream, mode: *mode, word }, *sign == "<<-")))
    }

    /// The lines up to the one that a here-document ends with.
    fn document(&mut self, end: &Word, strips: bool) -> Result<Word, String> {
        let plain = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Quoted(text) => text.clone(),
            _ => String::new(),
        };
        let mark: String = end.0.iter().map(plain).collect();
        let mut text = String::new();
        while self.at < self.chars.len() {
            let line: String = self.chars[self.at..].iter().take_while(|c| **c != '\n').collect();
            self.at = (self.at + line.chars().count() + 1).min(self.chars.len());
            let line = if strips { line.trim_start_matches('\t') } else { &line };
            if line == mark {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        if end.is_quoted() { Ok(literal(&text)) } else { quoted(&text) }
    }

    fn word(&mut self) -> Result<Word, String> {
        let (mut word, mut text, begin) = (Word::default(), String::new(), self.at);
        let flush = |text: &mut String, word: &mut Word| {
            if !text.is_empty() {
                word.0.push(Piece::Text(std::mem::take(text)));
            }
        };
        while let Some(c) = self.peek() {
            match c {
                '\'' => {
                    let rest = &self.chars[self.at + 1..];
                    let length = rest.iter().position(|&c| c == '\'');
                    let length = length.ok_or("syntax error: unterminated quoted string")?;
                    flush(&mut text, &mut word);
                    word.0.push(Piece::Quoted(rest[..length].iter().collect()));
                    self.at += length + 2;
                }
                '"' => {
                    flush(&mut text, &mut word);
                    self.at += 1;
                    let inner = self.quoted(Some('"'))?;
                    self.at += 1;
                    if inner.0.is_empty() {
                        word.0.push(Piece::Quoted(String::new()));
                    }
                    word.0.extend(inner.0);
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        None => word.0.push(Piece::Quoted("\\".into())),
                        Some('\n') => self.at += 1,
                        Some(next) => {
                            flush(&mut text, &mut word);
                            word.0.push(Piece::Quoted(next.into()));
                            self.at += 1;
                        }
                    }
                }
                '$' | '`' => {
                    flush(&mut text, &mut word);
                    match self.dollar(false)? {
                        Some(piece) => word.0.push(piece),
                        None => text.push('$'),
                    }
                }
                c if c.is_whitespace() || ";&|()<>".contains(c) => break,
                c => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
        flush(&mut text, &mut word);
        if self.at == begin {
            let found = self.peek().map_or("end of file".to_owned(), |c| format!("\"{c}\""));
            return Err(format!("syntax error: unexpected {found}"));
        }
        Ok(word)
    }

    /// What stands between double quotes, up to the one that closes them.
    fn quoted(&mut self, end: Option<char>) -> Result<Word, String> {
        let (mut word, mut text) = (Word::default(), String::new());
        loop {
            match self.peek() {
                found if found == end => break,
                None => return Err("syntax error: unterminated quoted string".into()),
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => {}
                        Some(next @ ('$' | '`' | '\\')) => text.push(next),
                        Some('"') if end.is_some() => text.push('"'),
                        next => text.extend(std::iter::once('\\').chain(next)),
                    }
                    self.at = (self.at + 1).min(self.chars.len());
                }
                Some('$' | '`') => match self.dollar(true)? {
                    Some(piece) => {
                        if !text.is_empty() {
                            word.0.push(Piece::Quoted(std::mem::take(&mut text)));
                        }
                        word.0.push(piece);
                    }
                    None => text.push('$'),
                },
                Some(c) => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
        if !text.is_empty() {
            word.0.push(Piece::Quoted(text));
        }
        Ok(word)
    }

    /// What a `$` or a backquote begins; moves behind it. `None` for a `$` that is only a character.
    fn dollar(&mut self, quoted: bool) -> Result<Option<Piece>, String> {
        if self.peek() == Some('`') {
            let rest = &self.chars[self.at + 1..];
            let length = rest.iter().position(|&c| c == '`').ok_or("syntax error: unterminated backquote")?;
            let script = rest[..length].iter().collect();
            self.at += length + 2;
            return Ok(Some(Piece::Output { script, quoted }));
        }
        self.at += 1;
        let named = |name: String| Ok(Some(Piece::Parameter { name, action: None, quoted }));
        match self.peek() {
            Some('(') => {
                let inner = self.enclosed(')').ok_or("syntax error: missing ')'")?;
                let sum = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
                Ok(Some(match sum {
                    Some(sum) => Piece::Sum { sum: self.nested(sum)?, quoted },
                    None => Piece::Output { script: inner, quoted },
                }))
            }
            Some('{') => {
                let inner = self.enclosed('}').ok_or("syntax error: missing '}'")?;
                self.parameter(&inner, quoted).map(Some)
            }
            Some(c) if c.is_ascii_digit() || "?#@*!$-".contains(c) => {
                self.at += 1;
                named(c.into())
            }
            _ => {
                let rest = &self.chars[self.at..];
                let name: String = rest.iter().take_while(|c| **c == '_' || c.is_ascii_alphanumeric()).collect();
                self.at += name.len();
                if name.is_empty() { Ok(None) } else { named(name) }
            }
        }
    }

    /// `NAME`, `#NAME`, `NAME:-WORD` and the like.
    fn parameter(&mut self, inner: &str, quoted: bool) -> Result<Piece, String> {
        if let Some(name) = inner.strip_prefix('#').filter(|name| !name.is_empty()) {
            return Ok(Piece::Parameter { name: name.into(), action: Some(("length", Word::default())), quoted });
        }
        let special = usize::from(inner.starts_with(['@', '*', '?', '#', '!', '$', '-']));
        let named = inner.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
        let (name, rest) = inner.split_at(named.max(special));
        if rest.is_empty() {
            return Ok(Piece::Parameter { name: name.into(), action: None, quoted });
        }
        let action = ACTIONS.iter().find(|action| rest.starts_with(**action)).filter(|_| !name.is_empty());
        let action = action.ok_or("syntax error: bad substitution")?;
        let word = self.nested(&rest[action.len()..])?;
        Ok(Piece::Parameter { name: name.into(), action: Some((action, word)), quoted })
    }

    /// A word within a word: blanks and operators are characters like others.
    fn nested(&mut self, text: &str) -> Result<Word, String> {
        if self.depth >= DEPTH_MAX {
            return Err("syntax error: nested too deeply".into());
        }
        let mut inner = Lexer { chars: text.chars().collect(), at: 0, depth: self.depth + 1 };
        let mut word = Word::default();
        while let Some(c) = inner.peek() {
            if c.is_whitespace() || ";&|()<>".contains(c) {
                inner.at += 1;
                word.0.push(Piece::Text(c.into()));
            } else {
                word.0.extend(inner.word()?.0);
            }
        }
        Ok(word)
    }

    /// What stands between the bracket at this place and the one that closes it; moves behind it.
    fn enclosed(&mut self, end: char) -> Option<String> {
        let begin = self.at + 1;
        let mut open = vec![end];
        let mut at = begin;
        while let Some(&c) = self.chars.get(at) {
            let next = self.chars.get(at + 1).copied();
            match (c, open.last().copied()) {
                ('\\', _) => at += 1,
                ('\'', Some(top)) if top != '"' => {
                    at += 1 + self.chars.get(at + 1..)?.iter().position(|&c| c == '\'')?;
                }
                ('"', Some('"')) => {
                    open.pop();
                }
                ('"', _) => open.push('"'),
                ('$', _) if next == Some('(') => {
                    open.push(')');
                    at += 1;
                }
                ('$', _) if next == Some('{') => {
                    open.push('}');
                    at += 1;
                }
                ('(', Some(')')) => open.push(')'),
                (c, Some(top)) if c == top => {
                    open.pop();
                    if open.is_empty() {
                        self.at = at + 1;
                        return Some(self.chars[begin..at].iter().collect());
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    }
}
