//! Third-party issuer libraries, run as scripts: see tests/contract/README.md.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// An issuer library.
#[derive(Clone, Copy, Debug)]
pub enum Library {
    /// PyPI `sd-jwt`.
    Python,
    /// npm `@sd-jwt/core`.
    Node,
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Issues the described credential with a library, which is installed if missing.
pub fn issue(library: Library, request: &Value) -> Value {
    run_script(library, if matches!(library, Library::Python) { "issue.py" } else { "issue.mjs" }, &request.to_string())
}

/// Checks an evidence file with Python libraries; returns their reading of it.
pub fn check_evidence(file: &str) -> Value {
    run_script(Library::Python, "evidence.py", file)
}

/// Runs a script of a library on an input, and returns its output.
fn run_script(library: Library, script: &str, input: &str) -> Value {
    let scripts = root().join("tests/contract");
    let setup = Command::new(scripts.join("setup.sh")).status().expect("tests/contract/setup.sh can be run");
    assert!(setup.success(), "tests/contract/setup.sh failed: are python3, node and npm there?");
    let mut command = match library {
        Library::Python => Command::new(root().join("target/contract/venv/bin/python")),
        Library::Node => Command::new("node"),
    };
    let mut child =
        command.arg(scripts.join(script)).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it can be run");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{script} of {library:?} has failed");
    serde_json::from_slice(&output.stdout).expect("its answer is JSON")
}
