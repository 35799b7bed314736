//! Takes typed values out of the merged table and collects every problem. Keys that nobody took are unknown.
//!
//! Values from the environment are text, so numbers, flags and lists are read from text too.

use std::ops::RangeInclusive;
use std::str::FromStr;

use config::{Map, Value, ValueKind};
use secrecy::{ExposeSecret, SecretString};

use super::problem::Problems;

/// The names that are sections and not keys.
const SECTIONS: [&str; 10] = ["server", "store", "admin", "authority", "ovse", "webhooks", "upstreams", "flows", "limits", "telemetry"];

/// The table that is being read, and what was found so far.
#[derive(Debug)]
pub(super) struct Reader {
    table: Map<String, Value>,
    /// Every problem so far.
    pub problems: Problems,
    /// Every key with its value as it can be shown: secrets are not.
    pub effective: Vec<(String, String)>,
}

impl Reader {
    /// Starts on a merged table.
    pub(super) fn new(table: Map<String, Value>) -> Self {
        Self { table, problems: Problems::default(), effective: Vec::new() }
    }

    /// A text; empty when it is not set.
    pub(super) fn text(&mut self, path: &str) -> String {
        let text = self.take_text(path);
        self.show(path, format!("{text:?}"));
        text
    }

    /// A text that must be given a meaning; `None` when it is not set or has none.
    pub(super) fn parsed_by<T>(&mut self, path: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text(path);
        if text.is_empty() {
            return None;
        }
        parse(&text).map_err(|message| self.problems.add(path, message)).ok()
    }

    /// A text that must be set and have a meaning; `stand_in` takes its place after a problem, so
    /// that the rules between settings are checked all the same.
    pub(super) fn required<T: FromStr>(&mut self, path: &str, meaning: &str, stand_in: T) -> T {
        let text = self.text(path);
        text.parse().unwrap_or_else(|_| {
            self.problems.add(path, format!("must be {meaning}"));
            stand_in
        })
    }

    /// A text that is not shown.
    pub(super) fn secret(&mut self, path: &str) -> Option<SecretString> {
        let text = self.take_text(path);
        self.show(path, if text.is_empty() { "\"\"".to_owned() } else { "\"[set, not shown]\"".to_owned() });
        (!text.is_empty()).then(|| SecretString::from(text))
    }

    /// A secret with a meaning; the problem does not repeat it.
    pub(super) fn parsed_secret<T>(&mut self, path: &str, parse: impl Fn(&str) -> Result<T, &'static str>) -> Option<T> {
        let secret = self.secret(path)?;
        parse(secret.expose_secret()).map_err(|message| self.problems.add(path, message)).ok()
    }

    /// Secrets with a meaning.
    pub(super) fn parsed_secrets<T>(&mut self, path: &str, parse: impl Fn(&str) -> Result<T, &'static str>) -> Vec<T> {
        let texts = self.take_list(path);
        self.show(path, format!("[{} set, not shown]", texts.len()));
        self.parse_list(path, &texts, parse)
    }

    /// A list of texts with a meaning.
    pub(super) fn list<T>(&mut self, path: &str, parse: impl Fn(&str) -> Result<T, &'static str>) -> Vec<T> {
        let texts = self.take_list(path);
        self.show(path, format!("{texts:?}"));
        self.parse_list(path, &texts, parse)
    }

    /// A whole number within bounds; the lower one stands in for it after a problem.
    pub(super) fn number(&mut self, path: &str, range: RangeInclusive<u64>) -> u64 {
        let number = match self.take(path) {
            Some(ValueKind::I64(number)) => u64::try_from(number).ok(),
            Some(ValueKind::U64(number)) => Some(number),
            Some(ValueKind::String(text)) => text.trim().parse().ok(),
            Some(_) | None => None,
        };
        if let Some(number) = number.filter(|number| range.contains(number)) {
            self.show(path, number.to_string());
            return number;
        }
        self.problems.add(path, format!("must be a whole number from {} to {}", range.start(), range.end()));
        *range.start()
    }

    /// A number that counts things in memory.
    pub(super) fn count(&mut self, path: &str, range: RangeInclusive<u64>) -> usize {
        usize::try_from(self.number(path, range)).unwrap_or(usize::MAX)
    }

    /// True or false; false after a problem.
    pub(super) fn flag(&mut self, path: &str) -> bool {
        let flag = match self.take(path) {
            Some(ValueKind::Boolean(flag)) => Some(flag),
            Some(ValueKind::String(text)) => text.trim().parse().ok(),
            Some(_) | None => None,
        };
        match flag {
            Some(flag) => self.show(path, flag.to_string()),
            None => self.problems.add(path, "must be true or false"),
        }
        flag.unwrap_or(false)
    }

    /// Adds a problem for every key that nobody took.
    pub(super) fn refuse_unknown_keys(&mut self) {
        let mut unknown: Vec<String> = Vec::new();
        for (name, value) in &self.table {
            match &value.kind {
                ValueKind::Table(section) => unknown.extend(section.keys().map(|key| format!("{name}.{key}"))),
                _ if SECTIONS.contains(&name.as_str()) => self.problems.add(name, format!("must be a section, [{name}]")),
                _ => unknown.push(name.clone()),
            }
        }
        unknown.sort_unstable();
        for key in unknown {
            self.problems.add(key, "is not a setting; config/default.toml lists them all");
        }
    }

    fn show(&mut self, path: &str, value: String) {
        self.effective.push((path.to_owned(), value));
    }

    fn take(&mut self, path: &str) -> Option<ValueKind> {
        let (section, key) = match path.split_once('.') {
            None => return self.table.remove(path).map(|value| value.kind),
            Some(parts) => parts,
        };
        match self.table.get_mut(section).map(|value| &mut value.kind) {
            Some(ValueKind::Table(table)) => table.remove(key).map(|value| value.kind),
            _ => None,
        }
    }

    fn take_text(&mut self, path: &str) -> String {
        match self.take(path) {
            Some(ValueKind::String(text)) => text.trim().to_owned(),
            None => String::new(),
            Some(_) => {
                self.problems.add(path, "must be a text in quotes");
                String::new()
            }
        }
    }

    fn take_list(&mut self, path: &str) -> Vec<String> {
        let texts = match self.take(path) {
            Some(ValueKind::String(text)) => Some(text.split(',').map(|item| item.trim().to_owned()).collect()),
            Some(ValueKind::Array(items)) => items.into_iter().map(|item| item.into_string().ok()).collect::<Option<Vec<String>>>(),
            Some(_) => None,
            None => Some(Vec::new()),
        };
        let texts = texts.unwrap_or_else(|| {
            self.problems.add(path, "must be a list of texts");
            Vec::new()
        });
        texts.into_iter().filter(|text| !text.is_empty()).collect()
    }

    fn parse_list<T>(&mut self, path: &str, texts: &[String], parse: impl Fn(&str) -> Result<T, &'static str>) -> Vec<T> {
        let mut values = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            match parse(text) {
                Ok(value) => values.push(value),
                Err(message) => self.problems.add(format!("{path}[{index}]"), message),
            }
        }
        values
    }
}
