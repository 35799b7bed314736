//! Steps of a run, each with the time since its start.

use super::listen::pretty::pretty;
use crate::cli::style::{Out, Tone};

/// Column at which the lines under a step begin.
const MARGIN: usize = 23;
use std::io;
use std::time::Instant;

/// Writes one line for each step.
pub(super) struct Timeline<'a> {
    began: Instant,
    out: &'a mut dyn Out,
}

impl<'a> Timeline<'a> {
    /// Starts the clock.
    pub(super) fn begin(out: &'a mut dyn Out) -> Self {
        Self { began: Instant::now(), out }
    }

    /// Writes the title.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn title(&mut self, title: &str) -> io::Result<()> {
        writeln!(self.out, "{title}\n")
    }

    /// Writes a step; without a name it continues the previous one.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn line(&mut self, step: &str, what: &str) -> io::Result<()> {
        self.toned(Tone::Plain, step, what)
    }

    /// Writes a step in the tone of success or failure.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn verdict(&mut self, step: &str, is_good: bool, what: &str) -> io::Result<()> {
        self.toned(if is_good { Tone::Good } else { Tone::Bad }, step, what)
    }

    fn toned(&mut self, tone: Tone, step: &str, what: &str) -> io::Result<()> {
        let (look, millis) = (self.out.look(), self.began.elapsed().as_secs_f64() * 1_000.0);
        let (time, step) =
            (look.paint(Tone::Dim, &format!("{millis:>8.1} ms")), look.paint(Tone::Bold, &format!("{step:<9}")));
        writeln!(self.out, "{time}  {step} {}", look.paint(tone, what))?;
        self.out.flush()
    }

    /// Writes a JSON body below a step, indented, with long files shortened.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn body(&mut self, body: &str) -> io::Result<()> {
        let look = self.out.look();
        for line in pretty(body, MARGIN).unwrap_or_default().lines() {
            writeln!(self.out, "{}", look.paint(Tone::Dim, line))?;
        }
        self.out.flush()
    }

    /// Returns the writer of the lines.
    pub(super) fn out(&mut self) -> &mut dyn Out {
        self.out
    }
}

impl std::fmt::Debug for Timeline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Timeline(since {:?})", self.began)
    }
}
