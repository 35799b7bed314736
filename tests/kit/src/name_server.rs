//! A name server on a separate loopback address, whose answers a test can change at any time.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The answer to every question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsAnswer {
    /// This address, for every name.
    Address(Ipv4Addr),
    /// NXDOMAIN, for every name.
    NxDomain,
    /// SERVFAIL.
    Failure,
    /// No answer.
    Silence,
}

/// A running name server.
#[derive(Debug)]
pub struct NameServer {
    address: Ipv4Addr,
    answer: Arc<Mutex<DnsAnswer>>,
    questions: Arc<AtomicUsize>,
}

impl NameServer {
    /// Serves until the process ends. The resolver uses only port 53, which needs root.
    pub fn start(answer: DnsAnswer) -> Self {
        let bound_socket = (1..=254).find_map(|last| {
            let address = Ipv4Addr::new(127, 53, (std::process::id() % 255) as u8, last);
            Some((address, UdpSocket::bind((address, 53)).ok()?))
        });
        let (address, socket) = bound_socket.expect("a port 53 on a loopback address, which needs root");
        let server = Self { address, answer: Arc::new(Mutex::new(answer)), questions: Arc::default() };
        let (answer, questions) = (Arc::clone(&server.answer), Arc::clone(&server.questions));
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, resolver)) = socket.recv_from(&mut buffer) {
                questions.fetch_add(1, Ordering::SeqCst);
                let answer = *answer.lock().unwrap();
                if let Some(response) = response(&buffer[..length], answer) {
                    let _ = socket.send_to(&response, resolver);
                }
            }
        });
        server
    }

    /// Changes the answer to all further questions.
    pub fn set_answer(&self, answer: DnsAnswer) {
        *self.answer.lock().unwrap() = answer;
    }

    /// Returns the number of questions so far.
    pub fn question_count(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }

    /// Writes a `resolv.conf` with this name server only.
    pub fn resolv_conf(&self) -> String {
        format!("nameserver {}\n", self.address)
    }
}

/// Builds the response to a question (RFC 1035 §4.1).
fn response(question: &[u8], answer: DnsAnswer) -> Option<Vec<u8>> {
    /// Type A, class IN.
    const A: [u8; 4] = [0, 1, 0, 1];
    let name_length = question[12..].iter().position(|length| *length == 0)?;
    let section = &question[12..12 + name_length + 5];
    let (code, address) = match answer {
        DnsAnswer::Address(address) => (0, Some(address).filter(|_| section.ends_with(&A))),
        DnsAnswer::NxDomain => (3, None),
        DnsAnswer::Failure => (2, None),
        DnsAnswer::Silence => return None,
    };
    let mut response =
        [&question[..2], &[0x81, 0x80 | code, 0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0], section].concat();
    if let Some(address) = address {
        response.extend([&[0xc0, 12], &A[..], &[0, 0, 0, 5, 0, 4], &address.octets()].concat());
    }
    Some(response)
}
