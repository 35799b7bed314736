//! Reads a JSON object field by field, and notes every problem under its path. Large values are moved out of the body,
//! never copied.
//!
//! Only the first problem of each field is reported, and none of its parts after it, in the order of the declaration. A
//! client's request may spell a field as `face_auth` or as `faceAuth`, and is answered in its own spelling. A report
//! has one spelling.

use std::borrow::Cow;

use sakshi_domain::http_url::{HttpUrl, WebhookUrl};
use sakshi_domain::invalid::{FieldError, Invalid};
use sakshi_domain::limits::{BODY_VALUES_MAX, REPORT_BYTES_MAX, REPORT_VALUES_MAX};
use sakshi_domain::time::Timestamp;

use crate::describe::Describe;
use crate::json::{Json, JsonError, JsonRefusal, ValuesLeft, read};
use crate::spelling::{Lookup, Spellings, first_of_each, is_spelling, name_of};

/// Characters of an unknown field's name that a refusal repeats; ours are shorter.
const NAME_CHARS_TOLD: usize = 128;

/// Number of fields that most bodies leave out; reserves room for their names.
const FIELDS_LEFT_OUT: usize = 8;

/// A field type that is read from received JSON.
pub trait Field: Describe + Sized {
    /// Reads a value that is present and not null; notes its problems.
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self>;

    /// Returns the value of an absent field.
    fn absent(place: &mut Place<'_>) -> Option<Self> {
        place.refuse("is required")
    }

    /// Returns the value of a null field.
    fn null(place: &mut Place<'_>) -> Option<Self> {
        Self::absent(place)
    }

    /// Reads the field from its object.
    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.take(name)
    }
}

/// A body that is read.
pub trait Body: Sized {
    /// Reads the fields of an object; notes their problems.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;
}

/// Rules for the URLs that a deployment accepts.
pub trait UrlRules {
    /// Accepts a URL that a webhook is sent to.
    ///
    /// # Errors
    /// The form that such a URL must have.
    fn webhook(&self, text: &str) -> Result<WebhookUrl, &'static str>;

    /// Accepts a URL that a person's browser is sent to.
    ///
    /// # Errors
    /// The form that such a URL must have.
    fn page(&self, text: &str) -> Result<HttpUrl, &'static str>;
}

/// Context of a request, on which its reading depends.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// The URLs that are accepted.
    pub urls: &'c dyn UrlRules,
    /// Time of the request.
    pub now: Timestamp,
}

/// Reason why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// The body is empty.
    Empty,
    /// It is not JSON, or exceeds the limits of its nesting or size.
    Json(JsonError),
    /// It is JSON, but not an object.
    NoObject,
}

/// The members of an object as a client sent them, as JSON or in another form.
#[derive(Debug, Default)]
pub struct Sent(pub Vec<(String, Json)>);

impl Sent {
    /// Reads a JSON object of at most 10,000 values.
    ///
    /// # Errors
    /// It is not one.
    pub fn read(bytes: &[u8]) -> Result<Self, NotRead> {
        if bytes.trim_ascii().is_empty() {
            return Err(NotRead::Empty);
        }
        match read(bytes, usize::MAX, &ValuesLeft::new(BODY_VALUES_MAX)) {
            Ok(Json::Object(members)) => Ok(Self(members)),
            Ok(_) => Err(NotRead::NoObject),
            Err(error) => Err(NotRead::Json(error)),
        }
    }

    /// Reads the request.
    ///
    /// # Errors
    /// Every field that is invalid, missing or unknown.
    pub fn request<B: Body>(self, context: Context<'_>) -> Result<B, Invalid> {
        self.spelled(context).map(|(body, _)| body)
    }

    /// Reads the request, and returns its spelling too.
    ///
    /// # Errors
    /// As [`Sent::request`].
    pub fn spelled<B: Body>(self, context: Context<'_>) -> Result<(B, Spellings), Invalid> {
        whole(Some(context), self.0, B::read)
    }

    /// Reads a request whose fields a table names, with `read`.
    ///
    /// # Errors
    /// As [`Sent::request`].
    pub(crate) fn read_by<'c, T>(
        self,
        context: Context<'c>,
        read: impl FnOnce(&mut Fields<'c>) -> Option<T>,
    ) -> Result<T, Invalid> {
        whole(Some(context), self.0, read).map(|(body, _)| body)
    }
}

/// Reads a report, or a body that was reported and stored.
///
/// # Errors
/// Every problem by its path; `body` for the document itself.
pub fn read_report<B: Body>(bytes: &[u8]) -> Result<B, Invalid> {
    let refused = |sentence: String| Err(Invalid::one("body", sentence));
    if bytes.len() > REPORT_BYTES_MAX {
        return refused(format!("must be at most {REPORT_BYTES_MAX} bytes"));
    }
    match read(bytes, usize::MAX, &ValuesLeft::new(REPORT_VALUES_MAX)) {
        Ok(Json::Object(members)) => whole(None, members, B::read).map(|(body, _)| body),
        Ok(_) => refused("must be a JSON object".to_owned()),
        Err(JsonError { refusal: JsonRefusal::TooManyValues, .. }) => {
            refused(format!("must hold at most {REPORT_VALUES_MAX} values"))
        }
        Err(JsonError { line, column, .. }) => refused(format!("is not JSON: line {line}, column {column}")),
    }
}

fn whole<'c, T>(
    context: Option<Context<'c>>,
    members: Vec<(String, Json)>,
    read: impl FnOnce(&mut Fields<'c>) -> Option<T>,
) -> Result<(T, Spellings), Invalid> {
    let (body, found, spellings) = Fields::read_body(context, members, read);
    first_of_each(found).or_ok()?;
    body.map(|body| (body, spellings)).ok_or_else(|| Invalid::one("body", "is incomplete"))
}

/// The place of a value that is being read, with the problems of the value and its parts.
pub struct Place<'c> {
    /// Context of a request; a report has none.
    pub(crate) context: Option<Context<'c>>,
    /// Problems by paths below the value: empty, `[2]`, `.name`.
    found: Vec<FieldError>,
}

impl<'c> Place<'c> {
    /// Notes what would be accepted instead of the value.
    pub fn refuse<T>(&mut self, sentence: impl Into<String>) -> Option<T> {
        self.refuse_part(String::new(), sentence)
    }

    /// Notes what would be accepted instead of a part of the value.
    pub(crate) fn refuse_part<T>(&mut self, path: String, sentence: impl Into<String>) -> Option<T> {
        self.found.push(FieldError { field: path, message: sentence.into() });
        None
    }

    /// Returns the value of a result, or notes its sentence.
    pub fn accept<T>(&mut self, read: Result<T, impl Into<Cow<'static, str>>>) -> Option<T> {
        read.map_err(|sentence| self.refuse::<T>(sentence.into().into_owned())).ok()
    }

    /// Reads a text.
    pub fn text(&mut self, value: Json) -> Option<String> {
        if let Json::Text(text) = value { Some(text) } else { self.refuse("must be a string") }
    }

    /// Reads a text and parses it.
    pub fn parsed<T, E: Into<Cow<'static, str>>>(
        &mut self,
        value: Json,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(value)?;
        self.accept(parse(&text))
    }

    /// Reads one of two words, and returns its meaning.
    pub(crate) fn one_of<T: Copy>(&mut self, value: &Json, known: [(&str, T); 2]) -> Option<T> {
        let found = known.iter().find(|(word, _)| matches!(value, Json::Text(text) if text == word));
        self.accept(
            found
                .map(|(_, meaning)| *meaning)
                .ok_or_else(|| format!("must be {}", known.map(|(word, _)| word).join(" or "))),
        )
    }

    /// Reads the items of a list of `least` to `most` entries.
    pub(crate) fn list(&mut self, value: Json, least: usize, most: usize) -> Option<Vec<Json>> {
        match value {
            Json::List(items) if (least..=most).contains(&items.len()) => Some(items),
            Json::List(_) => {
                let entries = if self.context.is_some() { "entries" } else { "objects" };
                self.refuse(format!("must hold {least} to {most} {entries}"))
            }
            _ => self.refuse("must be an array"),
        }
    }

    /// Reads each item of a list; `None` if one of them is invalid.
    pub(crate) fn items<T>(
        &mut self,
        items: Vec<Json>,
        mut read: impl FnMut(&mut Self, Json) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut list = Some(Vec::with_capacity(items.len()));
        for (index, item) in items.into_iter().enumerate() {
            let known = self.found.len();
            let read = read(self, item);
            self.below(known, || format!("[{index}]"));
            list = list.zip(read).map(|(mut list, item)| {
                list.push(item);
                list
            });
        }
        list
    }

    /// Reads an object by its own fields.
    pub(crate) fn object<B: Body>(&mut self, value: Json) -> Option<B> {
        let Json::Object(members) = value else { return self.refuse("must be an object") };
        let (body, found, _) = Fields::read_body(self.context, members, B::read);
        let known = self.found.len();
        self.found.extend(found);
        self.below(known, || ".".to_owned());
        body
    }

    /// Puts the problems after the first `known` below a part.
    fn below(&mut self, known: usize, part: impl FnOnce() -> String) {
        if let Some(found @ [_, ..]) = self.found.get_mut(known..) {
            let part = part();
            found.iter_mut().for_each(|problem| problem.field.insert_str(0, &part));
        }
    }
}

/// The members of one object that are still unread, and the problems of the others.
pub struct Fields<'c> {
    place: Place<'c>,
    members: Vec<(String, Json)>,
    /// In the order of the fields.
    asked: Spellings,
}

impl<'c> Fields<'c> {
    /// Reads a body from these members. Returns its problems in the order of the fields, and its spelling.
    fn read_body<T>(
        context: Option<Context<'c>>,
        members: Vec<(String, Json)>,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> (Option<T>, Vec<FieldError>, Spellings) {
        let asked = Spellings(Vec::with_capacity(members.len() + FIELDS_LEFT_OUT));
        let mut fields = Self { place: Place { context, found: Vec::new() }, members, asked };
        let body = read(&mut fields);
        let Self { place: Place { mut found, .. }, members, asked } = fields;
        found.sort_by_cached_key(|problem| asked.place_of(name_of(&problem.field).0));
        // Members that no field reads come last.
        for (name, _) in members {
            let sentence = match context {
                Some(_) => "is not a field of this request",
                None if asked.0.iter().any(|asked| asked.name == name) => "is given twice",
                None => "is not a field of this report",
            };
            found
                .push(FieldError { field: name.chars().take(NAME_CHARS_TOLD).collect(), message: sentence.to_owned() });
        }
        (body, found, asked)
    }

    /// Returns the context of a request; a report has none.
    #[must_use]
    pub const fn context(&self) -> Option<Context<'c>> {
        self.place.context
    }

    /// Returns true if a problem was found so far, or members are still unread.
    pub(crate) const fn has_problems(&self) -> bool {
        !self.place.found.is_empty() || !self.members.is_empty()
    }

    /// Reads a field by its type.
    pub fn take<T: Field>(&mut self, name: &'static str) -> Option<T> {
        self.read(name, |place, value| match value {
            None => T::absent(place),
            Some(Json::Null) => T::null(place),
            Some(value) => T::read(value, place),
        })
    }

    /// Reads a text that is validated together with other fields; `None` if it is absent or null.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |place, value| match value? {
            Json::Null => None,
            value => place.text(value),
        })
    }

    /// Reads a field; `read` gets `None` for one that was not sent.
    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Place<'c>, Option<Json>) -> Option<T>,
    ) -> Option<T> {
        let (sent, value) = self.remove(name).unzip();
        let has_value = !matches!(value, None | Some(Json::Null));
        let known = self.place.found.len();
        let read = read(&mut self.place, value);
        self.place.below(known, || sent.as_deref().unwrap_or(name).to_owned());
        self.asked.0.push(Lookup { name, sent, has_value });
        read
    }

    /// Notes a problem with a field, or with a part of one as `name[2]`.
    pub fn refuse(&mut self, path: &str, sentence: impl Into<String>) {
        self.place.refuse_part::<()>(self.asked.sent(path), sentence);
    }

    /// Returns the value, or notes the problems of several fields together.
    pub fn agreed<T>(&mut self, read: Result<T, Invalid>) -> Option<T> {
        read.map_err(|invalid| {
            invalid.fields().iter().for_each(|problem| self.refuse(&problem.field, &*problem.message));
        })
        .ok()
    }

    /// Notes a missing field that is required under this condition.
    pub(crate) fn require_if<T>(&mut self, condition: bool, name: &'static str, read: Option<&Option<T>>) {
        if condition && read.is_some_and(Option::is_none) {
            self.refuse(name, "is required");
        }
    }

    /// Notes a missing or empty list that must have entries.
    pub(crate) fn require_some<T>(&mut self, name: &'static str, list: Option<&Vec<T>>, most: usize) {
        if list.is_some_and(Vec::is_empty) {
            let has_value = self.asked.0.iter().any(|asked| asked.name == name && asked.has_value);
            let sentence = if has_value { format!("must hold 1 to {most} objects") } else { "is required".to_owned() };
            self.refuse(name, sentence);
        }
    }

    /// Takes a field out of the members, with the name under which it was sent.
    fn remove(&mut self, name: &'static str) -> Option<(String, Json)> {
        if self.place.context.is_none() {
            let found = self.members.iter().position(|(sent, _)| sent == name)?;
            return Some(self.members.remove(found));
        }
        let mut taken: Option<(String, Json)> = None;
        for (sent, value) in self.members.extract_if(.., |(sent, _)| is_spelling(sent, name)) {
            let Some((first, _)) = &taken else {
                taken = Some((sent, value));
                continue;
            };
            let sentence = if *first == sent {
                "is given more than once".to_owned()
            } else {
                format!("is given as {sent} too; give one of them")
            };
            self.place.refuse_part::<()>(first.clone(), sentence);
        }
        taken
    }
}
