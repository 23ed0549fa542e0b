//! From a script's text to instructions.

use std::sync::Arc;

use super::words::{Redirection, Token, Word, literal, tokens};

/// One instruction.
#[derive(Clone, Debug)]
pub enum Op {
    /// Runs a command; `looped` if it stands in a loop.
    Run {
        command: Arc<Command>,
        looped: bool,
    },
    /// Runs what has streams or variables of its own.
    Spawn(Arc<Spawn>),
    Jump(usize),
    /// Jumps if the last status was a success (true) or a failure (false).
    JumpIf(bool, usize),
    /// Turns the last status around.
    Not,
    /// Fills the list of a `for`.
    ForInit(usize, Vec<Word>),
    /// Takes the next value of a list into a variable, or jumps.
    ForNext(usize, String, usize),
    /// Jumps to the arm with the first pattern that matches, or behind all.
    Case {
        word: Word,
        arms: Vec<(Word, usize)>,
        end: usize,
    },
    Define(String, Arc<[Op]>),
    /// A text that can't be read: it is said, and the shell ends.
    Refuse(String),
}

/// `NAME=value … program word … > file`
#[derive(Clone, Debug, Default)]
pub struct Command {
    pub assignments: Vec<(String, Word)>,
    pub words: Vec<Word>,
    pub redirections: Vec<Redirection>,
}

/// Parts of a script that run beside it, what each prints being the input of the next.
#[derive(Clone, Debug)]
pub struct Spawn {
    pub stages: Vec<Arc<[Op]>>,
    pub redirections: Vec<Redirection>,
    /// Nobody waits for it (`&`).
    pub background: bool,
    /// What it sets, the script has set: `{ … } > file`.
    pub shares_variables: bool,
    pub looped: bool,
}

/// The instructions for a program with its arguments.
pub fn line(words: &[String]) -> Arc<[Op]> {
    let command = Command { words: words.iter().map(|word| literal(word)).collect(), ..Command::default() };
    [Op::Run { command: command.into(), looped: false }].into()
}

/// Compiles a script; one that can't be read says so when it is run.
pub fn script(text: &str) -> Arc<[Op]> {
    parse(text).unwrap_or_else(|message| vec![Op::Refuse(message)]).into()
}

fn parse(text: &str) -> Result<Vec<Op>, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, ops: Vec::new(), loops: Vec::new(), looped: 0, lists: 0, depth: 0 };
    parser.list(&[])?;
    match parser.tokens.get(parser.at) {
        None => Ok(parser.ops),
        Some(token) => Err(unexpected(Some(token))),
    }
}

fn unexpected(token: Option<&Token>) -> String {
    let what = match token {
        None => "end of file".to_owned(),
        Some(Token::Op("\n")) => "newline".to_owned(),
        Some(Token::Op(op)) => format!("\"{op}\""),
        Some(Token::Word(word)) => format!("\"{}\"", word.plain().unwrap_or("word")),
        Some(Token::Redirection(_)) => "redirection".to_owned(),
    };
    format!("syntax error: unexpected {what}")
}

/// `NAME=value` at the beginning of a command.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(super::words::Piece::Text(text)) = word.0.first() else { return None };
    let (name, value) = text.split_once('=')?;
    let mut rest = Word::default();
    if !value.is_empty() {
        rest.0.push(super::words::Piece::Text(value.to_owned()));
    }
    rest.0.extend(word.0[1..].iter().cloned());
    is_name(name).then(|| (name.to_owned(), rest))
}

pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    ops: Vec<Op>,
    /// Of each open loop: where it begins again, and the jumps that leave it.
    loops: Vec<(usize, Vec<usize>)>,
    /// How many loops are around, also those outside of a part with instructions of its own.
    looped: usize,
    lists: usize,
    depth: usize,
}

impl Parser {
    fn keyword(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => word.plain(),
            Some(Token::Op(op)) => Some(op),
            _ => None,
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
            let begin = self.ops.len();
            self.and_or()?;
            if self.accept("&") {
                let stage = self.cut(begin);
                self.spawn(vec![stage], Vec::new(), true, false);
                continue;
            }
            match self.tokens.get(self.at) {
                Some(Token::Op(";" | "\n")) | None => {}
                Some(_) if self.keyword().is_some_and(|word| ends.contains(&word)) => {}
                other => return Err(unexpected(other)),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn and_or(&mut self) -> Result<(), String> {
        self.pipeline()?;
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
            self.pipeline()?;
            self.ops[jump] = Op::JumpIf(stops_on_success, self.ops.len());
        }
    }

    fn pipeline(&mut self) -> Result<(), String> {
        let negated = self.accept("!");
        let begin = self.ops.len();
        self.command()?;
        if self.keyword() == Some("|") {
            let mut stages = vec![self.cut(begin)];
            while self.accept("|") {
                while self.accept("\n") {}
                stages.push(self.part(Parser::command)?);
            }
            self.spawn(stages, Vec::new(), false, false);
        }
        if negated {
            self.ops.push(Op::Not);
        }
        Ok(())
    }

    fn spawn(
        &mut self,
        stages: Vec<Arc<[Op]>>,
        redirections: Vec<Redirection>,
        background: bool,
        shares_variables: bool,
    ) {
        let looped = self.looped > 0;
        self.ops.push(Op::Spawn(Arc::new(Spawn { stages, redirections, background, shares_variables, looped })));
    }

    /// Instructions of their own.
    fn part(&mut self, parse: impl FnOnce(&mut Parser) -> Result<(), String>) -> Result<Arc<[Op]>, String> {
        let (ops, loops) = (std::mem::take(&mut self.ops), std::mem::take(&mut self.loops));
        let parsed = parse(self);
        self.loops = loops;
        let part = std::mem::replace(&mut self.ops, ops);
        parsed.map(|()| part.into())
    }

    /// Takes what was compiled since as instructions of their own.
    fn cut(&mut self, begin: usize) -> Arc<[Op]> {
        let mut part = self.ops.split_off(begin);
        let end_of_part = part.len();
        // What leads out of the part ends it.
        let moved = |to: &mut usize| *to = to.checked_sub(begin).unwrap_or(end_of_part);
        for op in &mut part {
            match op {
                Op::Jump(to) | Op::JumpIf(_, to) | Op::ForNext(_, _, to) => moved(to),
                Op::Case { arms, end, .. } => arms.iter_mut().map(|(_, to)| to).chain([end]).for_each(moved),
                _ => {}
            }
        }
        for (_, exits) in &mut self.loops {
            for exit in exits.extract_if(.., |exit| *exit >= begin) {
                part[exit - begin] = Op::Jump(end_of_part);
            }
        }
        part.into()
    }

    fn command(&mut self) -> Result<(), String> {
        let begin = self.ops.len();
        match self.keyword() {
            Some("if") => self.conditional()?,
            Some("while") => self.repeat(false)?,
            Some("until") => self.repeat(true)?,
            Some("for") => self.each()?,
            Some("case") => self.case()?,
            Some("{") => {
                self.at += 1;
                self.list(&["}"])?;
                self.expect("}")?;
            }
            Some("(") => {
                self.at += 1;
                let stage = self.part(|parser| parser.list(&[")"]))?;
                self.expect(")")?;
                let redirections = self.redirections();
                self.spawn(vec![stage], redirections, false, false);
                return Ok(());
            }
            Some("break" | "continue") if !self.loops.is_empty() => return self.leave(),
            Some("then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}") => {
                return Err(unexpected(self.tokens.get(self.at)));
            }
            _ => return self.simple(),
        }
        let redirections = self.redirections();
        if !redirections.is_empty() {
            let stage = self.cut(begin);
            self.spawn(vec![stage], redirections, false, true);
        }
        Ok(())
    }

    fn redirections(&mut self) -> Vec<Redirection> {
        let mut found = Vec::new();
        while let Some(Token::Redirection(redirection)) = self.tokens.get(self.at) {
            found.push(redirection.clone());
            self.at += 1;
        }
        found
    }

    fn leave(&mut self) -> Result<(), String> {
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

    fn simple(&mut self) -> Result<(), String> {
        let mut command = Command::default();
        let begin = self.at;
        loop {
            match self.tokens.get(self.at) {
                Some(Token::Word(word)) => match assignment(word).filter(|_| command.words.is_empty()) {
                    Some(assignment) => command.assignments.push(assignment),
                    None => command.words.push(word.clone()),
                },
                Some(Token::Redirection(redirection)) => command.redirections.push(redirection.clone()),
                Some(Token::Op("(")) if command.words.len() == 1 && self.at == begin + 1 => {
                    return self.function(&command.words[0]);
                }
                _ => break,
            }
            self.at += 1;
        }
        if self.at == begin {
            return Err(unexpected(self.tokens.get(self.at)));
        }
        self.ops.push(Op::Run { command: command.into(), looped: self.looped > 0 });
        Ok(())
    }

    /// `NAME() { … }`
    fn function(&mut self, name: &Word) -> Result<(), String> {
        let name = name.plain().filter(|name| is_name(name) || name.contains('-')).map(str::to_owned);
        let name = name.ok_or_else(|| unexpected(self.tokens.get(self.at)))?;
        self.expect("(")?;
        self.expect(")")?;
        while self.accept("\n") {}
        let body = self.part(Parser::command)?;
        self.ops.push(Op::Define(name, body));
        Ok(())
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

    fn case(&mut self) -> Result<(), String> {
        self.at += 1;
        let Some(Token::Word(word)) = self.tokens.get(self.at).cloned() else {
            return Err(unexpected(self.tokens.get(self.at)));
        };
        self.at += 1;
        self.separators();
        self.expect("in")?;
        let start = self.ops.len();
        self.ops.push(Op::Jump(0));
        let (mut arms, mut ends) = (Vec::new(), Vec::new());
        loop {
            self.separators();
            if self.accept("esac") {
                break;
            }
            self.accept("(");
            loop {
                let Some(Token::Word(pattern)) = self.tokens.get(self.at) else {
                    return Err(unexpected(self.tokens.get(self.at)));
                };
                arms.push((pattern.clone(), self.ops.len()));
                self.at += 1;
                if !self.accept("|") {
                    break;
                }
            }
            self.expect(")")?;
            self.list(&[";;", "esac"])?;
            ends.push(self.ops.len());
            self.ops.push(Op::Jump(0));
            self.accept(";;");
        }
        let end = self.ops.len();
        for jump in ends {
            self.ops[jump] = Op::Jump(end);
        }
        self.ops[start] = Op::Case { word, arms, end };
        Ok(())
    }

    fn repeat(&mut self, until: bool) -> Result<(), String> {
        self.at += 1;
        let begin = self.ops.len();
        self.loops.push((begin, Vec::new()));
        self.looped += 1;
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
        let mut words = Vec::new();
        while self.accept("\n") {}
        if self.accept("in") {
            while let Some(Token::Word(word)) = self.tokens.get(self.at) {
                words.push(word.clone());
                self.at += 1;
            }
        } else {
            let all = super::words::Piece::Parameter { name: "@".into(), action: None, quoted: true };
            words.push(Word(vec![all]));
        }
        self.separators();
        self.expect("do")?;
        let list = self.lists;
        self.lists += 1;
        self.ops.push(Op::ForInit(list, words));
        let begin = self.ops.len();
        self.loops.push((begin, Vec::new()));
        self.looped += 1;
        self.ops.push(Op::Jump(0));
        self.body(begin)?;
        self.ops[begin] = Op::ForNext(list, name, self.ops.len());
        Ok(())
    }

    /// The rest of a loop, behind its `do`.
    fn body(&mut self, begin: usize) -> Result<(), String> {
        self.list(&["done"])?;
        self.expect("done")?;
        self.looped -= 1;
        self.ops.push(Op::Jump(begin));
        let end = self.ops.len();
        for jump in self.loops.pop().map(|(_, exits)| exits).unwrap_or_default() {
            self.ops[jump] = Op::Jump(end);
        }
        Ok(())
    }
}
