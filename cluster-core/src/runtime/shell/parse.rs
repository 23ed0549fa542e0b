//! From a script's text to instructions.

/// One instruction.
#[derive(Clone, Debug)]
pub enum Op {
    /// Runs a command; `looped` if it stands in a loop.
    Run {
        words: Vec<Word>,
        looped: bool,
    },
    Jump(usize),
    /// Jumps if the last status was a success (true) or a failure (false).
    JumpIf(bool, usize),
    /// Turns the last status around.
    Not,
    /// Fills the list of a `for`.
    ForInit(usize, Vec<Word>),
    /// Takes the next value of a list into a variable, or jumps.
    ForNext(usize, String, usize),
}

/// A word before its expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word(pub Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Variable { name: String, quoted: bool },
    Sum(String),
    Output { script: String, quoted: bool },
}

impl Word {
    /// It has an unquoted variable or output, and nothing quoted would be lost by a split.
    pub fn is_split(&self) -> bool {
        self.0
            .iter()
            .any(|piece| matches!(piece, Piece::Variable { quoted: false, .. } | Piece::Output { quoted: false, .. }))
    }

    fn plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

pub fn literal(text: &str) -> Word {
    Word(vec![Piece::Text(text.to_owned())])
}

/// The instructions of a script that is not understood: it says so and ends with 2.
pub fn refusal(shell: &str, message: &str) -> Vec<Op> {
    let say = vec![literal("echo"), literal(&format!("{shell}: {message}"))];
    let end = vec![literal("exit"), literal("2")];
    vec![Op::Run { words: say, looped: false }, Op::Run { words: end, looped: false }]
}

/// `NAME=value` at the beginning of a command.
pub fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Piece::Text(text)) = word.0.first() else { return None };
    let (name, value) = text.split_once('=')?;
    let legal = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    let mut rest = Word(vec![Piece::Text(value.to_owned())]);
    rest.0.extend(word.0[1..].iter().cloned());
    legal.then(|| (name.to_owned(), rest))
}

/// Takes `> file`, `>> file` off the end of a command; marks of other streams are dropped.
pub fn redirection(words: &[Word]) -> (&[Word], Option<(&Word, bool)>) {
    let at = words.iter().position(|word| matches!(word.plain(), Some("\0>" | "\0>>")));
    match at {
        Some(at) => (&words[..at], words.get(at + 1).map(|file| (file, words[at].plain() == Some("\0>>")))),
        None => (words, None),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(Word),
    Op(&'static str),
}

/// Compiles a script; the error is what the shell says.
pub fn parse(text: &str) -> Result<Vec<Op>, String> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, ops: Vec::new(), loops: Vec::new(), lists: 0, depth: 0 };
    parser.list(&[])?;
    match parser.tokens.get(parser.at) {
        None => Ok(parser.ops),
        Some(token) => Err(unexpected(Some(token))),
    }
}

fn unexpected(token: Option<&Token>) -> String {
    let what = match token {
        None => "end of file".to_owned(),
        Some(Token::Op(op)) => format!("\"{op}\""),
        Some(Token::Word(word)) => format!("\"{}\"", word.plain().unwrap_or("word")),
    };
    format!("syntax error: unexpected {what}")
}

const OPERATORS: &[&str] = &["&&", "||", ";;", ";", "\n", "|", "&", "(", ")"];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = |op: &str| op.chars().enumerate().all(|(i, want)| chars.get(at + i) == Some(&want));
        if c == '#' {
            while chars.get(at).is_some_and(|&c| c != '\n') {
                at += 1;
            }
        } else if c == ' ' || c == '\t' || c == '\r' {
            at += 1;
        } else if rest("2>&1") || rest(">&2") || rest("1>&2") {
            at += if c == '>' { 3 } else { 4 };
        } else if rest("2>") {
            // Errors and output are one stream here.
            at += 2;
            while chars.get(at) == Some(&' ') {
                at += 1;
            }
            word(&chars, &mut at)?;
        } else if rest(">>") || c == '>' {
            let appends = rest(">>");
            at += if appends { 2 } else { 1 };
            tokens.push(Token::Word(literal(if appends { "\0>>" } else { "\0>" })));
        } else if let Some(op) = OPERATORS.iter().find(|op| rest(op)) {
            at += op.len();
            tokens.push(Token::Op(op));
        } else {
            tokens.push(Token::Word(word(&chars, &mut at)?));
        }
    }
    Ok(tokens)
}

fn word(chars: &[char], at: &mut usize) -> Result<Word, String> {
    let mut word = Word::default();
    let mut text = String::new();
    let mut any = false;
    let mut quoted = false;
    let flush = |text: &mut String, word: &mut Word| {
        if !text.is_empty() {
            word.0.push(Piece::Text(std::mem::take(text)));
        }
    };
    while let Some(&c) = chars.get(*at) {
        match c {
            '\'' if !quoted => {
                let end = chars[*at + 1..].iter().position(|&c| c == '\'');
                let end = end.ok_or("syntax error: unterminated quoted string")? + *at + 1;
                text.extend(&chars[*at + 1..end]);
                any = true;
                *at = end;
            }
            '"' => {
                quoted = !quoted;
                any = true;
            }
            '\\' => {
                *at += 1;
                match chars.get(*at) {
                    Some('\n') | None => {}
                    Some(&next) if quoted && !matches!(next, '"' | '$' | '\\' | '`') => text.extend(['\\', next]),
                    Some(&next) => text.push(next),
                }
            }
            '$' => {
                flush(&mut text, &mut word);
                match dollar(chars, at, quoted)? {
                    Some(piece) => word.0.push(piece),
                    None => text.push('$'),
                }
                any = true;
                continue;
            }
            '`' => {
                let end = chars[*at + 1..].iter().position(|&c| c == '`');
                let end = end.ok_or("syntax error: unterminated backquote")? + *at + 1;
                flush(&mut text, &mut word);
                word.0.push(Piece::Output { script: chars[*at + 1..end].iter().collect(), quoted });
                *at = end;
            }
            c if !quoted && (c.is_whitespace() || ";&|()<>".contains(c)) => break,
            c => text.push(c),
        }
        *at += 1;
    }
    if quoted {
        return Err("syntax error: unterminated quoted string".into());
    }
    if !text.is_empty() || any && word.0.is_empty() {
        word.0.push(Piece::Text(text));
    }
    if word.0.is_empty() {
        // A lone character that begins no word: `<`.
        return Err(format!("syntax error: unexpected \"{}\"", chars.get(*at).copied().unwrap_or(' ')));
    }
    Ok(word)
}

/// What a `$` at `at` begins; moves behind it.
fn dollar(chars: &[char], at: &mut usize, quoted: bool) -> Result<Option<Piece>, String> {
    let rest = &chars[*at + 1..];
    let closed = |open: usize, depth_open: char, depth_close: char| {
        let mut depth = 0_usize;
        for (index, &c) in rest.iter().enumerate().skip(open) {
            if c == depth_open {
                depth += 1;
            } else if c == depth_close {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(index);
                }
            }
        }
        None
    };
    match rest.first() {
        Some('(') => {
            let end = closed(0, '(', ')').ok_or("syntax error: missing ')'")?;
            *at += end + 2;
            let inner: String = rest[1..end].iter().collect();
            let sum = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
            Ok(Some(match sum {
                Some(sum) => Piece::Sum(sum.to_owned()),
                None => Piece::Output { script: inner, quoted },
            }))
        }
        Some('{') => {
            let end = closed(0, '{', '}').ok_or("syntax error: missing '}'")?;
            *at += end + 2;
            Ok(Some(Piece::Variable { name: rest[1..end].iter().collect(), quoted }))
        }
        Some('?') => {
            *at += 2;
            Ok(Some(Piece::Variable { name: "?".into(), quoted: true }))
        }
        _ => {
            let name: String = rest.iter().take_while(|c| **c == '_' || c.is_ascii_alphanumeric()).collect();
            *at += 1 + name.len();
            Ok((!name.is_empty()).then_some(Piece::Variable { name, quoted }))
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    ops: Vec<Op>,
    /// Of each open loop: where it begins again, and the jumps that leave it.
    loops: Vec<(usize, Vec<usize>)>,
    lists: usize,
    depth: usize,
}

impl Parser {
    fn keyword(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => word.plain(),
            Some(Token::Op(op)) => Some(op),
            None => None,
        }
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.keyword() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.accept(word) { Ok(()) } else { Err(unexpected(self.tokens.get(self.at))) }
    }

    fn separators(&mut self) {
        while matches!(self.tokens.get(self.at), Some(Token::Op(";" | "\n"))) {
            self.at += 1;
        }
    }

    /// Commands up to one of the words that end the list.
    fn list(&mut self, ends: &[&str]) -> Result<(), String> {
        self.depth += 1;
        if self.depth > 50 {
            return Err("syntax error: nested too deeply".into());
        }
        loop {
            self.separators();
            if self.at >= self.tokens.len() || self.keyword().is_some_and(|word| ends.contains(&word)) {
                break;
            }
            self.and_or()?;
            if self.accept("&") {
                self.separators();
                if self.keyword() != Some("wait") {
                    return Err("background jobs are not supported here".into());
                }
            }
            match self.tokens.get(self.at) {
                Some(Token::Op(";" | "\n")) | None => {}
                Some(_) if self.keyword().is_some_and(|word| ends.contains(&word) || word == "wait") => {}
                Some(Token::Op("|")) => return Err("pipes are not supported here".into()),
                other => return Err(unexpected(other)),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn and_or(&mut self) -> Result<(), String> {
        self.negatable()?;
        loop {
            let stops_on_success = match self.keyword() {
                Some("&&") => false,
                Some("||") => true,
                _ => return Ok(()),
            };
            self.at += 1;
            while self.accept("\n") {}
            let jump = self.ops.len();
            self.ops.push(Op::Jump(0));
            self.negatable()?;
            self.ops[jump] = Op::JumpIf(stops_on_success, self.ops.len());
        }
    }

    fn negatable(&mut self) -> Result<(), String> {
        let negated = self.accept("!");
        self.command()?;
        if negated {
            self.ops.push(Op::Not);
        }
        Ok(())
    }

    fn command(&mut self) -> Result<(), String> {
        match self.keyword() {
            Some("if") => self.conditional(),
            Some("while") => self.repeat(false),
            Some("until") => self.repeat(true),
            Some("for") => self.each(),
            Some("(") => self.group(")"),
            Some("{") => self.group("}"),
            Some("break" | "continue") if !self.loops.is_empty() => {
                let leaves = self.accept("break");
                let jump = self.ops.len();
                self.ops.push(Op::Jump(0));
                if let Some((begin, exits)) = self.loops.last_mut() {
                    if leaves {
                        exits.push(jump);
                    } else {
                        self.ops[jump] = Op::Jump(*begin);
                        self.at += 1;
                    }
                }
                Ok(())
            }
            Some("then" | "else" | "elif" | "fi" | "do" | "done") => Err(unexpected(self.tokens.get(self.at))),
            _ => {
                let mut words = Vec::new();
                while let Some(Token::Word(word)) = self.tokens.get(self.at) {
                    words.push(word.clone());
                    self.at += 1;
                }
                if words.is_empty() {
                    return Err(unexpected(self.tokens.get(self.at)));
                }
                self.ops.push(Op::Run { words, looped: !self.loops.is_empty() });
                Ok(())
            }
        }
    }

    fn group(&mut self, end: &'static str) -> Result<(), String> {
        self.at += 1;
        self.list(&[end])?;
        self.expect(end)
    }

    fn conditional(&mut self) -> Result<(), String> {
        self.at += 1;
        let mut ends = Vec::new();
        loop {
            self.list(&["then"])?;
            self.expect("then")?;
            let skip = self.ops.len();
            self.ops.push(Op::Jump(0));
            self.list(&["elif", "else", "fi"])?;
            ends.push(self.ops.len());
            self.ops.push(Op::Jump(0));
            self.ops[skip] = Op::JumpIf(false, self.ops.len());
            if self.accept("elif") {
                continue;
            }
            if self.accept("else") {
                self.list(&["fi"])?;
            }
            break;
        }
        self.expect("fi")?;
        for end in ends {
            self.ops[end] = Op::Jump(self.ops.len());
        }
        Ok(())
    }

    fn repeat(&mut self, until: bool) -> Result<(), String> {
        self.at += 1;
        let begin = self.ops.len();
        self.loops.push((begin, Vec::new()));
        self.list(&["do"])?;
        self.expect("do")?;
        let leave = self.ops.len();
        self.ops.push(Op::Jump(0));
        self.body(begin)?;
        self.ops[leave] = Op::JumpIf(until, self.ops.len());
        Ok(())
    }

    fn each(&mut self) -> Result<(), String> {
        self.at += 1;
        let name = self.keyword().map(str::to_owned).ok_or_else(|| unexpected(None))?;
        self.at += 1;
        self.expect("in")?;
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = self.tokens.get(self.at) {
            words.push(word.clone());
            self.at += 1;
        }
        self.separators();
        self.expect("do")?;
        let list = self.lists;
        self.lists += 1;
        self.ops.push(Op::ForInit(list, words));
        let begin = self.ops.len();
        self.loops.push((begin, Vec::new()));
        self.ops.push(Op::Jump(0));
        self.body(begin)?;
        self.ops[begin] = Op::ForNext(list, name, self.ops.len());
        Ok(())
    }

    /// The rest of a loop, behind its `do`.
    fn body(&mut self, begin: usize) -> Result<(), String> {
        self.list(&["done"])?;
        self.expect("done")?;
        self.ops.push(Op::Jump(begin));
        let end = self.ops.len();
        for jump in self.loops.pop().map(|(_, exits)| exits).unwrap_or_default() {
            self.ops[jump] = Op::Jump(end);
        }
        Ok(())
    }
}
