//! A JSON body for people: indented, members in the order sent, long Base64 shortened to its kind, and no characters
//! that move the cursor.

use sakshi_domain::unseen::is_unseen;
use serde::de::IgnoredAny;

/// Longest string that is shown whole, in characters.
const STRING_MAX: usize = 400;
/// The same for Base64.
const BASE64_MAX: usize = 100;
/// Part that is shown of a shortened string.
const STRING_SHOWN: usize = 200;
const BASE64_SHOWN: usize = 24;
/// Most characters of the whole output.
const TOTAL_MAX: usize = 100_000;

/// Returns the body, indented by `margin` and by depth, or `None` if it is not JSON.
pub(in crate::developer) fn pretty(body: &str, margin: usize) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(body).ok()?;
    let mut page = Page { text: String::new(), margin, depth: 0 };
    let mut rest = body.trim();
    page.new_line();
    while let Some(first) = rest.chars().next() {
        if page.text.len() > TOTAL_MAX {
            page.new_line();
            page.text.push_str("… (the rest is not shown)");
            break;
        }
        rest = page.token(first, rest);
    }
    Some(page.text)
}

struct Page {
    text: String,
    margin: usize,
    depth: usize,
}

impl Page {
    /// Writes the next token of valid JSON and returns the rest.
    fn token<'a>(&mut self, first: char, rest: &'a str) -> &'a str {
        match first {
            '"' => {
                let (string, rest) = string(rest);
                self.text.push_str(&shortened(string));
                return rest;
            }
            '{' | '[' => {
                self.text.push(first);
                let inner = rest[1..].trim_start();
                if inner.starts_with(['}', ']']) {
                    self.text.push_str(&inner[..1]);
                    return &inner[1..];
                }
                self.depth += 1;
                self.new_line();
            }
            '}' | ']' => {
                self.depth -= 1;
                self.new_line();
                self.text.push(first);
            }
            ',' => {
                self.text.push(first);
                self.new_line();
            }
            ':' => self.text.push_str(": "),
            space if space.is_ascii_whitespace() => {}
            other => self.text.push(other),
        }
        &rest[first.len_utf8()..]
    }

    fn new_line(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.extend(std::iter::repeat_n(' ', self.margin + 2 * self.depth));
    }
}

/// Returns the text between the quotes at the start, as written, and the rest.
fn string(text: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, letter)| {
        let ends = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        ends
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    (&text[1..end], text.get(end + 1..).unwrap_or_default())
}

fn shortened(string: &str) -> String {
    let length = string.chars().count();
    if length > BASE64_MAX && is_base64(string) {
        let bytes = string.trim_end_matches('=').len() * 3 / 4;
        return format!("\"{}… ({} of {bytes} bytes in Base64)\"", &string[..BASE64_SHOWN], form(string));
    }
    if length > STRING_MAX {
        return format!("\"{}… ({length} characters)\"", visible(beginning(string)));
    }
    format!("\"{}\"", visible(string))
}

/// Returns about the first [`STRING_SHOWN`] bytes, without splitting a character or an escape.
fn beginning(string: &str) -> &str {
    let mut end = 0;
    while end < STRING_SHOWN {
        let rest = &string[end..];
        end += match rest.chars().next() {
            Some('\\') if rest[1..].starts_with('u') => 6,
            Some('\\') => 2,
            Some(letter) => letter.len_utf8(),
            None => break,
        };
    }
    &string[..end]
}

/// Escapes invisible characters, most of which JSON allows unescaped.
fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, letter| {
        if is_unseen(letter) {
            shown.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            shown.push(letter);
        }
        shown
    })
}

fn is_base64(text: &str) -> bool {
    text.trim_end_matches('=')
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_'))
}

/// Names the kind of a file in Base64, by its first characters.
fn form(base64: &str) -> &'static str {
    let known = [
        ("JVBERi", "a PDF"),
        ("/9j/", "a JPEG"),
        ("iVBORw", "a PNG"),
        ("AAAADGpQ", "a JPEG 2000 image"),
        ("PD94bWw", "XML"),
    ];
    known.iter().find(|(start, _)| base64.starts_with(start)).map_or("a file", |(_, form)| form)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn members_stay_in_their_order_and_empty_ones_on_their_line() {
        let shown = pretty(r#" {"b":1.50,"a":[true,null,{}],"a":"x\"y\\","c":[ ]} "#, 0).unwrap();
        let lines = [
            "{",
            "  \"b\": 1.50,",
            "  \"a\": [",
            "    true,",
            "    null,",
            "    {}",
            "  ],",
            "  \"a\": \"x\\\"y\\\\\",",
            "  \"c\": []",
            "}",
        ];
        assert_eq!(shown.lines().collect::<Vec<_>>(), lines);
        assert_eq!(pretty("7", 4).unwrap(), "    7");
        assert_eq!(pretty("{", 0), None);
    }

    #[test]
    fn long_base64_is_shortened_to_what_it_is() {
        let file = format!("JVBERi0xLjQK{}", "A".repeat(13_000));
        let shown = pretty(&json!({ "content": file }).to_string(), 0).unwrap();
        assert_eq!(shown, "{\n  \"content\": \"JVBERi0xLjQKAAAAAAAAAAAA… (a PDF of 9759 bytes in Base64)\"\n}");
        let words = "no Base64 ".repeat(50);
        assert!(pretty(&json!(words).to_string(), 0).unwrap().ends_with("… (500 characters)\""));
        assert!(pretty(&json!("A".repeat(64)).to_string(), 0).unwrap().len() == 66, "a digest is shown whole");
    }

    #[test]
    fn nothing_moves_the_cursor_and_nothing_is_endless() {
        let shown = pretty("[\"\u{9b}2J\u{7f}\", \"\\u001b[2J\"]", 0).unwrap();
        assert!(!shown.chars().any(|letter| letter.is_control() && letter != '\n'), "{shown:?}");
        let deep = format!("{}{}{}", "[".repeat(100), vec!["1"; 100_000].join(","), "]".repeat(100));
        let shown = pretty(&deep, 0).unwrap();
        assert!(shown.len() < 2 * TOTAL_MAX && shown.ends_with("(the rest is not shown)"));
    }

    proptest! {
        #[test]
        fn what_is_not_shortened_reads_as_what_was_sent(text in "\\PC{0,60}", number in any::<i64>(),
            flag in any::<bool>()) {
            let sent = json!({ "t": text, "list": [number, flag, null, { "inner": text }], "none": {} });
            let shown = pretty(&sent.to_string(), 3).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), sent);
        }

        #[test]
        fn any_json_string_is_shown(text in any::<String>()) {
            prop_assert!(pretty(&json!(text).to_string(), 0).is_some());
        }
    }
}
