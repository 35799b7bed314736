//! Building blocks of most pages: facts, tables and forms.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use sakshi_web::field::Field;
use sakshi_web::html::form_page;

pub(crate) use crate::cell::Cell;
use crate::layout::{Layout, Section};
use crate::staff::Staff;

/// A table with a heading for each column; the first cell of a row names the row.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) caption: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A form.
#[derive(Debug, Default)]
pub(crate) struct FormView {
    pub(crate) action: String,
    pub(crate) fields: Vec<Field<'static>>,
    pub(crate) choices: Vec<Choices>,
    /// Names and values of hidden fields.
    pub(crate) hidden: Vec<(&'static str, String)>,
    pub(crate) button: String,
    pub(crate) csrf_token: String,
    /// True if the action cannot be undone.
    pub(crate) is_dangerous: bool,
    /// True if the form only reads.
    pub(crate) is_query: bool,
    /// True if the form has a file.
    pub(crate) has_file: bool,
}

/// A choice of one value.
#[derive(Debug)]
pub(crate) struct Choices {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    /// Values and labels.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) chosen: String,
}

impl FormView {
    /// Builds a form that changes something, with the session's CSRF token.
    pub(crate) fn new(staff: &Staff, action: impl Into<String>, button: impl Into<String>) -> Self {
        Self {
            action: action.into(),
            button: button.into(),
            csrf_token: staff.csrf_token.as_str().to_owned(),
            ..Self::default()
        }
    }

    /// Builds a form that filters a list.
    pub(crate) fn query(action: impl Into<String>, button: impl Into<String>) -> Self {
        Self { action: action.into(), button: button.into(), is_query: true, ..Self::default() }
    }

    pub(crate) fn field(mut self, field: Field<'static>) -> Self {
        self.fields.push(field);
        self
    }

    pub(crate) fn choices(mut self, choices: Choices) -> Self {
        self.choices.push(choices);
        self
    }

    pub(crate) fn hidden(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.hidden.push((name, value.into()));
        self
    }

    /// Marks the action as one that cannot be undone.
    pub(crate) fn dangerous(self) -> Self {
        Self { is_dangerous: true, ..self }
    }

    pub(crate) fn with_file(self) -> Self {
        Self { has_file: true, ..self }
    }

    /// Wraps the form as a cell of a table.
    pub(crate) fn cell(self) -> Cell {
        Cell::Form(Box::new(self))
    }
}

/// A part of a page.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) id: &'static str,
    pub(crate) heading: String,
    pub(crate) words: Vec<String>,
    pub(crate) facts: Vec<(&'static str, Cell)>,
    pub(crate) table: Option<Table>,
    pub(crate) forms: Vec<FormView>,
    pub(crate) links: Vec<Cell>,
}

impl Part {
    pub(crate) fn new(id: &'static str, heading: impl Into<String>) -> Self {
        Self { id, heading: heading.into(), ..Self::default() }
    }

    /// Adds a paragraph.
    pub(crate) fn words(mut self, words: impl Into<String>) -> Self {
        self.words.push(words.into());
        self
    }

    /// Adds a row with a name and a value.
    pub(crate) fn fact(mut self, name: &'static str, cell: Cell) -> Self {
        self.facts.push((name, cell));
        self
    }

    /// Adds a table, or the words `none` if it has no rows.
    pub(crate) fn table(mut self, table: Table, none: &str) -> Self {
        if table.rows.is_empty() {
            return self.words(none);
        }
        self.table = Some(table);
        self
    }

    pub(crate) fn form(mut self, form: FormView) -> Self {
        self.forms.push(form);
        self
    }

    pub(crate) fn link(mut self, href: impl Into<String>, text: impl Into<String>) -> Self {
        self.links.push(Cell::Link { href: href.into(), text: text.into() });
        self
    }
}

/// A page of parts.
#[derive(Debug, Template)]
#[template(path = "view.html")]
pub(crate) struct View {
    layout: Layout,
    title: String,
    /// Address and title of the parent page.
    back: Option<(String, String)>,
    lead: String,
    tags: Vec<Cell>,
    /// Message about the completed action.
    done: Option<String>,
    /// Problems of a form.
    problems: Vec<String>,
    parts: Vec<Part>,
    /// Addresses and labels of the neighbouring pages of the list.
    pages: Vec<(String, String)>,
}

impl View {
    pub(crate) fn new(staff: &Staff, section: Option<Section>, title: impl Into<String>) -> Self {
        Self {
            layout: Layout::new(&staff.request, section),
            title: title.into(),
            back: None,
            lead: String::new(),
            tags: Vec::new(),
            done: done_message(staff.request.query_string()).map(str::to_owned),
            problems: Vec::new(),
            parts: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// Sets the link to the parent page.
    pub(crate) fn back(self, href: impl Into<String>, text: impl Into<String>) -> Self {
        Self { back: Some((href.into(), text.into())), ..self }
    }

    /// Sets the sentence below the title.
    pub(crate) fn lead(self, lead: impl Into<String>) -> Self {
        Self { lead: lead.into(), ..self }
    }

    /// Adds a label beside the title.
    pub(crate) fn tag(mut self, tag: Cell) -> Self {
        self.tags.push(tag);
        self
    }

    /// Sets the text in the search box of the header.
    pub(crate) fn search_text(mut self, text: &str) -> Self {
        text.clone_into(&mut self.layout.search_text);
        self
    }

    /// Sets the problems of a form, if there are any.
    pub(crate) fn problems_if(self, problems: &[String]) -> Self {
        if problems.is_empty() { self } else { Self { problems: problems.to_vec(), done: None, ..self } }
    }

    pub(crate) fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Adds a link to a neighbouring page of the list, if there is one.
    pub(crate) fn page(mut self, href: Option<String>, text: &str) -> Self {
        self.pages.extend(href.map(|href| (href, text.to_owned())));
        self
    }

    /// Builds the response.
    pub(crate) fn respond(&self, status: StatusCode) -> HttpResponse {
        form_page(status, self)
    }

    /// Builds the response with status 200.
    pub(crate) fn ok(&self) -> HttpResponse {
        self.respond(StatusCode::OK)
    }
}

/// Returns the message about a completed action, from the query of a redirect.
fn done_message(query: &str) -> Option<&'static str> {
    let word = query.split('&').find_map(|pair| pair.strip_prefix("done="))?;
    Some(match word {
        "granted" => "The credits were granted.",
        "asked" => "The grant is above the limit. It waits until another operator confirms it.",
        "confirmed" => "The grant was confirmed, and the credits were granted.",
        "refused" => "The grant was refused.",
        "suspended" => "The client is suspended. Every node refuses its keys within a second.",
        "resumed" => "The client is no longer suspended.",
        "revoked" => "The key is revoked. Every node refuses it within a second.",
        "brand" => "The brand was changed. Pages show it within five seconds.",
        _ => return None,
    })
}
