//! A name server on a loopback address of its own, whose answers a test can change at any time.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The answer to every question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// This address, for every name.
    Address(Ipv4Addr),
    /// NXDOMAIN, for every name.
    NxDomain,
    /// SERVFAIL.
    Failure,
    /// No answer.
    Silence,
}

#[derive(Debug)]
pub struct NameServer {
    address: Ipv4Addr,
    answering: Arc<Mutex<Answering>>,
    questions: Arc<AtomicUsize>,
}

impl NameServer {
    /// Serves until the process ends. The resolver uses only port 53, which needs root.
    pub fn start(answering: Answering) -> Self {
        let bound = (1..=254).find_map(|last| {
            let address = Ipv4Addr::new(127, 53, (std::process::id() % 255) as u8, last);
            Some((address, UdpSocket::bind((address, 53)).ok()?))
        });
        let (address, socket) = bound.expect("a port 53 on a loopback address, which needs root");
        let server = Self { address, answering: Arc::new(Mutex::new(answering)), questions: Arc::default() };
        let (answering, questions) = (Arc::clone(&server.answering), Arc::clone(&server.questions));
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, resolver)) = socket.recv_from(&mut buffer) {
                questions.fetch_add(1, Ordering::SeqCst);
                let answering = *answering.lock().unwrap();
                if let Some(answer) = answer(&buffer[..length], answering) {
                    let _ = socket.send_to(&answer, resolver);
                }
            }
        });
        server
    }

    pub fn answer(&self, answering: Answering) {
        *self.answering.lock().unwrap() = answering;
    }

    /// Returns the number of questions so far.
    pub fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }

    /// Writes a `resolv.conf` with this name server alone.
    pub fn resolv_conf(&self) -> String {
        format!("nameserver {}\n", self.address)
    }
}

/// Builds the answer to a question (RFC 1035 §4.1).
fn answer(question: &[u8], answering: Answering) -> Option<Vec<u8>> {
    const A: [u8; 4] = [0, 1, 0, 1];
    let name = question[12..].iter().position(|length| *length == 0)?;
    let asked = &question[12..12 + name + 5];
    let (code, address) = match answering {
        Answering::Address(address) => (0, Some(address).filter(|_| asked.ends_with(&A))),
        Answering::NxDomain => (3, None),
        Answering::Failure => (2, None),
        Answering::Silence => return None,
    };
    let mut answer =
        [&question[..2], &[0x81, 0x80 | code, 0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0], asked].concat();
    if let Some(address) = address {
        answer.extend([&[0xc0, 12], &A[..], &[0, 0, 0, 5, 0, 4], &address.octets()].concat());
    }
    Some(answer)
}
