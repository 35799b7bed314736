//! Steps of a run, each with the time since its start.

use std::io;
use std::time::Instant;

use super::listen::pretty::pretty;
use crate::cli::style::{Out, Tone};

/// Column at which the lines under a step begin.
const MARGIN: usize = 23;

/// Writes one line for each step.
pub(super) struct Timeline<'a> {
    started: Instant,
    out: &'a mut dyn Out,
}

impl<'a> Timeline<'a> {
    /// Starts the clock.
    pub(super) fn begin(out: &'a mut dyn Out) -> Self {
        Self { started: Instant::now(), out }
    }

    /// Writes the title.
    pub(super) fn title(&mut self, title: &str) -> io::Result<()> {
        writeln!(self.out, "{title}\n")
    }

    /// Writes a step. An empty name continues the previous step.
    pub(super) fn line(&mut self, step: &str, message: &str) -> io::Result<()> {
        self.write_step(Tone::Plain, step, message)
    }

    /// Writes the outcome of a step, coloured by success or failure.
    pub(super) fn verdict(&mut self, step: &str, succeeded: bool, message: &str) -> io::Result<()> {
        self.write_step(if succeeded { Tone::Good } else { Tone::Bad }, step, message)
    }

    fn write_step(&mut self, tone: Tone, step: &str, message: &str) -> io::Result<()> {
        let (capabilities, millis) = (self.out.capabilities(), self.started.elapsed().as_secs_f64() * 1_000.0);
        let (time, step) = (
            capabilities.paint(Tone::Dim, &format!("{millis:>8.1} ms")),
            capabilities.paint(Tone::Bold, &format!("{step:<9}")),
        );
        writeln!(self.out, "{time}  {step} {}", capabilities.paint(tone, message))?;
        self.out.flush()
    }

    /// Writes a JSON body below a step, indented, with long files shortened.
    pub(super) fn body(&mut self, body: &str) -> io::Result<()> {
        let capabilities = self.out.capabilities();
        for line in pretty(body, MARGIN).unwrap_or_default().lines() {
            writeln!(self.out, "{}", capabilities.paint(Tone::Dim, line))?;
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
        write!(f, "Timeline(since {:?})", self.started)
    }
}
