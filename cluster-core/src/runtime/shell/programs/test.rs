//! `test`, `[` and `[[`.

use super::{Call, Outcome, files::absolute};
use crate::runtime::files::What;
use crate::runtime::shell::pattern;

/// How deep `!` and brackets may be nested.
const DEPTH_MAX: usize = 20;

pub fn run(call: &mut Call<'_, '_>) -> Outcome {
    let words = match call.name {
        "[" | "[[" => {
            let close = if call.name == "[" { "]" } else { "]]" };
            match call.args.split_last() {
                Some((last, words)) if *last == close => words,
                _ => return call.fail(2, &format!("missing {close}")),
            }
        }
        _ => call.args,
    };
    let found = Test { call, depth: 0 }.any(words);
    match found {
        Ok(is_so) => Outcome::Done(i32::from(!is_so)),
        Err(problem) => {
            let shell = call.script.name.clone();
            call.out.error_line(&format!("{shell}: {problem}"));
            Outcome::Done(2)
        }
    }
}

struct Test<'a, 'b, 'c> {
    call: &'a Call<'b, 'c>,
    depth: usize,
}

impl Test<'_, '_, '_> {
    /// `… -o …`
    fn any(&mut self, words: &[&str]) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("nested too deeply".into());
        }
        let joined = |words: &[&str], sign: [&str; 2]| {
            let at = words.iter().position(|word| sign.contains(word))?;
            (words.len() > 3 && at > 0 && at + 1 < words.len()).then_some(at)
        };
        if let Some(at) = joined(words, ["-o", "||"]) {
            return Ok(self.any(&words[..at])? | self.any(&words[at + 1..])?);
        }
        if let Some(at) = joined(words, ["-a", "&&"]) {
            return Ok(self.any(&words[..at])? & self.any(&words[at + 1..])?);
        }
        self.one(words)
    }

    fn one(&mut self, words: &[&str]) -> Result<bool, String> {
        let files = &self.call.around.files;
        let place = |path: &str| absolute(&self.call.script.folder, path);
        match words {
            [] => Ok(false),
            [text] => Ok(!text.is_empty()),
            [a, "=" | "==", b] if self.call.name == "[[" => Ok(pattern::matches(b, a)),
            [a, "=" | "==", b] => Ok(a == b),
            [a, "!=", b] => Ok(a != b),
            [a, "<", b] => Ok(a < b),
            [a, ">", b] => Ok(a > b),
            [a, "=~", b] => Ok(regex_lite::Regex::new(b).is_ok_and(|regex| regex.is_match(a))),
            ["!", rest @ ..] => self.any(rest).map(|is_so| !is_so),
            ["(", rest @ .., ")"] => self.any(rest),
            ["-n", text] => Ok(!text.is_empty()),
            ["-z", text] => Ok(text.is_empty()),
            ["-d", path] => Ok(files.is_folder(&place(path))),
            ["-e" | "-r" | "-a", path] => Ok(files.exists(&place(path)) || *path == "/dev/null"),
            ["-w", path] => Ok(files.exists(&place(path)) && files.is_writable(&place(path))),
            ["-x", path] => {
                Ok(files.is_folder(&place(path))
                    || files.target(&place(path)).is_some_and(|node| node.mode & 0o111 != 0))
            }
            ["-f", path] => Ok(files.read(&place(path)).is_some()),
            ["-s", path] => Ok(files.target(&place(path)).is_some_and(|node| node.size_bytes() > 0)),
            ["-h" | "-L", path] => Ok(matches!(files.node(&place(path)).map(|node| &node.what), Some(What::Link(_)))),
            ["-p" | "-S" | "-b" | "-c" | "-t", _] => Ok(false),
            [a, operator, b] => {
                let number = |text: &str| text.trim().parse::<i64>().map_err(|_| format!("{text}: bad number"));
                let order = number(a)?.cmp(&number(b)?);
                match *operator {
                    "-eq" => Ok(order.is_eq()),
                    "-ne" => Ok(order.is_ne()),
                    "-lt" => Ok(order.is_lt()),
                    "-le" => Ok(order.is_le()),
                    "-gt" => Ok(order.is_gt()),
                    "-ge" => Ok(order.is_ge()),
                    other => Err(format!("{other}: unknown operand")),
                }
            }
            [word, ..] => Err(format!("{word}: unknown operand")),
        }
    }
}
