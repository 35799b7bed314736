//! The layout of the console's pages.

use std::sync::LazyLock;

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest};
use sakshi_domain::operator::Role;
use sakshi_web::static_file::{BASE_STYLE, DESK_STYLE, FIGURES_STYLE, ICON, RECORDS_STYLE, StaticFile};

use crate::Console;

/// Style sheet of the console.
pub(crate) static STYLE: LazyLock<StaticFile> = LazyLock::new(|| {
    let console_style = include_str!("../assets/console.css");
    StaticFile::style(
        "/console/assets/console.css",
        &[BASE_STYLE, DESK_STYLE, RECORDS_STYLE, FIGURES_STYLE, console_style],
    )
});
/// Script of the tree's page.
pub(crate) static SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/console/assets/tree.js", include_str!("../assets/tree.js")));
/// Icon of the console.
pub(crate) static OWN_ICON: &LazyLock<StaticFile> = &ICON;

/// Sections of the console, which the header links to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Front,
    Clients,
    Tree,
    Operators,
    AuditLog,
    Encryption,
    Erasure,
}

impl Section {
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Front, "/console", "Overview"),
        (Self::Clients, "/console/clients", "Clients"),
        (Self::Tree, "/console/tree", "Nodes"),
        (Self::Operators, "/console/operators", "Operators"),
        (Self::AuditLog, "/console/audit-log", "Audit log"),
        (Self::Encryption, "/console/encryption", "Encryption"),
        (Self::Erasure, "/console/erasures", "Erasure"),
    ];
}

/// The signed-in operator and the page's section. The extractor stores it in the request, for error pages.
#[derive(Clone, Debug)]
pub(crate) struct LayoutUser {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) csrf_token: String,
    pub(crate) section: Option<Section>,
}

/// The values that `page.html` needs.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) sandbox: bool,
    pub(crate) installation: String,
    pub(crate) user: Option<LayoutUser>,
    /// Text in the search box.
    pub(crate) search_text: String,
}

/// A link of the header.
pub(crate) struct SectionLink {
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    pub(crate) is_current: bool,
}

impl Layout {
    /// Builds the layout of the page for this request, with its signed-in operator.
    pub(crate) fn new(request: &HttpRequest, section: Option<Section>) -> Self {
        let console = request.app_data::<Data<Console>>();
        let user = request.extensions().get::<LayoutUser>().cloned().map(|user| LayoutUser { section, ..user });
        Self {
            sandbox: console.is_some_and(|console| console.sandbox),
            installation: console.map(|console| console.installation.to_string()).unwrap_or_default(),
            user,
            search_text: String::new(),
        }
    }

    /// Builds a layout for pages rendered without a request at hand (no operator, no search).
    pub(crate) const fn without_request() -> Self {
        Self { sandbox: false, installation: String::new(), user: None, search_text: String::new() }
    }

    /// Returns the links of the header; none without a signed-in operator.
    pub(crate) fn links(&self) -> Vec<SectionLink> {
        let current = self.user.as_ref().and_then(|user| user.section);
        let link = |(section, path, label)| SectionLink { path, label, is_current: current == Some(section) };
        if self.user.is_some() { Section::ALL.map(link).into() } else { Vec::new() }
    }

    pub(crate) fn style(&self) -> String {
        STYLE.url()
    }

    pub(crate) fn icon(&self) -> &'static str {
        "/console/assets/icon.svg"
    }
}
