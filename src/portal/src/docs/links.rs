//! Links between documents: their targets on the site, and their words.

use super::site::{Document, PAGES, page_at};

/// Returns the title of the document or heading at an address.
pub(super) fn title_at(address: &str) -> Option<String> {
    let (path, fragment) = address.split_once('#').unwrap_or((address, ""));
    let (_, page) = page_at(path)?;
    let heading = page.document().and_then(|document| document.headings().find(|heading| anchor(heading) == fragment));
    Some(heading.filter(|_| !fragment.is_empty()).unwrap_or_else(|| page.title()))
}

/// Returns the fragment of a heading, as on GitHub.
pub(super) fn anchor(words: &str) -> String {
    let letters = words.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    letters.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

/// Returns the path on the site for a link in a document, if its target is served.
pub(super) fn served_path(from: &Document, link: &str) -> Option<String> {
    if link.starts_with('#') || link.starts_with("https://") {
        return Some(link.to_owned());
    }
    let (file, fragment) =
        link.split_once('#').map_or((link, String::new()), |(file, fragment)| (file, format!("#{fragment}")));
    let mut parts: Vec<&str> = from.file.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    let file = parts.join("/");
    let page = PAGES.iter().find(|page| page.document().is_some_and(|document| document.file == file))?;
    Some(page.path.to_owned() + &fragment)
}
