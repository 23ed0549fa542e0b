//! Reads the stdout or stderr of the runtime: what the cell said, and the lines between that are not for people.

use kernetes_controller::cell::MARK;
use serde_json::Value;

const COMPLETE: &str = "EVCXR_EXECUTION_COMPLETE";
const PANIC: &str = "EVCXR_PANIC_NOTIFICATION";
const EARLY_RETURN: &str = "EVCXR_ERROR_OCCURRED";
const VARIABLE_LOST: &str = "EVCXR_VARIABLE_CHANGED_TYPE:";
const BEGIN_CONTENT: &str = "EVCXR_BEGIN_CONTENT ";
const END_CONTENT: &str = "EVCXR_END_CONTENT";

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    /// One representation of a value that the cell displays.
    Content {
        media_type: String,
        data: String,
    },
    /// The cell has come to its end.
    Complete,
    /// The cell panicked. evcxr must hear of it.
    Panicked,
    /// A `?` ended the cell early. evcxr must hear of it.
    ReturnedEarly,
    /// Another line that evcxr must hear of.
    ForEvcxr(String),
    /// What `kernetes_controller::cell` has to say.
    Mark(Value),
}

impl Piece {
    /// The line that evcxr waits for, if it is one.
    pub fn for_evcxr(&self) -> Option<&str> {
        match self {
            Piece::Complete => Some(COMPLETE),
            Piece::Panicked => Some(PANIC),
            Piece::ReturnedEarly => Some(EARLY_RETURN),
            Piece::ForEvcxr(line) => Some(line),
            Piece::Text(_) | Piece::Content { .. } | Piece::Mark(_) => None,
        }
    }
}

#[derive(Default)]
pub struct Parser {
    /// An unfinished line.
    rest: Vec<u8>,
    /// The content that is being received.
    content: Option<(String, Vec<String>)>,
}

impl Parser {
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                self.line(String::from_utf8_lossy(&line[..line.len() - 1]).as_ref(), &mut pieces);
            }
        }
        pieces
    }

    /// What is left when the stream has ended.
    pub fn finish(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.is_empty()).then(|| Piece::Text(String::from_utf8_lossy(&rest).into_owned()))
    }

    fn line(&mut self, line: &str, pieces: &mut Vec<Piece>) {
        if let Some((media_type, lines)) = &mut self.content {
            let panicked = line == PANIC;
            if line == END_CONTENT || panicked {
                let (media_type, data) = (std::mem::take(media_type), lines.join("\n"));
                self.content = None;
                pieces.push(Piece::Content { media_type, data });
                pieces.extend(panicked.then_some(Piece::Panicked));
            } else {
                lines.push(line.to_owned());
            }
            return;
        }
        // Text without an end of line may stand in front of what is not for people.
        let mut text = |text: &str| pieces.extend((!text.is_empty()).then(|| Piece::Text(text.to_owned())));
        if let Some((before, mark)) = line.split_once(MARK) {
            text(before);
            pieces.extend(serde_json::from_str(mark).map(Piece::Mark));
        } else if let Some((before, media_type)) = line.split_once(BEGIN_CONTENT) {
            text(before);
            self.content = Some((media_type.to_owned(), Vec::new()));
        } else if let Some((before, variable)) = line.split_once(VARIABLE_LOST) {
            text(before);
            pieces.push(Piece::ForEvcxr(format!("{VARIABLE_LOST}{variable}")));
        } else if let Some(before) = line.strip_suffix(COMPLETE) {
            text(before);
            pieces.push(Piece::Complete);
        } else if let Some(before) = line.strip_suffix(PANIC) {
            text(before);
            pieces.push(Piece::Panicked);
        } else if let Some(before) = line.strip_suffix(EARLY_RETURN) {
            text(before);
            pieces.push(Piece::ReturnedEarly);
        } else {
            pieces.push(Piece::Text(format!("{line}\n")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn text_comes_through_however_it_is_cut() {
        let whole = "héllo\nworld\n".as_bytes();
        for cut in 0..whole.len() {
            let mut parser = Parser::default();
            let mut pieces = parser.feed(&whole[..cut]);
            pieces.extend(parser.feed(&whole[cut..]));
            assert_eq!(pieces, [text("héllo\n"), text("world\n")]);
        }
    }

    #[test]
    fn a_line_without_an_end_is_told_from_what_follows_it() {
        let mut parser = Parser::default();
        let input = "50%\u{1}kernetes {\"flushed\":1}\n60%EVCXR_EXECUTION_COMPLETE\n";
        let mark = Piece::Mark(json!({"flushed": 1}));
        assert_eq!(parser.feed(input.as_bytes()), [text("50%"), mark, text("60%"), Piece::Complete]);
        assert_eq!((parser.feed(b"bye"), parser.finish(), parser.finish()), (vec![], Some(text("bye")), None));
    }

    #[test]
    fn two_displays_are_two_contents() {
        let display = "EVCXR_BEGIN_CONTENT text/plain\na\nb\nEVCXR_END_CONTENT\n";
        let content = Piece::Content { media_type: "text/plain".to_owned(), data: "a\nb".to_owned() };
        assert_eq!(Parser::default().feed(display.repeat(2).as_bytes()), [content.clone(), content]);
    }

    #[test]
    fn evcxr_hears_of_a_panic_within_a_display() {
        let pieces = Parser::default().feed(b"EVCXR_BEGIN_CONTENT text/plain\nEVCXR_PANIC_NOTIFICATION\n");
        assert_eq!(pieces.last().and_then(Piece::for_evcxr), Some(PANIC));
    }
}
