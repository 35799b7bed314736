//! Links between documents: where they lead on the site, and by which words.

use super::site::{Document, PAGES, page_at};

/// The title of the document, or of the heading, that an address leads to.
pub(super) fn title_of(address: &str) -> Option<String> {
    let (path, fragment) = address.split_once('#').unwrap_or((address, ""));
    let (_, page) = page_at(path)?;
    let heading = page.document().and_then(|document| document.headings().find(|heading| anchor(heading) == fragment));
    Some(heading.filter(|_| !fragment.is_empty()).unwrap_or_else(|| page.title()))
}

/// The fragment under which a heading is found, as GitHub makes it.
pub(super) fn anchor(words: &str) -> String {
    let kept = words.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

/// The address that a link of a document leads to, if that is served.
pub(super) fn served(from: &Document, link: &str) -> Option<String> {
    if link.starts_with('#') || link.starts_with("https://") {
        return Some(link.to_owned());
    }
    let (file, fragment) = link.split_once('#').map_or((link, String::new()), |(file, fragment)| (file, format!("#{fragment}")));
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
