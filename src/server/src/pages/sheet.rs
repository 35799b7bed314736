//! Text on the poster's drawing: SVG does not break lines, so they are broken here, by characters
//! and at spaces. All measures are millimetres on A4.

/// A line and where its letters stand.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) y: f64,
}

/// The event's name, as large as it fits.
#[derive(Debug)]
pub(super) struct Heading {
    pub(super) size: f64,
    pub(super) lines: Vec<Line>,
}

/// Letter size, characters of a line, and lines: what fits into 180 by 44 for letters that are 0.6
/// of their size wide.
const SIZES: [(f64, usize, usize); 4] = [(16.0, 18, 2), (11.0, 27, 3), (8.0, 37, 4), (6.0, 50, 6)];
const HEADING_TOP: f64 = 20.0;
const HEADING_HEIGHT: f64 = 44.0;

impl Heading {
    pub(super) fn of(name: &str) -> Self {
        let fits = |(_, chars, lines): &&(f64, usize, usize)| broken(name, *chars).len() <= *lines;
        let (size, chars, _) = SIZES.iter().find(fits).copied().unwrap_or((6.0, 50, 6));
        let lines = broken(name, chars);
        let leading = size * 1.2;
        let count = lines.len() as f64;
        let first = HEADING_TOP + (HEADING_HEIGHT - count * leading) / 2.0 + size * 0.9;
        Self { size, lines: placed(lines, first, leading) }
    }
}

/// One of the three steps, in a column of its own.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) number: usize,
    pub(super) x: f64,
    pub(super) lines: Vec<Line>,
}

impl Step {
    /// From the reader's first side to the last.
    pub(super) fn all(texts: [&str; 3], right_to_left: bool) -> Vec<Self> {
        let mut columns = [42.0, 105.0, 168.0];
        if right_to_left {
            columns.reverse();
        }
        let step = |(at, (text, x)): (usize, (&str, f64))| Self { number: at + 1, x, lines: placed(broken(text, 22), 231.0, 6.5) };
        texts.into_iter().zip(columns).enumerate().map(step).collect()
    }
}

fn placed(lines: Vec<String>, first: f64, leading: f64) -> Vec<Line> {
    let mut y = first - leading;
    let mut place = |text| {
        y += leading;
        Line { text, y: (y * 100.0).round() / 100.0 }
    };
    lines.into_iter().map(&mut place).collect()
}

/// Breaks a text into lines of at most `most` characters; words longer than that are cut.
fn broken(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for piece in letters.chunks(most) {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + piece.len() <= most => {
                    line.push(' ');
                    line.extend(piece);
                }
                _ => lines.push(piece.iter().collect()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_long_words_are_cut() {
        assert_eq!(broken("Open day of the museum", 10), ["Open day", "of the", "museum"]);
        assert_eq!(broken("Donaudampfschiff ahoi", 6), ["Donaud", "ampfsc", "hiff", "ahoi"]);
    }

    #[test]
    fn a_name_of_any_length_stays_on_its_part_of_the_sheet() {
        for name in ["Tour".to_owned(), "A name of some length for an open day".to_owned(), "W".repeat(200), "of it ".repeat(33)] {
            let heading = Heading::of(&name);
            let (first, last) = (heading.lines.first().unwrap().y, heading.lines.last().unwrap().y);
            assert!(first - heading.size >= 14.0 && last <= 68.0, "{name}: {first} to {last}");
            let most = heading.lines.iter().map(|line| line.text.chars().count()).max().unwrap();
            assert!(most as f64 * heading.size * 0.6 <= 181.0, "{name}");
        }
    }
}
