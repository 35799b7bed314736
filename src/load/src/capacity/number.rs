//! Figures as text: three digits, and suitable units.

/// Formats a figure with about three digits, and with thousands separators.
pub(crate) fn format_number(figure: f64) -> String {
    if figure >= 100.0 {
        let digits = format!("{figure:.0}");
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
        return groups.join(",");
    }
    let text = match figure {
        10.0.. => format!("{figure:.1}"),
        0.1.. => format!("{figure:.2}"),
        _ => format!("{figure:.4}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats bytes in a suitable unit.
pub(crate) fn format_bytes(count: f64) -> String {
    let (size, unit) = match count {
        1e12.. => (1e12, "TB"),
        1e9.. => (1e9, "GB"),
        1e6.. => (1e6, "MB"),
        1e3.. => (1e3, "kB"),
        _ => (1.0, "B"),
    };
    format!("{} {unit}", format_number(count / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_digits() {
        let shown = [0.0, 0.0120, 0.5, 1.0, 2.345, 10.0, 56.78, 751.4, 12_000.0, 1_234_567.8].map(format_number);
        assert_eq!(shown, ["0", "0.012", "0.5", "1", "2.35", "10", "56.8", "751", "12,000", "1,234,568"]);
    }

    #[test]
    fn bytes_are_shown_in_a_suitable_unit() {
        assert_eq!([12.0, 1_500.0, 2e6, 26.4e9, 3e12].map(format_bytes), ["12 B", "1.5 kB", "2 MB", "26.4 GB", "3 TB"]);
    }
}
