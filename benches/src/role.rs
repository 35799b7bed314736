//! The roles of child processes of this binary. A role prints JSON lines on stdout, takes commands as JSON lines on
//! stdin, and ends when stdin closes.

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;

use clap::Subcommand;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Failure;
use crate::bare::{self, Bare};
use crate::webhooks::{receiver, sender};
use crate::{bare_redis, costs, https, memory, node};

/// A role and its arguments.
#[derive(Subcommand)]
pub(crate) enum Role {
    /// The service as `sakshi serve` runs it.
    Node {
        /// The store's directory.
        directory: PathBuf,
        /// The key that signs intents, instead of a generated RSA key.
        #[arg(long)]
        intent_key: Option<PathBuf>,
        /// The Redis to use instead of the directory.
        #[arg(long)]
        redis: Option<String>,
        /// Further settings, as `key=value`.
        #[arg(long)]
        set: Vec<String>,
    },
    /// A bare server that only answers.
    Answer {
        /// Bytes of its answers.
        answer_bytes: usize,
    },
    /// A receiver of webhooks that counts and measures.
    Receive,
    /// The sender for comparison with webhooks.
    Send,
    /// Measures an RSA signature with the processor features that this process sees.
    Rsa,
    /// A receiver of webhooks over TLS that counts their ids; the directory holds its certificate.
    HttpsReceive { directory: PathBuf },
    /// A sender of webhooks over TLS.
    HttpsSend,
    /// A bare server that signs.
    Sign {
        key: PathBuf,
        /// Bytes of its answers.
        answer_bytes: usize,
    },
    /// A bare server that signs and runs one script that debits a counter and writes a record.
    Record { key: PathBuf, redis: String, answer_bytes: usize },
    /// A bare server that authenticates.
    Authenticate { key: String, app: String, answer_bytes: usize },
    /// A bare server that verifies the signatures of a credential.
    Verify {
        /// A file made by [`crate::crypto::Checks::to_json`].
        checks: PathBuf,
        answer_bytes: usize,
        /// Number of bytes to write durably before the answer.
        #[arg(long)]
        keep: Option<usize>,
    },
    /// Opens and replaces transactions and measures their memory.
    Memory {
        directory: PathBuf,
        /// Uses the store alone, without actors.
        #[arg(long)]
        store_only: bool,
    },
}

impl Role {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        // These roles have their own runtimes.
        match self {
            Self::Receive => return receiver::serve(),
            Self::Send => return sender::serve(),
            Self::Rsa => return costs::print_rsa_cost(),
            Self::HttpsReceive { directory } => return https::receive(directory),
            Self::HttpsSend => return https::send(),
            _ => {}
        }
        actix_rt::System::new().block_on(async {
            match self {
                Self::Receive | Self::Send | Self::Rsa | Self::HttpsReceive { .. } | Self::HttpsSend => Ok(()),
                Self::Answer { answer_bytes } => bare::serve(Bare::Answering, *answer_bytes).await,
                Self::Node { directory, intent_key, redis, set } => {
                    node::serve(directory, intent_key.as_deref(), redis.as_deref(), set).await
                }
                Self::Record { key, redis, answer_bytes } => bare_redis::serve(key, redis, *answer_bytes).await,
                Self::Sign { key, answer_bytes } => bare::serve(Bare::signing(key)?, *answer_bytes).await,
                Self::Authenticate { key, app, answer_bytes } => {
                    bare::serve(Bare::authenticating(key, app), *answer_bytes).await
                }
                Self::Verify { checks, answer_bytes, keep: None } => {
                    bare::serve(Bare::verifying(checks)?, *answer_bytes).await
                }
                Self::Verify { checks, answer_bytes, keep: Some(bytes) } => {
                    bare::serve(Bare::verifying_and_writing(checks, *bytes)?, *answer_bytes).await
                }
                Self::Memory { directory, store_only } => memory::role(directory, *store_only).await,
            }
        })
    }
}

/// Prints a JSON line.
pub(crate) fn send_line(line: &Value) -> Result<(), Failure> {
    let mut out = io::stdout();
    writeln!(out, "{line}")?;
    out.flush().map_err(Into::into)
}

/// Returns the parent process's commands; the channel closes when the parent has ended.
pub(crate) fn commands() -> UnboundedReceiver<Value> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Some(command) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { return };
            if sender.send(command).is_err() {
                return;
            }
        }
    });
    receiver
}
