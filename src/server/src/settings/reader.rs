//! Reads typed values from the merged table and collects every problem. Keys that are never read are unknown. Values
//! from the environment are text, so numbers, flags and lists are parsed from text too. An invalid value is replaced by
//! a default, so that the rules between settings are still checked.

use std::fs;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use toml::{Table, Value};

use super::problem::Problems;
use crate::pkcs11::KeyUri;

/// Names of sections.
const SECTIONS: [&str; 14] = [
    "server",
    "store",
    "admin",
    "authority",
    "ovse",
    "pages",
    "webhooks",
    "outbound",
    "upstreams",
    "flows",
    "limits",
    "telemetry",
    "console",
    "audit_log",
];

/// Problem of a key that no setting has.
const UNKNOWN: &str = "is not a setting; config/default.toml lists them all";

/// Problem of a listener's address.
pub(super) const ADDRESS: &str = "must be an IP address and a port, such as 127.0.0.1:8080";

const DAY: Duration = Duration::from_secs(86_400);

/// The table being read, and the results so far.
#[derive(Debug)]
pub(super) struct Reader {
    table: Table,
    /// Every problem so far.
    pub problems: Problems,
    /// Every key with its value; secrets are withheld.
    pub effective: Vec<(String, String)>,
    /// Keys whose values are withheld.
    pub secrets: Vec<String>,
}

impl Reader {
    /// Starts reading a merged table.
    pub(super) fn new(table: Table) -> Self {
        Self { table, problems: Problems::default(), effective: Vec::new(), secrets: Vec::new() }
    }

    /// Ends the reading, with an error if there are problems.
    pub(super) fn finish(self) -> Result<(), Problems> {
        if self.problems.0.is_empty() { Ok(()) } else { Err(self.problems) }
    }

    /// Reads a text; empty when not set. The PIN in the URI of a key is withheld from the effective values.
    pub(super) fn text(&mut self, path: &str) -> String {
        let text = self.take_text(path);
        self.record_effective(path, format!("{:?}", KeyUri::without_pin(&text)));
        text
    }

    /// Reads a required text. `refusal` is the problem of a missing one.
    pub(super) fn required(&mut self, path: &str, refusal: &str) -> String {
        let text = self.text(path);
        self.problems.require(!text.is_empty(), path, refusal);
        text
    }

    /// Parses a text; `None` if it is not set or invalid.
    pub(super) fn optional<T>(&mut self, path: &str, parse: impl Fn(&str) -> Result<T, &'static str>) -> Option<T> {
        let text = Some(self.text(path)).filter(|text| !text.is_empty())?;
        parse(&text).map_err(|message| self.problems.add(path, message)).ok()
    }

    /// Reads one of a few words. The default for an invalid word is the first choice.
    pub(super) fn one_of<T: Clone>(&mut self, path: &str, choices: &[(&str, T)]) -> T {
        let text = self.text(path);
        let chosen = choices.iter().find(|(word, _)| *word == text);
        if chosen.is_none() {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.problems.add(path, format!("must be {}", words.join(" or ")));
        }
        chosen.unwrap_or(&choices[0]).1.clone()
    }

    /// Reads a listener's address.
    pub(super) fn address(&mut self, path: &str) -> SocketAddr {
        self.text(path).parse().unwrap_or_else(|_| {
            self.problems.add(path, ADDRESS);
            ([127, 0, 0, 1], 0).into()
        })
    }

    /// Reads a secret text. If the key with the suffix `_file` is set, the secret is read from that file.
    pub(super) fn secret(&mut self, path: &str) -> Option<SecretString> {
        let text = self.take_text(path);
        let text = self.take_file(path).unwrap_or(text);
        self.secrets.push(path.to_owned());
        self.record_effective(path, if text.is_empty() { "\"\"" } else { "\"[set, not shown]\"" });
        (!text.is_empty()).then(|| SecretString::from(text))
    }

    /// Parses a secret. A problem does not contain it.
    pub(super) fn parsed_secret<T>(
        &mut self,
        path: &str,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let secret = self.secret(path)?;
        parse(secret.expose_secret()).map_err(|message| self.problems.add(path, message)).ok()
    }

    /// Parses a list of secrets.
    pub(super) fn secrets<T>(&mut self, path: &str, parse: impl Fn(&str) -> Result<T, &'static str>) -> Vec<T> {
        let texts = self.take_list(path);
        let file = self.take_file(path);
        let texts = file.map_or(texts, |text| {
            text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
        });
        self.secrets.push(path.to_owned());
        self.record_effective(path, format!("[{} set, not shown]", texts.len()));
        self.parse_list(path, &texts, parse)
    }

    /// Parses a list of texts.
    pub(super) fn list<T>(&mut self, path: &str, parse: impl Fn(&str) -> Result<T, &'static str>) -> Vec<T> {
        self.list_shown_as(path, str::to_owned, parse)
    }

    /// Parses a list of texts. `show` returns the effective value of an item.
    pub(super) fn list_shown_as<T>(
        &mut self,
        path: &str,
        show: impl Fn(&str) -> String,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Vec<T> {
        let texts = self.take_list(path);
        let effective: Vec<String> = texts.iter().map(|text| show(text)).collect();
        self.record_effective(path, format!("{effective:?}"));
        self.parse_list(path, &texts, parse)
    }

    /// Reads a whole number in a range that `T` can represent. The default is the lower bound.
    pub(super) fn number<T: TryFrom<u64> + Default>(&mut self, path: &str, range: RangeInclusive<u64>) -> T {
        let number = match self.take(path) {
            Some(Value::Integer(number)) => u64::try_from(number).ok(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        match number {
            Some(number) => self.record_effective(path, number.to_string()),
            None => {
                self.problems.add(path, format!("must be a whole number from {} to {}", range.start(), range.end()));
            }
        }
        T::try_from(number.unwrap_or(*range.start())).unwrap_or_default()
    }

    /// Reads a number of seconds.
    pub(super) fn seconds(&mut self, path: &str, range: RangeInclusive<u64>) -> Duration {
        Duration::from_secs(self.number(path, range))
    }

    /// Reads a number of milliseconds.
    pub(super) fn millis(&mut self, path: &str, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.number(path, range))
    }

    /// Reads a number of days.
    pub(super) fn days(&mut self, path: &str, range: RangeInclusive<u64>) -> Duration {
        DAY * self.number::<u32>(path, range)
    }

    /// Reads true or false. The default is false.
    pub(super) fn flag(&mut self, path: &str) -> bool {
        let flag = match self.take(path) {
            Some(Value::Boolean(flag)) => Some(flag),
            Some(Value::String(text)) => text.trim().parse().ok(),
            _ => None,
        };
        match flag {
            Some(flag) => self.record_effective(path, flag.to_string()),
            None => self.problems.add(path, "must be true or false"),
        }
        flag.unwrap_or(false)
    }

    /// Adds a problem for every key that was not read.
    pub(super) fn refuse_unknown_keys(&mut self) {
        for (name, value) in &self.table {
            match value {
                Value::Table(section) => {
                    for key in section.keys() {
                        self.problems.add(format!("{name}.{key}"), UNKNOWN);
                    }
                }
                _ if SECTIONS.contains(&name.as_str()) => {
                    self.problems.add(name, format!("must be a section, [{name}]"));
                }
                _ => self.problems.add(name, UNKNOWN),
            }
        }
    }

    /// Records the effective value of a setting, for `check-config --show`.
    fn record_effective(&mut self, path: &str, value: impl Into<String>) {
        self.effective.push((path.to_owned(), value.into()));
    }

    /// Removes the value of a setting from the table.
    fn take(&mut self, path: &str) -> Option<Value> {
        match path.split_once('.') {
            None => self.table.remove(path),
            Some((section, key)) => self.table.get_mut(section)?.as_table_mut()?.remove(key),
        }
    }

    fn take_text(&mut self, path: &str) -> String {
        match self.take(path) {
            Some(Value::String(text)) => text.trim().to_owned(),
            None => String::new(),
            Some(_) => {
                self.problems.add(path, "must be a text in quotes");
                String::new()
            }
        }
    }

    /// Reads the file named by the key with the suffix `_file`, if that key is set.
    fn take_file(&mut self, path: &str) -> Option<String> {
        let file_key = format!("{path}_file");
        let file = Some(self.take_text(&file_key)).filter(|file| !file.is_empty())?;
        self.record_effective(&file_key, format!("{file:?}"));
        match fs::read_to_string(&file) {
            Ok(text) if text.trim().is_empty() => {
                self.problems.add(&file_key, format!("names a file that is empty: {file}"));
            }
            Ok(text) => return Some(text.trim().to_owned()),
            Err(error) => self.problems.add(&file_key, format!("cannot be read: {file}: {error}")),
        }
        None
    }

    /// Removes a list and returns its non-empty items.
    fn take_list(&mut self, path: &str) -> Vec<String> {
        let texts: Option<Vec<String>> = match self.take(path) {
            Some(Value::String(text)) => Some(text.split(',').map(|item| item.trim().to_owned()).collect()),
            Some(Value::Array(items)) => items.into_iter().map(|item| Some(item.as_str()?.to_owned())).collect(),
            Some(_) => None,
            None => Some(Vec::new()),
        };
        self.problems.require(texts.is_some(), path, "must be a list of texts");
        texts.into_iter().flatten().filter(|text| !text.is_empty()).collect()
    }

    /// Parses the items of a list. The problem of an item names its index.
    fn parse_list<T>(
        &mut self,
        path: &str,
        texts: &[String],
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Vec<T> {
        let mut item = |(index, text): (usize, &String)| {
            parse(text).map_err(|message| self.problems.add(format!("{path}[{index}]"), message)).ok()
        };
        texts.iter().enumerate().filter_map(&mut item).collect()
    }
}
