//! Takes a JSON object apart, field by field, and notes everything that is wrong with it under its
//! path. What is large is moved out of the body, never copied.
//!
//! Of each field the first problem is told, and none of its parts after it; the order is that in
//! which the fields are declared. A client's request may spell a field of several words as
//! `face_auth` or as `faceAuth`, and is answered in its own spelling. A report has one spelling.

use std::borrow::Cow;

use sakshi_domain::http_url::{HttpUrl, WebhookUrl};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{BODY_VALUES_MAX, REPORT_BYTES_MAX, REPORT_VALUES_MAX};
use sakshi_domain::time::Timestamp;

use crate::describe::Describe;
use crate::json::{Json, JsonError, JsonRefusal, ValuesLeft, read};
use crate::spelling::{Spellings, is_spelling};

/// Characters of a field's name that are told again; ours are shorter.
const NAME_CHARS_TOLD: usize = 128;

/// Fields that most bodies leave out; room for their names is made at once.
const FIELDS_LEFT_OUT: usize = 8;

/// A type of a field that is read from what somebody sent.
pub trait Field: Describe + Sized {
    /// Reads a value that is there and not null; notes what is wrong with it.
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self>;

    /// What stands for a field that was not sent.
    fn absent(place: &mut Place<'_>) -> Option<Self> {
        place.refuse("is required")
    }

    /// What stands for a field that is null.
    fn null(place: &mut Place<'_>) -> Option<Self> {
        Self::absent(place)
    }

    /// Reads it from the object that has it as a field.
    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.take(name)
    }
}

/// A body that is read.
pub trait Body: Sized {
    /// Reads the fields of an object; notes what is wrong with them.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;
}

/// Which URLs a deployment accepts.
pub trait UrlRules {
    /// A URL that a webhook is sent to.
    ///
    /// # Errors
    /// What such a URL must look like.
    fn webhook(&self, text: &str) -> Result<WebhookUrl, &'static str>;

    /// A URL that a person's browser is sent to.
    ///
    /// # Errors
    /// What such a URL must look like.
    fn page(&self, text: &str) -> Result<HttpUrl, &'static str>;
}

/// What the reading of a request depends on besides the request.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// Which URLs are accepted.
    pub urls: &'c dyn UrlRules,
    /// The moment of the request.
    pub now: Timestamp,
}

/// Whose body is read.
#[derive(Clone, Copy)]
pub enum Form<'c> {
    /// A request.
    Request(Context<'c>),
    /// A connector's report, or one that was stored.
    Report,
}

/// Why nothing was read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// It is not JSON, or beyond the bounds of its nesting or its size.
    Json(JsonError),
    /// It is JSON, but no object.
    NoObject,
}

/// An object as a client sent it.
#[derive(Debug, Default)]
pub struct Sent(pub(crate) Vec<(String, Json)>);

impl Sent {
    /// Reads a JSON object of at most 10,000 values.
    ///
    /// # Errors
    /// It is not one.
    pub fn read(bytes: &[u8]) -> Result<Self, NotRead> {
        match read(bytes, usize::MAX, &ValuesLeft::new(BODY_VALUES_MAX)) {
            Ok(Json::Object(members)) => Ok(Self(members)),
            Ok(_) => Err(NotRead::NoObject),
            Err(error) => Err(NotRead::Json(error)),
        }
    }

    /// An object of values that came in another form than JSON.
    #[must_use]
    pub const fn given(members: Vec<(String, Json)>) -> Self {
        Self(members)
    }

    /// The request that it is.
    ///
    /// # Errors
    /// Every field that is not acceptable, is missing or is not one of the request.
    pub fn request<B: Body>(self, context: Context<'_>) -> Result<B, Invalid> {
        self.spelled(context).map(|(body, _)| body)
    }

    /// The request that it is, and how it was spelled.
    ///
    /// # Errors
    /// As [`Sent::request`].
    pub fn spelled<B: Body>(self, context: Context<'_>) -> Result<(B, Spellings), Invalid> {
        whole(Form::Request(context), self.0)
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
        Ok(Json::Object(members)) => whole(Form::Report, members).map(|(body, _)| body),
        Ok(_) => refused("must be a JSON object".to_owned()),
        Err(JsonError { refusal: JsonRefusal::TooManyValues, .. }) => refused(format!("must hold at most {REPORT_VALUES_MAX} values")),
        Err(JsonError { line, column, .. }) => refused(format!("is not JSON: line {line}, column {column}")),
    }
}

fn whole<B: Body>(form: Form<'_>, members: Vec<(String, Json)>) -> Result<(B, Spellings), Invalid> {
    let mut fields = Fields::new(form, members);
    let body = B::read(&mut fields);
    let (found, spellings) = fields.finish();
    let mut invalid = Invalid::none();
    found.into_iter().for_each(|Problem { path, sentence }| invalid.add(path, sentence));
    Spellings::default().told(&invalid).or_ok()?;
    body.map(|body| (body, spellings)).ok_or_else(|| Invalid::one("body", "is incomplete"))
}

/// What is wrong with a value, or with a part of it.
struct Problem {
    /// Below the value: empty, `[2]`, `.name`.
    path: String,
    sentence: String,
}

/// Where a value is read, and what is wrong with it.
pub struct Place<'c> {
    form: Form<'c>,
    found: Vec<Problem>,
}

impl<'c> Place<'c> {
    /// Notes what would be accepted instead of the value.
    pub fn refuse<T>(&mut self, sentence: impl Into<String>) -> Option<T> {
        self.refuse_part(String::new(), sentence)
    }

    /// Notes what would be accepted instead of a part of the value.
    pub(crate) fn refuse_part<T>(&mut self, path: String, sentence: impl Into<String>) -> Option<T> {
        self.found.push(Problem { path, sentence: sentence.into() });
        None
    }

    /// The value of a result, or nothing and its sentence noted.
    pub fn accept<T>(&mut self, read: Result<T, impl Into<Cow<'static, str>>>) -> Option<T> {
        read.map_err(|sentence| self.refuse::<T>(sentence.into().into_owned())).ok()
    }

    /// A text.
    pub fn text(&mut self, value: Json) -> Option<String> {
        if let Json::Text(text) = value { Some(text) } else { self.refuse("must be a string") }
    }

    /// A text, and what is made of it.
    pub fn parsed<T, E: Into<Cow<'static, str>>>(&mut self, value: Json, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let text = self.text(value)?;
        self.accept(parse(&text))
    }

    /// The items of a list of `least` to `most` entries.
    pub(crate) fn list(&mut self, value: Json, least: usize, most: usize) -> Option<Vec<Json>> {
        match value {
            Json::List(items) if (least..=most).contains(&items.len()) => Some(items),
            Json::List(_) => match self.form {
                Form::Request(_) => self.refuse(format!("must hold {least} to {most} entries")),
                Form::Report => self.refuse(format!("must hold {least} to {most} objects")),
            },
            _ => self.refuse("must be an array"),
        }
    }

    /// Each item of a list; nothing if one of them is not acceptable.
    pub(crate) fn items<T>(&mut self, items: Vec<Json>, mut read: impl FnMut(&mut Self, Json) -> Option<T>) -> Option<Vec<T>> {
        let mut list = Some(Vec::with_capacity(items.len()));
        for (index, item) in items.into_iter().enumerate() {
            let known = self.found.len();
            let read = read(self, item);
            self.found[known..].iter_mut().for_each(|problem| problem.path.insert_str(0, &format!("[{index}]")));
            list = list.zip(read).map(|(mut list, item)| {
                list.push(item);
                list
            });
        }
        list
    }

    /// An object, read by its own fields.
    pub(crate) fn object<B: Body>(&mut self, value: Json) -> Option<B> {
        let Json::Object(members) = value else { return self.refuse("must be an object") };
        let mut fields = Fields::new(self.form, members);
        let body = B::read(&mut fields);
        let (found, _) = fields.finish();
        self.found.extend(found.into_iter().map(|problem| Problem { path: format!(".{}", problem.path), ..problem }));
        body
    }

    /// Whose body is read.
    #[must_use]
    pub const fn form(&self) -> Form<'c> {
        self.form
    }

    /// What a request is read with. A report has no such fields.
    pub(crate) fn context(&mut self) -> Option<Context<'c>> {
        if let Form::Request(context) = self.form { Some(context) } else { self.refuse("is not read from reports") }
    }
}

/// The members of one object that have not been read yet, and what is wrong with the others.
pub struct Fields<'c> {
    form: Form<'c>,
    members: Vec<(String, Json)>,
    /// The fields asked for, in order.
    asked: Vec<Asked>,
    /// What is wrong, each with the place of its field in that order.
    found: Vec<(usize, Problem)>,
}

/// A field that was asked for.
struct Asked {
    name: &'static str,
    /// The name under which it was sent, if it was.
    sent: Option<String>,
    has_value: bool,
}

impl<'c> Fields<'c> {
    fn new(form: Form<'c>, members: Vec<(String, Json)>) -> Self {
        Self { form, asked: Vec::with_capacity(members.len() + FIELDS_LEFT_OUT), members, found: Vec::new() }
    }

    /// Whose body is read.
    #[must_use]
    pub const fn form(&self) -> Form<'c> {
        self.form
    }

    /// A field, read by its type.
    pub fn take<T: Field>(&mut self, name: &'static str) -> Option<T> {
        self.read(name, |place, value| match value {
            None => T::absent(place),
            Some(Json::Null) => T::null(place),
            Some(value) => T::read(value, place),
        })
    }

    /// A text that is judged together with other fields; nothing if it is absent or null.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.read(name, |place, value| match value? {
            Json::Null => None,
            value => place.text(value),
        })
    }

    /// Reads a field, or what stands for it when it was not sent.
    pub(crate) fn read<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Place<'c>, Option<Json>) -> Option<T>) -> Option<T> {
        let at = self.asked.len();
        let (sent, value) = self.remove(name, at).unzip();
        let has_value = !matches!(value, None | Some(Json::Null));
        let mut place = Place { form: self.form, found: Vec::new() };
        let read = read(&mut place, value);
        let told = sent.as_deref().unwrap_or(name);
        for problem in place.found {
            self.found.push((at, Problem { path: format!("{told}{}", problem.path), ..problem }));
        }
        self.asked.push(Asked { name, sent, has_value });
        read
    }

    fn has_value(&self, name: &str) -> bool {
        self.asked.iter().any(|asked| asked.name == name && asked.has_value)
    }

    /// Notes a problem with a field, or with a part of one as `name[2]`.
    pub fn refuse(&mut self, path: &str, sentence: impl Into<String>) {
        let (name, part) = path.split_at(path.find(['[', '.']).unwrap_or(path.len()));
        let at = self.asked.iter().position(|asked| asked.name == name).unwrap_or(self.asked.len());
        let sent = self.asked.get(at).and_then(|asked| asked.sent.as_deref()).unwrap_or(name);
        let problem = Problem { path: format!("{sent}{part}"), sentence: sentence.into() };
        self.found.push((at, problem));
    }

    /// Notes what is wrong with several fields together.
    pub fn agreed<T>(&mut self, read: Result<T, Invalid>) -> Option<T> {
        read.map_err(|invalid| invalid.fields().iter().for_each(|problem| self.refuse(&problem.field, &*problem.message))).ok()
    }

    /// Notes that a field is missing which must be there under this condition.
    pub(crate) fn require_if<T>(&mut self, condition: bool, name: &'static str, read: Option<&Option<T>>) {
        if condition && read.is_some_and(Option::is_none) {
            self.refuse(name, "is required");
        }
    }

    /// Notes that a list is missing or empty which must not be.
    pub(crate) fn require_some<T>(&mut self, name: &'static str, list: Option<&Vec<T>>, most: usize) {
        if list.is_some_and(Vec::is_empty) {
            let sentence = if self.has_value(name) { format!("must hold 1 to {most} objects") } else { "is required".to_owned() };
            self.refuse(name, sentence);
        }
    }

    fn remove(&mut self, name: &'static str, at: usize) -> Option<(String, Json)> {
        if let Form::Report = self.form {
            let found = self.members.iter().position(|(sent, _)| sent == name)?;
            return Some(self.members.remove(found));
        }
        let mut taken: Option<(String, Json)> = None;
        for (sent, value) in self.members.extract_if(.., |(sent, _)| is_spelling(sent, name)) {
            let Some((first, _)) = &taken else {
                taken = Some((sent, value));
                continue;
            };
            let sentence =
                if *first == sent { "is given more than once".to_owned() } else { format!("is given as {sent} too; give one of them") };
            self.found.push((at, Problem { path: first.clone(), sentence }));
        }
        taken
    }

    /// Everything that is wrong, in the order of the fields; what nothing has asked for comes last.
    fn finish(mut self) -> (Vec<Problem>, Spellings) {
        self.found.sort_by_key(|(at, _)| *at);
        let mut found: Vec<Problem> = self.found.into_iter().map(|(_, problem)| problem).collect();
        for (name, _) in self.members {
            let sentence = match self.form {
                Form::Request(_) => "is not a field of this request",
                Form::Report if self.asked.iter().any(|asked| asked.name == name) => "is given twice",
                Form::Report => "is not a field of this report",
            };
            found.push(Problem { path: name.chars().take(NAME_CHARS_TOLD).collect(), sentence: sentence.to_owned() });
        }
        (found, Spellings::of(self.asked.into_iter().map(|asked| (asked.name, asked.sent))))
    }
}
