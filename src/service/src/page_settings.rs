//! Operator settings for the pages: the identity app's name, icon and stores, and the privacy notice. All are optional.

use sakshi_domain::icon::Icon;
use sakshi_domain::language::Language;

/// Texts and links of the pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageSettings {
    /// The identity app's name.
    pub app_name: Option<String>,
    /// The identity app's name in some languages.
    pub app_names: Vec<(Language, String)>,
    /// The identity app's icon.
    pub app_icon: Option<Icon>,
    /// The app's store page for Android; an https URL.
    pub android_store: Option<String>,
    /// The app's store page for iPhone and iPad; an https URL.
    pub ios_store: Option<String>,
    /// The privacy notice; an https URL.
    pub privacy_url: Option<String>,
}

impl PageSettings {
    /// Returns the identity app's name in the language with this tag, or else its general name.
    #[must_use]
    pub fn app_name_in(&self, tag: &str) -> Option<&str> {
        let name_in_language = self.app_names.iter().find(|(language, _)| language.tag() == tag).map(|(_, name)| name);
        name_in_language.or(self.app_name.as_ref()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_without_its_own_app_name_has_the_general_one() {
        let hindi = Language::parse("hindi").unwrap();
        let pages = PageSettings {
            app_name: Some("Parichay".into()),
            app_names: vec![(hindi, "परिचय".into())],
            ..PageSettings::default()
        };
        assert_eq!((pages.app_name_in("hi"), pages.app_name_in("ta")), (Some("परिचय"), Some("Parichay")));
        assert_eq!(PageSettings::default().app_name_in("hi"), None);
    }
}
