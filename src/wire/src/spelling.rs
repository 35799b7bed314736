//! The two spellings of a field's name, and what a request spelled otherwise than the code does.

use sakshi_domain::invalid::{FieldError, Invalid};
use sakshi_domain::limits::REPORT_PROBLEMS_MAX;

/// The fields of a body in their order, with the names under which they were sent.
#[derive(Debug)]
pub struct Spellings(pub(crate) Vec<Asked>);

/// A field that was asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    /// The name under which it was sent, if it was.
    pub(crate) sent: Option<String>,
    /// Whether it was sent and is not null.
    pub(crate) has_value: bool,
}

impl Spellings {
    /// The problems under the names that were sent.
    #[must_use]
    pub fn told(&self, found: &Invalid) -> Invalid {
        let told = |problem: &FieldError| FieldError { field: self.sent(&problem.field), message: problem.message.clone() };
        first_of_each(found.fields().iter().map(told))
    }

    /// A path with its first name as it was sent.
    pub(crate) fn sent(&self, path: &str) -> String {
        let (name, rest) = name_of(path);
        let sent = self.0.iter().find(|asked| asked.name == name).and_then(|asked| asked.sent.as_deref());
        format!("{}{rest}", sent.unwrap_or(name))
    }

    /// The place of a field among all, by the name under which it was sent or is missing.
    pub(crate) fn place_of(&self, name: &str) -> usize {
        self.0.iter().position(|asked| asked.sent.as_deref().unwrap_or(asked.name) == name).unwrap_or(self.0.len())
    }
}

/// The first name of a path, and the rest.
pub(crate) fn name_of(path: &str) -> (&str, &str) {
    path.split_at(path.find(['[', '.']).unwrap_or(path.len()))
}

/// Of each field the first problem, and of its parts none after it. More than a hundred are not told.
pub(crate) fn first_of_each(found: impl IntoIterator<Item = FieldError>) -> Invalid {
    let mut told = Invalid::none();
    for FieldError { field, message } in found {
        if told.fields().len() == REPORT_PROBLEMS_MAX {
            break;
        }
        if !told.fields().iter().any(|known| is_within(&field, &known.field)) {
            told.add(field, message);
        }
    }
    told
}

/// Whether a path is another one, or leads into it.
fn is_within(path: &str, whole: &str) -> bool {
    path.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whether `sent` is the name, or the name in the other of `face_auth` and `faceAuth`.
pub(crate) fn is_spelling(sent: &str, name: &str) -> bool {
    // Both begin alike, and most fields of a request do not: every name is held against every field.
    sent == name || (sent.as_bytes().first() == name.as_bytes().first() && (snake(name).eq(sent.chars()) || camel(name).eq(sent.chars())))
}

/// The name as `face_auth`; letters that are all capitals are one word, as in `emailID`.
fn snake(name: &str) -> impl Iterator<Item = char> {
    letters(name).flat_map(|(begins, letter)| begins.then_some('_').into_iter().chain(Some(letter)))
}

/// The name as `faceAuth`.
fn camel(name: &str) -> impl Iterator<Item = char> {
    letters(name).map(|(begins, letter)| if begins { letter.to_ascii_uppercase() } else { letter })
}

/// The letters of a name in lower case, each with whether a word after the first begins with it.
fn letters(name: &str) -> impl Iterator<Item = (bool, char)> {
    let mut before = '\0';
    name.chars().filter_map(move |letter| {
        let begins = before == '_' || (letter.is_ascii_uppercase() && !before.is_ascii_uppercase() && before != '\0');
        before = letter;
        (letter != '_').then_some((begins, letter.to_ascii_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_in_either_spelling_and_in_no_other() {
        for (sent, name) in [
            ("face_auth", "face_auth"),
            ("faceAuth", "face_auth"),
            ("txnId", "txnId"),
            ("txn_id", "txnId"),
            ("name", "name"),
            ("emailID", "emailID"),
            ("emailId", "emailID"),
            ("email_id", "emailID"),
            ("base64FileData", "base64FileData"),
            ("base64_file_data", "base64FileData"),
            ("invitation_expire_time_stamp", "invitationExpireTimeStamp"),
        ] {
            assert!(is_spelling(sent, name), "{sent}");
        }
        for (sent, name) in [
            ("FaceAuth", "face_auth"),
            ("face_Auth", "face_auth"),
            ("faceauth", "face_auth"),
            ("face__auth", "face_auth"),
            ("face-auth", "face_auth"),
            ("txn__id", "txnId"),
            ("txn_Id", "txnId"),
            ("TxnId", "txnId"),
            ("Name", "name"),
            ("email_i_d", "emailID"),
            ("EmailID", "emailID"),
            ("", "name"),
        ] {
            assert!(!is_spelling(sent, name), "{sent}");
        }
    }

    #[test]
    fn of_very_many_problems_the_first_hundred_are_told() {
        let found = (0..1_000).map(|index| FieldError { field: format!("list[{index}]"), message: "is odd".to_owned() });
        assert_eq!(first_of_each(found).fields().len(), REPORT_PROBLEMS_MAX);
    }
}
