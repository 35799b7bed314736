//! nginx, haproxy and Node as receivers: configuration, start, and draining of connections.

use std::fs::write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Failure;
use crate::process::Server;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Builds a configuration from the directory of the certificate, the ports, and the application's port.
type Configure = fn(&Path, &Value, u64) -> String;

const NODE: &str = include_str!("receiver.mjs");

/// A directory with a certificate for `localhost`, and the root certificate.
pub(crate) struct Certificates {
    pub(crate) directory: TempDir,
    pub(crate) root: String,
}

impl Certificates {
    pub(crate) fn new() -> Result<Self, Failure> {
        let directory = tempfile::tempdir()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let (authority_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
        let root = authority.self_signed(&authority_key)?.pem();
        let certificate = CertificateParams::new(["localhost".to_owned()])?
            .signed_by(&key, &Issuer::new(authority, authority_key))?;
        write(directory.path().join("certificate.pem"), certificate.pem())?;
        write(directory.path().join("key.pem"), key.serialize_pem())?;
        write(directory.path().join("both.pem"), certificate.pem() + &key.serialize_pem())?;
        Ok(Self { directory, root })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// A receiver: the application that counts, and the proxy before it, if any.
pub(crate) struct Receiver {
    pub(crate) name: &'static str,
    /// Ports by name: `h2`, `h1`, `h2_no_tickets`, `h1_no_tickets`.
    pub(crate) ports: Value,
    pub(crate) application: Server,
    proxy: Option<Proxy>,
}

struct Proxy {
    child: Child,
    /// The signal that makes the proxy reload its configuration and drain old connections.
    signal: &'static str,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // TERM ends its workers too.
        let _ = signal("TERM", self.child.id());
        let _ = self.child.wait();
    }
}

impl Receiver {
    /// Starts a receiver; returns nothing if its program is not installed.
    pub(crate) fn start(name: &'static str, certificates: &Certificates) -> Result<Option<Self>, Failure> {
        let directory = certificates.path().to_str().ok_or("the directory's path is not UTF-8")?;
        if name == "Node" {
            write(certificates.path().join("receiver.mjs"), NODE)?;
            if !is_installed("node") {
                return Ok(None);
            }
            let mut node = Command::new("node");
            node.arg(certificates.path().join("receiver.mjs")).arg(directory);
            let application = Server::start_program(&mut node)?;
            return Ok(Some(Self { name, ports: application.first_line.clone(), application, proxy: None }));
        }
        let application = Server::start(&["https-receive", directory])?;
        let plain = application.first_line["plain"].as_u64().ok_or("the application sent no port")?;
        let (program, configure, arguments, signal): (_, Configure, &[&str], _) = match name {
            "nginx" => ("nginx", nginx, &["-e", "stderr", "-c"], "HUP"),
            "haproxy" => ("haproxy", haproxy, &["-W", "-f"], "USR2"),
            _ => return Ok(Some(Self { name, ports: application.first_line.clone(), application, proxy: None })),
        };
        if !is_installed(program) {
            return Ok(None);
        }
        let ports = free_ports()?;
        let configuration: PathBuf = certificates.path().join(format!("{program}.conf"));
        write(&configuration, configure(certificates.path(), &ports, plain))?;
        let child = Command::new(program)
            .args(arguments)
            .arg(&configuration)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let receiver = Self { name, ports, application, proxy: Some(Proxy { child, signal }) };
        receiver.wait_until_listening()?;
        Ok(Some(receiver))
    }

    /// Waits until the proxy listens.
    fn wait_until_listening(&self) -> Result<(), Failure> {
        let port = self.ports["h2"].as_u64().and_then(|port| u16::try_from(port).ok()).ok_or("no port")?;
        let (_never, pause) = std::sync::mpsc::channel::<()>();
        let started = std::time::Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > TIMEOUT {
                return Err(format!("{} does not listen", self.name).into());
            }
            let _ = pause.recv_timeout(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Closes the connections: a proxy reloads its configuration; an application drains or cuts them.
    pub(crate) fn close_connections(&mut self, mode: &str) -> Result<(), Failure> {
        match &self.proxy {
            Some(proxy) => signal(proxy.signal, proxy.child.id()),
            None => self.application.command(&json!({ "now": mode })).map(drop),
        }
    }
}

fn signal(name: &str, process: u32) -> Result<(), Failure> {
    Command::new("kill").args(["-s", name, &process.to_string()]).status()?;
    Ok(())
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Returns unused ports by name.
fn free_ports() -> Result<Value, Failure> {
    let mut ports = json!({});
    let mut listeners = Vec::new();
    for name in ["h2", "h1", "h2_no_tickets", "h1_no_tickets"] {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        ports[name] = json!(listener.local_addr()?.port());
        listeners.push(listener);
    }
    Ok(ports)
}

fn nginx(directory: &Path, ports: &Value, application: u64) -> String {
    let path = directory.display();
    let server = |name: &str, http2: &str, tickets: &str, cache: &str| {
        let port = &ports[name];
        format!(
            "server {{ listen 127.0.0.1:{port} ssl{http2}; server_name localhost; ssl_session_tickets {tickets}; \
             ssl_session_cache {cache};\n\
             location / {{ proxy_pass http://application; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
             proxy_next_upstream off; }} }}\n"
        )
    };
    let servers = [
        server("h2", " http2", "on", "shared:tls:10m"),
        server("h1", "", "on", "shared:tls:10m"),
        server("h2_no_tickets", " http2", "off", "off"),
        server("h1_no_tickets", "", "off", "off"),
    ];
    format!(
        "daemon off; worker_processes auto; pid {path}/nginx.pid; error_log /dev/null;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; client_body_temp_path {path}/body; proxy_temp_path {path}/proxy; \
         fastcgi_temp_path {path}/f; uwsgi_temp_path {path}/u; scgi_temp_path {path}/s;\n\
         ssl_certificate {path}/certificate.pem; ssl_certificate_key {path}/key.pem;\n\
         upstream application \
         {{ server 127.0.0.1:{application}; keepalive 256; keepalive_requests 100000000; }}\n{}}}\n",
        servers.concat()
    )
}

fn haproxy(directory: &Path, ports: &Value, application: u64) -> String {
    let path = directory.display();
    let bind = |name: &str, alpn: &str, tickets: &str| {
        format!("    bind 127.0.0.1:{} ssl crt {path}/both.pem alpn {alpn}{tickets}\n", ports[name])
    };
    let binds = [
        bind("h2", "h2,http/1.1", ""),
        bind("h1", "http/1.1", ""),
        bind("h2_no_tickets", "h2,http/1.1", " no-tls-tickets"),
        bind("h1_no_tickets", "http/1.1", " no-tls-tickets"),
    ];
    format!(
        "global\n    maxconn 8000\n    hard-stop-after 30s\ndefaults\n    mode http\n    retries 0\n    \
         timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n    http-reuse always\nfrontend \
         receiver\n{}    default_backend application\nbackend application\n    server one 127.0.0.1:{application}\n",
        binds.concat()
    )
}
