//! Failures of one attempt at a command.
//!
//! Errors of the client library and of the server are classified here by their code, never by their text. The text does
//! not leave this file, because it could contain a password, a key or a value.

use redis::{ErrorKind, RedisError, Value};

use sakshi_domain::time::Timestamp;

use crate::error::StoreError;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Maybe executed; the connection cannot be used any more.
    Lost(&'static str),
    /// Executed, but confirmed by fewer replicas than required.
    NotReplicated,
    /// Not executed, because there is no connection.
    Unreachable(&'static str),
    /// Not executed, because another node owns the slot; with its address, if the server named it.
    NotOwner(Option<String>),
    /// Not executed, because the slot is migrating to the node at this address.
    Migrating(String),
    /// Not executed; the server may accept it later.
    TryLater(&'static str),
    /// Not executed, because the server does not know the script.
    NoScript,
    /// Not executed, because the server's memory is full, or its disk cannot be written to.
    Full,
    /// Not sent: the store lacks data since this time.
    DataLost(Timestamp),
    /// Not sent: the store has the schema of another release, for this reason.
    OtherSchema(String),
    /// Not executed, because the command or the stored data is wrong; a retry is useless.
    Rejected(&'static str),
}

impl Failure {
    /// Classifies an error of the connection or of a reply.
    pub(super) fn from_error(error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension => {
                Self::from_code(error.code().unwrap_or_default(), error.detail())
            }
            ErrorKind::AuthenticationFailed => Self::TryLater("it does not accept the credentials"),
            ErrorKind::Io if error.is_timeout() => Self::Lost("it did not answer in time"),
            ErrorKind::Io => Self::Lost("the connection was lost"),
            ErrorKind::Parse => Self::Lost("it answered with something that is not the Redis protocol"),
            _ => Self::Lost("the client failed"),
        }
    }

    /// Returns the reply, or the failure that an error reply reports.
    pub(super) fn check_reply(answer: Value) -> Result<Value, Self> {
        match answer {
            Value::ServerError(error) => Err(Self::from_code(error.code(), error.details())),
            answer => Ok(answer),
        }
    }

    /// Classifies an error reply by its code.
    fn from_code(code: &str, detail: Option<&str>) -> Self {
        // "MOVED 3999 127.0.0.1:6381": the slot, then its owner.
        let owner = || detail.and_then(|detail| detail.split_ascii_whitespace().nth(1)).map(str::to_owned);
        match code {
            "OOM" | "MISCONF" => Self::Full,
            "NOSCRIPT" => Self::NoScript,
            "MOVED" => Self::NotOwner(owner()),
            "READONLY" => Self::NotOwner(None),
            "ASK" => owner().map_or(Self::NotOwner(None), Self::Migrating),
            "LOADING" => Self::TryLater("it is loading its data"),
            "TRYAGAIN" => Self::TryLater("the slot is being moved"),
            "CLUSTERDOWN" => Self::TryLater("the cluster is down"),
            "MASTERDOWN" => Self::TryLater("its master is down"),
            "BUSY" => Self::TryLater("it is busy with a script"),
            "NOREPLICAS" => Self::TryLater("it has too few replicas"),
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Self::TryLater("it does not accept the credentials"),
            "WRONGTYPE" => Self::Rejected("a key holds another kind of value"),
            "CROSSSLOT" => Self::Rejected("the keys are on several nodes"),
            _ => Self::Rejected("a command was refused"),
        }
    }

    /// Returns true if the connection must not be used again.
    pub(super) const fn ends_connection(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::NotOwner(None))
    }

    /// Returns true if the owners of the slots may have changed.
    pub(super) const fn suggests_new_topology(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unreachable(_) | Self::NotOwner(_) | Self::TryLater(_))
    }

    /// Returns true if the command may have been executed.
    pub(super) const fn maybe_executed(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::NotReplicated)
    }

    /// Returns true if the node seems to be down.
    pub(super) const fn is_outage(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unreachable(_) | Self::TryLater(_) | Self::NotOwner(None))
    }

    /// Returns the reason of the failure, in words.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::Lost(reason) | Self::Unreachable(reason) | Self::TryLater(reason) | Self::Rejected(reason) => reason,
            _ => "it refused to answer",
        }
    }

    /// Returns the error for the caller when this was the last attempt.
    pub(crate) fn into_error(self) -> StoreError {
        match self {
            Self::Lost(reason) | Self::Unreachable(reason) | Self::TryLater(reason) => {
                StoreError::Unavailable(reason.to_owned())
            }
            Self::NotReplicated => StoreError::Unavailable("too few replicas have confirmed the write".to_owned()),
            Self::NotOwner(_) | Self::Migrating(_) => StoreError::Unavailable("another node owns the slot".to_owned()),
            // The next attempt brought the script, and had no answer in time.
            Self::NoScript => StoreError::Unavailable("it did not answer in time".to_owned()),
            Self::Full => StoreError::Full,
            Self::DataLost(since) => StoreError::DataLost(since),
            Self::OtherSchema(why) => StoreError::OtherSchema(why),
            Self::Rejected(reason) => StoreError::Corrupt(reason.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Parses an error line of a server.
    fn parse_failure(line: &str) -> Failure {
        let Ok(Value::ServerError(error)) = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()) else {
            panic!("{line}")
        };
        assert_eq!(
            Failure::check_reply(Value::ServerError(error.clone())),
            Err(Failure::from_error(&error.clone().into()))
        );
        Failure::from_error(&error.into())
    }

    #[test]
    fn error_replies_are_classified_by_their_code() {
        let later =
            ["LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "BUSY", "NOREPLICAS", "NOAUTH", "WRONGPASS", "NOPERM"];
        for code in later {
            let failure = parse_failure(&format!("{code} some text"));
            assert!(
                matches!(failure, Failure::TryLater(_)) && failure.is_outage() && failure.suggests_new_topology(),
                "{code}: {failure:?}"
            );
            assert!(!failure.maybe_executed() && !failure.ends_connection(), "{code}");
            assert!(matches!(failure.into_error(), StoreError::Unavailable(_)), "{code}");
        }
        for (code, reason) in
            [("WRONGTYPE", "another kind of value"), ("CROSSSLOT", "several nodes"), ("ERR", "refused")]
        {
            let failure = parse_failure(&format!("{code} some text"));
            assert!(!failure.is_outage() && !failure.suggests_new_topology(), "{code}");
            assert!(matches!(failure.into_error(), StoreError::Corrupt(text) if text.contains(reason)), "{code}");
        }
        assert_eq!(
            (parse_failure("OOM some text"), parse_failure("MISCONF some text")),
            (Failure::Full, Failure::Full)
        );
        assert_eq!(parse_failure("NOSCRIPT some text"), Failure::NoScript);
        assert_eq!(Failure::NoScript.into_error(), StoreError::Unavailable("it did not answer in time".to_owned()));
        assert_eq!(parse_failure("READONLY some text"), Failure::NotOwner(None));
        assert_eq!(parse_failure("MOVED 3999 127.0.0.1:6381"), Failure::NotOwner(Some("127.0.0.1:6381".to_owned())));
        assert_eq!(parse_failure("ASK 3999 127.0.0.1:6381"), Failure::Migrating("127.0.0.1:6381".to_owned()));
        assert_eq!(parse_failure("ASK"), Failure::NotOwner(None));
        assert_eq!(Failure::Full.into_error(), StoreError::Full);
    }

    #[test]
    fn a_failed_connection_leaves_the_outcome_of_a_command_open() {
        let reason_of = |error: RedisError| {
            let failure = Failure::from_error(&error);
            assert!(failure.maybe_executed() && failure.ends_connection() && failure.is_outage(), "{failure:?}");
            match failure.into_error() {
                StoreError::Unavailable(reason) => reason,
                other => panic!("{other:?}"),
            }
        };
        assert!(reason_of(io::Error::from(io::ErrorKind::TimedOut).into()).contains("in time"));
        assert!(reason_of(io::Error::from(io::ErrorKind::BrokenPipe).into()).contains("connection was lost"));
        assert!(reason_of((ErrorKind::Parse, "not the protocol").into()).contains("not the Redis protocol"));
        assert!(reason_of((ErrorKind::Client, "the client").into()).contains("the client failed"));
        let refused = Failure::from_error(&(ErrorKind::AuthenticationFailed, "a password").into());
        assert!(matches!(refused, Failure::TryLater(reason) if reason.contains("credentials")));
    }
}
