//! The languages of the identity app without texts here.
//!
//! A wrong or clumsy text about consent is worse than one in English. So a language waits here until a reader of it has
//! written its texts; until then its pages are in English and say so. Sindhi also waits for a decision: India writes it
//! in two scripts.

/// A language without texts.
#[derive(Debug)]
pub(crate) struct Unwritten {
    /// BCP 47 tag of the language.
    pub(crate) tag: &'static str,
    /// Name in English.
    pub(crate) name: &'static str,
    /// Name in the language itself.
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
