//! Reads encryption keys from an operator's command, such as a key vault's client. The command prints one key a line in
//! Base64; the first key encrypts.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::settings::SecretKey;

/// Timeout of the command.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between checks for the end of a command that has closed its output.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
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
    Failed(ExitStatus),
    /// The output contains no keys.
    #[error("printed no keys: each line {0}")]
    NoKeys(&'static str),
}

/// Runs a command without a shell and reads the keys that it prints. Its stderr goes to the stderr of this process.
///
/// # Errors
/// The command fails, times out or prints no keys.
pub(crate) fn run(command: &[String]) -> Result<Vec<SecretKey>, KeyCommandError> {
    run_within(TIMEOUT, command)
}

/// Runs a command as [`run`] does, with this timeout.
fn run_within(timeout: Duration, command: &[String]) -> Result<Vec<SecretKey>, KeyCommandError> {
    let (program, arguments) = command.split_first().ok_or(KeyCommandError::NoKeys("is missing"))?;
    let mut child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let ended = wait_for_output(&mut child, Instant::now() + timeout);
    if ended.is_err() {
        // The result does not matter.
        drop(child.kill().and_then(|()| child.wait()));
    }
    let (text, status) = ended?;
    if !status.success() {
        return Err(KeyCommandError::Failed(status));
    }
    let keys: Result<Vec<_>, _> =
        text.lines().filter(|line| !line.trim().is_empty()).map(SecretKey::from_base64).collect();
    keys.ok().filter(|keys| !keys.is_empty()).ok_or(KeyCommandError::NoKeys("must be 32 random bytes in Base64"))
}

/// Returns the output of a command and its exit status, once it has closed its output and ended.
fn wait_for_output(child: &mut Child, deadline: Instant) -> Result<(Zeroizing<String>, ExitStatus), KeyCommandError> {
    let stdout = child.stdout.take();
    let (sender, output) = channel();
    // The command may never close its output.
    thread::spawn(move || {
        let mut text = Zeroizing::new(String::new());
        let read = stdout.map_or(Ok(0), |stdout| stdout.take(OUTPUT_BYTES_MAX).read_to_string(&mut text));
        let _ = sender.send(read.map(|_| text));
    });
    let time_left = || deadline.saturating_duration_since(Instant::now());
    let text = output.recv_timeout(time_left()).map_err(|_| KeyCommandError::TooLong)??;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((text, status));
        }
        if time_left().is_zero() {
            return Err(KeyCommandError::TooLong);
        }
        thread::park_timeout(CHECK_INTERVAL);
    }
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
    fn a_command_that_does_not_end_is_killed_even_if_its_output_is_closed() {
        // No other process has this number in its command line.
        let seconds = format!("600.{}", std::process::id());
        for redirection in ["", ">&-"] {
            let script = format!("exec sleep {seconds} {redirection}");
            let command = ["/bin/sh".to_owned(), "-c".to_owned(), script];
            let refused = run_within(Duration::from_millis(200), &command).unwrap_err();
            assert!(matches!(refused, KeyCommandError::TooLong), "{refused}");
            let is_running = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains(&seconds)
            });
            assert!(!is_running, "{redirection}");
        }
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
