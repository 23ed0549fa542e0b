//! The grammar of label selectors: `app=web,tier notin (db, cache),!legacy`. Words and errors are those of
//! apimachinery's parser, which clients see.

use super::{Operator, Requirement};

/// The operators that may stand between a key and a value.
const BINARY: &str = "in, notin, =, ==, !=, gt, lt";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    End,
    Identifier,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Comma,
    Open,
    Close,
    In,
    NotIn,
}

/// `in` and `notin` are operators only where one can stand.
#[derive(Clone, Copy, PartialEq)]
enum Context {
    Values,
    Operator,
}

struct Parser<'a> {
    rest: &'a str,
}

pub fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { rest: text };
    let mut all = Vec::new();
    loop {
        match parser.peek(Context::Values) {
            (Token::End, _) => return Ok(all),
            (Token::Identifier | Token::Not, _) => {
                let unable = |problem| format!("unable to parse requirement: {problem}");
                all.push(parser.requirement().map_err(unable)?);
            }
            (_, word) => return Err(format!("found '{word}', expected: !, identifier, or 'end of string'")),
        }
        match parser.take(Context::Values) {
            (Token::End, _) => return Ok(all),
            (Token::Comma, _) => match parser.peek(Context::Values) {
                (Token::Identifier | Token::Not, _) => {}
                (_, word) => return Err(format!("found '{word}', expected: identifier after ','")),
            },
            (_, word) => return Err(format!("found '{word}', expected: ',' or 'end of string'")),
        }
    }
}

impl<'a> Parser<'a> {
    fn peek(&self, context: Context) -> (Token, &'a str) {
        Parser { rest: self.rest }.take(context)
    }

    fn take(&mut self, context: Context) -> (Token, &'a str) {
        self.rest = self.rest.trim_start();
        let special = |letter: char| "=!(),><".contains(letter);
        let length = match self.rest.chars().next() {
            None => 0,
            Some(first) if special(first) => match self.rest.get(..2) {
                Some("==" | "!=") => 2,
                _ => 1,
            },
            Some(_) => {
                self.rest.find(|letter: char| special(letter) || letter.is_whitespace()).unwrap_or(self.rest.len())
            }
        };
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        let token = match word {
            "" => Token::End,
            "!" => Token::Not,
            "=" => Token::Equals,
            "==" => Token::DoubleEquals,
            "!=" => Token::NotEquals,
            ">" => Token::Greater,
            "<" => Token::Less,
            "," => Token::Comma,
            "(" => Token::Open,
            ")" => Token::Close,
            "in" if context == Context::Operator => Token::In,
            "notin" if context == Context::Operator => Token::NotIn,
            _ => Token::Identifier,
        };
        (token, word)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek(Context::Values).0 == Token::Not;
        if negated {
            self.take(Context::Values);
        }
        let (token, key) = self.take(Context::Values);
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let stands_alone = matches!(self.peek(Context::Values).0, Token::End | Token::Comma);
        let (operator, values) = match (negated, stands_alone) {
            (true, _) => (Operator::DoesNotExist, Vec::new()),
            (false, true) => (Operator::Exists, Vec::new()),
            (false, false) => self.condition()?,
        };
        Ok(Requirement { key: key.to_owned(), operator, values })
    }

    fn condition(&mut self) -> Result<(Operator, Vec<String>), String> {
        let operator = match self.take(Context::Operator) {
            (Token::In, _) => return Ok((Operator::In, self.list()?)),
            (Token::NotIn, _) => return Ok((Operator::NotIn, self.list()?)),
            (Token::Equals | Token::DoubleEquals, _) => Operator::In,
            (Token::NotEquals, _) => Operator::NotIn,
            (Token::Greater, _) => Operator::GreaterThan,
            (Token::Less, _) => Operator::LessThan,
            (_, word) => return Err(format!("found '{word}', expected: {BINARY}")),
        };
        if matches!(self.peek(Context::Values).0, Token::End | Token::Comma) {
            return Ok((operator, vec![String::new()]));
        }
        match self.take(Context::Values) {
            (Token::Identifier, value) => Ok((operator, vec![value.to_owned()])),
            (_, word) => Err(format!("found '{word}', expected: identifier")),
        }
    }

    /// `(a, b)`; an empty place between commas is an empty value.
    fn list(&mut self) -> Result<Vec<String>, String> {
        match self.take(Context::Values) {
            (Token::Open, _) => {}
            (_, word) => return Err(format!("found '{word}' expected: '('")),
        }
        let mut values: Vec<String> = Vec::new();
        match self.peek(Context::Values) {
            (Token::Close, _) => {
                self.take(Context::Values);
                return Ok(values);
            }
            (Token::Identifier | Token::Comma, _) => {}
            (_, word) => return Err(format!("found '{word}', expected: ',', ')' or identifier")),
        }
        loop {
            match self.take(Context::Values) {
                (Token::Identifier, value) => {
                    values.push(value.to_owned());
                    match self.peek(Context::Values) {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => break,
                        (_, word) => return Err(format!("found '{word}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => match self.peek(Context::Values).0 {
                    Token::Close => {
                        values.push(String::new());
                        break;
                    }
                    Token::Comma => values.push(String::new()),
                    _ if values.is_empty() => values.push(String::new()),
                    _ => {}
                },
                (_, word) => return Err(format!("found '{word}', expected: ',', or identifier")),
            }
        }
        self.take(Context::Values);
        values.sort();
        values.dedup();
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use crate::selector::Selector;

    #[test]
    fn what_is_wrong_is_said_as_the_api_says_it() {
        for (text, expected) in [
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a in ((", "unable to parse requirement: found '(', expected: ',', ')' or identifier"),
            ("a b=c", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
            ("a=)", "unable to parse requirement: found ')', expected: identifier"),
        ] {
            assert_eq!(Selector::parse(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn a_selector_is_printed_in_its_canonical_form() {
        for (text, expected) in [
            ("a = b , c", "a=b,c"),
            ("a in (c,b,b)", "a in (b,c)"),
            ("in in (in)", "in=in"),
            ("a in (,x)", "a in (,x)"),
            ("a==", "a="),
            ("! a", "!a"),
        ] {
            assert_eq!(Selector::parse(text).map(|selector| selector.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }
}
