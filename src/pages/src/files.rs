//! The style sheets and the scripts of the pages.

use std::sync::LazyLock;

use sakshi_web::static_file::{BASE_STYLE, StaticFile};

const PAGE_STYLE: &str = include_str!("../assets/page.css");

/// Style sheet of all pages.
pub(crate) static STYLE: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::style("/assets/page.css", &[BASE_STYLE, PAGE_STYLE, include_str!("../assets/card.css")])
});
/// Style of an event's picture.
pub(crate) static PICTURE_STYLE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/picture.css", &[include_str!("../assets/picture.css")]));
/// Script of all pages.
pub(crate) static SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/page.js", include_str!("../assets/page.js")));
/// Style sheet of a kiosk's screen.
pub(crate) static KIOSK_STYLE: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::style("/assets/kiosk.css", &[BASE_STYLE, PAGE_STYLE, include_str!("../assets/kiosk.css")])
});
/// Script of a kiosk's screen.
pub(crate) static KIOSK_SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/kiosk.js", include_str!("../assets/kiosk.js")));
/// Style sheet of a poster on A3: the A4 style, enlarged.
pub(crate) static POSTER_A3_STYLE: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::style(
        "/assets/poster-a3.css",
        &[include_str!("../assets/poster.css"), include_str!("../assets/poster-a3.css")],
    )
});
/// Style sheet of a poster.
pub(crate) static POSTER_STYLE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/poster.css", &[include_str!("../assets/poster.css")]));
/// Style sheet of a ticket.
pub(crate) static TICKET_STYLE: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::style("/assets/ticket.css", &[BASE_STYLE, PAGE_STYLE, include_str!("../assets/ticket.css")])
});
/// Script of a ticket, after the script of all pages.
pub(crate) static TICKET_SCRIPT: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::script(
        "/assets/ticket.js",
        concat!(include_str!("../assets/page.js"), include_str!("../assets/ticket.js")),
    )
});
/// Style sheet of a door.
pub(crate) static DOOR_STYLE: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::style("/assets/door.css", &[BASE_STYLE, include_str!("../assets/door.css")]));
/// Script of a door.
pub(crate) static DOOR_SCRIPT: LazyLock<StaticFile> =
    LazyLock::new(|| StaticFile::script("/assets/door.js", include_str!("../assets/door.js")));
