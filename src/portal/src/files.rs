//! The style sheets and the script of the portal.

use std::sync::LazyLock;

use sakshi_web::static_file::{BASE_STYLE, DESK_STYLE, FIGURES_STYLE, RECORDS_STYLE, StaticFile};

/// Style sheet of all pages.
pub(crate) static STYLE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/portal.css", &[BASE_STYLE, DESK_STYLE]));
/// Script of all pages.
pub(crate) static SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/portal.js", include_str!("../assets/portal.js")));
/// Style sheet of the pages of keys, of the team and of an invitation.
pub(crate) static TEAM_STYLE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/team.css", &[include_str!("../assets/team.css")]));
/// Script of a pending transaction.
pub(crate) static TRANSACTION_SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/transaction.js", include_str!("../assets/transaction.js")));
/// Script of the page of an event.
pub(crate) static LIVE_SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/live.js", include_str!("../assets/live.js")));
/// Additional style sheet of pages with records.
pub(crate) static RECORDS_STYLE_SHEET: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/records.css", &[RECORDS_STYLE]));
/// Style sheet of the credits page.
pub(crate) static CREDITS_STYLE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/credits.css", &[include_str!("../assets/credits.css")]));
/// Style sheet of the page of an event.
pub(crate) static EVENT_STYLE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/event.css", &[include_str!("../assets/event.css")]));
/// Style sheet of pages with bodies and facts.
pub(crate) static FIGURES_STYLE_SHEET: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/figures.css", &[FIGURES_STYLE]));
/// Additional style sheet of forms with claims.
pub(crate) static CLAIMS_STYLE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/claims.css", &[include_str!("../assets/claims.css")]));
/// Additional style sheet of the documentation.
pub(crate) static DOCS_STYLE: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::style("/assets/docs.css", &[RECORDS_STYLE, FIGURES_STYLE, include_str!("../assets/docs.css")])
});

/// Script of the documentation.
pub(crate) static DOCS_SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/docs.js", include_str!("../assets/docs.js")));
