//! Reads a JSON object field by field, and records every problem under its path. Large values are moved out of the
//! body, never copied.
//!
//! Problems are listed in the order of declaration, at most one per field. A client may spell a field as `face_auth` or
//! `faceAuth`; errors repeat that spelling. A report has one spelling.

use std::borrow::Cow;

use sakshi_domain::http_url::{HttpUrl, WebhookUrl};
use sakshi_domain::invalid::{FieldError, Invalid};
use sakshi_domain::limits::{BODY_VALUES_MAX, REPORT_BYTES_MAX, REPORT_VALUES_MAX, UNKNOWN_NAME_CHARS_MAX};
use sakshi_domain::time::Timestamp;

use crate::describe::Describe;
use crate::json::{Json, JsonError, JsonRefusal, ValuesLeft, read};
use crate::spelling::{Lookup, Spellings, first_per_field, is_spelling, split_path};

/// Number of absent fields for which [`Fields::read_body`] reserves room; most bodies have no more.
const ABSENT_FIELDS_EXPECTED: usize = 8;

/// A field type that can be read from received JSON.
pub trait Field: Describe + Sized {
    /// Reads a value that is present and not null, and records its problems.
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self>;

    /// Returns the value of an absent field.
    fn absent(reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.refuse("is required")
    }

    /// Returns the value of a null field.
    fn null(reader: &mut FieldReader<'_>) -> Option<Self> {
        Self::absent(reader)
    }

    /// Reads the field from its object.
    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.take(name)
    }
}

/// A body that can be read from received JSON.
pub trait Body: Sized {
    /// Reads the fields of an object, and records their problems.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;
}

/// Rules for the URLs that a deployment accepts.
pub trait UrlRules {
    /// Accepts the URL of a webhook receiver.
    ///
    /// # Errors
    /// A message that states the accepted form.
    fn webhook(&self, text: &str) -> Result<WebhookUrl, &'static str>;

    /// Accepts the URL of a page for a person's browser.
    ///
    /// # Errors
    /// A message that states the accepted form.
    fn page(&self, text: &str) -> Result<HttpUrl, &'static str>;
}

/// The deployment's rules and the time, which decide how a request is read.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// The rules for URLs.
    pub urls: &'c dyn UrlRules,
    /// The time of the request.
    pub now: Timestamp,
}

/// The reason why no field of a body was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableBody {
    /// The body is empty.
    Empty,
    /// The body is not JSON, or exceeds the limits of nesting or size.
    Json(JsonError),
    /// The body is JSON, but not an object.
    NoObject,
}

/// An object that a client sent, as JSON or as a form, before its members are validated.
#[derive(Debug, Default)]
pub struct ReceivedObject(pub Vec<(String, Json)>);

impl ReceivedObject {
    /// Reads a JSON object of at most 10,000 values.
    ///
    /// # Errors
    /// [`UnreadableBody`] if the bytes are anything else.
    pub fn read(bytes: &[u8]) -> Result<Self, UnreadableBody> {
        if bytes.trim_ascii().is_empty() {
            return Err(UnreadableBody::Empty);
        }
        match read(bytes, usize::MAX, &ValuesLeft::new(BODY_VALUES_MAX)) {
            Ok(Json::Object(members)) => Ok(Self(members)),
            Ok(_) => Err(UnreadableBody::NoObject),
            Err(error) => Err(UnreadableBody::Json(error)),
        }
    }

    /// Reads the request.
    ///
    /// # Errors
    /// [`Invalid`] with every field that is invalid, missing or unknown.
    pub fn into_request<B: Body>(self, context: Context<'_>) -> Result<B, Invalid> {
        self.into_request_with_spellings(context).map(|(body, _)| body)
    }

    /// Reads the request, and also returns the spellings of its fields.
    ///
    /// # Errors
    /// As for [`ReceivedObject::into_request`].
    pub fn into_request_with_spellings<B: Body>(self, context: Context<'_>) -> Result<(B, Spellings), Invalid> {
        read_members(Some(context), self.0, B::read)
    }

    /// Reads a request with a function instead of a [`Body`].
    ///
    /// # Errors
    /// As for [`ReceivedObject::into_request`].
    pub(crate) fn read_with<'c, T>(
        self,
        context: Context<'c>,
        read: impl FnOnce(&mut Fields<'c>) -> Option<T>,
    ) -> Result<T, Invalid> {
        read_members(Some(context), self.0, read).map(|(body, _)| body)
    }
}

/// Reads a connector's report, or the stored payload of a report.
///
/// # Errors
/// [`Invalid`] with every problem by its path; the path is `body` for the document as a whole.
pub fn read_report<B: Body>(bytes: &[u8]) -> Result<B, Invalid> {
    let refused = |sentence: String| Err(Invalid::one("body", sentence));
    if bytes.len() > REPORT_BYTES_MAX {
        return refused(format!("must be at most {REPORT_BYTES_MAX} bytes"));
    }
    match read(bytes, usize::MAX, &ValuesLeft::new(REPORT_VALUES_MAX)) {
        Ok(Json::Object(members)) => read_members(None, members, B::read).map(|(body, _)| body),
        Ok(_) => refused("must be a JSON object".to_owned()),
        Err(JsonError { refusal: JsonRefusal::TooManyValues, .. }) => {
            refused(format!("must hold at most {REPORT_VALUES_MAX} values"))
        }
        Err(JsonError { line, column, .. }) => refused(format!("is not JSON: line {line}, column {column}")),
    }
}

/// Reads a whole body; any problem is an error.
fn read_members<'c, T>(
    context: Option<Context<'c>>,
    members: Vec<(String, Json)>,
    read: impl FnOnce(&mut Fields<'c>) -> Option<T>,
) -> Result<(T, Spellings), Invalid> {
    let (body, problems, spellings) = Fields::read_body(context, members, read);
    first_per_field(problems).or_ok()?;
    body.map(|body| (body, spellings)).ok_or_else(|| Invalid::one("body", "is incomplete"))
}

/// Reads a value of a body, and collects the problems found in it.
pub struct FieldReader<'c> {
    /// The context of a request; a report has none.
    pub(crate) context: Option<Context<'c>>,
    /// Problems by their paths below the value: empty, `[2]`, `.name`.
    problems: Vec<FieldError>,
}

impl<'c> FieldReader<'c> {
    /// Records a problem of the value: a sentence that states the accepted form.
    pub fn refuse<T>(&mut self, sentence: impl Into<String>) -> Option<T> {
        self.refuse_part(String::new(), sentence)
    }

    /// Records a problem of a part of the value.
    pub(crate) fn refuse_part<T>(&mut self, path: String, sentence: impl Into<String>) -> Option<T> {
        self.problems.push(FieldError { field: path, message: sentence.into() });
        None
    }

    /// Returns the value of a result, or records its error as a problem.
    pub fn accept<T>(&mut self, result: Result<T, impl Into<Cow<'static, str>>>) -> Option<T> {
        result.map_err(|sentence| self.refuse::<T>(sentence.into().into_owned())).ok()
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

    /// Reads one of two words, and returns the value that it stands for.
    pub(crate) fn one_of<T: Copy>(&mut self, value: &Json, choices: [(&str, T); 2]) -> Option<T> {
        let choice = choices.iter().find(|(word, _)| matches!(value, Json::Text(text) if text == word));
        self.accept(
            choice
                .map(|(_, value)| *value)
                .ok_or_else(|| format!("must be {}", choices.map(|(word, _)| word).join(" or "))),
        )
    }

    /// Reads the items of a list of `min` to `max` entries.
    pub(crate) fn list(&mut self, value: Json, min: usize, max: usize) -> Option<Vec<Json>> {
        match value {
            Json::List(items) if (min..=max).contains(&items.len()) => Some(items),
            Json::List(_) => {
                let entries = if self.context.is_some() { "entries" } else { "objects" };
                self.refuse(format!("must hold {min} to {max} {entries}"))
            }
            _ => self.refuse("must be an array"),
        }
    }

    /// Reads each item of a list; `None` if any item is invalid.
    pub(crate) fn items<T>(
        &mut self,
        items: Vec<Json>,
        mut read: impl FnMut(&mut Self, Json) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut list = Some(Vec::with_capacity(items.len()));
        for (index, item) in items.into_iter().enumerate() {
            let earlier = self.problems.len();
            let value = read(self, item);
            self.prefix_problems(earlier, || format!("[{index}]"));
            list = list.zip(value).map(|(mut list, item)| {
                list.push(item);
                list
            });
        }
        list
    }

    /// Reads an object.
    pub(crate) fn object<B: Body>(&mut self, value: Json) -> Option<B> {
        let Json::Object(members) = value else { return self.refuse("must be an object") };
        let (body, problems, _) = Fields::read_body(self.context, members, B::read);
        let earlier = self.problems.len();
        self.problems.extend(problems);
        self.prefix_problems(earlier, || ".".to_owned());
        body
    }

    /// Prefixes the paths of all problems except the first `earlier` ones, which were recorded before.
    fn prefix_problems(&mut self, earlier: usize, prefix: impl FnOnce() -> String) {
        if let Some(problems @ [_, ..]) = self.problems.get_mut(earlier..) {
            let prefix = prefix();
            problems.iter_mut().for_each(|problem| problem.field.insert_str(0, &prefix));
        }
    }
}

/// The unread members of an object, and the problems of its other members.
pub struct Fields<'c> {
    reader: FieldReader<'c>,
    members: Vec<(String, Json)>,
    /// The fields read so far, in the order of declaration.
    lookups: Spellings,
}

impl<'c> Fields<'c> {
    /// Reads a body from these members. Also returns its problems in the order of declaration, and the spellings of its
    /// fields.
    fn read_body<T>(
        context: Option<Context<'c>>,
        members: Vec<(String, Json)>,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> (Option<T>, Vec<FieldError>, Spellings) {
        let lookups = Spellings(Vec::with_capacity(members.len() + ABSENT_FIELDS_EXPECTED));
        let mut fields = Self { reader: FieldReader { context, problems: Vec::new() }, members, lookups };
        let body = read(&mut fields);
        let Self { reader: FieldReader { mut problems, .. }, members, lookups } = fields;
        problems.sort_by_cached_key(|problem| lookups.position(split_path(&problem.field).0));
        // Members that no field reads come last.
        for (name, _) in members {
            let sentence = match context {
                Some(_) => "is not a field of this request",
                None if lookups.0.iter().any(|lookup| lookup.name == name) => "is given twice",
                None => "is not a field of this report",
            };
            let field = name.chars().take(UNKNOWN_NAME_CHARS_MAX).collect();
            problems.push(FieldError { field, message: sentence.to_owned() });
        }
        (body, problems, lookups)
    }

    /// Returns the context of a request; a report has none.
    #[must_use]
    pub const fn context(&self) -> Option<Context<'c>> {
        self.reader.context
    }

    /// Returns true if there is a problem so far, or any member is still unread.
    pub(crate) const fn has_problems(&self) -> bool {
        !self.reader.problems.is_empty() || !self.members.is_empty()
    }

    /// Reads a field.
    pub fn take<T: Field>(&mut self, name: &'static str) -> Option<T> {
        self.read(name, |reader, value| match value {
            None => T::absent(reader),
            Some(Json::Null) => T::null(reader),
            Some(value) => T::read(value, reader),
        })
    }

    /// Reads a text field that is validated together with others; `None` if it is absent or null.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |reader, value| match value? {
            Json::Null => None,
            value => reader.text(value),
        })
    }

    /// Reads a field with a function, which gets `None` if the field is absent.
    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut FieldReader<'c>, Option<Json>) -> Option<T>,
    ) -> Option<T> {
        let (sent_name, value) = self.remove(name).unzip();
        let has_value = !matches!(value, None | Some(Json::Null));
        let earlier = self.reader.problems.len();
        let field = read(&mut self.reader, value);
        self.reader.prefix_problems(earlier, || sent_name.as_deref().unwrap_or(name).to_owned());
        self.lookups.0.push(Lookup { name, sent_name, has_value });
        field
    }

    /// Records a problem of a field, or of a part of it such as `name[2]`.
    pub fn refuse(&mut self, path: &str, sentence: impl Into<String>) {
        self.reader.refuse_part::<()>(self.lookups.as_sent(path), sentence);
    }

    /// Returns the value, or records the problems of the fields that were validated together.
    pub fn accept<T>(&mut self, result: Result<T, Invalid>) -> Option<T> {
        result
            .map_err(|invalid| {
                invalid.fields().iter().for_each(|problem| self.refuse(&problem.field, &*problem.message));
            })
            .ok()
    }

    /// Records a missing field that is required under this condition.
    pub(crate) fn require_if<T>(&mut self, condition: bool, name: &'static str, field: Option<&Option<T>>) {
        if condition && field.is_some_and(Option::is_none) {
            self.refuse(name, "is required");
        }
    }

    /// Records a missing or empty list that must have entries.
    pub(crate) fn require_some<T>(&mut self, name: &'static str, list: Option<&Vec<T>>, max: usize) {
        if list.is_some_and(Vec::is_empty) {
            let has_value = self.lookups.0.iter().any(|lookup| lookup.name == name && lookup.has_value);
            let sentence = if has_value { format!("must hold 1 to {max} objects") } else { "is required".to_owned() };
            self.refuse(name, sentence);
        }
    }

    /// Takes a field out of the members, with the name under which it was sent.
    fn remove(&mut self, name: &'static str) -> Option<(String, Json)> {
        if self.reader.context.is_none() {
            let index = self.members.iter().position(|(sent_name, _)| sent_name == name)?;
            return Some(self.members.remove(index));
        }
        let mut field: Option<(String, Json)> = None;
        for (sent_name, value) in self.members.extract_if(.., |(sent_name, _)| is_spelling(sent_name, name)) {
            let Some((first, _)) = &field else {
                field = Some((sent_name, value));
                continue;
            };
            let sentence = if *first == sent_name {
                "is given more than once".to_owned()
            } else {
                format!("is given as {sent_name} too; give one of them")
            };
            self.reader.refuse_part::<()>(first.clone(), sentence);
        }
        field
    }
}
