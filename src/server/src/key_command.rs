//! Reads encryption keys from an operator's command, such as a key vault's client. The command prints one key a line in
//! Base64; the first key encrypts.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::settings::SecretKey;

/// Timeout of the command.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of bytes read from the command's output.
const OUTPUT_BYTES_MAX: u64 = 64 * 1_024;

/// Error of a key command. Its output is not shown.
#[derive(Debug, thiserror::Error)]
pub enum KeyCommandError {
    /// The command cannot be run.
    #[error("cannot be run: {0}")]
    Unrunnable(#[from] std::io::Error),
    /// The command timed out.
    #[error("has not ended after {} seconds", TIMEOUT.as_secs())]
    TooLong,
    /// The command failed.
    #[error("ended with {0}")]
    Failed(std::process::ExitStatus),
    /// The output contains no keys.
    #[error("printed no keys: each line {0}")]
    NoKeys(&'static str),
}

/// Runs a command without a shell and reads the keys that it prints. Its stderr goes to the stderr of this process.
///
/// # Errors
/// The command fails, times out or prints no keys.
pub(crate) fn run(command: &[String]) -> Result<Vec<SecretKey>, KeyCommandError> {
    let (program, arguments) = command.split_first().ok_or(KeyCommandError::NoKeys("is missing"))?;
    let mut child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take();
    let (sender, output) = channel();
    // The command may never close its output.
    thread::spawn(move || {
        let mut text = Zeroizing::new(String::new());
        let read = stdout.map_or(Ok(0), |stdout| stdout.take(OUTPUT_BYTES_MAX).read_to_string(&mut text));
        let _ = sender.send(read.map(|_| text));
    });
    let Ok(text) = output.recv_timeout(TIMEOUT) else {
        // The result does not matter.
        drop(child.kill().and_then(|()| child.wait()));
        return Err(KeyCommandError::TooLong);
    };
    let (text, status) = (text?, child.wait()?);
    if !status.success() {
        return Err(KeyCommandError::Failed(status));
    }
    let keys: Result<Vec<_>, _> =
        text.lines().filter(|line| !line.trim().is_empty()).map(SecretKey::from_base64).collect();
    keys.ok().filter(|keys| !keys.is_empty()).ok_or(KeyCommandError::NoKeys("must be 32 random bytes in Base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Vec<SecretKey>, KeyCommandError> {
        run(&["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()])
    }

    #[test]
    fn a_command_prints_the_key_and_earlier_ones() {
        let keys = shell("head -c 32 /dev/urandom | base64; head -c 32 /dev/urandom | base64").unwrap();
        assert_eq!((keys.len(), keys[0].bytes().len()), (2, 32));
    }

    #[test]
    fn an_error_never_contains_the_output_of_the_command() {
        for (script, message) in [
            ("echo secret", "printed no keys: each line must be 32 random bytes in Base64"),
            ("true", "printed no keys: each line must be 32 random bytes in Base64"),
            ("echo secret; exit 3", "ended with exit status: 3"),
            ("printf '\\377'", "cannot be run: stream did not contain valid UTF-8"),
        ] {
            assert_eq!(shell(script).unwrap_err().to_string(), message, "{script}");
        }
        assert!(run(&["/no/such/program".to_owned()]).unwrap_err().to_string().starts_with("cannot be run: "));
    }
}
