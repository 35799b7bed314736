//! A command with equivalent code in other languages, taken from the examples that the tests run.

use super::markdown::{command, escape};

/// Languages beside `curl`: name, comment mark, name for a code block, and the file with the pieces.
const LANGUAGES: [(&str, &str, &str, &str); 3] = [
    ("TypeScript", "//", "ts", include_str!("../../../../examples/typescript/pieces.ts")),
    ("Python", "#", "python", include_str!("../../../../examples/python/pieces.py")),
    ("Java", "//", "java", include_str!("../../../../examples/java/Pieces.java")),
];

/// Returns a named piece of an example: the lines between the comments `code: NAME` and `end`, without indentation.
fn piece(source: &str, comment: &str, name: &str) -> Option<String> {
    let first_mark = format!("{comment} code: {name}");
    let lines: Vec<&str> = source
        .lines()
        .skip_while(|line| line.trim() != first_mark)
        .skip(1)
        .take_while(|line| line.trim() != format!("{comment} end"))
        .collect();
    let indent =
        lines.iter().filter(|line| !line.trim().is_empty()).map(|line| line.len() - line.trim_start().len()).min()?;
    Some(lines.iter().map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n").collect())
}

/// Returns a piece in each language, with the language's name and its name for a code block.
pub(super) fn code_in_languages(name: &str) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    LANGUAGES
        .into_iter()
        .filter_map(move |(language, comment, block, source)| Some((language, block, piece(source, comment, name)?)))
}

/// Renders a command, if any, and the pieces as tabs that need no script. `number` is unique on the page.
pub(super) fn render(name: &str, shell: Option<&str>, number: usize) -> String {
    let shell = shell.map(|shell| ("curl", shell.to_owned()));
    let tabs: Vec<(&str, String)> =
        shell.into_iter().chain(code_in_languages(name).map(|(language, _, piece)| (language, piece))).collect();
    let mut html = "<fieldset class=\"tabs\"><legend class=\"unseen\">Language</legend>\n".to_owned();
    for (index, (language, _)) in tabs.iter().enumerate() {
        let id = format!("tab-{number}-{index}");
        let checked = if index == 0 { " checked" } else { "" };
        let language = escape(language);
        html.push_str(&format!(
            "<input type=\"radio\" name=\"tab-{number}\" id=\"{id}\" value=\"{language}\"{checked}>"
        ));
        html.push_str(&format!("<label for=\"{id}\">{language}</label>\n"));
    }
    for (language, code) in &tabs {
        html.push_str(&command(code, &format!("{name}, {language}")));
    }
    html + "</fieldset>\n"
}

#[cfg(test)]
mod tests {
    use super::super::site::PAGES;
    use super::*;

    #[test]
    fn a_piece_is_the_text_between_its_marks_without_indentation() {
        let source = "x\n  // code: a\n  one {\n    two\n  }\n  // end\n  // code: b\n  // end\n";
        assert_eq!(piece(source, "//", "a").unwrap(), "one {\n  two\n}\n");
        assert_eq!((piece(source, "//", "b"), piece(source, "//", "c")), (None, None));
    }

    #[test]
    fn every_command_with_tabs_has_code_in_every_language() {
        let named = PAGES.iter().filter_map(|page| page.document()).flat_map(|document| document.text.lines());
        let names: Vec<&str> = named
            .filter_map(|line| line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": "))
            .map(|(_, name)| name)
            .collect();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            assert_eq!(code_in_languages(name).count(), LANGUAGES.len(), "{name}");
        }
    }
}
