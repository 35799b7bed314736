//! The two spellings of a field's name, and the one that a request uses.

use sakshi_domain::invalid::{FieldError, Invalid};
use sakshi_domain::limits::REPORT_PROBLEMS_MAX;

/// The fields of a body in their order, with the names under which they were sent.
#[derive(Debug)]
pub struct Spellings(pub(crate) Vec<Lookup>);

/// A field that was looked up.
#[derive(Debug)]
pub(crate) struct Lookup {
    pub(crate) name: &'static str,
    /// The name under which it was sent, if it was.
    pub(crate) sent: Option<String>,
    /// True if it was sent and is not null.
    pub(crate) has_value: bool,
}

impl Spellings {
    /// Returns the problems under the names that were sent.
    #[must_use]
    pub fn told(&self, found: &Invalid) -> Invalid {
        let told =
            |problem: &FieldError| FieldError { field: self.sent(&problem.field), message: problem.message.clone() };
        first_of_each(found.fields().iter().map(told))
    }

    /// Returns a path with its first name as it was sent.
    pub(crate) fn sent(&self, path: &str) -> String {
        let (name, rest) = name_of(path);
        let sent = self.0.iter().find(|asked| asked.name == name).and_then(|asked| asked.sent.as_deref());
        format!("{}{rest}", sent.unwrap_or(name))
    }

    /// Returns the position of a field, by the name under which it was sent or is missing.
    pub(crate) fn place_of(&self, name: &str) -> usize {
        self.0.iter().position(|asked| asked.sent.as_deref().unwrap_or(asked.name) == name).unwrap_or(self.0.len())
    }
}

/// Returns the first name of a path, and the rest.
pub(crate) fn name_of(path: &str) -> (&str, &str) {
    path.split_at(path.find(['[', '.']).unwrap_or(path.len()))
}

/// Keeps the first problem of each field, and none of its parts after it; at most a hundred in all.
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

/// Returns true if a path equals `whole` or leads into it.
fn is_within(path: &str, whole: &str) -> bool {
    path.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns true if `sent` is the name, or its other spelling, as `face_auth` and `faceAuth`.
pub(crate) fn is_spelling(sent: &str, name: &str) -> bool {
    // Both spellings begin alike, and most sent names do not match: every name is compared with every field.
    sent == name
        || (sent.as_bytes().first() == name.as_bytes().first()
            && (snake(name).eq(sent.chars()) || camel(name).eq(sent.chars())))
}

/// Spells the name as `face_auth`; letters that are all capitals are one word, as in `emailID`.
fn snake(name: &str) -> impl Iterator<Item = char> {
    letters(name).flat_map(|(begins, letter)| begins.then_some('_').into_iter().chain(Some(letter)))
}

/// Spells the name as `faceAuth`.
fn camel(name: &str) -> impl Iterator<Item = char> {
    letters(name).map(|(begins, letter)| if begins { letter.to_ascii_uppercase() } else { letter })
}

/// Returns the letters of a name in lower case, each with true if a word after the first begins with it.
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
        let found =
            (0..1_000).map(|index| FieldError { field: format!("list[{index}]"), message: "is odd".to_owned() });
        assert_eq!(first_of_each(found).fields().len(), REPORT_PROBLEMS_MAX);
    }
}
