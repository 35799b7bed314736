//! What is around every page of the portal, and the headers of its answers.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, LOCATION, REFERRER_POLICY};
use askama::Template;
use sakshi_web::html;

use crate::files::{SCRIPT, STYLE};

/// The parts that the header leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Trial,
    Events,
    Webhooks,
    Credits,
}

impl Part {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Trial, "/portal", "Try it"),
        (Self::Events, "/portal/events", "Events"),
        (Self::Webhooks, "/portal/webhooks", "Webhooks"),
        (Self::Credits, "/portal/credits", "Credits"),
    ];
}

/// Who has signed in, and where they are.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) app: String,
    pub(super) app_id: String,
    pub(super) csrf_token: String,
    pub(super) part: Part,
}

/// What the frame around a page needs.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) style: String,
    pub(super) script: String,
    pub(super) sandbox: bool,
    pub(super) inside: Option<Inside>,
    /// Whether the parts are named although it is not known who asks.
    pub(super) lost: bool,
}

impl Frame {
    /// Around a page for people who have not signed in.
    pub(super) fn outside(sandbox: bool) -> Self {
        Self { style: STYLE.url(), script: SCRIPT.url(), sandbox, inside: None, lost: false }
    }

    /// Around a page that says why there is no other: the parts are ways back from it.
    pub(super) fn lost() -> Self {
        Self { lost: true, ..Self::outside(false) }
    }

    /// The parts: address, words, and whether it is here. None for people who have not signed in.
    pub(super) fn ways(&self) -> Vec<(&'static str, &'static str, bool)> {
        let here = self.inside.as_ref().map(|inside| inside.part);
        let way = |(part, address, words)| (address, words, here == Some(part));
        if here.is_some() || self.lost { Part::ALL.map(way).into() } else { Vec::new() }
    }

    /// What every form of the page carries.
    pub(super) fn csrf_token(&self) -> &str {
        self.inside.as_ref().map_or("", |inside| &inside.csrf_token)
    }
}

/// Answers with a page.
pub(super) fn page(status: StatusCode, template: &impl Template) -> HttpResponse {
    let mut response = html::page(status, None, template);
    // Without a referrer a browser would call the origin of a form's request "null".
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Sends the browser on to an address of ours, which it asks for with `GET`.
pub(super) fn see(address: &str) -> HttpResponse {
    html::private(StatusCode::SEE_OTHER).insert_header((LOCATION, address)).finish()
}
