//! A JSON body on pages: indented to read, and as exact bytes.

use askama::Template;
use askama::filters::HtmlSafe;

/// Most characters of a text in the indented body; longer texts, such as photos, are shortened.
const TEXT_CHARS_MAX: usize = 240;
/// Characters of a shortened text.
const SHORTENED_CHARS: usize = 40;

/// A body as an element of a page. A page has at most one body.
#[derive(Debug, Template)]
#[template(path = "json_body.html")]
pub(super) struct JsonBody {
    raw: String,
}

impl HtmlSafe for JsonBody {}

impl JsonBody {
    pub(super) fn new(raw: String) -> Self {
        Self { raw }
    }

    /// Returns every token as received, indented.
    fn pretty(&self) -> String {
        let mut pretty = String::new();
        let mut depth = 0_usize;
        let mut letters = self.raw.chars().peekable();
        let begin_line = |pretty: &mut String, depth| {
            pretty.push('\n');
            pretty.extend(std::iter::repeat_n("  ", depth));
        };
        while let Some(next) = letters.next() {
            match next {
                '"' => {
                    let mut is_escaped = false;
                    let is_inside_text = |letter: &char| {
                        let is_inside = is_escaped || *letter != '"';
                        is_escaped = !is_escaped && *letter == '\\';
                        is_inside
                    };
                    let text: String = letters.by_ref().take_while(is_inside_text).collect();
                    pretty.push_str(&quote(&text));
                }
                '{' | '[' => {
                    pretty.push(next);
                    if let Some(end) = letters.next_if(|end| matches!(end, '}' | ']')) {
                        pretty.push(end);
                    } else {
                        depth += 1;
                        begin_line(&mut pretty, depth);
                    }
                }
                '}' | ']' => {
                    depth = depth.saturating_sub(1);
                    begin_line(&mut pretty, depth);
                    pretty.push(next);
                }
                ',' => {
                    pretty.push(next);
                    begin_line(&mut pretty, depth);
                }
                ':' => pretty.push_str(": "),
                _ if next.is_ascii_whitespace() => {}
                _ => pretty.push(next),
            }
        }
        pretty
    }
}

/// Quotes a text, shortened if it is long.
fn quote(text: &str) -> String {
    let length = text.chars().count();
    if length <= TEXT_CHARS_MAX {
        return format!("\"{text}\"");
    }
    let start: String = text.chars().take(SHORTENED_CHARS).collect();
    format!("\"{start}…\" ({length} characters)")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_body_is_indented_without_a_change_to_any_token() {
        let raw = r#"{"z":1.10,"a":["x,{\"y\":\\",{},[],null,true],"b":{"c":-1e5}}"#;
        let pretty = JsonBody::new(raw.to_owned()).pretty();
        assert_eq!(
            pretty,
            "{\n  \"z\": 1.10,\n  \"a\": [\n    \"x,{\\\"y\\\":\\\\\",\n    {},\n    [],\n    null,\n    true\n  ],\n  \
             \"b\": {\n    \"c\": -1e5\n  }\n}"
        );
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(read(&pretty), read(raw));
    }

    #[test]
    fn a_photo_is_shortened_in_the_indented_body_and_complete_in_the_bytes() {
        let raw = format!(r#"{{"photo":"/9j/{}"}}"#, "A".repeat(5_000));
        let body = JsonBody::new(raw.clone());
        assert_eq!(body.pretty(), format!("{{\n  \"photo\": \"/9j/{}…\" (5004 characters)\n}}", "A".repeat(36)));
        assert!(body.to_string().contains(&raw.replace('"', "&#34;")));
    }
}
