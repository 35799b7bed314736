//! Why one attempt at a command brought no answer, and what that allows.
//!
//! Everything that a client library or a server can say is sorted into a few kinds here, by the
//! error's code and never by its wording. No text of theirs goes further than this file: it could
//! name a password, a key or a value.

use redis::{ErrorKind, RedisError, ServerError, Value};

use crate::error::StoreError;

/// One attempt without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Executed or not, nobody knows; the connection is of no more use.
    Lost(&'static str),
    /// Executed, but fewer replicas than asked for have said so; good for nothing until they do.
    NotReplicated,
    /// Not executed, because there is no connection.
    Unreachable(&'static str),
    /// Not executed, because another node is in charge, perhaps the one that it names.
    Elsewhere(Option<String>),
    /// Not executed, because the slot is on its way to this node.
    Migrating(String),
    /// Not executed; the server may do so later.
    NotNow(&'static str),
    /// Not executed, because the server does not know the script.
    NoScript,
    /// Not executed, because the server's memory is full.
    Full,
    /// The command itself is at fault, or the data that it met; repeating it is of no use.
    Broken(&'static str),
}

impl Failure {
    /// Of the connection or of what came through it.
    pub(super) fn of(error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension => Self::of_code(error.code().unwrap_or_default(), error.detail()),
            ErrorKind::AuthenticationFailed => Self::NotNow("it does not accept the credentials"),
            ErrorKind::Io if error.is_timeout() => Self::Lost("it did not answer in time"),
            ErrorKind::Io => Self::Lost("the connection was lost"),
            ErrorKind::Parse => Self::Lost("it answered with something that is not the Redis protocol"),
            _ => Self::Lost("the client failed"),
        }
    }

    /// What the answer is, unless it is an error.
    pub(super) fn or_value(answer: Value) -> Result<Value, Self> {
        match answer {
            Value::ServerError(error) => Err(Self::of_server(&error)),
            answer => Ok(answer),
        }
    }

    fn of_server(error: &ServerError) -> Self {
        Self::of_code(error.code(), error.details())
    }

    fn of_code(code: &str, detail: Option<&str>) -> Self {
        // "MOVED 3999 127.0.0.1:6381": the slot, then who serves it.
        let named = || detail.and_then(|detail| detail.split_ascii_whitespace().nth(1)).map(str::to_owned);
        match code {
            "OOM" => Self::Full,
            "NOSCRIPT" => Self::NoScript,
            "MOVED" => Self::Elsewhere(named()),
            "READONLY" => Self::Elsewhere(None),
            "ASK" => named().map_or(Self::Elsewhere(None), Self::Migrating),
            "LOADING" => Self::NotNow("it is loading its data"),
            "TRYAGAIN" => Self::NotNow("the slot is being moved"),
            "CLUSTERDOWN" => Self::NotNow("the cluster is down"),
            "MASTERDOWN" => Self::NotNow("its master is down"),
            "BUSY" => Self::NotNow("it is busy with a script"),
            "MISCONF" => Self::NotNow("it cannot write to its disk"),
            "NOREPLICAS" => Self::NotNow("it has too few replicas"),
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Self::NotNow("it does not accept the credentials"),
            "WRONGTYPE" => Self::Broken("a key holds another kind of value"),
            "CROSSSLOT" => Self::Broken("the keys are on several nodes"),
            _ => Self::Broken("a command was refused"),
        }
    }

    /// Whether the connection that it came from must not be used again.
    pub(super) const fn ends_connection(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Elsewhere(None))
    }

    /// Whether it is a reason to ask again who is in charge.
    pub(super) const fn questions_topology(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unreachable(_) | Self::Elsewhere(_) | Self::NotNow(_))
    }

    /// Whether the command may have been executed all the same.
    pub(super) const fn leaves_doubt(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::NotReplicated)
    }

    /// Whether the node is away, as far as can be told from here.
    pub(super) const fn is_outage(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unreachable(_) | Self::NotNow(_) | Self::Elsewhere(None))
    }

    /// What a caller is told when this was the last attempt.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Lost(reason) | Self::Unreachable(reason) | Self::NotNow(reason) => StoreError::Unavailable(reason.to_owned()),
            Self::NotReplicated => StoreError::Unavailable("too few replicas have confirmed the write".to_owned()),
            Self::Elsewhere(_) | Self::Migrating(_) => StoreError::Unavailable("another node is in charge".to_owned()),
            Self::NoScript => StoreError::Unavailable("it forgot a script".to_owned()),
            Self::Full => StoreError::Full,
            Self::Broken(reason) => StoreError::Corrupt(reason.to_owned()),
        }
    }
}
