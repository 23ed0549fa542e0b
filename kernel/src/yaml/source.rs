//! From the marks of libyaml, which count within a part of the text, to places in the whole.

use libyaml_safer::{Event, EventData, Mark, ScalarStyle};

use super::place::Span;

/// Where a part of the text starts in the whole: marks of the part are counted from there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) origin: Span,
}

impl Source<'_> {
    /// The place that a mark points to, of that length.
    pub(super) fn span(&self, mark: Mark, length: usize) -> Span {
        let column = mark.column + if mark.line == 0 { u64::from(self.origin.column) } else { 1 };
        Span {
            line: self.origin.line.saturating_add(u32::try_from(mark.line).unwrap_or(u32::MAX)),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            length: u32::try_from(length).unwrap_or(u32::MAX),
        }
    }

    /// The text from a mark on.
    pub(super) fn after(&self, mark: Mark) -> &str {
        usize::try_from(mark.index).ok().and_then(|index| self.text.get(index..)).unwrap_or("")
    }

    /// From a mark to the end of its line.
    pub(super) fn rest_of_line(&self, mark: Mark) -> Span {
        let line = self.after(mark).split('\n').next().unwrap_or("");
        self.span(mark, line.trim_end().chars().count())
    }

    /// The place of an event: of what is longer than a line, its first line.
    pub(super) fn event_span(&self, event: &Event) -> Span {
        let (start, end) = (event.start_mark, event.end_mark);
        if start.line == end.line && end.column >= start.column && start != end {
            self.span(start, (end.column - start.column) as usize)
        } else if let EventData::Scalar { style: ScalarStyle::Plain, .. } = event.data
            && start == end
        {
            self.span(start, 0)
        } else {
            self.rest_of_line(start)
        }
    }
}
