//! Style sheets and scripts: built into the binary, served without what only their readers need, and named by their content.

use actix_web::http::header::{CACHE_CONTROL, ETAG, EntityTag, Header as _, IfNoneMatch};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};

/// The style sheet that the pages of residents and of developers have in common.
pub const BASE_STYLE: &str = include_str!("../assets/base.css");

/// A file and where it is served.
#[derive(Debug)]
pub struct File {
    path: &'static str,
    content_type: &'static str,
    text: Bytes,
    version: u64,
}

impl File {
    /// A style sheet, from its parts in a row.
    #[must_use]
    pub fn style(path: &'static str, sources: &[&str]) -> Self {
        Self::new(path, "text/css; charset=utf-8", tight(&bare(&sources.concat(), ("/*", "*/"))))
    }

    /// A script.
    #[must_use]
    pub fn script(path: &'static str, source: &str) -> Self {
        Self::new(path, "text/javascript; charset=utf-8", bare(source, ("//", "")))
    }

    fn new(path: &'static str, content_type: &'static str, text: String) -> Self {
        Self { path, content_type, version: fnv1a(text.as_bytes()), text: text.into() }
    }

    /// The address under which browsers may keep the file for good.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}?v={:016x}", self.path, self.version)
    }

    /// The file, or that the browser has it already.
    pub fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let tag = EntityTag::new_strong(format!("{:016x}", self.version));
        let named = request.query_string() == format!("v={:016x}", self.version);
        let kept = if named { "public, max-age=31536000, immutable" } else { "no-cache" };
        let known = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|known| known.weak_eq(&tag)),
            _ => false,
        };
        let mut response = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header((ETAG, tag.to_string())).insert_header((CACHE_CONTROL, kept));
        if known {
            return response.finish();
        }
        response.content_type(self.content_type).body(self.text.clone())
    }
}

/// Without indentation, empty lines, and comments that begin a line. Ours are written so that nothing else
/// begins a line in such a way.
fn bare(source: &str, (begin, end): (&str, &str)) -> String {
    let mut comment = false;
    let mut text = String::with_capacity(source.len());
    for line in source.lines().map(str::trim).filter(|line| !line.is_empty()) {
        comment |= line.starts_with(begin);
        if comment {
            comment = !line.ends_with(end);
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Without the spaces that a style sheet does not need. Ours have no such sequence within a text.
fn tight(style: &str) -> String {
    const SPACED: [(&str, &str); 10] = [
        (" {", "{"),
        ("{ ", "{"),
        (" }", "}"),
        ("; ", ";"),
        (";}", "}"),
        (": ", ":"),
        (", ", ","),
        (" > ", ">"),
        ("{\n", "{"),
        ("}\n", "}"),
    ];
    SPACED.iter().fold(style.to_owned(), |style, (spaced, tight)| style.replace(spaced, tight))
}

/// FNV-1a: tells versions of our own files apart.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_readers_need_is_not_served() {
        let style = bare("/* Two\n   lines. */\nmain { a: b; }\n\n@media print {\n  /* One. */\n  p { c: d; }\n}\n", ("/*", "*/"));
        assert_eq!(style, "main { a: b; }\n@media print {\np { c: d; }\n}\n");
        assert_eq!(tight("a > b, c { d: e; f: g(h, 1 + 2); }\n"), "a>b,c{d:e;f:g(h,1 + 2)}");
        assert_eq!(bare("// Why.\nif (a) {\n  b(); // not at once\n}\n", ("//", "")), "if (a) {\nb(); // not at once\n}\n");
        let text = File::style("/base.css", &[BASE_STYLE]).text;
        let text = std::str::from_utf8(&text).unwrap();
        assert!(text.len() > 1_000);
        assert!(text.lines().all(|line| ["/*", "*/", "//", " "].iter().all(|mark| !line.starts_with(mark))));
    }
}
