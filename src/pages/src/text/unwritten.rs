//! The languages of the identity app in which these pages are not written.
//!
//! A wrong or clumsy text about consent is worse than one in English. So a language waits here until somebody who reads it has
//! written it; its pages are in English and say so. Sindhi waits for a decision too: India writes it in two scripts.

/// A language without texts.
#[derive(Debug)]
pub(crate) struct Unwritten {
    /// BCP 47 tag of the language.
    pub(crate) tag: &'static str,
    /// In English.
    pub(crate) name: &'static str,
    /// What its speakers call it.
    pub(crate) endonym: &'static str,
}

const ALL: [Unwritten; 6] = [
    Unwritten { tag: "brx", name: "Bodo", endonym: "बड़ो" },
    Unwritten { tag: "doi", name: "Dogri", endonym: "डोगरी" },
    Unwritten { tag: "ks", name: "Kashmiri", endonym: "کٲشُر" },
    Unwritten { tag: "mni", name: "Manipuri", endonym: "ꯃꯩꯇꯩꯂꯣꯟ" },
    Unwritten { tag: "sat", name: "Santali", endonym: "ᱥᱟᱱᱛᱟᱲᱤ" },
    Unwritten { tag: "sd", name: "Sindhi", endonym: "سنڌي / सिन्धी" },
];

impl Unwritten {
    pub(crate) fn tagged(tag: &str) -> Option<&'static Self> {
        ALL.iter().find(|language| language.tag.eq_ignore_ascii_case(tag))
    }
}
