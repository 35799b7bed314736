//! Terminal of `top`: an alternate screen without a cursor, unbuffered keys, and the previous modes restored at the
//! end.

use std::io::{self, IsTerminal as _, Read as _, Stdin};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use crate::cli::style::{Line, Out, Tone};
use crate::serve::Signals;

/// Shows the alternate screen, without a cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
/// Shows the cursor and the previous screen.
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// Moves the cursor to the upper left corner.
const HOME: &str = "\u{1b}[H";
/// Clears the rest of a line.
const REST_OF_LINE: &str = "\u{1b}[K";
/// Clears the rest of the screen.
const REST_OF_SCREEN: &str = "\u{1b}[J";
/// Keys that exit: `q`, Ctrl-C and Ctrl-D.
const EXIT_KEYS: [u8; 4] = [b'q', b'Q', 3, 4];

/// A terminal with unbuffered keys. Drop restores its modes.
pub(super) struct Terminal {
    input: Stdin,
    /// Modes that are restored at the end.
    modes_before: Termios,
    keys: mpsc::UnboundedReceiver<u8>,
    signals: Signals,
}

impl Terminal {
    /// Opens the terminal; `None` when no keys can be read from it.
    pub(super) fn open(out: &mut dyn Out) -> io::Result<Option<Self>> {
        let input = io::stdin();
        if !input.is_terminal() {
            return Ok(None);
        }
        let (modes_before, signals) = (tcgetattr(&input)?, Signals::listen()?);
        let mut modes = modes_before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(&input, OptionalActions::Now, &modes)?;
        let (sender, keys) = mpsc::unbounded_channel();
        // The thread ends with the process: nothing else can interrupt a read.
        std::thread::spawn(move || {
            io::stdin().lock().bytes().map_while(Result::ok).try_for_each(|key| sender.send(key))
        });
        write!(out, "{ENTER}")?;
        Ok(Some(Self { input, modes_before, keys, signals }))
    }

    /// Waits for a key that exits, or for a signal.
    pub(super) async fn wait_for_exit(&mut self) {
        loop {
            tokio::select! {
                key = self.keys.recv() => if key.is_none_or(|key| EXIT_KEYS.contains(&key)) { return },
                () = self.signals.next() => return,
            }
        }
    }

    /// Shows the previous screen.
    pub(super) fn leave(out: &mut dyn Out) -> io::Result<()> {
        write!(out, "{LEAVE}")?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone has no modes.
        let _ = tcsetattr(&self.input, OptionalActions::Now, &self.modes_before);
    }
}

/// Draws lines over the previous ones, in one write; hidden lines are counted.
pub(super) fn draw(mut lines: Vec<Line>, (width, height): (usize, usize), out: &mut dyn Out) -> io::Result<()> {
    let hidden = (lines.len() + 1).saturating_sub(height);
    if hidden > 0 {
        lines.truncate(height.saturating_sub(2));
        lines.push(Line::new(Tone::Dim, format!("… {} more lines", hidden + 1)));
    }
    let capabilities = out.capabilities();
    let mut screen = HOME.to_owned();
    for line in lines {
        screen.push_str(&line.cut(width).render(capabilities));
        screen.push_str(REST_OF_LINE);
        screen.push('\n');
    }
    write!(out, "{screen}{REST_OF_SCREEN}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let drawn = |lines: usize, height| {
            let mut out = Vec::new();
            draw(
                (1..=lines).map(|line| Line::new(Tone::Plain, format!("line {line}"))).collect(),
                (20, height),
                &mut out,
            )
            .unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with(HOME) && text.ends_with(REST_OF_SCREEN), "{text:?}");
            text.replace([HOME, REST_OF_LINE, REST_OF_SCREEN].map(|code| code).concat().as_str(), "")
                .matches("line ")
                .count()
        };
        assert_eq!(drawn(4, 5), 4);
        assert_eq!(drawn(9, 5), 3);
    }
}
