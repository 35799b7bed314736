//! QR codes: as inline SVG for screens, as SVG and PNG files for print. One stroke per row, always dark on white.
//!
//! The standard asks for the mask, out of eight, with the fewest patterns that are hard to scan. Trying all masks takes
//! 98 % of the time of drawing a code, and anybody can request codes. So codes for screens get a fixed mask, and codes
//! for print the best mask.

use std::fmt::Write as _;

use qrcode::bits::encode_auto;
use qrcode::canvas::{Canvas, MaskPattern};
use qrcode::ec::construct_codewords;
use qrcode::types::QrError;
use qrcode::{Color, EcLevel};

/// Light modules around the code (ISO/IEC 18004 §5.3.8).
const QUIET_ZONE: usize = 4;
/// Least side of a PNG in pixels: sharp at 8 cm and 300 dots per inch.
const PNG_SIDE_MIN: usize = 1_000;
/// Mask of codes for screens. Ids and intents are random, so no mask is better than another.
const SCREEN_MASK: MaskPattern = MaskPattern::Checkerboard;

/// A QR code.
#[derive(Debug)]
pub struct QrCode {
    /// Modules of a side, without the quiet zone.
    width: usize,
    /// Colours of the modules, row by row.
    colors: Vec<Color>,
}

impl QrCode {
    /// Encodes a text for a screen, at error correction level L for density. A long run of digits becomes a numeric
    /// segment, which makes QR payloads fit.
    ///
    /// # Errors
    /// [`QrError`] when the text does not fit a QR code.
    pub fn for_screen(text: &str) -> Result<Self, QrError> {
        Ok(Self::from_canvas(apply_fixed_mask(encode_unmasked(text, EcLevel::L)?)))
    }

    /// Encodes a text for a screen at an entrance, at error correction level Q: the code is scanned from afar and
    /// through glass.
    ///
    /// # Errors
    /// [`QrError`] when the text does not fit a QR code.
    pub fn for_entrance(text: &str) -> Result<Self, QrError> {
        Ok(Self::from_canvas(apply_fixed_mask(encode_unmasked(text, EcLevel::Q)?)))
    }

    /// Encodes a text for paper, at error correction level Q: a quarter of the code may be lost.
    ///
    /// # Errors
    /// [`QrError`] when the text does not fit a QR code.
    pub(crate) fn for_print(text: &str) -> Result<Self, QrError> {
        Ok(Self::from_canvas(encode_unmasked(text, EcLevel::Q)?.apply_best_mask()))
    }

    fn from_canvas(canvas: Canvas) -> Self {
        let colors = canvas.into_colors();
        // A code is a square.
        Self { width: colors.len().isqrt(), colors }
    }

    /// Returns the number of modules of a side, quiet zone included.
    pub(crate) const fn side(&self) -> usize {
        self.width + 2 * QUIET_ZONE
    }

    /// Returns the dark modules as path data within [`Self::side`] by [`Self::side`], to be stroked one wide.
    pub(crate) fn path(&self) -> String {
        let mut path = String::with_capacity(self.width * self.width * 2);
        for (y, row) in self.colors.chunks(self.width).enumerate() {
            // Writing into a string cannot fail.
            let _ = write!(path, "M{QUIET_ZONE} {}.5", y + QUIET_ZONE);
            for run in row.chunk_by(|left, right| left == right) {
                let _ = match run.first() {
                    Some(Color::Dark) => write!(path, "h{}", run.len()),
                    _ => write!(path, "m{} 0", run.len()),
                };
            }
        }
        path
    }

    /// Returns an SVG element for a page.
    pub fn inline(&self) -> String {
        self.svg(r#"aria-hidden="true" focusable="false""#)
    }

    /// Returns an SVG file.
    pub(crate) fn svg_file(&self) -> String {
        self.svg(r#"xmlns="http://www.w3.org/2000/svg""#)
    }

    /// Returns an SVG element with these attributes.
    fn svg(&self, attributes: &str) -> String {
        let side = self.side();
        let background = format!(r##"<path fill="#fff" d="M0 0h{side}v{side}H0z"/>"##);
        let modules = format!(r##"<path stroke="#000" d="{}"/>"##, self.path());
        format!(
            r##"<svg viewBox="0 0 {side} {side}" shape-rendering="crispEdges" {attributes}>{background}{modules}</svg>"##
        )
    }

    /// Returns a PNG of one bit per pixel, every module a whole number of pixels wide.
    ///
    /// # Errors
    /// Any error of the encoder; none is expected.
    pub(crate) fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let scale = PNG_SIDE_MIN.div_ceil(self.side());
        let pixels = self.side() * scale;
        let bytes_per_row = pixels.div_ceil(8);
        let mut bits = Vec::with_capacity(bytes_per_row * pixels);
        for y in 0..self.side() {
            let mut line = vec![0xff_u8; bytes_per_row];
            for x in (0..pixels).filter(|x| self.is_dark(x / scale, y)) {
                line[x / 8] &= !(0x80 >> (x % 8));
            }
            (0..scale).for_each(|_| bits.extend_from_slice(&line));
        }
        let mut file = Vec::new();
        // A code has 177 modules at most, so its pixels fit.
        let side = u32::try_from(pixels).unwrap_or(u32::MAX);
        let mut encoder = png::Encoder::new(&mut file, side, side);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::One);
        encoder.write_header()?.write_image_data(&bits)?;
        Ok(file)
    }

    /// Returns true if a module is dark, counted from the corner of the quiet zone.
    fn is_dark(&self, x: usize, y: usize) -> bool {
        let without_quiet_zone = |offset: usize| offset.checked_sub(QUIET_ZONE).filter(|index| *index < self.width);
        without_quiet_zone(x)
            .zip(without_quiet_zone(y))
            .is_some_and(|(x, y)| self.colors[y * self.width + x] == Color::Dark)
    }
}

/// Encodes a text without a mask.
fn encode_unmasked(text: &str, level: EcLevel) -> Result<Canvas, QrError> {
    let bits = encode_auto(text.as_bytes(), level)?;
    let version = bits.version();
    let (data, correction) = construct_codewords(&bits.into_bytes(), version, level)?;
    let mut canvas = Canvas::new(version, level);
    canvas.draw_all_functional_patterns();
    canvas.draw_data(&data, &correction);
    Ok(canvas)
}

/// Applies the mask of codes for screens.
fn apply_fixed_mask(mut canvas: Canvas) -> Canvas {
    canvas.apply_mask(SCREEN_MASK);
    canvas
}

#[cfg(test)]
mod tests {
    use qrcode::QrCode;

    use super::*;

    #[test]
    fn print_codes_have_the_best_mask_and_entrance_codes_differ_only_in_the_mask() {
        let text = "https://v.example/e/0123456789abcdef";
        let printed = super::QrCode::for_print(text).unwrap();
        assert_eq!(printed.colors, QrCode::with_error_correction_level(text, EcLevel::Q).unwrap().to_colors());
        let masks = [
            MaskPattern::Checkerboard,
            MaskPattern::HorizontalLines,
            MaskPattern::VerticalLines,
            MaskPattern::DiagonalLines,
            MaskPattern::LargeCheckerboard,
            MaskPattern::Fields,
            MaskPattern::Diamonds,
            MaskPattern::Meadow,
        ];
        let candidates = masks.map(|mask| {
            let mut canvas = encode_unmasked(text, EcLevel::Q).unwrap();
            canvas.apply_mask(mask);
            canvas.into_colors()
        });
        assert!(
            candidates.contains(&printed.colors)
                && candidates.contains(&super::QrCode::for_entrance(text).unwrap().colors)
        );
    }

    #[test]
    fn digits_of_a_qr_payload_are_encoded_as_numbers() {
        let digits = "1234567890".repeat(170);
        let code = super::QrCode::for_screen(&format!("https://qr.example/getIntent?value={digits}")).unwrap();
        // 1,700 digits as bytes would need version 30; as numbers they fit into 19 (97 is 20).
        assert!(code.width <= 97, "{}", code.width);
    }

    #[test]
    fn the_picture_has_a_quiet_zone_and_is_dark_on_white() {
        let picture =
            super::QrCode::for_screen("https://v.example/v/3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11").unwrap().inline();
        assert!(picture.contains(r##"fill="#fff" d="M0 0h"##));
        assert!(picture.contains("M4 4.5h7m"), "the first finder pattern starts at 4, 4");
        assert!(!picture.contains("style="));
    }

    #[test]
    fn a_text_that_does_not_fit_is_an_error() {
        assert!(super::QrCode::for_screen(&"x".repeat(4_000)).is_err());
    }
}
