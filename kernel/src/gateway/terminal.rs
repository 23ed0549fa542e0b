//! A shell that is typed to: keys become lines, lines become commands.

/// What follows from what was typed.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Text for the screen.
    Echo(String),
    Run(String),
    /// `exit`, perhaps with a code.
    Exit(Option<i32>),
    /// Nothing more will be typed.
    End,
}

/// Keys that a terminal sends for Ctrl-C, Ctrl-D and Backspace.
const INTERRUPT: char = '\u{3}';
const END_OF_TEXT: char = '\u{4}';
const BACKSPACES: [char; 2] = ['\u{8}', '\u{7f}'];

pub struct Terminal {
    /// A person sees what they type, and a prompt; a program's input is only read.
    tty: bool,
    line: String,
    /// The first bytes of a letter whose others have not come yet.
    cut: Vec<u8>,
}

impl Terminal {
    pub fn new(tty: bool) -> Terminal {
        Terminal { tty, line: String::new(), cut: Vec::new() }
    }

    /// Whether a command is a shell that reads what to do.
    pub fn is_shell(command: &[String]) -> bool {
        let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
        matches!(command, [one] if ["sh", "bash", "ash", "dash"].contains(&name(one).as_str()))
    }

    pub fn prompt(&self) -> &'static str {
        if self.tty { "/ # " } else { "" }
    }

    /// A command's output as the screen shows it, with the next prompt.
    pub fn shown(&self, output: &str) -> String {
        match self.tty {
            true => format!("{}{}", output.replace('\n', "\r\n"), self.prompt()),
            false => output.to_owned(),
        }
    }

    pub fn typed(&mut self, bytes: &[u8]) -> Vec<Step> {
        self.cut.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.cut) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.cut.len(),
        };
        let rest = self.cut.split_off(whole);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.cut, rest)).into_owned();
        let mut steps = Vec::new();
        for letter in text.chars() {
            match letter {
                '\r' | '\n' => self.entered(&mut steps),
                END_OF_TEXT if self.tty && self.line.is_empty() => steps.push(Step::End),
                INTERRUPT if self.tty => {
                    self.line.clear();
                    steps.push(Step::Echo(format!("^C\r\n{}", self.prompt())));
                }
                backspace if self.tty && BACKSPACES.contains(&backspace) => {
                    if self.line.pop().is_some() {
                        steps.push(Step::Echo("\u{8} \u{8}".into()));
                    }
                }
                letter if self.tty && letter.is_control() => {}
                letter => {
                    self.line.push(letter);
                    if self.tty {
                        steps.push(Step::Echo(letter.into()));
                    }
                }
            }
        }
        steps
    }

    fn entered(&mut self, steps: &mut Vec<Step>) {
        let line = std::mem::take(&mut self.line);
        if self.tty {
            steps.push(Step::Echo("\r\n".into()));
        }
        let mut words = line.split_whitespace();
        match words.next() {
            None if self.tty => steps.push(Step::Echo(self.prompt().into())),
            None => {}
            Some("exit") => steps.push(Step::Exit(words.next().and_then(|code| code.parse().ok()))),
            Some(_) => steps.push(Step::Run(line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_lines_are_commands() {
        let mut terminal = Terminal::new(false);
        assert_eq!(terminal.typed(b"echo one\nec"), [Step::Run("echo one".into())]);
        let rest = terminal.typed("ho é\nexit 3\n".as_bytes());
        assert_eq!(rest, [Step::Run("echo é".into()), Step::Exit(Some(3))]);
        assert_eq!(terminal.shown("a\n"), "a\n");
    }

    #[test]
    fn a_person_sees_what_they_type() {
        let mut terminal = Terminal::new(true);
        let screen: String = terminal
            .typed(b"lx\x7fs\r")
            .into_iter()
            .map(|step| match step {
                Step::Echo(text) => text,
                other => format!("<{other:?}>"),
            })
            .collect();
        assert_eq!(screen, "lx\u{8} \u{8}s\r\n<Run(\"ls\")>");
        assert_eq!(terminal.shown("a\n"), "a\r\n/ # ");
        assert_eq!(terminal.typed(b"\x04"), [Step::End]);
        let letter = "é".as_bytes();
        assert!(terminal.typed(&letter[..1]).is_empty());
        assert_eq!(terminal.typed(&letter[1..]), [Step::Echo("é".into())]);
    }
}
