//! What a child process of this binary does. A role serves or measures, says so in JSON lines on
//! stdout, answers what it is told on stdin, and ends when stdin does.

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;

use clap::Subcommand;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Failure;
use crate::bare::{self, Bare};
use crate::webhooks::{receiver, sender};
use crate::{costs, https, memory, node, recording};

/// A role and what it needs.
#[derive(Subcommand)]
pub(crate) enum Role {
    /// The service as `sakshi serve` runs it.
    Node {
        /// The store's directory.
        directory: PathBuf,
        /// Another key to sign intents with than the generated RSA key.
        #[arg(long)]
        intent_key: Option<PathBuf>,
        /// Where everything is kept, if not in the directory.
        #[arg(long)]
        redis: Option<String>,
        /// Other settings than a bench's node usually has, as `key=value`.
        #[arg(long)]
        set: Vec<String>,
    },
    /// A bare server that does nothing but answer.
    Answer {
        /// Bytes of its answers.
        answer: usize,
    },
    /// A receiver of webhooks that counts and measures.
    Receive,
    /// A sender of what webhooks are compared with.
    Send,
    /// Tells what an RSA signature costs with what this process knows of the processor.
    Rsa,
    /// A receiver of webhooks over TLS that counts their ids; the directory holds its certificate.
    HttpsReceive { directory: PathBuf },
    /// A sender of webhooks over TLS.
    HttpsSend,
    /// A bare server that signs.
    Sign {
        key: PathBuf,
        /// Bytes of its answers.
        answer: usize,
    },
    /// A bare server that signs and runs one script that debits a counter and writes a record.
    Record { key: PathBuf, redis: String, answer: usize },
    /// A bare server that authenticates.
    Authenticate { key: String, app: String, answer: usize },
    /// A bare server that verifies the signatures of a credential.
    Verify {
        /// A file made by [`crate::crypto::Checks::to_json`].
        checks: PathBuf,
        answer: usize,
        /// Keeps so many bytes durably before it answers.
        #[arg(long)]
        keep: Option<usize>,
    },
    /// Opens and replaces transactions and tells how much memory they take.
    Memory {
        directory: PathBuf,
        /// With their actors, or the store's work alone.
        #[arg(long)]
        store_only: bool,
    },
}

impl Role {
    pub(crate) fn play(&self) -> Result<(), Failure> {
        // These run on runtimes of their own.
        match self {
            Self::Receive => return receiver::serve(),
            Self::Send => return sender::serve(),
            Self::Rsa => return costs::tell_rsa(),
            Self::HttpsReceive { directory } => return https::receive(directory),
            Self::HttpsSend => return https::send(),
            _ => {}
        }
        actix_rt::System::new().block_on(async {
            match self {
                Self::Receive | Self::Send | Self::Rsa | Self::HttpsReceive { .. } | Self::HttpsSend => Ok(()),
                Self::Answer { answer } => bare::serve(Bare::Answering, *answer).await,
                Self::Node { directory, intent_key, redis, set } => {
                    node::serve(directory, intent_key.as_deref(), redis.as_deref(), set).await
                }
                Self::Record { key, redis, answer } => recording::serve(key, redis, *answer).await,
                Self::Sign { key, answer } => bare::serve(Bare::signing(key)?, *answer).await,
                Self::Authenticate { key, app, answer } => bare::serve(Bare::authenticating(key, app), *answer).await,
                Self::Verify { checks, answer, keep: None } => bare::serve(Bare::verifying(checks)?, *answer).await,
                Self::Verify { checks, answer, keep: Some(bytes) } => bare::serve(Bare::keeping(checks, *bytes)?, *answer).await,
                Self::Memory { directory, store_only } => memory::role(directory, *store_only).await,
            }
        })
    }
}

/// Says a line.
pub(crate) fn say(what: &Value) -> Result<(), Failure> {
    let mut out = io::stdout();
    writeln!(out, "{what}")?;
    out.flush().map_err(Into::into)
}

/// What the parent tells, line by line; closed when the parent is gone.
pub(crate) fn told() -> UnboundedReceiver<Value> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Some(what) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { return };
            if sender.send(what).is_err() {
                return;
            }
        }
    });
    receiver
}
