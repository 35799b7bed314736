//! The part of the Redis protocol that tests need.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time limit of a server's reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// A reply of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Vec<Self>),
}

impl Reply {
    /// Returns the reply as text, if it is a text or a number.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Simple(text) => Some(text.clone()),
            Self::Bulk(Some(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Self::Integer(number) => Some(number.to_string()),
            Self::Error(_) | Self::Bulk(None) | Self::Array(_) => None,
        }
    }

    pub const fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the bytes of a bulk string.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(Some(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the members of an array; none of another reply.
    pub fn members(&self) -> &[Self] {
        match self {
            Self::Array(members) => members,
            _ => &[],
        }
    }

    /// Returns the value after a name in a flat list of pairs.
    pub fn field(&self, name: &str) -> Option<String> {
        self.members().chunks(2).find(|pair| pair[0].text().as_deref() == Some(name))?.get(1)?.text()
    }
}

/// Sends a command on a new connection and waits for the answer.
pub fn ask(port: u16, command: &[impl AsRef<[u8]>]) -> io::Result<Reply> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), REPLY_TIMEOUT)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    let mut request = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command.iter().map(AsRef::as_ref) {
        request.extend([format!("${}\r\n", argument.len()).as_bytes(), argument, b"\r\n"].concat());
    }
    stream.write_all(&request)?;
    read_reply(&mut BufReader::new(stream))
}

fn read_reply(stream: &mut BufReader<TcpStream>) -> io::Result<Reply> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let protocol_error = || io::Error::new(io::ErrorKind::InvalidData, "not the Redis protocol");
    let line = line.strip_suffix("\r\n").ok_or_else(protocol_error)?;
    let rest = line.get(1..).ok_or_else(protocol_error)?;
    let number = || rest.parse::<i64>().map_err(|_| protocol_error());
    match line.as_bytes().first() {
        Some(b'+') => Ok(Reply::Simple(rest.to_owned())),
        Some(b'-') => Ok(Reply::Error(rest.to_owned())),
        Some(b':') => Ok(Reply::Integer(number()?)),
        Some(b'$') => match usize::try_from(number()?) {
            Ok(length) => {
                let mut bytes = vec![0; length + 2];
                stream.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Reply::Bulk(Some(bytes)))
            }
            Err(_) => Ok(Reply::Bulk(None)),
        },
        Some(b'*') => (0..number()?.max(0)).map(|_| read_reply(stream)).collect::<io::Result<_>>().map(Reply::Array),
        _ => Err(protocol_error()),
    }
}
