//! The fields of a request: each is taken out of the body by name and read by its own parser, which
//! says what it would accept. Nothing hides anything: all problems are told at once.
//!
//! A field of several words is read as `face_auth` and as `faceAuth`, and what is wrong with it is
//! told under the name that was sent, with its path: `signerInfo[1].signerName`. Objects and lists
//! are read the same way on every level; what is large is moved out of the body, never copied.

mod spelling;
mod values;

use sakshi_domain::invalid::Invalid;
use sakshi_service::error::ServiceError;
pub use spelling::Spellings;
use spelling::is_spelling;
pub use values::{flag, one_of, string, text, whole, words};

use super::error::ApiError;
use super::json::Json;

/// Characters of a field's name that are told again; ours are shorter.
const NAME_CHARS_TOLD: usize = 128;

/// What is wrong with a value.
#[derive(Debug)]
pub enum Problem {
    /// With the value itself: a sentence that says what would be accepted.
    Here(String),
    /// With parts of it, by their paths.
    Inside(Invalid),
}

impl From<&str> for Problem {
    fn from(sentence: &str) -> Self {
        Self::Here(sentence.to_owned())
    }
}

impl From<String> for Problem {
    fn from(sentence: String) -> Self {
        Self::Here(sentence)
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::Inside(invalid)
    }
}

/// The fields of one body that are still to be read, and what is wrong with the others.
#[derive(Debug, Default)]
pub struct Fields {
    members: Vec<(String, Json)>,
    spellings: Spellings,
    invalid: Invalid,
}

impl Fields {
    /// Of a JSON document.
    ///
    /// # Errors
    /// It is not JSON, or no object.
    pub fn of(bytes: &[u8]) -> Result<Self, ApiError> {
        match Json::read(bytes)? {
            Json::Object(members) => Ok(Self { members, ..Self::default() }),
            _ => Err(Invalid::one("body", "must be a JSON object").into()),
        }
    }

    /// Of values that came in another form than JSON and stand for these.
    #[must_use]
    pub fn given(members: Vec<(String, Json)>) -> Self {
        Self { members, ..Self::default() }
    }

    /// A field that must be there; `null` is not.
    pub fn required<T>(&mut self, name: &'static str, parse: impl FnOnce(&Json) -> Result<T, Problem>) -> Option<T> {
        match self.take(name) {
            None | Some(Json::Null) => {
                self.invalid.add(name, "is required");
                None
            }
            Some(value) => self.judged(name, parse(&value)),
        }
    }

    /// A field that may be absent or `null`. `None` also when it is not acceptable, which is noted.
    pub fn optional<T>(&mut self, name: &'static str, parse: impl FnOnce(&Json) -> Result<T, Problem>) -> Option<T> {
        match self.take(name) {
            None | Some(Json::Null) => None,
            Some(value) => self.judged(name, parse(&value)),
        }
    }

    /// A field of a change: absent leaves things as they are, `null` is not acceptable.
    pub fn changed<T>(&mut self, name: &'static str, parse: impl FnOnce(&Json) -> Result<T, Problem>) -> Option<T> {
        match self.take(name)? {
            Json::Null => {
                self.invalid.add(name, "must not be null; leave it out to keep what is set");
                None
            }
            value => self.judged(name, parse(&value)),
        }
    }

    /// A field of a change that `null` removes.
    pub fn replaced<T>(&mut self, name: &'static str, parse: impl FnOnce(&Json) -> Result<T, Problem>) -> Option<Option<T>> {
        match self.take(name)? {
            Json::Null => Some(None),
            value => self.judged(name, parse(&value)).map(Some),
        }
    }

    /// Notes what is wrong with several fields together.
    pub fn agreed<T>(&mut self, read: Result<T, Invalid>) -> Option<T> {
        read.map_err(|invalid| self.invalid.extend(invalid)).ok()
    }

    /// How the fields read so far were spelled.
    #[must_use]
    pub fn spellings(&self) -> Spellings {
        self.spellings.clone()
    }

    /// A string, moved out of the body; whether it must be there and what it may say is judged later.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        match self.take(name)? {
            Json::Text(text) => Some(text),
            Json::Null => None,
            _ => self.judged(name, Err("must be a string".into())),
        }
    }

    /// A list of strings, moved out of the body; an item that is none is noted, and stands as an empty one.
    pub fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        self.items(name, |fields, path, item| match item {
            Json::Text(text) => text,
            _ => fields.judged(path, Err("must be a string".into())).unwrap_or_default(),
        })
    }

    /// An object, read by its own fields.
    pub fn object<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        match self.take(name)? {
            Json::Null => None,
            value => self.part(name, value, read),
        }
    }

    /// A list of objects, each read by its own fields; an item that is none is noted, and stands as an empty one.
    pub fn objects<T: Default>(&mut self, name: &'static str, mut read: impl FnMut(&mut Self) -> T) -> Option<Vec<T>> {
        self.items(name, |fields, path, item| fields.part(path, item, &mut read).unwrap_or_default())
    }

    fn items<T>(&mut self, name: &'static str, mut read: impl FnMut(&mut Self, &str, Json) -> T) -> Option<Vec<T>> {
        match self.take(name)? {
            Json::List(items) => {
                let numbered = items.into_iter().enumerate();
                Some(numbered.map(|(index, item)| read(self, &format!("{name}[{index}]"), item)).collect())
            }
            Json::Null => None,
            _ => self.judged(name, Err("must be an array".into())),
        }
    }

    /// The object at this path, and what is wrong in it.
    fn part<T>(&mut self, path: &str, value: Json, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let Json::Object(members) = value else { return self.judged(path, Err("must be an object".into())) };
        let mut part = Self { members, ..Self::default() };
        let value = read(&mut part);
        part.refuse_the_rest();
        for problem in part.invalid.fields() {
            self.invalid.add(format!("{path}.{}", problem.field), problem.message.clone());
        }
        self.spellings.extend(path, part.spellings);
        Some(value)
    }

    fn refuse_the_rest(&mut self) {
        for (name, _) in std::mem::take(&mut self.members) {
            let told: String = name.chars().take(NAME_CHARS_TOLD).collect();
            self.invalid.add(told, "is not a field of this request");
        }
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Every problem noted, and every member that nothing has asked for.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, ApiError> {
        self.refuse_the_rest();
        self.spellings.told(&self.invalid).or_ok()?;
        value.ok_or_else(|| ApiError::Service(ServiceError::Internal("a field without a value passed its checks".to_owned())))
    }

    fn judged<T>(&mut self, name: &str, read: Result<T, Problem>) -> Option<T> {
        match read {
            Ok(value) => return Some(value),
            Err(Problem::Here(sentence)) => self.invalid.add(name, sentence),
            Err(Problem::Inside(invalid)) => self.invalid.extend(invalid),
        }
        None
    }

    fn take(&mut self, name: &'static str) -> Option<Json> {
        let mut taken: Option<(String, Json)> = None;
        for (sent, value) in self.members.extract_if(.., |(sent, _)| is_spelling(sent, name)) {
            match &taken {
                None => taken = Some((sent, value)),
                Some((first, _)) if *first == sent => self.invalid.add(name, "is given more than once"),
                Some(_) => self.invalid.add(name, format!("is given as {sent} too; give one of them")),
            }
        }
        let (sent, value) = taken?;
        self.spellings.remember(name, sent);
        Some(value)
    }
}

#[cfg(test)]
mod tests;
