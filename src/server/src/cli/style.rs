//! Style of output: colours and widths on a terminal, plain text elsewhere.

use std::io::{self, IsTerminal as _, Write};

use rustix::termios::tcgetwinsize;

/// Capabilities of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// True if the output is a terminal.
    pub is_terminal: bool,
    /// True if the output shows colours and `NO_COLOR` does not forbid them.
    pub has_colour: bool,
    /// Columns and rows, if known.
    pub size: Option<(usize, usize)>,
}

/// Output of a command.
pub trait Out: Write {
    /// Returns the capabilities of the output. Default: plain text of any width.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

impl Out for Vec<u8> {}

impl Out for io::Stdout {
    fn capabilities(&self) -> Capabilities {
        if !self.is_terminal() {
            return Capabilities::default();
        }
        let variable = |name| std::env::var(name).unwrap_or_default();
        let size = tcgetwinsize(self).ok().map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        Capabilities {
            is_terminal: true,
            has_colour: variable("NO_COLOR").is_empty() && variable("TERM") != "dumb",
            size: size.filter(|(columns, rows)| *columns > 0 && *rows > 0),
        }
    }
}

/// Tone of a text, shown as a colour or weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Bold,
    Dim,
    Good,
    Warn,
    Bad,
}

impl Tone {
    /// Returns the parameters of the escape sequence (ECMA-48, SGR).
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Warn => "1;33",
            Self::Bad => "1;31",
        }
    }
}

impl Capabilities {
    /// Returns a text in a tone.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if self.has_colour && tone != Tone::Plain && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code())
        } else {
            text.to_owned()
        }
    }

    /// Returns the columns of a terminal.
    pub(crate) fn width(self) -> Option<usize> {
        self.size.map(|(columns, _)| columns)
    }
}

/// A line of text segments, each with a tone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line(Vec<(Tone, String)>);

impl Line {
    /// Builds a line of one text.
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().and(tone, text)
    }

    /// Appends a text.
    #[must_use]
    pub(crate) fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// Appends another line.
    #[must_use]
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns the number of characters.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Pads the line with spaces, up to a width.
    #[must_use]
    pub(crate) fn pad(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.and(Tone::Plain, " ".repeat(missing))
    }

    /// Cuts the line at a width, with an ellipsis.
    #[must_use]
    pub(crate) fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut remaining = width.saturating_sub(1);
        let mut line = Self::default();
        for (tone, text) in self.0 {
            let beginning: String = text.chars().take(remaining).collect();
            remaining -= beginning.chars().count();
            line = line.and(tone, beginning);
        }
        line.and(Tone::Dim, if width > 0 { "…" } else { "" })
    }

    /// Returns the text with escape sequences, without trailing spaces.
    pub(crate) fn render(&self, capabilities: Capabilities) -> String {
        let text: String = self.0.iter().map(|(tone, text)| capabilities.paint(*tone, text)).collect();
        text.trim_end_matches(' ').to_owned()
    }
}

/// Writes lines, cut at the terminal's width.
pub(crate) fn write_lines(lines: impl IntoIterator<Item = Line>, out: &mut dyn Out) -> io::Result<()> {
    let capabilities = out.capabilities();
    for line in lines {
        let line = if let Some(width) = capabilities.width() { line.cut(width) } else { line };
        writeln!(out, "{}", line.render(capabilities))?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A terminal output with colours, of this width.
    pub(crate) struct Screen {
        pub(crate) output: Vec<u8>,
        pub(crate) width: usize,
    }

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.output.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Out for Screen {
        fn capabilities(&self) -> Capabilities {
            Capabilities { is_terminal: true, has_colour: true, size: Some((self.width, 24)) }
        }
    }

    #[test]
    fn a_line_is_cut_with_an_ellipsis_only_on_a_terminal() {
        let line = || Line::new(Tone::Plain, "one ").and(Tone::Bad, "two").and(Tone::Plain, " three");
        let (mut screen, mut pipe) = (Screen { output: Vec::new(), width: 6 }, Vec::new());
        write_lines([line()], &mut screen).unwrap();
        write_lines([line()], &mut pipe).unwrap();
        assert_eq!(String::from_utf8(screen.output).unwrap(), "one \u{1b}[1;31mt\u{1b}[0m\u{1b}[2m…\u{1b}[0m\n");
        assert_eq!(String::from_utf8(pipe).unwrap(), "one two three\n");
        assert_eq!(line().cut(13), line());
        assert_eq!(line().cut(0).width(), 0);
    }
}
