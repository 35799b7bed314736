//! Encoding of values as arguments of Lua scripts.

use std::time::Duration;

use sakshi_domain::time::Timestamp;

/// A value that can be an argument of a script.
pub(crate) trait Argument {
    /// Encodes the value; numbers and times as decimal text.
    fn encode(self) -> Vec<u8>;
}

macro_rules! arguments_from {
    ($($type:ty: $to_bytes:expr;)+) => {
        $(impl Argument for $type {
            fn encode(self) -> Vec<u8> {
                let to_bytes: fn($type) -> Vec<u8> = $to_bytes;
                to_bytes(self)
            }
        })+
    };
}

arguments_from! {
    Vec<u8>: |bytes| bytes;
    String: String::into_bytes;
    &str: |text| text.as_bytes().to_vec();
    bool: |flag| vec![if flag { b'1' } else { b'0' }];
    i64: |number| number.to_string().into_bytes();
    u64: |number| number.to_string().into_bytes();
    // Both are milliseconds.
    Timestamp: |at| at.millis().encode();
    Duration: |span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX).encode();
}

/// `None` is an empty argument.
impl<T: Argument> Argument for Option<T> {
    fn encode(self) -> Vec<u8> {
        self.map_or_else(Vec::new, Argument::encode)
    }
}

/// Encodes the arguments of a script, without the time that every script takes first.
macro_rules! arguments {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::redis::arguments::Argument::encode($value)),*]
    };
}
pub(crate) use arguments;
