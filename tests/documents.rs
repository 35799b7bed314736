//! Documents against the code: what they list or state as a number is what the code has.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::Claim;

use super::root;

#[path = "documents/errors.rs"]
mod errors;

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// The rows of a document's tables that have so many columns, without their backticks.
fn rows<const COLUMNS: usize>(text: &str) -> impl Iterator<Item = [&str; COLUMNS]> {
    let cells = |line| {
        let line: &str = line;
        let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        cells.try_into().ok()
    };
    text.lines().filter_map(cells)
}

#[test]
fn the_document_about_claims_lists_those_of_the_code() {
    let text = document("docs/claims.md");
    let stated: Vec<(&str, &str)> = rows(&text).skip(2).map(|[asked, comes_back, _]| (asked, comes_back)).collect();
    assert_eq!(stated, Claim::ALL.map(|claim| (claim.name(), credential_name(claim))));
}

/// A number as a document writes it.
trait Written {
    fn written(self, name: &str) -> String;
}

impl Written for usize {
    fn written(self, name: &str) -> String {
        const MIB: usize = 1_024 * 1_024;
        let digits = self.to_string();
        match self {
            _ if self >= MIB && self.is_multiple_of(MIB) => format!("{} MiB", self / MIB),
            _ if self >= MIB => format!("{}.{} MiB", self / MIB, self % MIB * 10 / MIB),
            _ if (name.contains("BYTES") || name.contains("CHARS")) && self >= 1_024 => format!("{} KiB", self / 1_024),
            _ if digits.len() > 3 => format!("{},{}", &digits[..digits.len() - 3], &digits[digits.len() - 3..]),
            _ => digits,
        }
    }
}

impl Written for u32 {
    fn written(self, name: &str) -> String {
        (self as usize).written(name)
    }
}

impl Written for Duration {
    fn written(self, _: &str) -> String {
        format!("{} s", self.as_secs())
    }
}

/// Constants of `limits.rs`, as documents write them.
macro_rules! limits {
    ($($name:ident)+) => {
        BTreeMap::from([$((stringify!($name), Written::written(sakshi_domain::limits::$name, stringify!($name)))),+])
    };
}

#[test]
fn the_numbers_of_the_security_document_are_those_of_the_code() {
    let text = document("docs/security.md");
    let tables = limits!(
        CALLBACK_BYTES_MAX CALLBACK_BYTES_HELD_MAX CALLBACK_ARRIVAL_MAX CALLBACK_INLINE_BYTES_MAX CALLBACK_VALUES_MAX CALLBACK_ELEMENTS_MAX
        FILE_REQUEST_BYTES_MAX FILE_REQUEST_BYTES_HELD_MAX FILE_REQUEST_ARRIVAL_MAX REPORT_BYTES_MAX REPORT_BYTES_HELD_MAX REPORT_ARRIVAL_MAX
        REPORT_VALUES_MAX REQUEST_BYTES_HELD_MAX SMALL_BODY_ARRIVAL_MAX BODY_PROGRESS_WINDOW BODY_PROGRESS_BYTES_MIN BODY_VALUES_MAX
        JOSE_HEADER_CHARS_MAX JOSE_HEADER_VALUES_MAX DISCLOSURES_MAX CREDENTIAL_VALUES_MAX CREDENTIAL_DEPTH_MAX KEY_BINDING_CHARS_MAX
        CPU_WAITING_MAX CPU_WAIT_MAX CPU_USAGE_HALF_LIFE ANSWER_BYTES_HELD_MAX POLL_STALL_MAX POLL_READING_MAX
    );
    let stated = rows(&text).skip_while(|[_, _, _, name]| *name != "Constant");
    let stated = stated.filter(|[_, _, _, name]| name.contains('_') && name.chars().all(|c| c == '_' || c.is_ascii_uppercase()));
    assert_eq!(stated.map(|[_, _, figure, name]| (name, figure.to_owned())).collect::<BTreeMap<_, _>>(), tables);
    let sentences = limits!(
        READ_HEAD_BYTES READ_BODY_BYTES ANSWER_PIECE_BYTES ANSWER_UNSENT_BYTES ANSWER_PROGRESS_BYTES ANSWER_STALL_MAX GUEST_LIST_BYTES_MAX
        GUEST_SLICE_BYTES GUEST_SLICE_INLINE_BYTES PAGE_INTENT_REUSED_MAX
    );
    for (name, figure) in sentences {
        let place = text.split(&format!("(`{name}`)")).next().unwrap_or_default();
        let before = place.rsplit([';', '|', ',']).next().unwrap_or_default();
        assert!(place.len() < text.len() && before.contains(&figure), "docs/security.md says {before:?} of {name}, which is {figure}");
    }
}

/// A constant as the code writes it, in the words of a document.
fn value_of(constant: &str, code: &str) -> Option<String> {
    let (_, rest) = code.split_once(&format!("const {constant}: "))?;
    let (_, value) = rest.split(';').next()?.split_once(" = ")?;
    let unit = if value.contains("from_millis") { " ms" } else { "" };
    let unit = if value.contains("from_secs") { " s" } else { unit };
    let number = value.rsplit('(').next()?.trim_end_matches(')');
    Some(number.replace('_', ",") + unit)
}

#[test]
fn the_numbers_of_the_actors_are_those_of_the_code() {
    let text = document("actors/README.md");
    let numbers: Vec<[&str; 4]> = rows(&text).skip_while(|[_, _, constant, _]| *constant != "Constant").skip(2).collect();
    assert!(numbers.len() > 20, "the table of numbers is there");
    for [what, number, constant, file] in numbers {
        let value = value_of(constant, &document(&format!("actors/{file}")));
        assert_eq!(value.as_deref(), Some(number), "{what}: {constant} in actors/{file}");
    }
}
