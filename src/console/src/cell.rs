//! A value in a table or a list of facts, as pages show it.
#![allow(unused_qualifications, reason = "the code derived for an enum uses its full path")]

use std::fmt::Display;

use askama::Template;
use askama::filters::HtmlSafe;
use sakshi_domain::time::Timestamp;
use sakshi_web::when::When;
use url::form_urlencoded::byte_serialize;

use crate::view::FormView;

/// A value on a page.
#[derive(Debug, Template)]
#[template(path = "cell.html")]
pub(crate) enum Cell {
    None,
    Text(String),
    Code(String),
    Number(i128),
    When(When),
    Link { href: String, text: String },
    Tag { class: &'static str, text: String },
    Many(Vec<Self>),
    Form(Box<FormView>),
}

impl HtmlSafe for Cell {}

/// Encodes an id as a segment of a path or as a value of a query. A request id may have any visible character.
pub(crate) fn encode(id: &str) -> String {
    byte_serialize(id.as_bytes()).collect::<String>().replace('+', "%20")
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn code(text: impl Display) -> Self {
        Self::Code(text.to_string())
    }

    /// Builds a coloured label; `class` selects its colour.
    pub(crate) fn tag(class: &'static str, text: impl Into<String>) -> Self {
        Self::Tag { class, text: text.into() }
    }

    pub(crate) fn number(number: impl Into<i128>) -> Self {
        Self::Number(number.into())
    }

    /// Shows a moment to the second.
    pub(crate) fn at(at: Timestamp) -> Self {
        Self::When(When::second(at))
    }

    /// Builds a link to the page of an id.
    pub(crate) fn link(folder: &str, id: impl Display) -> Self {
        let id = id.to_string();
        Self::Link { href: format!("/console/{folder}/{}", encode(&id)), text: id }
    }

    /// Builds a link to the search for an id of any kind.
    pub(crate) fn search_link(id: impl Into<String>) -> Self {
        let id = id.into();
        Self::Link { href: format!("/console/find?id={}", encode(&id)), text: id }
    }

    /// Builds a cell from a value; an empty cell without one.
    pub(crate) fn or_none<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::None, cell)
    }
}
