//! Output of `listen`: a paragraph or a JSON line for each webhook, and the summary.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use sakshi_domain::unseen::is_unseen;
use sakshi_sandbox::receiver::{Behaviour, Received};
use serde_json::{Value, json};

use super::manner::describe_behaviour;
use super::pretty::pretty;
use crate::cli::paint;
use crate::cli::style::{Out, Tone};

/// Characters shown of a body that is not JSON.
const TEXT_SHOWN: usize = 2_000;

/// Prints the URL that receives webhooks, and `notes` about their treatment.
pub(super) fn write_listening(url: &str, notes: &[String], is_json: bool, out: &mut dyn Out) -> io::Result<()> {
    if is_json {
        writeln!(out, "{}", json!({ "event": "listening", "url": url, "notes": notes }))?;
    } else {
        writeln!(out, "Listening at {url}; Ctrl-C ends it.")?;
        for note in notes {
            writeln!(out, "{note}")?;
        }
        writeln!(out)?;
    }
    out.flush()
}

/// Reports that the sandbox cannot be reached and is retried.
pub(super) fn write_unreachable(reason: &str, is_json: bool, out: &mut dyn Out) -> io::Result<()> {
    if is_json {
        writeln!(out, "{}", json!({ "event": "unreachable", "reason": reason }))?;
    } else {
        writeln!(out, "cannot reach the sandbox: {reason}; trying again\n")?;
    }
    out.flush()
}

/// An earlier webhook with the same key.
pub(super) struct Repeat {
    pub(super) first_number: u64,
    pub(super) same_body: bool,
}

/// A received webhook, ready to print.
pub(super) struct WebhookView<'a> {
    pub(super) number: u64,
    pub(super) request: &'a Received,
    /// The body, if it is JSON.
    pub(super) body: Option<Value>,
    /// Name of the flow, or `unknown`.
    pub(super) kind: &'static str,
    /// Deduplication key.
    pub(super) key: Option<String>,
    pub(super) repeat: Option<Repeat>,
    /// Response that the webhook gets.
    pub(super) behaviour: &'a Behaviour,
    /// File with the body, if bodies are written to files.
    pub(super) file: Option<PathBuf>,
}

impl WebhookView<'_> {
    /// Prints the webhook as a paragraph.
    pub(super) fn write_text(&self, out: &mut dyn Out) -> io::Result<()> {
        let Self { number, request, kind, .. } = self;
        let bytes = request.body.len();
        writeln!(
            out,
            "{}  #{number}  {} {}  {kind}  {bytes} bytes, {}",
            request.at,
            request.method,
            request.path,
            describe_behaviour(self.behaviour)
        )?;
        match &self.key {
            Some(key) => writeln!(out, "    key {key}")?,
            None => writeln!(out, "    no deduplication key in it")?,
        }
        if let Some(Repeat { first_number, same_body }) = &self.repeat {
            let body = if *same_body { "the same body" } else { "ANOTHER BODY" };
            let warning =
                format!("    !!!!!!!! DUPLICATE of #{first_number}: this key came before, with {body} !!!!!!!!");
            writeln!(out, "{}", out.capabilities().paint(Tone::Bad, &warning))?;
        }
        if let Some(file) = &self.file {
            writeln!(out, "    written to {}", file.display())?;
        }
        let text = String::from_utf8_lossy(&request.body);
        let body = pretty(&text, 4).unwrap_or_else(|| {
            let text: String =
                text.chars().take(TEXT_SHOWN).map(|c| if is_unseen(c) && c != '\n' { '\u{fffd}' } else { c }).collect();
            format!("    no JSON: {text}")
        });
        writeln!(out, "{body}\n")?;
        out.flush()
    }

    /// Prints the webhook as a line of JSON.
    pub(super) fn write_json(&self, out: &mut dyn Out) -> io::Result<()> {
        let request = self.request;
        let line = json!({
            "event": "webhook", "number": self.number, "at": request.at, "method": request.method.as_str(),
            "path": request.path, "kind": self.kind, "key": self.key, "bytes": request.body.len(),
            "treated": describe_behaviour(self.behaviour),
            "duplicate_of": self.repeat.as_ref().map(|repeat| repeat.first_number),
            "same_body": self.repeat.as_ref().map(|repeat| repeat.same_body),
            "file": self.file, "body": self.body,
            "text": self.body.is_none().then(|| String::from_utf8_lossy(&request.body)),
        });
        writeln!(out, "{line}")?;
        out.flush()
    }
}

/// Counts of webhooks by kind.
#[derive(Debug, Default)]
pub(super) struct WebhookCounts(BTreeMap<&'static str, Count>);

/// Counts of one kind of webhook.
#[derive(Debug, Default)]
struct Count {
    webhooks: u64,
    repeats: u64,
}

impl WebhookCounts {
    /// Counts a webhook of this kind.
    pub(super) fn count(&mut self, kind: &'static str, is_repeat: bool) {
        let count = self.0.entry(kind).or_default();
        count.webhooks += 1;
        count.repeats += u64::from(is_repeat);
    }

    /// Returns the number of webhooks of all kinds.
    pub(super) fn webhooks(&self) -> u64 {
        self.0.values().map(|count| count.webhooks).sum()
    }

    /// Returns the number of repeats of all kinds.
    pub(super) fn repeats(&self) -> u64 {
        self.0.values().map(|count| count.repeats).sum()
    }

    /// Prints the summary.
    pub(super) fn show(&self, is_json: bool, out: &mut dyn Out) -> io::Result<()> {
        let row = |(kind, count): (&&str, &Count)| {
            json!({ "kind": kind, "webhooks": count.webhooks,
            "duplicates": count.repeats })
        };
        let rows: Vec<Value> = self.0.iter().map(row).collect();
        let (webhooks, duplicates) = (self.webhooks(), self.repeats());
        if is_json {
            writeln!(
                out,
                "{}",
                json!({ "event": "summary", "webhooks": webhooks, "duplicates": duplicates, "kinds": rows })
            )?;
        } else {
            let plural = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
            writeln!(out, "\n{}, {}.", plural(webhooks, "webhook"), plural(duplicates, "duplicate"))?;
            if webhooks > 0 {
                paint::table(&rows, &["kind", "webhooks", "duplicates"], out)?;
            }
        }
        out.flush()
    }
}
