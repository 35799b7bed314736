//! Cells of a file for a spreadsheet (RFC 4180).

/// Mark before the first line: without it Excel does not read UTF-8.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Characters that make a spreadsheet take a cell for a formula, in either width.
const FORMULA_SIGNS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// Characters at which a spreadsheet may begin the next cell or line.
const SEPARATORS: [char; 5] = [';', '|', '\t', '\r', '\n'];

/// Number of digits from which a spreadsheet rewrites or rounds a number.
const LONG_NUMBER: usize = 12;

/// Quotes a value as a cell. An apostrophe precedes what a spreadsheet would calculate, also after a character that
/// begins a cell in another locale. It also precedes what would become another number or a date.
#[must_use]
pub fn cell(value: &str) -> String {
    let guarded = value.split_inclusive(SEPARATORS).map(|part| {
        let guard = if part.trim_start_matches([' ', '"']).starts_with(FORMULA_SIGNS) || is_rewritten(part.trim()) {
            "'"
        } else {
            ""
        };
        format!("{guard}{}", part.replace('"', "\"\""))
    });
    format!("\"{}\"", guarded.collect::<String>())
}

/// Returns true for a long number, one that begins with a zero, one with an exponent, and two numbers that look like a
/// date.
fn is_rewritten(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(text) {
        return text.len() >= LONG_NUMBER || (text.len() > 1 && text.starts_with('0'));
    }
    let halves = |sign: &[char]| text.split_once(sign).is_some_and(|(left, right)| is_number(left) && is_number(right));
    halves(&['e', 'E']) || halves(&['-', '/', ':'])
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn no_cell_is_calculated_and_none_spills_into_the_next() {
        for (value, expected) in [
            ("Asha Rao", "\"Asha Rao\""),
            ("12, \"Rose\" Road\nPune", "\"12, \"\"Rose\"\" Road\nPune\""),
            ("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""),
            ("+919876543210", "\"'+919876543210\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t'=1\""),
            ("\r=1", "\"'\r'=1\""),
            (" =1", "\"' =1\""),
            ("＝1", "\"'＝1\""),
            ("a=1", "\"a=1\""),
            ("x;=1+1;-2", "\"x;'=1+1;'-2\""),
            ("x;\"=1\"", "\"x;'\"\"=1\"\"\""),
            ("x\t@y\n+z", "\"x\t'@y\n'+z\""),
            ("", "\"\""),
            ("0560001", "\"'0560001\""),
            ("560001", "\"560001\""),
            ("9876543210", "\"9876543210\""),
            ("123456789012", "\"'123456789012\""),
            ("2E3456", "\"'2E3456\""),
            ("E23456", "\"E23456\""),
            ("3-4", "\"'3-4\""),
            ("1990-02-14", "\"1990-02-14\""),
            ("0", "\"0\""),
        ] {
            assert_eq!(cell(value), expected);
        }
    }
}
