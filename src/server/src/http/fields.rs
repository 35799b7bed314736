//! The fields of a request: each is taken out of the body by name and read by its own parser, which
//! says what it would accept. Nothing hides anything: all problems are told at once.
//!
//! A field of several words is read as `face_auth` and as `faceAuth`, and what is wrong with it is
//! told under the name that was sent.

use std::ops::RangeInclusive;

use sakshi_domain::invalid::Invalid;

use super::error::ApiError;
use super::json::Json;

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

    /// Ends the reading.
    ///
    /// # Errors
    /// Every problem noted, and every member that nothing has asked for.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, ApiError> {
        for (name, _) in std::mem::take(&mut self.members) {
            self.invalid.add(name, "is not a field of this request");
        }
        self.spellings.told(&self.invalid).or_ok()?;
        value.ok_or_else(|| ApiError::Internal("a field without a value passed its checks".to_owned()))
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

/// Fields that were sent under another spelling than the one the code uses.
#[derive(Clone, Debug, Default)]
pub struct Spellings(Vec<(&'static str, String)>);

impl Spellings {
    fn remember(&mut self, name: &'static str, sent: String) {
        if sent != name {
            self.0.push((name, sent));
        }
    }

    /// The problems under the names that were sent, one for each: the first one found.
    #[must_use]
    pub fn told(&self, found: &Invalid) -> Invalid {
        let mut told = Invalid::none();
        for problem in found.fields() {
            let root = problem.field.find(['.', '[']).unwrap_or(problem.field.len());
            let (name, rest) = problem.field.split_at(root);
            let sent = self.0.iter().find_map(|(known, sent)| (*known == name).then_some(sent.as_str()));
            let field = sent.map_or_else(|| problem.field.clone(), |sent| format!("{sent}{rest}"));
            if told.fields().iter().all(|known| known.field != field) {
                told.add(field, problem.message.clone());
            }
        }
        told
    }
}

/// Whether `sent` is the name, or the name in the other of `face_auth` and `faceAuth`.
fn is_spelling(sent: &str, name: &str) -> bool {
    let snake = || !sent.contains("__") && !sent.contains(|letter: char| letter.is_ascii_uppercase());
    sent == name || camel(name).eq(sent.chars()) || (camel(sent).eq(name.chars()) && snake())
}

fn camel(name: &str) -> impl Iterator<Item = char> {
    name.split('_').enumerate().flat_map(|(at, word)| {
        let first = word.chars().take(1).map(move |letter| if at == 0 { letter } else { letter.to_ascii_uppercase() });
        first.chain(word.chars().skip(1))
    })
}

/// Reads a string, and what it says.
pub fn text<T, P: Into<Problem>>(parse: impl FnOnce(&str) -> Result<T, P>) -> impl FnOnce(&Json) -> Result<T, Problem> {
    move |value| match value {
        Json::Text(text) => parse(text).map_err(Into::into),
        _ => Err("must be a string".into()),
    }
}

/// Reads a string, whatever it says.
///
/// # Errors
/// It is something else.
pub fn string(value: &Json) -> Result<String, Problem> {
    text(|text| Ok::<_, Problem>(text.to_owned()))(value)
}

/// Reads a string of 1 to `most` characters, none of them a control character.
pub fn words(most: usize) -> impl FnOnce(&Json) -> Result<String, Problem> {
    text(move |text| {
        let good = (1..=most).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        good.then(|| text.to_owned()).ok_or_else(|| format!("must be 1 to {most} characters without control characters"))
    })
}

/// Reads one of these words.
pub fn one_of<T: Copy, const N: usize>(known: [(&'static str, T); N]) -> impl FnOnce(&Json) -> Result<T, Problem> {
    move |value| {
        let found = known.iter().find(|(word, _)| matches!(value, Json::Text(text) if text == word));
        let words = || known.map(|(word, _)| word).join(" or ");
        found.map(|(_, meaning)| *meaning).ok_or_else(|| format!("must be {}", words()).into())
    }
}

/// Reads `true` or `false`.
///
/// # Errors
/// It is something else.
pub fn flag(value: &Json) -> Result<bool, Problem> {
    match value {
        Json::Flag(flag) => Ok(*flag),
        _ => Err("must be true or false".into()),
    }
}

/// Reads a whole number within bounds.
pub fn whole(bounds: RangeInclusive<u64>) -> impl FnOnce(&Json) -> Result<u64, Problem> {
    move |value| {
        let number = if let Json::Whole(number) = value { u64::try_from(*number).ok() } else { None };
        let good = number.filter(|number| bounds.contains(number));
        good.ok_or_else(|| format!("must be a whole number from {} to {}", bounds.start(), bounds.end()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(body: &str, read: impl FnOnce(&mut Fields)) -> Vec<(String, String)> {
        let mut fields = Fields::of(body.as_bytes()).unwrap();
        read(&mut fields);
        match fields.finish(Some(())) {
            Ok(()) => Vec::new(),
            Err(ApiError::Validation(invalid)) => {
                invalid.fields().iter().map(|field| (field.field.clone(), field.message.clone())).collect()
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_field_is_read_in_either_spelling_and_in_no_other() {
        for (sent, name) in
            [("face_auth", "face_auth"), ("faceAuth", "face_auth"), ("txnId", "txnId"), ("txn_id", "txnId"), ("name", "name")]
        {
            assert!(is_spelling(sent, name), "{sent}");
        }
        for (sent, name) in [
            ("FaceAuth", "face_auth"),
            ("face_Auth", "face_auth"),
            ("faceauth", "face_auth"),
            ("face__auth", "face_auth"),
            ("face-auth", "face_auth"),
            ("txn__id", "txnId"),
            ("txn_Id", "txnId"),
            ("TxnId", "txnId"),
            ("Name", "name"),
            ("", "name"),
        ] {
            assert!(!is_spelling(sent, name), "{sent}");
        }
    }

    #[test]
    fn every_problem_is_told_under_the_name_that_was_sent() {
        let read = |fields: &mut Fields| {
            fields.required("face_auth", flag);
            fields.optional("max_guests", whole(1..=9));
            fields.changed("time_zone", words(3));
            fields.replaced("kind_word", one_of([("grant", 1), ("adjust", 2)]));
            fields.agreed::<()>(Err(Invalid::one("list_of[2].part", "is odd")));
        };
        let told = |field: &str, message: &str| (field.to_owned(), message.to_owned());
        for (body, expected) in [
            (
                r#"{"faceAuth": 1, "x": {}, "maxGuests": 0, "time_zone": "long", "kindWord": "take", "y": 1}"#,
                vec![
                    told("faceAuth", "must be true or false"),
                    told("maxGuests", "must be a whole number from 1 to 9"),
                    told("time_zone", "must be 1 to 3 characters without control characters"),
                    told("kindWord", "must be grant or adjust"),
                    told("list_of[2].part", "is odd"),
                    told("x", "is not a field of this request"),
                    told("y", "is not a field of this request"),
                ],
            ),
            (
                r#"{"face_auth": null, "max_guests": 2.0, "timeZone": null, "kind_word": null}"#,
                vec![
                    told("face_auth", "is required"),
                    told("max_guests", "must be a whole number from 1 to 9"),
                    told("timeZone", "must not be null; leave it out to keep what is set"),
                    told("list_of[2].part", "is odd"),
                ],
            ),
            (
                r#"{"faceAuth": true, "face_auth": 7, "max_guests": 2, "max_guests": 3}"#,
                vec![
                    told("faceAuth", "is given as face_auth too; give one of them"),
                    told("max_guests", "is given more than once"),
                    told("list_of[2].part", "is odd"),
                ],
            ),
        ] {
            assert_eq!(problems(body, read), expected, "{body}");
        }
    }

    #[test]
    fn a_part_is_told_under_the_spelling_of_its_whole() {
        let found = problems(r#"{"listOf": []}"#, |fields| {
            fields.optional("list_of", |_| Err::<(), _>(Invalid::one("list_of[0]", "is missing").into()));
        });
        assert_eq!(found, [("listOf[0]".to_owned(), "is missing".to_owned())]);
    }

    #[test]
    fn a_body_that_is_no_object_is_told_as_such() {
        for body in ["[]", "7", "null", "\"text\"", "[[1], 2]"] {
            let Err(ApiError::Validation(invalid)) = Fields::of(body.as_bytes()) else { panic!("{body}") };
            assert_eq!(invalid, Invalid::one("body", "must be a JSON object"));
        }
    }

    #[test]
    fn what_was_read_is_not_shown() {
        let fields = Fields::of(br#"{"name_hint": "Asha"}"#).unwrap();
        assert!(!format!("{fields:?}").contains("Asha"));
    }
}
