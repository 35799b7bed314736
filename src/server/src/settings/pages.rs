//! `[pages]`: names and links on the pages for residents and guests.

use sakshi_domain::icon::Icon;
use sakshi_domain::language::Language;
use sakshi_domain::unseen::is_unseen;
use sakshi_service::page_settings::PageSettings;
use url::Url;

use super::reader::Reader;

/// Maximum number of characters of a name, so that it fits a button on a phone.
const NAME_CHARS_MAX: usize = 40;

pub(super) fn read(reader: &mut Reader) -> PageSettings {
    let pages = PageSettings {
        app_name: reader.optional("pages.app_name", parse_name),
        app_names: reader.list("pages.app_names", parse_name_in_language),
        app_icon: reader.optional("pages.app_icon_path", read_icon),
        android_store: reader.optional("pages.app_store_android", parse_link),
        ios_store: reader.optional("pages.app_store_ios", parse_link),
        privacy_url: reader.optional("pages.privacy_url", parse_link),
    };
    let has_name = pages.app_name.is_some() || reader.problems.has("pages.app_name");
    reader.problems.require(
        has_name || pages.app_names.is_empty(),
        "pages.app_name",
        "must be set: it is the name in languages without one in app_names",
    );
    reader.problems.require(
        has_name || pages.app_icon.is_none(),
        "pages.app_name",
        "must be set: an icon needs a name",
    );
    pages
}

fn parse_name(text: &str) -> Result<String, &'static str> {
    let fits = !text.is_empty() && text.chars().count() <= NAME_CHARS_MAX && !text.chars().any(is_unseen);
    if fits { Ok(text.to_owned()) } else { Err("must be a name of at most 40 characters") }
}

fn parse_name_in_language(text: &str) -> Result<(Language, String), &'static str> {
    let parsed = text
        .split_once('=')
        .and_then(|(language, text)| Some((Language::parse(language.trim()).ok()?, parse_name(text.trim()).ok()?)));
    parsed.ok_or("must be a language, an equals sign and a name of at most 40 characters, such as \"hindi=...\"")
}

fn read_icon(path: &str) -> Result<Icon, &'static str> {
    let icon = std::fs::read(path).ok().and_then(Icon::from_icon_file);
    icon.ok_or("must be the path of a readable PNG or SVG file of at most 16384 bytes")
}

fn parse_link(text: &str) -> Result<String, &'static str> {
    let is_public = |url: &Url| url.scheme() == "https" && url.username().is_empty() && url.password().is_none();
    let url = Url::parse(text).ok().filter(is_public);
    url.map(String::from).ok_or("must be an https URL without credentials")
}
