//! Cells of CSV files (RFC 4180) that are safe to open in a spreadsheet.

/// Byte order mark before the first line. Excel reads UTF-8 only with it.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Characters with which a formula begins, in half and full width.
const FORMULA_SIGNS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// Characters at which a spreadsheet may begin the next cell or line.
const SEPARATORS: [char; 5] = [';', '|', '\t', '\r', '\n'];

/// Number of digits from which a spreadsheet rewrites or rounds a number.
const REWRITTEN_DIGITS_MIN: usize = 12;

/// Quotes a value as a cell. Puts an apostrophe before a formula, also after a character that separates cells in
/// another locale, and before a number or date that a spreadsheet would rewrite.
#[must_use]
pub fn quote_cell(value: &str) -> String {
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

/// Returns true if a spreadsheet would rewrite the text: a long number, a leading zero, an exponent, or two numbers
/// that look like a date.
fn is_rewritten(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(text) {
        return text.len() >= REWRITTEN_DIGITS_MIN || (text.len() > 1 && text.starts_with('0'));
    }
    let has_two_numbers =
        |signs: &[char]| text.split_once(signs).is_some_and(|(left, right)| is_number(left) && is_number(right));
    has_two_numbers(&['e', 'E']) || has_two_numbers(&['-', '/', ':'])
}

#[cfg(test)]
mod tests {
    use super::quote_cell;

    #[test]
    fn cells_are_neither_calculated_nor_split_nor_rewritten() {
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
            assert_eq!(quote_cell(value), expected);
        }
    }
}
