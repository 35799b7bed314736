//! Line breaking for the poster, because SVG does not break lines: at spaces, by the average width of the script's
//! letters. All measures are millimetres on A4.

use unicode_segmentation::UnicodeSegmentation as _;

use super::text::Texts;

/// A line of text, and the position of its baseline.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) y: f64,
}

/// The event's name, in the largest letters that fit.
#[derive(Debug)]
pub(super) struct Heading {
    pub(super) size: f64,
    pub(super) lines: Vec<Line>,
    /// `ltr` or `rtl`, by the name's own letters.
    pub(super) direction: &'static str,
}

/// Letter sizes of a heading, largest first.
const HEADING_SIZES: [f64; 9] = [16.0, 13.0, 11.0, 10.0, 9.0, 8.0, 6.0, 5.0, 4.0];
const HEADING_SIZE_MIN: f64 = 4.0;
/// Upper edge of the heading, without a logo.
const HEADING_TOP: f64 = 12.0;
const HEADING_HEIGHT: f64 = 34.0;
/// Height of the logo above the name.
const LOGO_HEIGHT: f64 = 14.0;
/// Width of the heading, and of the texts above and below the code.
const TEXT_WIDTH: f64 = 180.0;
/// Letter size of the steps.
const STEP_SIZE: f64 = 5.0;
const STEP_WIDTH: f64 = 58.0;
/// Distance from the top of a step's number to the top of the step's text.
const STEP_TEXT: f64 = 14.5;
/// Radius of the disc with a step's number.
const NUMBER_RADIUS: f64 = 6.5;
/// Distance from the middle of a line to its baseline, in letter sizes.
const BASELINE: f64 = 0.3;
/// Lower edge of the print.
const BOTTOM: f64 = 290.0;
/// Space between texts.
const GAP: f64 = 1.5;
/// Space around the code.
const MARGIN: f64 = 4.0;
const CODE_SIDE_MAX: f64 = 120.0;
/// Middle of the sheet.
const CENTRE: f64 = 105.0;
/// Middles of the steps' columns.
const COLUMNS: [f64; 3] = [42.0, 105.0, 168.0];

impl Heading {
    /// Breaks and places a name on a sheet in the language of `texts`.
    pub(super) fn new(name: &str, texts: &Texts, has_logo: bool) -> Self {
        let top = HEADING_TOP + if has_logo { LOGO_HEIGHT } else { 0.0 };
        let script = Script::of_text(name);
        let fits = |size: &&f64| {
            break_lines(name, TEXT_WIDTH / **size).len() as f64 * **size * script.heading_leading() <= HEADING_HEIGHT
        };
        let size = HEADING_SIZES.iter().find(fits).copied().unwrap_or(HEADING_SIZE_MIN);
        let lines = break_evenly(name, TEXT_WIDTH / size);
        let leading = size * script.heading_leading();
        let first_baseline =
            top + (HEADING_HEIGHT - lines.len() as f64 * leading) / 2.0 + leading / 2.0 + size * BASELINE;
        Self {
            size,
            lines: place_lines(lines, first_baseline, leading),
            direction: direction(name).unwrap_or(texts.direction),
        }
    }
}

/// A text above or below the code.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) size: f64,
    /// Font weight of CSS and SVG.
    pub(super) weight: u16,
    /// `ltr` or `rtl`, where it differs from that of the sheet.
    pub(super) direction: Option<&'static str>,
    pub(super) lines: Vec<Line>,
    height: f64,
}

impl Block {
    /// Breaks a text into at most `lines_max` lines in letters of this size. A longer text gets smaller letters, of at
    /// least half the size.
    pub(super) fn new(text: &str, size: f64, lines_max: usize) -> Self {
        let sizes = (0..10).map(|step| size * (1.0 - f64::from(step) * 0.05));
        let fits = |size: &f64| break_lines(text, TEXT_WIDTH / size).len() <= lines_max;
        let size = (sizes.clone().find(fits).unwrap_or(size * 0.5) * 100.0).round() / 100.0;
        let leading = size * Script::of_text(text).leading();
        let lines = break_evenly(text, TEXT_WIDTH / size);
        let height = lines.len() as f64 * leading;
        Self {
            size,
            weight: 400,
            direction: None,
            lines: place_lines(lines, leading / 2.0 + size * BASELINE, leading),
            height,
        }
    }

    pub(super) fn bold(self) -> Self {
        Self { weight: 700, ..self }
    }

    /// Gives a text by the organiser the direction of its own letters.
    pub(super) fn with_own_direction(self) -> Self {
        Self { direction: self.lines.first().and_then(|line| direction(&line.text)), ..self }
    }

    /// Moves the block below `y`, and `y` below the block.
    fn place_below(&mut self, y: &mut f64) {
        for line in &mut self.lines {
            line.y = round_to_hundredths(line.y + *y);
        }
        *y += self.height + GAP;
    }
}

/// Returns true if a text needs no more than two lines in letters of this size.
pub(super) fn is_short(text: &str, size: f64) -> bool {
    break_lines(text, TEXT_WIDTH / size).len() <= 2
}

/// The sheet below the name. The code takes the room that the texts leave.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) blocks: Vec<Block>,
    pub(super) code: Square,
    /// Middle of the steps' numbers.
    pub(super) numbers_y: f64,
    pub(super) steps: Vec<Step>,
}

/// The place of the code, by its upper left corner.
#[derive(Debug)]
pub(super) struct Square {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) side: f64,
}

impl Body {
    /// Places the texts `above` the code, the code, the steps, and the texts `below` the steps.
    pub(super) fn new(texts: &Texts, has_logo: bool, above: Vec<Block>, below: Vec<Block>) -> Self {
        let (mut above, mut below) = (above, below);
        let mut code_area_top = HEADING_TOP + HEADING_HEIGHT + if has_logo { LOGO_HEIGHT } else { 0.0 };
        above.iter_mut().for_each(|block| block.place_below(&mut code_area_top));
        let height = |blocks: &[Block]| blocks.iter().map(|block| block.height + GAP).sum::<f64>();
        let steps_height = STEP_TEXT + Step::height(texts) + MARGIN;
        let code_area_bottom = BOTTOM - height(&below) - steps_height;
        let mut steps_bottom = code_area_bottom + steps_height;
        below.iter_mut().for_each(|block| block.place_below(&mut steps_bottom));
        above.append(&mut below);
        let room = code_area_bottom - code_area_top;
        let side = round_to_hundredths((room - 2.0 * MARGIN).min(CODE_SIDE_MAX));
        let code = Square {
            x: round_to_hundredths(CENTRE - side / 2.0),
            y: round_to_hundredths(code_area_top + (room - side) / 2.0),
            side,
        };
        Self {
            blocks: above,
            code,
            numbers_y: round_to_hundredths(code_area_bottom + NUMBER_RADIUS),
            steps: Step::all(texts, code_area_bottom + STEP_TEXT),
        }
    }
}

fn round_to_hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// One of the three steps, in its column.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) number: usize,
    pub(super) x: f64,
    pub(super) lines: Vec<Line>,
}

impl Step {
    /// Returns the height of the longest step.
    fn height(texts: &Texts) -> f64 {
        let height = |text: &&str| {
            break_evenly(text, STEP_WIDTH / STEP_SIZE).len() as f64 * STEP_SIZE * Script::of_text(text).leading()
        };
        texts.event.steps.iter().map(height).fold(0.0, f64::max)
    }

    /// Places the steps in reading direction, with their texts below `top`.
    fn all(texts: &Texts, top: f64) -> Vec<Self> {
        let mut columns = COLUMNS;
        if texts.is_right_to_left() {
            columns.reverse();
        }
        let lines = |text: &str| {
            let leading = STEP_SIZE * Script::of_text(text).leading();
            place_lines(break_evenly(text, STEP_WIDTH / STEP_SIZE), top + leading / 2.0 + STEP_SIZE * BASELINE, leading)
        };
        let step = |(index, (text, x)): (usize, (&str, f64))| Self { number: index + 1, x, lines: lines(text) };
        texts.event.steps.into_iter().zip(columns).enumerate().map(step).collect()
    }
}

/// The scripts by the height of their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    /// Letters that stand side by side.
    Flat,
    /// Signs above and below the letters.
    Stacked,
    /// Words that slope down.
    Sloped,
}

impl Script {
    fn of_text(text: &str) -> Self {
        if text.chars().any(is_arabic) {
            Self::Sloped
        } else if text.chars().any(|letter| matches!(letter, '\u{900}'..='\u{dff}')) {
            Self::Stacked
        } else {
            Self::Flat
        }
    }

    /// Returns the line spacing, in letter sizes.
    const fn leading(self) -> f64 {
        match self {
            Self::Flat => 1.3,
            Self::Stacked => 1.5,
            Self::Sloped => 2.2,
        }
    }

    /// Returns the line spacing of headings, whose lines may stand closer.
    const fn heading_leading(self) -> f64 {
        self.leading() - 0.1
    }
}

const fn is_arabic(letter: char) -> bool {
    matches!(letter, '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}')
        || matches!(letter, '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Returns the direction of the first letter that has one (Unicode Standard Annex 9, rule P2).
fn direction(text: &str) -> Option<&'static str> {
    let first = text.chars().find(|letter| letter.is_alphabetic())?;
    Some(if is_arabic(first) || matches!(first, '\u{590}'..='\u{5ff}') { "rtl" } else { "ltr" })
}

/// Returns the average width of a character in words of its script, in letter sizes. The average includes signs that
/// take no room.
const fn letter_width(letter: char) -> f64 {
    match letter {
        '\u{2066}'..='\u{2069}' => 0.0,
        '\u{600}'..='\u{6ff}' => 0.46,
        '\u{900}'..='\u{97f}' => 0.5,
        '\u{980}'..='\u{b7f}' | '\u{c00}'..='\u{cff}' => 0.56,
        '\u{b80}'..='\u{bff}' | '\u{d00}'..='\u{d7f}' => 0.66,
        '\u{1100}'.. => 1.0,
        _ => 0.6,
    }
}

/// Returns the width of a text in letter sizes.
fn text_width(text: &str) -> f64 {
    text.chars().map(letter_width).sum()
}

/// Places lines below each other, at the distance `leading`.
fn place_lines(lines: Vec<String>, first_baseline: f64, leading: f64) -> Vec<Line> {
    let mut y = first_baseline - leading;
    let mut place_line = |text| {
        y += leading;
        Line { text, y: round_to_hundredths(y) }
    };
    lines.into_iter().map(&mut place_line).collect()
}

/// Breaks a text into lines of at most `width_max`, in letter sizes. Longer words are cut, but never within a grapheme
/// cluster.
fn break_lines(text: &str, width_max: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        for piece in cut_word(word, width_max) {
            match lines.last_mut() {
                Some(line) if text_width(line) + letter_width(' ') + text_width(&piece) <= width_max => {
                    line.push(' ');
                    line.push_str(&piece);
                }
                _ => lines.push(piece),
            }
        }
    }
    lines
}

/// Breaks a text into as few lines as [`break_lines`], and evens out their lengths without cutting more words.
fn break_evenly(text: &str, width_max: f64) -> Vec<String> {
    let full_width_lines = break_lines(text, width_max);
    let longest_word = text.split_whitespace().map(text_width).fold(0.0, f64::max);
    let narrower_widths =
        (1..10).map(|step| width_max * (1.0 - f64::from(step) * 0.05)).take_while(|width| *width >= longest_word);
    narrower_widths
        .map(|width| break_lines(text, width))
        .take_while(|lines| lines.len() == full_width_lines.len())
        .last()
        .unwrap_or(full_width_lines)
}

/// Cuts a word into pieces of at most `width_max`, in letter sizes.
fn cut_word(word: &str, width_max: f64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for letter in word.graphemes(true) {
        match pieces.last_mut() {
            Some(piece) if piece.is_empty() || text_width(piece) + text_width(letter) <= width_max => {
                piece.push_str(letter);
            }
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
        Texts::for_language(Language::parse(language).unwrap())
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_are_cut_between_letters() {
        assert_eq!(break_lines("Open day of the museum", 6.0), ["Open day", "of the", "museum"]);
        assert_eq!(break_lines("Donaudampfschiff ahoi", 3.6), ["Donaud", "ampfsc", "hiff", "ahoi"]);
        // A consonant keeps its signs and half letters.
        assert_eq!(break_lines("स्त्रीशक्ति", 3.0), ["स्त्री", "शक्ति"]);
    }

    #[test]
    fn lines_are_evened_out_without_more_lines_or_cut_words() {
        assert_eq!(
            break_evenly("See what you are asked to share, and start.", 21.0),
            ["See what you are asked", "to share, and start."]
        );
        assert_eq!(break_evenly("Tour", 6.0), ["Tour"]);
        assert_eq!(break_evenly("Donaudampfschiff ahoi", 10.0), ["Donaudampfschiff", "ahoi"]);
    }

    #[test]
    fn a_name_of_any_length_stays_within_the_heading() {
        let names = ["Tour", "A name of some length for an open day", "खुला दिवस", "یومِ کشادہ"].map(str::to_owned);
        let has_logo = false;
        let long = ["W".repeat(200), "of it ".repeat(33), "वार्षिक सभा ".repeat(16), "سالانہ اجلاس ".repeat(15)];
        for name in names.into_iter().chain(long) {
            let heading = Heading::new(&name, texts("english"), has_logo);
            let (first, last) = (heading.lines.first().unwrap().y, heading.lines.last().unwrap().y);
            assert!(first - heading.size >= 6.0 && last <= 48.0, "{name}: {first} to {last}");
            let widest = heading.lines.iter().map(|line| text_width(&line.text)).fold(0.0, f64::max);
            assert!(widest * heading.size <= TEXT_WIDTH + 0.1, "{name}");
        }
    }

    #[test]
    fn names_follow_their_letters_and_steps_follow_the_language() {
        for (name, direction) in [("Open day!", "ltr"), ("یومِ کشادہ", "rtl"), ("100% 2026", "rtl")] {
            assert_eq!(Heading::new(name, texts("urdu"), false).direction, direction, "{name}");
        }
        let columns = |language| Step::all(texts(language), 0.0).iter().map(|step| step.x).collect::<Vec<_>>();
        assert_eq!(columns("hindi"), COLUMNS);
        assert_eq!(columns("urdu"), [168.0, 105.0, 42.0]);
    }

    #[test]
    fn long_texts_in_any_language_leave_room_for_a_code_of_five_centimetres() {
        for code in 1..=23 {
            let texts = Texts::for_language(Language::from_code(code).unwrap());
            let long = [texts.event.unknown, texts.event.elsewhere].concat().chars().take(200).collect::<String>();
            let block = |size, lines_max| Block::new(&long, size, lines_max);
            let above = vec![block(5.0, 2), block(4.6, 2), block(4.4, 1), Block::new(texts.event.scan, 9.0, 1).bold()];
            let has_logo = true;
            let body =
                Body::new(texts, has_logo, above, vec![block(5.0, 1), block(4.2, 2), block(5.0, 1), block(3.6, 1)]);
            assert!(body.code.side >= 50.0 && body.code.side <= CODE_SIDE_MAX, "{}: {:?}", texts.tag, body.code);
            let last = body.blocks.last().unwrap();
            assert!(last.lines.last().unwrap().y <= BOTTOM, "{}: {last:?}", texts.tag);
            let steps_bottom = body.steps.iter().flat_map(|step| &step.lines).map(|line| line.y).fold(0.0, f64::max);
            assert!(
                steps_bottom < body.blocks[4].lines[0].y
                    && body.code.y + body.code.side < body.numbers_y - NUMBER_RADIUS,
                "{}",
                texts.tag
            );
        }
    }

    #[test]
    fn a_short_text_keeps_its_size_and_a_long_text_shrinks() {
        assert_eq!(Block::new("Entry to the campus", 5.0, 1).size, 5.0);
        let long = Block::new(&"Entry to the campus ".repeat(8), 5.0, 2);
        assert!(long.size < 5.0 && long.lines.len() == 2, "{long:?}");
        assert!(is_short("Full name · Photo", 4.2) && !is_short(&"Full name · ".repeat(20), 4.2));
    }
}
