//! Values as the arguments of scripts.

use std::time::Duration;

use sakshi_domain::time::Timestamp;

/// A value that can be an argument of a script.
pub(crate) trait Argument {
    fn argument(self) -> Vec<u8>;
}

impl Argument for Vec<u8> {
    fn argument(self) -> Vec<u8> {
        self
    }
}

impl Argument for String {
    fn argument(self) -> Vec<u8> {
        self.into_bytes()
    }
}

impl Argument for &str {
    fn argument(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl Argument for &[u8] {
    fn argument(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl<const N: usize> Argument for &[u8; N] {
    fn argument(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Argument for bool {
    fn argument(self) -> Vec<u8> {
        vec![if self { b'1' } else { b'0' }]
    }
}

macro_rules! number_arguments {
    ($($number:ty),+) => {
        $(impl Argument for $number {
            fn argument(self) -> Vec<u8> {
                self.to_string().into_bytes()
            }
        })+
    };
}

number_arguments!(i64, u64, u32, u16, usize);

impl Argument for Timestamp {
    fn argument(self) -> Vec<u8> {
        self.millis().argument()
    }
}

/// Milliseconds.
impl Argument for Duration {
    fn argument(self) -> Vec<u8> {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX).argument()
    }
}

/// `None` is empty.
impl<T: Argument> Argument for Option<T> {
    fn argument(self) -> Vec<u8> {
        self.map_or_else(Vec::new, Argument::argument)
    }
}

/// The arguments of a script, after the time.
macro_rules! arguments {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::redis::arguments::Argument::argument($value)),*]
    };
}
pub(crate) use arguments;
