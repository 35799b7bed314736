//! Formats a JSON body for people: indented, members in the order sent, long Base64 shortened, and no characters that
//! move the cursor.

use sakshi_domain::unseen::is_unseen;
use serde::de::IgnoredAny;

/// Length up to which a string is shown whole, in characters.
const STRING_CHARS_MAX: usize = 400;
/// Length up to which a Base64 string is shown whole, in characters.
const BASE64_CHARS_MAX: usize = 100;
/// Bytes shown of a shortened string.
const STRING_BYTES_SHOWN: usize = 200;
/// Bytes shown of a shortened Base64 string.
const BASE64_BYTES_SHOWN: usize = 24;
/// Length of the output from which the remaining body is left out, in bytes.
const OUTPUT_BYTES_MAX: usize = 100_000;

/// Returns the body, indented by `margin` and by depth, or `None` if it is not JSON.
pub(in crate::developer) fn pretty(body: &str, margin: usize) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(body).ok()?;
    let mut page = Page { text: String::new(), margin, depth: 0 };
    let mut remaining = body.trim();
    page.new_line();
    while let Some(first) = remaining.chars().next() {
        if page.text.len() > OUTPUT_BYTES_MAX {
            page.new_line();
            page.text.push_str("… (the rest is not shown)");
            break;
        }
        remaining = page.write_token(first, remaining);
    }
    Some(page.text)
}

/// The formatted body so far.
struct Page {
    text: String,
    margin: usize,
    depth: usize,
}

impl Page {
    /// Writes the next token of valid JSON and returns the rest.
    fn write_token<'a>(&mut self, first: char, remaining: &'a str) -> &'a str {
        match first {
            '"' => {
                let (string, remaining) = split_string(remaining);
                self.text.push_str(&shorten(string));
                return remaining;
            }
            '{' | '[' => {
                self.text.push(first);
                let inner = remaining[1..].trim_start();
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
        &remaining[first.len_utf8()..]
    }

    fn new_line(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.extend(std::iter::repeat_n(' ', self.margin + 2 * self.depth));
    }
}

/// Returns the text between the quotes at the start, with its escapes, and the remaining text.
fn split_string(text: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, letter)| {
        let ends = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        ends
    });
    let end = end.map_or(text.len(), |(index, _)| index);
    (&text[1..end], text.get(end + 1..).unwrap_or_default())
}

/// Returns a string in quotes, shortened if it is long.
fn shorten(string: &str) -> String {
    let length = string.chars().count();
    if length > BASE64_CHARS_MAX && is_base64(string) {
        let bytes = string.trim_end_matches('=').len() * 3 / 4;
        return format!("\"{}… ({} of {bytes} bytes in Base64)\"", &string[..BASE64_BYTES_SHOWN], file_kind(string));
    }
    if length > STRING_CHARS_MAX {
        return format!("\"{}… ({length} characters)\"", visible(beginning(string)));
    }
    format!("\"{}\"", visible(string))
}

/// Returns about the first [`STRING_BYTES_SHOWN`] bytes, without splitting a character or an escape.
fn beginning(string: &str) -> &str {
    let mut end = 0;
    while end < STRING_BYTES_SHOWN {
        let remaining = &string[end..];
        end += match remaining.chars().next() {
            Some('\\') if remaining[1..].starts_with('u') => 6,
            Some('\\') => 2,
            Some(letter) => letter.len_utf8(),
            None => break,
        };
    }
    &string[..end]
}

/// Escapes invisible characters, most of which JSON allows unescaped.
fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut output, letter| {
        if is_unseen(letter) {
            output.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            output.push(letter);
        }
        output
    })
}

fn is_base64(text: &str) -> bool {
    text.trim_end_matches('=')
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_'))
}

/// Returns the kind of a file in Base64, by its first characters.
fn file_kind(base64: &str) -> &'static str {
    let known = [
        ("JVBERi", "a PDF"),
        ("/9j/", "a JPEG"),
        ("iVBORw", "a PNG"),
        ("AAAADGpQ", "a JPEG 2000 image"),
        ("PD94bWw", "XML"),
    ];
    known.iter().find(|(start, _)| base64.starts_with(start)).map_or("a file", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn members_keep_their_order_and_empty_values_stay_on_one_line() {
        let output = pretty(r#" {"b":1.50,"a":[true,null,{}],"a":"x\"y\\","c":[ ]} "#, 0).unwrap();
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
        assert_eq!(output.lines().collect::<Vec<_>>(), lines);
        assert_eq!(pretty("7", 4).unwrap(), "    7");
        assert_eq!(pretty("{", 0), None);
    }

    #[test]
    fn long_base64_is_shortened_and_its_file_kind_is_named() {
        // 13 012 characters of Base64 are 9 759 bytes.
        let file = format!("JVBERi0xLjQK{}", "A".repeat(13_000));
        let output = pretty(&json!({ "content": file }).to_string(), 0).unwrap();
        assert_eq!(output, "{\n  \"content\": \"JVBERi0xLjQKAAAAAAAAAAAA… (a PDF of 9759 bytes in Base64)\"\n}");
        let words = "no Base64 ".repeat(50);
        assert!(pretty(&json!(words).to_string(), 0).unwrap().ends_with("… (500 characters)\""));
        assert!(
            pretty(&json!("A".repeat(64)).to_string(), 0).unwrap().len() == 64 + "\"\"".len(),
            "a digest is shown whole"
        );
    }

    #[test]
    fn the_output_is_bounded_and_has_no_control_characters() {
        let output = pretty("[\"\u{9b}2J\u{7f}\", \"\\u001b[2J\"]", 0).unwrap();
        assert!(!output.chars().any(|letter| letter.is_control() && letter != '\n'), "{output:?}");
        let deep = format!("{}{}{}", "[".repeat(100), vec!["1"; 100_000].join(","), "]".repeat(100));
        let output = pretty(&deep, 0).unwrap();
        assert!(output.len() < 2 * OUTPUT_BYTES_MAX && output.ends_with("(the rest is not shown)"));
    }

    proptest! {
        #[test]
        fn a_short_body_parses_as_the_body_that_was_sent(text in "\\PC{0,60}", number in any::<i64>(),
            flag in any::<bool>()) {
            let sent = json!({ "t": text, "list": [number, flag, null, { "inner": text }], "none": {} });
            let output = pretty(&sent.to_string(), 3).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), sent);
        }

        #[test]
        fn any_json_string_can_be_formatted(text in any::<String>()) {
            prop_assert!(pretty(&json!(text).to_string(), 0).is_some());
        }
    }
}
