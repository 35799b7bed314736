//! The language of a page: the reader's choice in `?lang=`, else the language of the transaction or event. Every link
//! carries the choice, so it is not stored.

use actix_web::HttpRequest;

use sakshi_domain::language::Language;

use super::text::{ALL_TEXTS, Texts, UnwrittenLanguage};

/// The texts of a page, in the language that the reader, the request or the browser chose.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLanguage {
    pub(super) texts: &'static Texts,
    /// True if the reader has chosen the language by `?lang=`.
    is_chosen: bool,
    /// Requested language, if the page is in English instead.
    pub(super) unwritten: Option<&'static UnwrittenLanguage>,
}

impl PageLanguage {
    /// Returns the language in `?lang=`; else the language of the transaction or event; else the browser's preference.
    pub(super) fn from_request(request: &HttpRequest, default: Option<Language>) -> Self {
        let mut pairs = request.query_string().split('&').filter_map(|pair| pair.split_once('='));
        let chosen = pairs.find_map(|(name, tag)| (name == "lang").then(|| Texts::with_tag(tag)).flatten());
        let (texts, unwritten) = match (chosen, default) {
            (Some(texts), _) => (texts, None),
            (None, Some(language)) => (Texts::for_language(language), UnwrittenLanguage::with_tag(language.tag())),
            (None, None) => Texts::for_browser(request),
        };
        Self { texts, is_chosen: chosen.is_some(), unwritten }
    }

    /// Returns the texts between which a screen alternates, this language's first. With a chosen language nothing
    /// alternates.
    pub(super) fn alternating_texts(self, languages: &[Language]) -> Vec<&'static Texts> {
        let others = languages.iter().filter(|_| !self.is_chosen).map(|language| Texts::for_language(*language));
        std::iter::once(self.texts).chain(others.filter(|texts| texts.tag != self.texts.tag)).collect()
    }

    /// Adds the chosen language, if any, to an address of this service.
    pub(super) fn localise(self, address: &str) -> String {
        if self.is_chosen { with_language(address, self.texts) } else { address.to_owned() }
    }
}

/// Most languages between which a screen alternates.
const ALTERNATING_MAX: usize = 3;

/// Parses the language names in a screen's `?languages=`. Unknown languages, and languages without texts, are ignored.
pub(super) fn alternating_languages(query: &str) -> Vec<Language> {
    let names =
        query.split('&').find_map(|pair| pair.strip_prefix("languages=")).unwrap_or_default().replace("%2C", ",");
    let mut languages = Vec::new();
    for language in names.split(',').filter_map(|name| Language::parse(name).ok()) {
        if Texts::with_tag(language.tag()).is_some() && !languages.contains(&language) {
            languages.push(language);
        }
    }
    languages.truncate(ALTERNATING_MAX);
    languages
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
    /// Returns links to an address of this service in every language, in the order of the tags.
    pub(super) fn all(address: &str, current: &'static Texts) -> Vec<Self> {
        let link = |texts: &'static Texts| Self {
            texts,
            address: with_language(address, texts),
            current: texts.tag == current.tag,
        };
        ALL_TEXTS.into_iter().map(link).collect()
    }
}

fn with_language(address: &str, texts: &Texts) -> String {
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}lang={}", texts.tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn language(query: &str) -> PageLanguage {
        let request = TestRequest::with_uri(&format!("/v/x{query}")).to_http_request();
        PageLanguage::from_request(&request, Some(Language::ENGLISH))
    }

    #[test]
    fn links_keep_the_chosen_language_and_unknown_tags_are_ignored() {
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
            assert_eq!((language.texts.tag, language.localise("/e/x").as_str()), (tag, next), "{query}");
        }
        assert_eq!(language("?lang=ur").localise("/e/x?help=1"), "/e/x?help=1&lang=ur");
    }

    #[test]
    fn a_screen_alternates_between_the_known_languages_in_its_address() {
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
            let languages = alternating_languages(request.query_string());
            let language =
                PageLanguage::from_request(&request, Some(languages.first().copied().unwrap_or(Language::ENGLISH)));
            let alternating: Vec<_> = language.alternating_texts(&languages).iter().map(|texts| texts.tag).collect();
            assert_eq!(alternating, tags, "{query}");
        }
    }

    #[test]
    fn a_page_links_to_itself_in_every_language_and_marks_its_own() {
        let links = LanguageLink::all("/e/x", Texts::for_language(Language::parse("urdu").unwrap()));
        assert_eq!(links.len(), ALL_TEXTS.len());
        let current: Vec<_> = links.iter().filter(|link| link.current).map(|link| link.address.as_str()).collect();
        assert_eq!(current, ["/e/x?lang=ur"]);
    }

    #[test]
    fn a_language_without_texts_is_named_until_the_reader_chooses_another() {
        let santali = Some(Language::from_code(18).unwrap());
        let unwritten_name = |uri: &str, default| {
            let language = PageLanguage::from_request(&TestRequest::with_uri(uri).to_http_request(), default);
            language.unwritten.map(|unwritten| unwritten.name)
        };
        assert_eq!(unwritten_name("/v/x", santali), Some("Santali"));
        assert_eq!(unwritten_name("/v/x?lang=sat", santali), Some("Santali"));
        assert_eq!(unwritten_name("/v/x?lang=hi", santali), None);
        assert_eq!(unwritten_name("/v/x", Some(Language::ENGLISH)), None);
    }
}
