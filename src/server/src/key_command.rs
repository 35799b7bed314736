//! Encryption keys from a command of the operator's, such as the client of a key vault: it prints them in Base64, a line each, the one
//! that seals first.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::settings::SecretKey;

/// How long it may take.
const TIME: Duration = Duration::from_secs(30);
/// Bytes that are read of what it prints.
const BYTES: u64 = 64 * 1_024;

/// Why a command has given no keys. What it printed is not shown.
#[derive(Debug, thiserror::Error)]
pub enum KeyCommandError {
    /// It cannot be run.
    #[error("cannot be run: {0}")]
    Unrunnable(#[from] std::io::Error),
    /// It took too long.
    #[error("has not ended after {} seconds", TIME.as_secs())]
    TooLong,
    /// It failed.
    #[error("ended with {0}")]
    Failed(std::process::ExitStatus),
    /// It printed something else.
    #[error("printed no keys: each line {0}")]
    NoKeys(&'static str),
}

/// Runs a command, without a shell, and reads the keys that it prints. What it says on stderr goes to this process' stderr.
///
/// # Errors
/// Why it has given none.
pub(crate) fn run(command: &[String]) -> Result<Vec<SecretKey>, KeyCommandError> {
    let (program, arguments) = command.split_first().ok_or(KeyCommandError::NoKeys("is missing"))?;
    let mut child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take();
    let (done, printed) = channel();
    // It may keep its output open for ever.
    thread::spawn(move || {
        let mut text = Zeroizing::new(String::new());
        let read = stdout.map_or(Ok(0), |stdout| stdout.take(BYTES).read_to_string(&mut text));
        let _ = done.send(read.map(|_| text));
    });
    let Ok(text) = printed.recv_timeout(TIME) else {
        // It is over whether or not this succeeds.
        drop(child.kill().and_then(|()| child.wait()));
        return Err(KeyCommandError::TooLong);
    };
    let (text, status) = (text?, child.wait()?);
    if !status.success() {
        return Err(KeyCommandError::Failed(status));
    }
    let keys: Result<Vec<_>, _> = text.lines().filter(|line| !line.trim().is_empty()).map(SecretKey::from_base64).collect();
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
    fn what_it_printed_is_never_shown() {
        for (script, said) in [
            ("echo secret", "printed no keys: each line must be 32 random bytes in Base64"),
            ("true", "printed no keys: each line must be 32 random bytes in Base64"),
            ("echo secret; exit 3", "ended with exit status: 3"),
            ("printf '\\377'", "cannot be run: stream did not contain valid UTF-8"),
        ] {
            assert_eq!(shell(script).unwrap_err().to_string(), said, "{script}");
        }
        assert!(run(&["/no/such/program".to_owned()]).unwrap_err().to_string().starts_with("cannot be run: "));
    }
}
