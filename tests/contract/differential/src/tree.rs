//! JSON trees that may have repeated names, numbers of any form, and invalid parts.

use std::fmt;

use serde_json::Value;

/// A JSON value, written as a text by `to_string`.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    /// Verbatim text: a number, a literal, or invalid JSON.
    Raw(String),
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// Returns a value that is written verbatim.
    pub(crate) fn raw(text: &str) -> Self {
        Self::Raw(text.to_owned())
    }

    pub(crate) fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(crate) fn number(number: i64) -> Self {
        Self::Raw(number.to_string())
    }

    /// Returns the members; turns any other value into an empty object.
    pub(crate) fn members(&mut self) -> &mut Vec<(String, Self)> {
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(Vec::new());
        }
        match self {
            Self::Object(members) => members,
            _ => unreachable!("the value is an object"),
        }
    }

    /// Returns a member, the first of equal names.
    pub(crate) fn get(&mut self, name: &str) -> Option<&mut Self> {
        self.members().iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.members().retain(|(known, _)| known != name);
    }

    /// Replaces a member, or adds it.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Self>) {
        match self.get(name) {
            Some(known) => *known = value.into(),
            None => self.members().push((name.to_owned(), value.into())),
        }
    }

    /// Adds a member, even if the name exists.
    pub(crate) fn add(&mut self, name: &str, value: impl Into<Self>) {
        self.members().push((name.to_owned(), value.into()));
    }

    /// Returns the text with spaces between its parts.
    pub(crate) fn to_spaced_text(&self) -> String {
        match self {
            Self::List(items) => {
                format!("[ {}\n]", items.iter().map(Self::to_spaced_text).collect::<Vec<_>>().join(" ,\t"))
            }
            Self::Object(members) => {
                let member = |(name, value): &(String, Self)| format!("{} : {}", quote(name), value.to_spaced_text());
                format!("{{ {}\r\n}}", members.iter().map(member).collect::<Vec<_>>().join(",  "))
            }
            leaf => leaf.to_string(),
        }
    }

    /// Returns the text with all characters of strings as escapes.
    pub(crate) fn to_escaped_text(&self) -> String {
        match self {
            Self::Raw(text) => text.clone(),
            Self::Text(text) => escape_all(text),
            Self::List(items) => format!("[{}]", items.iter().map(Self::to_escaped_text).collect::<Vec<_>>().join(",")),
            Self::Object(members) => {
                let member =
                    |(name, value): &(String, Self)| format!("{}:{}", escape_all(name), value.to_escaped_text());
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Returns a text as a JSON string.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns a text as a JSON string with every character escaped.
fn escape_all(text: &str) -> String {
    format!("\"{}\"", text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>())
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw(text) => f.write_str(text),
            Self::Text(text) => f.write_str(&quote(text)),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}{}:{value}", if index == 0 { "" } else { "," }, quote(name))?;
                }
                f.write_str("}")
            }
        }
    }
}

impl From<&str> for Tree {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Tree {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
