//! The frame around every page.

use super::files::{SCRIPT, STYLE};
use super::language::{PageLanguage, Version};
use super::text::Texts;

/// What the frame around every page needs.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) texts: &'static Texts,
    pub(crate) sandbox: bool,
    /// The same page in every language.
    pub(crate) versions: Vec<Version>,
    pub(crate) style: String,
    pub(crate) script: String,
}

impl Frame {
    /// Around the page at this address of ours.
    pub(super) fn new(language: PageLanguage, sandbox: bool, address: &str) -> Self {
        let PageLanguage { texts, .. } = language;
        Self { texts, sandbox, versions: Version::all(address, texts), style: STYLE.url(), script: SCRIPT.url() }
    }
}
