//! What the operator has the pages say: how the identity app is called, how it looks and where it is installed from, and where
//! the privacy notice is. Everything may be left out.

use sakshi_domain::icon::Icon;
use sakshi_domain::language::Language;

/// What the pages name and link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageSettings {
    /// The identity app's name.
    pub app_name: Option<String>,
    /// Its name in some of the languages.
    pub app_names: Vec<(Language, String)>,
    /// Its icon.
    pub app_icon: Option<Icon>,
    /// Where it is installed from on Android; an https URL.
    pub android_store: Option<String>,
    /// The same on iPhone and iPad.
    pub ios_store: Option<String>,
    /// The privacy notice; an https URL.
    pub privacy_url: Option<String>,
}

impl PageSettings {
    /// The identity app's name in the language with this tag.
    #[must_use]
    pub fn app_name_in(&self, tag: &str) -> Option<&str> {
        let own = self.app_names.iter().find(|(language, _)| language.tag() == tag).map(|(_, name)| name);
        own.or(self.app_name.as_ref()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_without_a_name_of_its_own_has_the_common_one() {
        let hindi = Language::parse("hindi").unwrap();
        let pages = PageSettings {
            app_name: Some("Parichay".into()), app_names: vec![(hindi, "परिचय".into())], ..PageSettings::default()
        };
        assert_eq!((pages.app_name_in("hi"), pages.app_name_in("ta")), (Some("परिचय"), Some("Parichay")));
        assert_eq!(PageSettings::default().app_name_in("hi"), None);
    }
}
