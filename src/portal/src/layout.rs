//! The layout of the portal's pages, and the headers of its responses.

use actix_web::http::Method;
use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest};
use sakshi_domain::profile::Profile;
use sakshi_domain::user::UserRole;
use sakshi_service::Service;
pub(super) use sakshi_web::html::{form_page as page, redirect};
use sakshi_web::static_file::ICON;

use crate::files::{
    CLAIMS_STYLE, CREDITS_STYLE, EVENT_STYLE, FIGURES_STYLE_SHEET, LIVE_SCRIPT, RECORDS_STYLE_SHEET, SCRIPT, STYLE,
    TEAM_STYLE, TRANSACTION_SCRIPT,
};
use crate::person::Person;
use crate::roles::required_role;

/// The sections of the portal, which the header links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Verifications,
    Events,
    Orders,
    Checks,
    Webhooks,
    Credits,
    Status,
    Team,
    Keys,
    Log,
}

impl Section {
    const ALL: [(Self, &'static str, &'static str); 11] = [
        (Self::Overview, "/portal", "Overview"),
        (Self::Verifications, "/portal/verifications", "Verifications"),
        (Self::Events, "/portal/events", "Events"),
        (Self::Orders, "/portal/orders", "Orders"),
        (Self::Checks, "/portal/checks", "Checks"),
        (Self::Webhooks, "/portal/webhooks", "Webhooks"),
        (Self::Credits, "/portal/credits", "Credits"),
        (Self::Status, "/portal/status", "Status"),
        (Self::Team, "/portal/team", "Team"),
        (Self::Keys, "/portal/keys", "Keys"),
        (Self::Log, "/portal/log", "Log"),
    ];
}

/// The signed-in person, and the page's section. The extractor stores it in the request, for an error page.
#[derive(Clone, Debug)]
pub(super) struct LayoutUser {
    pub(super) client: String,
    pub(super) app: String,
    pub(super) app_id: String,
    pub(super) csrf_token: String,
    pub(super) person: Person,
    pub(super) section: Option<Section>,
}

/// The data for `page.html`.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) style: String,
    pub(super) script: String,
    pub(super) sandbox: bool,
    /// Name of the environment.
    pub(super) environment: &'static str,
    pub(super) user: Option<LayoutUser>,
    /// True if the header links the sections also for people who have not signed in.
    pub(super) links_sections: bool,
}

/// A link of the header.
pub(super) struct SectionLink {
    pub(super) path: &'static str,
    pub(super) label: &'static str,
    pub(super) is_current: bool,
}

impl Layout {
    /// Builds the layout of a page for people who have not signed in.
    pub(super) fn signed_out(profile: Profile) -> Self {
        Self {
            style: STYLE.url(),
            script: SCRIPT.url(),
            sandbox: profile == Profile::Sandbox,
            environment: match profile {
                Profile::Sandbox => "Sandbox",
                Profile::Stage => "Stage",
                Profile::Production => "Production",
            },
            user: None,
            links_sections: false,
        }
    }

    /// Builds the layout of a public page. Browsers do not send the session there.
    pub(super) fn public(profile: Profile) -> Self {
        Self { links_sections: true, ..Self::signed_out(profile) }
    }

    /// Builds the layout of an error page, with the navigation of the signed-in person.
    pub(super) fn error_page(request: &HttpRequest) -> Self {
        let service = request.app_data::<Data<Service>>();
        let profile = service.map_or(Profile::Production, |service| service.rules.profile);
        Self { user: request.extensions().get::<LayoutUser>().cloned(), ..Self::public(profile) }
    }

    /// Returns the links of the header; none for people who have not signed in.
    pub(super) fn links(&self) -> Vec<SectionLink> {
        let current = self.user.as_ref().and_then(|user| user.section);
        // Team, keys and log need a signed-in user.
        let role = self.user.as_ref().map_or(UserRole::Organise, |user| user.person.role);
        let is_open = |(_, path, _): &(Section, &str, &str)| required_role(&Method::GET, path) <= role;
        let link = |(section, path, label)| SectionLink { path, label, is_current: current == Some(section) };
        if self.user.is_none() && !self.links_sections {
            return Vec::new();
        }
        Section::ALL.into_iter().filter(is_open).map(link).collect()
    }

    /// Returns the icon of the page.
    pub(super) fn icon(&self) -> String {
        ICON.url()
    }

    /// Returns the script of a pending transaction.
    pub(super) fn transaction_script(&self) -> String {
        TRANSACTION_SCRIPT.url()
    }

    /// Returns the script of the page of an event.
    pub(super) fn live_script(&self) -> String {
        LIVE_SCRIPT.url()
    }

    /// Returns the style sheet of the pages of keys, of the team and of an invitation.
    pub(super) fn team_style(&self) -> String {
        TEAM_STYLE.url()
    }

    /// Returns the style sheet of pages that show records.
    pub(super) fn records_style(&self) -> String {
        RECORDS_STYLE_SHEET.url()
    }

    /// Returns the style sheet of the page of credits.
    pub(super) fn credits_style(&self) -> String {
        CREDITS_STYLE.url()
    }

    /// Returns the style sheet of the page of an event.
    pub(super) fn event_style(&self) -> String {
        EVENT_STYLE.url()
    }

    /// Returns the style sheet of pages that show bodies and facts.
    pub(super) fn figures_style(&self) -> String {
        FIGURES_STYLE_SHEET.url()
    }

    /// Returns the style sheet of the forms that ask for claims.
    pub(super) fn claims_style(&self) -> String {
        CLAIMS_STYLE.url()
    }

    /// Returns the CSRF token for the forms of the page; empty without a session.
    pub(super) fn csrf_token(&self) -> &str {
        self.user.as_ref().map_or("", |user| &user.csrf_token)
    }
}
