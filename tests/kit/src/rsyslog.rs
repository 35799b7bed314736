//! A syslog server: rsyslog with its own configuration, over TCP or TLS, on a free port.

use std::fs::{OpenOptions, read_to_string, write};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::ports::free_port;
use super::tls::Authority;
use super::waiting::{TIMEOUT, eventually};

/// A running server, stopped on drop.
pub struct Rsyslog {
    /// The certificate authority of its certificate, as a file.
    pub authority: PathBuf,
    port: u16,
    scheme: &'static str,
    child: Option<Child>,
    directory: TempDir,
}

impl Rsyslog {
    /// Starts a server over TLS or plain TCP.
    pub async fn start(has_tls: bool) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        let authority = Authority::create();
        let identity = authority.issue(&["localhost"]);
        for (name, text) in
            [("ca.pem", &authority.pem), ("cert.pem", &identity.certificate), ("key.pem", &identity.key)]
        {
            write(path(name), text).expect("a file");
        }
        let port = free_port();
        let (driver, mode, scheme) = if has_tls { ("gtls", 1, "syslog+tls") } else { ("ptcp", 0, "syslog+tcp") };
        let folder = directory.path().display();
        // No queue: everything read is in the file when the server ends the connection.
        let configuration = format!(
            r#"global(workDirectory="{folder}" maxMessageSize="1m" defaultNetstreamDriverCAFile="{folder}/ca.pem"
                defaultNetstreamDriverCertFile="{folder}/cert.pem" defaultNetstreamDriverKeyFile="{folder}/key.pem")
            module(load="imtcp" StreamDriver.Name="{driver}" StreamDriver.Mode="{mode}" StreamDriver.AuthMode="anon")
            main_queue(queue.type="Direct")
            template(name="entry" type="string" string="%pri% %app-name% %msgid% %structured-data% %msg%\n")
            input(type="imtcp" address="127.0.0.1" port="{port}")
            action(type="omfile" file="{folder}/received" template="entry")
            "#
        );
        write(path("rsyslog.conf"), configuration).expect("a file");
        let mut server = Self { authority: path("ca.pem"), port, scheme, child: None, directory };
        server.launch().await;
        server
    }

    /// Starts the server, or restarts it on the same port with the same file.
    pub async fn launch(&mut self) {
        let path = |name: &str| self.directory.path().join(name);
        let log = OpenOptions::new().create(true).append(true).open(path("rsyslog.log")).expect("a file");
        // A killed server leaves the file behind, and the next would not start.
        let _ = std::fs::remove_file(path("pid"));
        let mut command = Command::new("rsyslogd");
        command
            .arg("-n")
            .arg("-f")
            .arg(path("rsyslog.conf"))
            .arg("-i")
            .arg(path("pid"))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        self.child = Some(command.stderr(log).spawn().expect("rsyslogd starts"));
        eventually("rsyslogd listens", TIMEOUT, || async {
            TcpStream::connect(("127.0.0.1", self.port)).ok().map(drop)
        })
        .await;
    }

    /// Returns the value of the setting `audit_log.push` for this server.
    pub fn url(&self) -> String {
        format!("{}://localhost:{}", self.scheme, self.port)
    }

    /// Returns the entries that the server has written.
    pub fn lines(&self) -> Vec<String> {
        match read_to_string(self.directory.path().join("received")) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Suspends the server: the system still accepts connections, and nothing is read.
    pub fn pause(&self) {
        let pid = self.child.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args(["-STOP", &pid]).status().expect("kill runs").success());
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Rsyslog {
    fn drop(&mut self) {
        self.kill();
    }
}
