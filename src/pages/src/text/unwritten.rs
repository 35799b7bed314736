//! The languages of the identity app that have no texts here yet. Their pages are in English and say so.
//!
//! A wrong or clumsy text about consent is worse than an English text, so a native speaker must write the texts. Sindhi
//! also waits for a decision: India writes it in two scripts.

/// A language without texts.
#[derive(Debug)]
pub(crate) struct UnwrittenLanguage {
    /// BCP 47 tag of the language.
    pub(crate) tag: &'static str,
    /// Name in English.
    pub(crate) name: &'static str,
    /// Name in the language itself.
    pub(crate) endonym: &'static str,
}

const UNWRITTEN_LANGUAGES: [UnwrittenLanguage; 6] = [
    UnwrittenLanguage { tag: "brx", name: "Bodo", endonym: "बड़ो" },
    UnwrittenLanguage { tag: "doi", name: "Dogri", endonym: "डोगरी" },
    UnwrittenLanguage { tag: "ks", name: "Kashmiri", endonym: "کٲشُر" },
    UnwrittenLanguage { tag: "mni", name: "Manipuri", endonym: "ꯃꯩꯇꯩꯂꯣꯟ" },
    UnwrittenLanguage { tag: "sat", name: "Santali", endonym: "ᱥᱟᱱᱛᱟᱲᱤ" },
    UnwrittenLanguage { tag: "sd", name: "Sindhi", endonym: "سنڌي / सिन्धी" },
];

impl UnwrittenLanguage {
    pub(crate) fn with_tag(tag: &str) -> Option<&'static Self> {
        UNWRITTEN_LANGUAGES.iter().find(|language| language.tag.eq_ignore_ascii_case(tag))
    }
}
