//! Steps of a walk, each with the time since it began.

use crate::cli::style::Out;
use std::io;
use std::time::Instant;

/// Writes one line for each step.
pub(super) struct Timeline<'a> {
    began: Instant,
    out: &'a mut dyn Out,
}

impl<'a> Timeline<'a> {
    /// Begins now.
    pub(super) fn begin(out: &'a mut dyn Out) -> Self {
        Self { began: Instant::now(), out }
    }

    /// Writes what it is about.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn title(&mut self, title: &str) -> io::Result<()> {
        writeln!(self.out, "{title}\n")
    }

    /// Writes a step; without a name it continues the one before.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn line(&mut self, step: &str, what: &str) -> io::Result<()> {
        let millis = self.began.elapsed().as_secs_f64() * 1_000.0;
        writeln!(self.out, "{millis:>8.1} ms  {step:<9} {what}")?;
        self.out.flush()
    }

    /// Where the lines go.
    pub(super) fn out(&mut self) -> &mut dyn Out {
        self.out
    }
}

impl std::fmt::Debug for Timeline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Timeline(since {:?})", self.began)
    }
}
