//! `awk`, as far as people use it in a pipe: `/pattern/ {print $1, $NF}`, `NR==2`, `-F:`, sums in `END`.

use std::collections::BTreeMap;

use regex_lite::Regex;

use super::{Call, Outcome};

/// How deep an expression may be nested.
const DEPTH_MAX: usize = 30;

pub fn run(call: &mut Call<'_, '_>) -> Outcome {
    let (mut separator, mut variables, mut rest) = (None, BTreeMap::new(), Vec::new());
    let mut words = call.args.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-F" => separator = words.next(),
            "-v" => {
                if let Some((name, value)) = words.next().and_then(|word| word.split_once('=')) {
                    variables.insert(name.to_owned(), value.to_owned());
                }
            }
            word if word.starts_with("-F") && rest.is_empty() => separator = Some(&word[2..]),
            word => rest.push(word),
        }
    }
    let Some((program, paths)) = rest.split_first() else {
        return call.fail(1, "usage: awk [-F SEP] PROGRAM [FILE]...");
    };
    let rules = match rules(program) {
        Ok(rules) => rules,
        Err(problem) => return call.fail(1, &problem),
    };
    let only_begin = rules.iter().all(|rule| rule.when == When::Begin);
    let text = match if only_begin { Ok(String::new()) } else { call.text(paths) } {
        Ok(text) => text,
        Err(outcome) => return outcome,
    };
    let separator = separator.map(super::builtins::unescape);
    let mut machine =
        Machine { variables, separator, fields: Vec::new(), line: String::new(), out: String::new(), depth: 0 };
    let done = machine.all(&rules, &text);
    call.out.text(std::mem::take(&mut machine.out));
    match done {
        Ok(()) => Outcome::Done(0),
        Err(problem) => call.fail(2, &problem),
    }
}

#[derive(Debug, PartialEq)]
enum When {
    Begin,
    End,
    Always,
    /// An expression that is true.
    If(String),
}

struct Rule {
    when: When,
    /// Statements; `None` prints the line.
    body: Option<Vec<String>>,
}

/// The rules of a program: each a condition, statements in braces, or both.
fn rules(program: &str) -> Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    let mut rest = program.trim();
    while !rest.is_empty() {
        let open = outside(rest, &['{', ';', '\n']).map(|(at, c)| if c == '{' { (at, true) } else { (at, false) });
        let (at, has_body) = open.unwrap_or((rest.len(), false));
        let when = match rest[..at].trim() {
            "BEGIN" => When::Begin,
            "END" => When::End,
            "" => When::Always,
            condition => When::If(condition.to_owned()),
        };
        if has_body {
            let (close, _) = outside(&rest[at + 1..], &['}']).ok_or("syntax error: missing }")?;
            let inner = &rest[at + 1..at + 1 + close];
            rules.push(Rule { when, body: Some(split(inner, &[';', '\n'])) });
            rest = rest[at + close + 2..].trim_start();
        } else {
            if when != When::Always {
                rules.push(Rule { when, body: None });
            }
            rest = rest[(at + 1).min(rest.len())..].trim_start();
        }
    }
    Ok(rules)
}

/// The first of some characters that stands outside of texts, patterns and brackets.
fn outside(text: &str, wanted: &[char]) -> Option<(usize, char)> {
    let mut quote: Option<char> = None;
    let (mut escaped, mut depth) = (false, 0_usize);
    for (at, c) in text.char_indices() {
        match quote {
            _ if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if depth == 0 && wanted.contains(&c) => return Some((at, c)),
            None => match c {
                '"' => quote = Some('"'),
                // Behind a value it divides.
                '/' if !text[..at].trim_end().ends_with(|c: char| c.is_alphanumeric() || ")]_\"".contains(c)) => {
                    quote = Some('/');
                }
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            },
        }
    }
    None
}

fn split(text: &str, signs: &[char]) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((at, c)) = outside(rest, signs) {
        parts.push(rest[..at].trim().to_owned());
        rest = &rest[at + c.len_utf8()..];
    }
    parts.push(rest.trim().to_owned());
    parts.retain(|part| !part.is_empty());
    parts
}

struct Machine {
    variables: BTreeMap<String, String>,
    separator: Option<String>,
    line: String,
    fields: Vec<String>,
    out: String,
    depth: usize,
}

fn number(text: &str) -> f64 {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(text.len());
    text[..end].parse().unwrap_or(0.0)
}

fn shown(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e16 {
        format!("{value:.0}")
    } else {
        format!("{}", (value * 1e6).round() / 1e6)
    }
}

impl Machine {
    fn all(&mut self, rules: &[Rule], text: &str) -> Result<(), String> {
        for rule in rules.iter().filter(|rule| rule.when == When::Begin) {
            self.body(rule)?;
        }
        for (index, line) in text.lines().enumerate() {
            self.take(line);
            self.variables.insert("NR".into(), (index + 1).to_string());
            for rule in rules {
                let applies = match &rule.when {
                    When::Always => true,
                    When::If(condition) => self.is_true(condition)?,
                    When::Begin | When::End => false,
                };
                if applies && !self.body(rule)? {
                    break;
                }
            }
        }
        for rule in rules.iter().filter(|rule| rule.when == When::End) {
            self.body(rule)?;
        }
        Ok(())
    }

    fn take(&mut self, line: &str) {
        self.line = line.to_owned();
        self.fields = match self.separator.as_deref() {
            None | Some(" ") => line.split_whitespace().map(str::to_owned).collect(),
            Some(one) if one.chars().count() == 1 => line.split(one).map(str::to_owned).collect(),
            Some(pattern) => match Regex::new(pattern) {
                Ok(regex) => regex.split(line).map(str::to_owned).collect(),
                Err(_) => line.split(pattern).map(str::to_owned).collect(),
            },
        };
    }

    /// Runs the statements of a rule; false if the line is done with.
    fn body(&mut self, rule: &Rule) -> Result<bool, String> {
        let Some(body) = &rule.body else {
            self.out.push_str(&format!("{}\n", self.line));
            return Ok(true);
        };
        for statement in body {
            if statement == "next" || statement == "exit" {
                return Ok(false);
            }
            self.statement(statement)?;
        }
        Ok(true)
    }

    fn statement(&mut self, statement: &str) -> Result<(), String> {
        if let Some(rest) = statement.strip_prefix("if") {
            let rest = rest.trim_start();
            let close = rest.strip_prefix('(').and_then(|inner| outside(inner, &[')'])).map(|(at, _)| at + 1);
            let close = close.ok_or("syntax error near if")?;
            if self.is_true(&rest[1..close])? {
                self.statement(rest[close + 1..].trim().trim_start_matches('{').trim_end_matches('}').trim())?;
            }
            return Ok(());
        }
        if let Some(rest) = statement.strip_prefix("printf") {
            let values = split(rest.trim().trim_start_matches('(').trim_end_matches(')'), &[',']);
            let values = values.iter().map(|value| self.value(value)).collect::<Result<Vec<_>, _>>()?;
            let Some((format, values)) = values.split_first() else { return Err("syntax error near printf".into()) };
            self.out.push_str(&formatted(format, values));
            return Ok(());
        }
        if let Some(rest) = statement.strip_prefix("print").filter(|rest| !rest.starts_with(char::is_alphanumeric)) {
            let parts = split(rest, &[',']);
            let values = parts.iter().map(|part| self.value(part)).collect::<Result<Vec<_>, _>>()?;
            let between = self.variables.get("OFS").cloned().unwrap_or_else(|| " ".into());
            let line = if values.is_empty() { self.line.clone() } else { values.join(&between) };
            self.out.push_str(&format!("{line}\n"));
            return Ok(());
        }
        self.value(statement).map(|_| ())
    }

    fn is_true(&mut self, condition: &str) -> Result<bool, String> {
        let value = self.value(condition)?;
        Ok(!value.is_empty() && value != "0")
    }

    /// The value of an expression, by the operator in it that binds weakest.
    fn value(&mut self, text: &str) -> Result<String, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("nested too deeply".into());
        }
        let value = self.expression(text.trim());
        self.depth -= 1;
        value
    }

    fn expression(&mut self, text: &str) -> Result<String, String> {
        if text.starts_with('/') && text.len() > 1 && text[1..].find('/') == Some(text.len() - 2) {
            return self.joined(text);
        }
        let is_name = |name: &str| super::super::parse::is_name(name);
        if let Some(name) = text.strip_suffix("++").map(str::trim).filter(|name| is_name(name) || name.ends_with(']')) {
            return self.set(name, |old| old + 1.0);
        }
        for sign in ["+=", "-="] {
            if let Some((name, right)) = text.split_once(sign).filter(|(name, _)| is_name(name.trim())) {
                let right = number(&self.value(right)?);
                return self.set(name.trim(), |old| if sign == "+=" { old + right } else { old - right });
            }
        }
        if let Some((name, right)) = text.split_once('=')
            && is_name(name.trim())
            && !right.starts_with(['=', '~'])
        {
            let value = self.value(right)?;
            self.variables.insert(name.trim().to_owned(), value.clone());
            if name.trim() == "FS" {
                self.separator = Some(value.clone());
            }
            return Ok(value);
        }
        let truth = |is_so: bool| Ok(if is_so { "1".to_owned() } else { "0".to_owned() });
        for (sign, both) in [("||", false), ("&&", true)] {
            if let Some((left, right)) = around(text, sign) {
                let left = self.is_true(left)?;
                return truth(if both { left && self.is_true(right)? } else { left || self.is_true(right)? });
            }
        }
        for sign in ["!~", "~"] {
            if let Some((left, right)) = around(text, sign) {
                let left = self.value(left)?;
                let source = right.trim().trim_matches('/').trim_matches('"').to_owned();
                let regex = Regex::new(&source).map_err(|_| format!("bad regex '{source}'"))?;
                return truth(regex.is_match(&left) == (sign == "~"));
            }
        }
        for sign in ["==", "!=", "<=", ">=", "<", ">"] {
            if let Some((left, right)) = around(text, sign) {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let numbers = left.trim().parse::<f64>().ok().zip(right.trim().parse::<f64>().ok());
                let order = numbers.map_or(left.partial_cmp(&right), |(left, right)| left.partial_cmp(&right));
                let Some(order) = order else { return truth(false) };
                return truth(match sign {
                    "==" => order.is_eq(),
                    "!=" => order.is_ne(),
                    "<=" => order.is_le(),
                    ">=" => order.is_ge(),
                    "<" => order.is_lt(),
                    _ => order.is_gt(),
                });
            }
        }
        for signs in [['+', '-'], ['*', '/'], ['%', '%']] {
            if let Some((at, sign)) = last_outside(text, signs) {
                let (left, right) = (number(&self.value(&text[..at])?), number(&self.value(&text[at + 1..])?));
                return Ok(shown(match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ if right == 0.0 => return Err("division by zero".into()),
                    '/' => left / right,
                    _ => left % right,
                }));
            }
        }
        self.joined(text)
    }

    /// Values that stand beside each other are one text.
    fn joined(&mut self, text: &str) -> Result<String, String> {
        let mut value = String::new();
        let mut rest = text.trim();
        while let Some(first) = rest.chars().next() {
            let end = match first {
                '"' => {
                    let (close, _) = rest[1..]
                        .char_indices()
                        .find(|(at, c)| *c == '"' && !rest[1..][..*at].ends_with('\\'))
                        .ok_or("unterminated text")?;
                    value.push_str(&super::builtins::unescape(&rest[1..=close]));
                    close + 2
                }
                '/' => {
                    let close = rest[1..].find('/').ok_or("unterminated regex")?;
                    let regex = Regex::new(&rest[1..=close]).map_err(|_| "bad regex")?;
                    value.push_str(if regex.is_match(&self.line) { "1" } else { "0" });
                    close + 2
                }
                '(' => {
                    let (close, _) = outside(&rest[1..], &[')']).ok_or("missing )")?;
                    let inner = self.value(&rest[1..=close])?;
                    value.push_str(&inner);
                    close + 2
                }
                '!' => {
                    let is_so = self.is_true(&rest[1..])?;
                    value.push_str(if is_so { "0" } else { "1" });
                    rest.len()
                }
                '$' => {
                    let count =
                        rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len() - 1);
                    let (name, end) = match rest[1..].strip_prefix('(') {
                        Some(inner) => {
                            let (close, _) = outside(inner, &[')']).ok_or("missing )")?;
                            (&inner[..close], close + 3)
                        }
                        None => (&rest[1..=count], count + 1),
                    };
                    let index = number(&self.value(name)?);
                    let field = match index as usize {
                        0 => Some(&self.line),
                        index => self.fields.get(index - 1),
                    };
                    value.push_str(field.map_or("", String::as_str));
                    end
                }
                c if c.is_ascii_digit() || c == '.' || c == '-' => {
                    let end = rest[1..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(rest.len(), |at| at + 1);
                    value.push_str(&rest[..end]);
                    end
                }
                c if c == '_' || c.is_ascii_alphabetic() => {
                    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                    let name = &rest[..end];
                    match rest[end..].strip_prefix('(') {
                        Some(inner) => {
                            let (close, _) = outside(inner, &[')']).ok_or("missing )")?;
                            let called = self.call(name, &split(&inner[..close], &[',']))?;
                            value.push_str(&called);
                            end + close + 2
                        }
                        None => {
                            value.push_str(&self.named(name));
                            end
                        }
                    }
                }
                other => return Err(format!("syntax error near {other}")),
            };
            rest = rest.get(end..).unwrap_or_default().trim_start();
        }
        Ok(value)
    }

    fn named(&self, name: &str) -> String {
        match name {
            "NF" => self.fields.len().to_string(),
            name => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }

    fn call(&mut self, name: &str, args: &[String]) -> Result<String, String> {
        let values = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>, _>>()?;
        let first = values.first().cloned().unwrap_or_else(|| self.line.clone());
        let at = |index: usize, or: usize| values.get(index).map_or(or, |value| number(value).max(0.0) as usize);
        Ok(match name {
            "length" => first.chars().count().to_string(),
            "tolower" => first.to_lowercase(),
            "toupper" => first.to_uppercase(),
            "substr" => first.chars().skip(at(1, 1).saturating_sub(1)).take(at(2, usize::MAX)).collect(),
            "int" => shown(number(&first).trunc()),
            "index" => {
                let found = values.get(1).and_then(|wanted| first.find(wanted.as_str()));
                found.map_or(0, |at| first[..at].chars().count() + 1).to_string()
            }
            "sprintf" => formatted(&first, values.get(1..).unwrap_or_default()),
            other => return Err(format!("undefined function {other}")),
        })
    }

    fn set(&mut self, name: &str, change: impl Fn(f64) -> f64) -> Result<String, String> {
        let value = shown(change(number(&self.named(name))));
        self.variables.insert(name.to_owned(), value.clone());
        Ok(value)
    }
}

/// Both sides of the first such operator outside of texts and brackets.
fn around<'a>(text: &'a str, sign: &str) -> Option<(&'a str, &'a str)> {
    let first = sign.chars().next()?;
    let mut from = 0;
    while let Some((at, _)) = outside(&text[from..], &[first]) {
        let at = from + at;
        let longer = sign.len() == 1 && (text[at + 1..].starts_with('=') || text[..at].ends_with('!'));
        if text[at..].starts_with(sign) && at > 0 && !longer {
            return Some((&text[..at], &text[at + sign.len()..]));
        }
        from = at + first.len_utf8();
    }
    None
}

/// The last of two operators that has something on its left.
fn last_outside(text: &str, signs: [char; 2]) -> Option<(usize, char)> {
    let (mut from, mut found) = (0, None);
    while let Some((at, sign)) = outside(&text[from..], &signs) {
        let at = from + at;
        let left = text[..at].trim_end();
        if left.ends_with(|c: char| c.is_ascii_alphanumeric() || "_)\"".contains(c)) {
            found = Some((at, sign));
        }
        from = at + 1;
    }
    found
}

fn formatted(format: &str, values: &[String]) -> String {
    let mut values = values.iter();
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut flags = String::new();
        while let Some(c) = chars.next_if(|c| c.is_ascii_digit() || "-.".contains(*c)) {
            flags.push(c);
        }
        let conversion = chars.next().unwrap_or('%');
        if conversion == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().map_or("", String::as_str);
        let (width, places) = flags.split_once('.').unwrap_or((&flags, "6"));
        let places: usize = places.parse().unwrap_or(6).min(20);
        let shown = match conversion {
            'd' | 'i' => shown(number(value).trunc()),
            'f' => format!("{:.places$}", number(value)),
            _ => value.to_owned(),
        };
        let wide = width.trim_start_matches('-').parse::<usize>().unwrap_or(0).min(1000);
        out.push_str(&if width.starts_with('-') { format!("{shown:<wide$}") } else { format!("{shown:>wide$}") });
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::runtime::shell::tests::prints;

    #[test]
    fn fields_are_printed_and_summed() {
        for (program, expected) in [
            ("{print $1}", "web|db|api"),
            ("{print $NF, $1}", "3 web|12 db|5 api"),
            ("NR==2 {print $2 \"-\" $1}", "b-db"),
            ("/web/", "web a 3"),
            ("$3 > 4 {print $1}", "db|api"),
            ("{s += $3} END {print s, s / NR}", "20 6.666667"),
            ("$1 ~ /^a/ && NR > 1 {printf \"%-5s|%3d\\n\", $1, $3 * 2}", "api  | 10"),
            ("BEGIN {print 1 + 2 * 3}", "7"),
            ("{print length($1), toupper($2)}", "3 A|2 B|3 C"),
        ] {
            let text = format!("printf 'web a 3\\ndb b 12\\napi c 5\\n' | awk '{program}'");
            assert_eq!(prints(&text), expected, "{program}");
        }
        assert_eq!(prints("echo a:b:c | awk -F: '{print $2}'"), "b");
        assert_eq!(prints("echo a | awk '{print $'"), "awk: syntax error: missing }");
        prints(&format!("echo a | awk '{}'", "(".repeat(500)));
    }
}
