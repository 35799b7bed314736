//! The two third-party verifiers: a process each, which answers every request line with a line.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::issuer::{AUDIENCE, ISSUER, Keys, NOW, txn};

/// The answer of a library about a credential.
pub(crate) enum Verdict {
    /// The processed payload, unless it is not JSON.
    Accepted(Option<Value>),
    /// The reason.
    Refused(String),
}

/// A running verifier.
pub(crate) struct VerifierProcess {
    child: Child,
    requests: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the repository")
}

/// Installs the libraries if they are missing.
pub(crate) fn install() {
    let installed =
        Command::new(root().join("tests/contract/setup.sh")).status().expect("tests/contract/setup.sh can be run");
    assert!(installed.success(), "tests/contract/setup.sh failed: are python3, node and npm installed?");
}

/// Starts PyPI `sd-jwt` and npm `@sd-jwt/core`.
pub(crate) fn start(keys: &Keys) -> [VerifierProcess; 2] {
    let scripts = root().join("tests/contract/differential");
    let mut python = Command::new(root().join("target/contract/venv/bin/python"));
    python.arg(scripts.join("verify.py"));
    let mut node = Command::new("node");
    node.arg(scripts.join("verify.mjs"));
    let expected = json!({"issuer": ISSUER, "jwk": keys.jwk(), "aud": AUDIENCE, "nonce": txn().to_string(), "now": NOW,
        "skew": 60});
    [python, node].map(|mut command| {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the verifier can be run");
        let mut requests = BufWriter::new(child.stdin.take().expect("a pipe"));
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        writeln!(requests, "{expected}").expect("the verifier reads");
        VerifierProcess { child, requests, answers }
    })
}

impl VerifierProcess {
    /// Sends requests, one per line, and reads as many answers.
    pub(crate) fn ask(&mut self, requests: &[Value]) -> Vec<Verdict> {
        let Self { requests: pipe, answers, .. } = self;
        thread::scope(|scope| {
            scope.spawn(move || {
                for request in requests {
                    writeln!(pipe, "{request}").expect("the verifier reads");
                }
                pipe.flush().expect("the verifier reads");
            });
            answers
                .lines()
                .take(requests.len())
                .map(|line| parse_verdict(&line.expect("the verifier answers")))
                .collect()
        })
    }

    /// Closes the pipes and waits for the end of the process.
    pub(crate) fn end(self) {
        let Self { mut child, requests, answers } = self;
        drop((requests, answers));
        child.wait().expect("the verifier ends");
    }
}

/// Reads the verdict in a line of a verifier.
fn parse_verdict(line: &str) -> Verdict {
    match serde_json::from_str::<Value>(line) {
        Ok(mut answer) => match answer.get("refused").and_then(Value::as_str) {
            Some(reason) => Verdict::Refused(reason.to_owned()),
            None => Verdict::Accepted(Some(answer["claims"].take())),
        },
        // The accepted payload is not JSON, for example because of an invalid number.
        Err(_) if line.starts_with("{\"claims\"") => Verdict::Accepted(None),
        Err(_) => Verdict::Refused(line.to_owned()),
    }
}
