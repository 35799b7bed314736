//! The language of a page: the choice by `?lang=`, else that of its transaction or event. Every link carries the
//! choice, so nothing is stored for it.

use actix_web::HttpRequest;

use sakshi_domain::language::Language;

use super::text::{TABLES, Texts, Unwritten};

/// The texts of a page, with a flag for the reader's own choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLanguage {
    pub(super) texts: &'static Texts,
    chosen: bool,
    /// Requested language, if the page is in English instead.
    pub(super) unwritten: Option<&'static Unwritten>,
}

impl PageLanguage {
    /// Returns the request's choice; else the language of the transaction or event; else the browser's favourite.
    pub(super) fn of(request: &HttpRequest, wanted: Option<Language>) -> Self {
        let mut pairs = request.query_string().split('&').filter_map(|pair| pair.split_once('='));
        let chosen = pairs.find_map(|(name, tag)| (name == "lang").then(|| Texts::tagged(tag)).flatten());
        let (texts, unwritten) = match (chosen, wanted) {
            (Some(texts), _) => (texts, None),
            (None, Some(language)) => (Texts::of(language), Unwritten::tagged(language.tag())),
            (None, None) => Texts::asked_for(request),
        };
        Self { texts, chosen: chosen.is_some(), unwritten }
    }

    /// Returns the texts that a screen alternates, its own first. A language that the reader has chosen stays.
    pub(super) fn in_turn(self, languages: &[Language]) -> Vec<&'static Texts> {
        let others = languages.iter().filter(|_| !self.chosen).map(|language| Texts::of(*language));
        std::iter::once(self.texts).chain(others.filter(|texts| texts.tag != self.texts.tag)).collect()
    }

    /// Returns one of our URLs, with the chosen language added.
    pub(super) fn at(self, address: &str) -> String {
        if self.chosen { with_language(address, self.texts) } else { address.to_owned() }
    }
}

/// Most languages that a screen alternates.
const IN_TURN_MAX: usize = 3;

/// Returns the languages in `?languages=` of a screen, by their names in the API. Unknown languages and those without
/// texts are ignored, as in `?lang=`.
pub(super) fn in_turn(query: &str) -> Vec<Language> {
    let names =
        query.split('&').find_map(|pair| pair.strip_prefix("languages=")).unwrap_or_default().replace("%2C", ",");
    let mut found = Vec::new();
    for language in names.split(',').filter_map(|name| Language::parse(name).ok()) {
        if Texts::tagged(language.tag()).is_some() && !found.contains(&language) {
            found.push(language);
        }
    }
    found.truncate(IN_TURN_MAX);
    found
}

/// A link to a page in one of the languages.
#[derive(Debug)]
pub(crate) struct LanguageLink {
    pub(crate) texts: &'static Texts,
    pub(crate) address: String,
    /// True for the language of the page.
    pub(crate) current: bool,
}

impl LanguageLink {
    /// Returns links to the page at an address of ours, in the order of the tags.
    pub(super) fn all(address: &str, shown: &'static Texts) -> Vec<Self> {
        let link = |texts: &'static Texts| Self {
            texts,
            address: with_language(address, texts),
            current: texts.tag == shown.tag,
        };
        TABLES.into_iter().map(link).collect()
    }
}

fn with_language(address: &str, texts: &Texts) -> String {
    let mark = if address.contains('?') { '&' } else { '?' };
    format!("{address}{mark}lang={}", texts.tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn language(query: &str) -> PageLanguage {
        let request = TestRequest::with_uri(&format!("/v/x{query}")).to_http_request();
        PageLanguage::of(&request, Some(Language::ENGLISH))
    }

    #[test]
    fn a_choice_goes_along_and_what_is_no_language_is_none() {
        for (query, tag, next) in [
            ("", "en", "/e/x"),
            ("?lang=ur", "ur", "/e/x?lang=ur"),
            ("?help=1&lang=TA", "ta", "/e/x?lang=ta"),
            ("?lang=en", "en", "/e/x?lang=en"),
            ("?lang=de", "en", "/e/x"),
            ("?lang=%22%3Eur", "en", "/e/x"),
            ("?slang=ur", "en", "/e/x"),
        ] {
            let language = language(query);
            assert_eq!((language.texts.tag, language.at("/e/x").as_str()), (tag, next), "{query}");
        }
        assert_eq!(language("?lang=ur").at("/e/x?help=1"), "/e/x?help=1&lang=ur");
    }

    #[test]
    fn a_screen_alternates_the_languages_that_its_address_names_and_ignores_what_is_none() {
        for (query, tags) in [
            ("", &["en"][..]),
            ("?languages=hindi,english", &["hi", "en"]),
            ("?key=x&languages=Urdu%2C20,urdu", &["ur", "ta"]),
            ("?languages=hindi,tamil,urdu,english", &["hi", "ta", "ur"]),
            ("?languages=german,,18,marathi", &["mr"]),
            ("?languages=german", &["en"]),
            ("?languages=hindi,english&lang=ta", &["ta"]),
        ] {
            let request = TestRequest::with_uri(&format!("/e/x/kiosk{query}")).to_http_request();
            let languages = in_turn(request.query_string());
            let language = PageLanguage::of(&request, Some(languages.first().copied().unwrap_or(Language::ENGLISH)));
            let found: Vec<_> = language.in_turn(&languages).iter().map(|texts| texts.tag).collect();
            assert_eq!(found, tags, "{query}");
        }
    }

    #[test]
    fn a_page_links_itself_in_every_language_and_one_of_them_is_its_own() {
        let links = LanguageLink::all("/e/x", Texts::of(Language::parse("urdu").unwrap()));
        assert_eq!(links.len(), TABLES.len());
        let current: Vec<_> = links.iter().filter(|link| link.current).map(|link| link.address.as_str()).collect();
        assert_eq!(current, ["/e/x?lang=ur"]);
    }

    #[test]
    fn a_language_that_is_not_written_is_named_until_the_reader_chooses_one() {
        let santali = Some(Language::from_code(18).unwrap());
        let of = |uri: &str, wanted| {
            PageLanguage::of(&TestRequest::with_uri(uri).to_http_request(), wanted).unwritten.map(|it| it.name)
        };
        assert_eq!(of("/v/x", santali), Some("Santali"));
        assert_eq!(of("/v/x?lang=sat", santali), Some("Santali"));
        assert_eq!(of("/v/x?lang=hi", santali), None);
        assert_eq!(of("/v/x", Some(Language::ENGLISH)), None);
    }
}
