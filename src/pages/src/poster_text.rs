//! Line breaking for the SVG poster, because SVG does not break lines: at spaces, by the average width of the script's letters. All
//! measures are millimetres on A4.

use unicode_segmentation::UnicodeSegmentation as _;

use super::text::Texts;

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
    /// `ltr` or `rtl`, by the name's own letters.
    pub(super) direction: &'static str,
}

/// Letter sizes to choose from.
const SIZES: [f64; 9] = [16.0, 13.0, 11.0, 10.0, 9.0, 8.0, 6.0, 5.0, 4.0];
const HEADING_TOP: f64 = 20.0;
const HEADING_HEIGHT: f64 = 44.0;
const HEADING_WIDTH: f64 = 180.0;
const STEP_SIZE: f64 = 5.0;
const STEP_WIDTH: f64 = 58.0;
/// The middle of a step's first line.
const STEPS_TOP: f64 = 227.75;
/// The columns of the steps.
const COLUMNS: [f64; 3] = [42.0, 105.0, 168.0];

impl Heading {
    /// Sets a name on a sheet of this language.
    pub(super) fn of(name: &str, texts: &Texts) -> Self {
        let script = Script::of(name);
        let fits = |size: &&f64| broken(name, HEADING_WIDTH / **size).len() as f64 * **size * script.heading_leading() <= HEADING_HEIGHT;
        let size = SIZES.iter().find(fits).copied().unwrap_or(4.0);
        let lines = balanced(name, HEADING_WIDTH / size);
        let leading = size * script.heading_leading();
        let first = HEADING_TOP + (HEADING_HEIGHT - lines.len() as f64 * leading) / 2.0 + leading / 2.0 + size * 0.3;
        Self { size, lines: placed(lines, first, leading), direction: direction(name).unwrap_or(texts.direction) }
    }
}

/// The letter size of a line below the steps: that of the steps, or what lets it stay on the sheet.
pub(super) fn line_size(text: &str) -> f64 {
    (HEADING_WIDTH / width_of(text)).min(STEP_SIZE)
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
    pub(super) fn all(texts: &Texts) -> Vec<Self> {
        let mut columns = COLUMNS;
        if texts.is_right_to_left() {
            columns.reverse();
        }
        let set = |text: &str| {
            let leading = STEP_SIZE * Script::of(text).leading();
            placed(balanced(text, STEP_WIDTH / STEP_SIZE), STEPS_TOP + leading * 0.5, leading)
        };
        let step = |(at, (text, x)): (usize, (&str, f64))| Self { number: at + 1, x, lines: set(text) };
        texts.event.steps.into_iter().zip(columns).enumerate().map(step).collect()
    }
}

/// How tall the lines of a text are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    /// Letters that stand side by side.
    Flat,
    /// Signs above and below the letters.
    Stacked,
    /// Words that slope downwards.
    Sloped,
}

impl Script {
    fn of(text: &str) -> Self {
        if text.chars().any(is_arabic) {
            Self::Sloped
        } else if text.chars().any(|letter| matches!(letter, '\u{900}'..='\u{dff}')) {
            Self::Stacked
        } else {
            Self::Flat
        }
    }

    /// From line to line, as a part of the letter size.
    const fn leading(self) -> f64 {
        match self {
            Self::Flat => 1.3,
            Self::Stacked => 1.5,
            Self::Sloped => 2.2,
        }
    }

    /// Large lines may stand closer.
    const fn heading_leading(self) -> f64 {
        self.leading() - 0.1
    }
}

const fn is_arabic(letter: char) -> bool {
    matches!(letter, '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// The direction of the first letter that has one (Unicode Standard Annex 9, rule P2).
fn direction(text: &str) -> Option<&'static str> {
    let first = text.chars().find(|letter| letter.is_alphabetic())?;
    Some(if is_arabic(first) || matches!(first, '\u{590}'..='\u{5ff}') { "rtl" } else { "ltr" })
}

/// What a character needs on average in words of its script, as a part of the letter size; signs
/// that take no room are in the average.
const fn width(letter: char) -> f64 {
    match letter {
        '\u{600}'..='\u{6ff}' => 0.46,
        '\u{900}'..='\u{97f}' => 0.5,
        '\u{980}'..='\u{b7f}' | '\u{c00}'..='\u{cff}' => 0.56,
        '\u{b80}'..='\u{bff}' | '\u{d00}'..='\u{d7f}' => 0.66,
        '\u{1100}'.. => 1.0,
        _ => 0.6,
    }
}

fn width_of(text: &str) -> f64 {
    text.chars().map(width).sum()
}

fn placed(lines: Vec<String>, first: f64, leading: f64) -> Vec<Line> {
    let mut y = first - leading;
    let mut place = |text| {
        y += leading;
        Line { text, y: (y * 100.0).round() / 100.0 }
    };
    lines.into_iter().map(&mut place).collect()
}

/// Breaks a text into lines of at most `most` times the letter size; words longer than that are
/// cut, but never within what readers take for one letter.
fn broken(text: &str, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        for piece in cut(word, most) {
            match lines.last_mut() {
                Some(line) if width_of(line) + width(' ') + width_of(&piece) <= most => {
                    line.push(' ');
                    line.push_str(&piece);
                }
                _ => lines.push(piece),
            }
        }
    }
    lines
}

/// The same number of lines, as even as they can be without cutting a word for it.
fn balanced(text: &str, most: f64) -> Vec<String> {
    let widest = broken(text, most);
    let longest = text.split_whitespace().map(width_of).fold(0.0, f64::max);
    let narrower = (1..10).map(|step| most * (1.0 - f64::from(step) * 0.05)).take_while(|narrower| *narrower >= longest);
    narrower.map(|narrower| broken(text, narrower)).take_while(|lines| lines.len() == widest.len()).last().unwrap_or(widest)
}

fn cut(word: &str, most: f64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for letter in word.graphemes(true) {
        match pieces.last_mut() {
            Some(piece) if piece.is_empty() || width_of(piece) + width_of(letter) <= most => piece.push_str(letter),
            _ => pieces.push(letter.to_owned()),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use sakshi_domain::language::Language;

    use super::*;

    fn texts(language: &str) -> &'static Texts {
        Texts::of(Language::parse(language).unwrap())
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_are_cut_between_letters() {
        assert_eq!(broken("Open day of the museum", 6.0), ["Open day", "of the", "museum"]);
        assert_eq!(broken("Donaudampfschiff ahoi", 3.6), ["Donaud", "ampfsc", "hiff", "ahoi"]);
        // A consonant keeps the signs and the half letters that belong to it.
        assert_eq!(broken("स्त्रीशक्ति", 3.0), ["स्त्री", "शक्ति"]);
    }

    #[test]
    fn the_last_line_is_not_a_word_alone_where_it_need_not_be() {
        assert_eq!(balanced("See what you are asked to share, and start.", 21.0), ["See what you are asked", "to share, and start."]);
        assert_eq!(balanced("Tour", 6.0), ["Tour"]);
        assert_eq!(balanced("Donaudampfschiff ahoi", 10.0), ["Donaudampfschiff", "ahoi"]);
    }

    #[test]
    fn a_name_of_any_length_stays_on_its_part_of_the_sheet() {
        let names = ["Tour", "A name of some length for an open day", "खुला दिवस", "یومِ کشادہ"].map(str::to_owned);
        let long = ["W".repeat(200), "of it ".repeat(33), "वार्षिक सभा ".repeat(16), "سالانہ اجلاس ".repeat(15)];
        for name in names.into_iter().chain(long) {
            let heading = Heading::of(&name, texts("english"));
            let (first, last) = (heading.lines.first().unwrap().y, heading.lines.last().unwrap().y);
            assert!(first - heading.size >= 14.0 && last <= 68.0, "{name}: {first} to {last}");
            let widest = heading.lines.iter().map(|line| width_of(&line.text)).fold(0.0, f64::max);
            assert!(widest * heading.size <= HEADING_WIDTH + 0.1, "{name}");
        }
    }

    #[test]
    fn a_name_runs_in_its_own_direction_and_the_steps_in_that_of_the_sheet() {
        for (name, direction) in [("Open day!", "ltr"), ("یومِ کشادہ", "rtl"), ("100% 2026", "rtl")] {
            assert_eq!(Heading::of(name, texts("urdu")).direction, direction, "{name}");
        }
        let columns = |language| Step::all(texts(language)).iter().map(|step| step.x).collect::<Vec<_>>();
        assert_eq!(columns("hindi"), COLUMNS);
        assert_eq!(columns("urdu"), [168.0, 105.0, 42.0]);
    }

    #[test]
    fn the_steps_of_every_language_end_above_the_line_below_them() {
        for code in 1..=23 {
            let texts = Texts::of(Language::from_code(code).unwrap());
            for step in Step::all(texts) {
                assert!(step.lines.last().unwrap().y <= 269.0, "{}: {step:?}", texts.tag);
            }
        }
    }
}
