//! Issuers written by others, run as scripts: see tests/contract/README.md.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

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

/// Has a library issue what the request describes, installing it first when it is not there.
pub fn issue(library: Library, request: &Value) -> Value {
    let scripts = root().join("tests/contract");
    let installed = Command::new(scripts.join("setup.sh")).status().expect("tests/contract/setup.sh can be run");
    assert!(installed.success(), "tests/contract/setup.sh failed: are python3, node and npm there?");
    let (mut command, script) = match library {
        Library::Python => (Command::new(root().join("target/contract/venv/bin/python")), "issue.py"),
        Library::Node => (Command::new("node"), "issue.mjs"),
    };
    let mut child = command.arg(scripts.join(script)).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the issuer can be run");
    child.stdin.take().expect("a pipe").write_all(request.to_string().as_bytes()).expect("the issuer reads");
    let output = child.wait_with_output().expect("the issuer ends");
    assert!(output.status.success(), "{library:?} could not issue");
    serde_json::from_slice(&output.stdout).expect("the issuer's answer is JSON")
}
