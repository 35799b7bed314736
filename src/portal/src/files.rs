//! The style sheets and the script of the portal.

use std::sync::LazyLock;

use sakshi_web::static_file::{BASE_STYLE, DESK_STYLE, FIGURES_STYLE, RECORDS_STYLE, StaticFile};

/// The style sheet.
pub(crate) static STYLE: LazyLock<StaticFile> = LazyLock::new(|| StaticFile::style("/assets/portal.css", &[BASE_STYLE, DESK_STYLE]));
/// The script.
pub(crate) static SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/portal.js", include_str!("../assets/portal.js")));
/// The file of the pages of keys, of the team and of an invitation.
pub(crate) static TEAM: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/team.css", &[include_str!("../assets/team.css")]));
/// The script of a transaction that waits.
pub(crate) static FOLLOW: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/transaction.js", include_str!("../assets/transaction.js")));
/// What pages have besides that show records.
pub(crate) static RECORDS: LazyLock<StaticFile> = LazyLock::new(|| StaticFile::style("/assets/records.css", &[RECORDS_STYLE]));
/// The file of the credits page.
pub(crate) static CREDITS: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/credits.css", &[include_str!("../assets/credits.css")]));
/// The file of the page of an event.
pub(crate) static EVENT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/event.css", &[include_str!("../assets/event.css")]));
/// The file of pages that show bodies and facts.
pub(crate) static FIGURES: LazyLock<StaticFile> = LazyLock::new(|| StaticFile::style("/assets/figures.css", &[FIGURES_STYLE]));
/// What the forms have that ask for claims.
pub(crate) static CLAIMS: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/claims.css", &[include_str!("../assets/claims.css")]));
/// What the documentation has besides.
pub(crate) static DOCS: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/docs.css", &[RECORDS_STYLE, FIGURES_STYLE, include_str!("../assets/docs.css")]));

/// The script of the documentation.
pub(crate) static DOCS_SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/docs.js", include_str!("../assets/docs.js")));
