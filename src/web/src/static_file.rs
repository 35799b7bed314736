//! Style sheets and scripts, built into the binary. They are served without comments and indentation, with a hash of
//! the content in the URL.

use std::sync::LazyLock;

use actix_web::web;
use actix_web::{HttpRequest, HttpResponse, Route};

use crate::compressed::Compressed;

/// Style sheet that pages and portal share.
pub const BASE_STYLE: &str = include_str!("../assets/base.css");

/// Style sheet that portal and console share. [`RECORDS_STYLE`] and [`FIGURES_STYLE`] extend it.
pub const DESK_STYLE: &str = include_str!("../assets/desk.css");
/// Style of tables and counts.
pub const RECORDS_STYLE: &str = include_str!("../assets/records.css");
/// Style of JSON bodies and lists of facts.
pub const FIGURES_STYLE: &str = include_str!("../assets/figures.css");

/// Icon of pages and portal: the shield of their heads.
pub static ICON: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::new("/assets/icon.svg", "image/svg+xml", include_str!("../assets/icon.svg").to_owned())
});

/// Marks between which a comment of a style sheet lies.
const STYLE_COMMENT: (&str, &str) = ("/*", "*/");
/// Marks of a comment of a script, which ends with its line.
const SCRIPT_COMMENT: (&str, &str) = ("//", "");

/// A file that the service serves, and its path.
#[derive(Debug)]
pub struct StaticFile {
    path: &'static str,
    content_type: &'static str,
    text: Compressed,
}

impl StaticFile {
    /// Builds a style sheet from several sources.
    #[must_use]
    pub fn style(path: &'static str, sources: &[&str]) -> Self {
        Self::new(path, "text/css; charset=utf-8", minify_style(&strip_comments(&sources.concat(), STYLE_COMMENT)))
    }

    /// Builds a script.
    #[must_use]
    pub fn script(path: &'static str, source: &str) -> Self {
        Self::new(path, "text/javascript; charset=utf-8", strip_comments(source, SCRIPT_COMMENT))
    }

    fn new(path: &'static str, content_type: &'static str, text: String) -> Self {
        Self { path, content_type, text: Compressed::new(text) }
    }

    /// Returns the URL with the hash. Browsers may cache the file at this URL for ever.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}?v={}", self.path, self.text.version())
    }

    /// Returns a route that serves the file.
    pub fn route(&'static self) -> Route {
        web::to(move |request: HttpRequest| async move { self.respond(&request) })
    }

    /// Responds with the file, or with 304 if the browser has cached it.
    fn respond(&self, request: &HttpRequest) -> HttpResponse {
        let is_versioned = request.query_string().strip_prefix("v=") == Some(self.text.version());
        let cache = if is_versioned { "public, max-age=31536000, immutable" } else { "no-cache" };
        self.text.respond(request, self.content_type, cache)
    }
}

/// Removes indentation, empty lines, and comments that begin a line. A line of a string that begins like a comment is
/// removed, too; our files have no such lines.
fn strip_comments(source: &str, (begin, end): (&str, &str)) -> String {
    let mut in_comment = false;
    let mut text = String::with_capacity(source.len());
    for line in source.lines().map(str::trim).filter(|line| !line.is_empty()) {
        in_comment |= line.starts_with(begin);
        if in_comment {
            in_comment = !line.ends_with(end);
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Removes spaces, line breaks and semicolons that a style sheet does not need, also inside strings; our files have
/// none of these sequences there.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_indentation_are_not_served() {
        let style = strip_comments(
            "/* Two\n   lines. */\nmain { a: b; }\n\n@media print {\n  /* One. */\n  p { c: d; }\n}\n",
            STYLE_COMMENT,
        );
        assert_eq!(style, "main { a: b; }\n@media print {\np { c: d; }\n}\n");
        assert_eq!(minify_style("a > b, c { d: e; f: g(h, 1 + 2); }\n"), "a>b,c{d:e;f:g(h,1 + 2)}");
        assert_eq!(
            strip_comments("// Why.\nif (a) {\n  b(); // not at once\n}\n", SCRIPT_COMMENT),
            "if (a) {\nb(); // not at once\n}\n"
        );
        let file = StaticFile::style("/base.css", &[BASE_STYLE]);
        let text = std::str::from_utf8(file.text.plain()).unwrap();
        assert!(text.len() > 1_000);
        assert!(text.lines().all(|line| ["/*", "*/", "//", " "].iter().all(|mark| !line.starts_with(mark))));
    }
}
