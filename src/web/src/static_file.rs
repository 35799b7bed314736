//! Style sheets and scripts: built into the binary, served without comments and indentation, with a hash of the content in the URL.

use actix_web::http::header::{CACHE_CONTROL, ETAG, EntityTag, Header as _, IfNoneMatch};
use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse, Route};

/// The style sheet that pages and portal share.
pub const BASE_STYLE: &str = include_str!("../assets/base.css");

/// A file to serve, and its path.
#[derive(Debug)]
pub struct StaticFile {
    path: &'static str,
    content_type: &'static str,
    text: Bytes,
    version: u64,
}

impl StaticFile {
    /// A style sheet that is put together from these sources.
    #[must_use]
    pub fn style(path: &'static str, sources: &[&str]) -> Self {
        Self::new(path, "text/css; charset=utf-8", minify_style(&strip_comments(&sources.concat(), ("/*", "*/"))))
    }

    /// A script.
    #[must_use]
    pub fn script(path: &'static str, source: &str) -> Self {
        Self::new(path, "text/javascript; charset=utf-8", strip_comments(source, ("//", "")))
    }

    fn new(path: &'static str, content_type: &'static str, text: String) -> Self {
        Self { path, content_type, version: fnv1a(text.as_bytes()), text: text.into() }
    }

    /// The URL with the hash, under which browsers may cache the file for good.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}?v={:016x}", self.path, self.version)
    }

    /// A route that answers with the file.
    pub fn route(&'static self) -> Route {
        web::to(move |request: HttpRequest| async move { self.answer(&request) })
    }

    /// The file, or 304 if the browser has it.
    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let tag = EntityTag::new_strong(format!("{:016x}", self.version));
        let versioned = request.query_string() == format!("v={:016x}", self.version);
        let cache = if versioned { "public, max-age=31536000, immutable" } else { "no-cache" };
        let unchanged = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|cached| cached.weak_eq(&tag)),
            _ => false,
        };
        let mut response = if unchanged { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header((ETAG, tag.to_string())).insert_header((CACHE_CONTROL, cache));
        if unchanged {
            return response.finish();
        }
        response.content_type(self.content_type).body(self.text.clone())
    }
}

/// Removes indentation, empty lines, and comments that begin a line. A line that begins like a comment counts as one, even
/// inside a string; our files have no such lines.
fn strip_comments(source: &str, (begin, end): (&str, &str)) -> String {
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

/// Removes spaces, line breaks and semicolons that a style sheet does not need, also inside strings; our files have none of
/// these sequences there.
fn minify_style(style: &str) -> String {
    const REPLACEMENTS: [(&str, &str); 10] = [
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
    REPLACEMENTS.iter().fold(style.to_owned(), |style, (from, to)| style.replace(from, to))
}

/// The FNV-1a hash, which tells versions of a file apart.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_indentation_are_not_served() {
        let style =
            strip_comments("/* Two\n   lines. */\nmain { a: b; }\n\n@media print {\n  /* One. */\n  p { c: d; }\n}\n", ("/*", "*/"));
        assert_eq!(style, "main { a: b; }\n@media print {\np { c: d; }\n}\n");
        assert_eq!(minify_style("a > b, c { d: e; f: g(h, 1 + 2); }\n"), "a>b,c{d:e;f:g(h,1 + 2)}");
        assert_eq!(strip_comments("// Why.\nif (a) {\n  b(); // not at once\n}\n", ("//", "")), "if (a) {\nb(); // not at once\n}\n");
        let text = StaticFile::style("/base.css", &[BASE_STYLE]).text;
        let text = std::str::from_utf8(&text).unwrap();
        assert!(text.len() > 1_000);
        assert!(text.lines().all(|line| ["/*", "*/", "//", " "].iter().all(|mark| !line.starts_with(mark))));
    }
}
