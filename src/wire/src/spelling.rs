//! The two spellings of a field's name, such as `face_auth` and `faceAuth`, and the spelling that a request uses.

use sakshi_domain::invalid::{FieldError, Invalid};
use sakshi_domain::limits::REPORT_PROBLEMS_MAX;

/// The fields of a body in the order of declaration, with their names in the request.
#[derive(Debug)]
pub struct Spellings(pub(crate) Vec<Lookup>);

/// A field that was looked up in a body.
#[derive(Debug)]
pub(crate) struct Lookup {
    pub(crate) name: &'static str,
    /// The name of the field in the request, if it was sent.
    pub(crate) sent_name: Option<String>,
    /// True if the field was sent and is not null.
    pub(crate) has_value: bool,
}

impl Spellings {
    /// Returns the same problems, with each field named as the request spells it.
    #[must_use]
    pub fn translate(&self, invalid: &Invalid) -> Invalid {
        let respelled =
            |problem: &FieldError| FieldError { field: self.as_sent(&problem.field), message: problem.message.clone() };
        first_per_field(invalid.fields().iter().map(respelled))
    }

    /// Returns a path with its first name as in the request.
    pub(crate) fn as_sent(&self, path: &str) -> String {
        let (name, rest) = split_path(path);
        let sent_name = self.0.iter().find(|lookup| lookup.name == name).and_then(|lookup| lookup.sent_name.as_deref());
        format!("{}{rest}", sent_name.unwrap_or(name))
    }

    /// Returns the position of a field, by its name in the request; by its own name if it is absent.
    pub(crate) fn position(&self, name: &str) -> usize {
        let is_named = |lookup: &Lookup| lookup.sent_name.as_deref().unwrap_or(lookup.name) == name;
        self.0.iter().position(is_named).unwrap_or(self.0.len())
    }
}

/// Splits a path into its first name and the rest.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.split_at(path.find(['[', '.']).unwrap_or(path.len()))
}

/// Keeps the first problem of each field, without later problems of its parts; at most a hundred in total.
pub(crate) fn first_per_field(problems: impl IntoIterator<Item = FieldError>) -> Invalid {
    let mut invalid = Invalid::none();
    for FieldError { field, message } in problems {
        if invalid.fields().len() == REPORT_PROBLEMS_MAX {
            break;
        }
        if !invalid.fields().iter().any(|earlier| is_within(&field, &earlier.field)) {
            invalid.add(field, message);
        }
    }
    invalid
}

/// Returns true if a path equals `whole` or leads into it.
fn is_within(path: &str, whole: &str) -> bool {
    path.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns true if `sent_name` is a spelling of the name: `face_auth` and `faceAuth` are two of one name.
pub(crate) fn is_spelling(sent_name: &str, name: &str) -> bool {
    // The first bytes are compared first, because every name is compared with every field, and few names match.
    sent_name == name
        || (sent_name.as_bytes().first() == name.as_bytes().first()
            && (snake_case(name).eq(sent_name.chars()) || camel_case(name).eq(sent_name.chars())))
}

/// Spells the name as `face_auth`. Consecutive capitals are one word, as in `emailID`.
fn snake_case(name: &str) -> impl Iterator<Item = char> {
    lower_case_letters(name)
        .flat_map(|(begins_word, letter)| begins_word.then_some('_').into_iter().chain(Some(letter)))
}

/// Spells the name as `faceAuth`.
fn camel_case(name: &str) -> impl Iterator<Item = char> {
    lower_case_letters(name).map(|(begins_word, letter)| if begins_word { letter.to_ascii_uppercase() } else { letter })
}

/// Returns the letters of a name in lower case, with true for the first letter of each word but the first.
fn lower_case_letters(name: &str) -> impl Iterator<Item = (bool, char)> {
    let mut previous = '\0';
    name.chars().filter_map(move |letter| {
        let begins_word =
            previous == '_' || (letter.is_ascii_uppercase() && !previous.is_ascii_uppercase() && previous != '\0');
        previous = letter;
        (letter != '_').then_some((begins_word, letter.to_ascii_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_two_spellings_and_no_other() {
        for (sent_name, name) in [
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
            assert!(is_spelling(sent_name, name), "{sent_name}");
        }
        for (sent_name, name) in [
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
            assert!(!is_spelling(sent_name, name), "{sent_name}");
        }
    }

    #[test]
    fn at_most_a_hundred_problems_are_reported() {
        let problems =
            (0..1_000).map(|index| FieldError { field: format!("list[{index}]"), message: "is wrong".to_owned() });
        assert_eq!(first_per_field(problems).fields().len(), REPORT_PROBLEMS_MAX);
    }
}
