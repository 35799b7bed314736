//! Organisers' printed codes, read by an independent scanner (zbarimg): sharp as served, reduced, and stained.

use std::io::Cursor;
use std::process::Command;

use actix_web::test::{TestRequest, read_body};
use sakshi_domain::event::{Event, EventText};
use sakshi_domain::ids::AppId;

use crate::pages_fixture::{PagesFixture, text};

/// Width of the light border around a code, in modules.
const QUIET_ZONE: usize = 4;

/// Returns status, content type and bytes of a file of an event, as its client gets them.
async fn fetch_file(fixture: &PagesFixture, event: &Event, name: &str) -> (u16, String, Vec<u8>) {
    let response = fixture.get_as_client(&format!("/api/v1/nationalid-ovse/events/{}/{name}", event.id)).await;
    let content_type = response.headers().get("content-type").unwrap().to_str().unwrap().to_owned();
    (response.status().as_u16(), content_type, read_body(response).await.to_vec())
}

/// A picture in shades of grey.
#[derive(Clone)]
struct GreyPicture {
    side: usize,
    pixels: Vec<u8>,
}

impl GreyPicture {
    fn from_png(file: &[u8]) -> Self {
        let mut decoder = png::Decoder::new(Cursor::new(file));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.color_type, info.width), (png::ColorType::Grayscale, info.height));
        Self { side: info.width as usize, pixels }
    }

    fn to_png(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let side = u32::try_from(self.side).unwrap();
        let mut encoder = png::Encoder::new(&mut file, side, side);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&self.pixels).unwrap();
        file
    }

    /// Returns a smaller picture, as a distant camera sees it: every pixel is the mean of its area.
    fn resize(&self, side: usize) -> Self {
        let span = |index: usize| index * self.side / side..((index + 1) * self.side / side);
        let mean = |x: usize, y: usize| {
            let all: Vec<u32> = span(y)
                .flat_map(|y| span(x).map(move |x| (x, y)))
                .map(|(x, y)| u32::from(self.pixels[y * self.side + x]))
                .collect();
            u8::try_from(all.iter().sum::<u32>() / u32::try_from(all.len()).unwrap()).unwrap()
        };
        Self { side, pixels: (0..side * side).map(|index| mean(index % side, index / side)).collect() }
    }

    /// Returns the text that the scanner reads from the picture.
    fn scan(&self) -> Option<String> {
        scan_file(&self.to_png(), "png")
    }
}

/// Returns the text that the scanner reads from a picture.
fn scan_file(file: &[u8], extension: &str) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(format!("code.{extension}"));
    std::fs::write(&path, file).unwrap();
    let output = Command::new("zbarimg")
        .args(["--quiet", "--raw"])
        .arg(&path)
        .output()
        .expect("zbarimg is needed: Debian package zbar-tools");
    let text = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns true for modules that carry data in a code of versions 2 to 6: not the finders with the format information,
/// the timing patterns, or the alignment pattern (ISO/IEC 18004 §6.3).
fn carries_data(x: usize, y: usize, width: usize) -> bool {
    let far_finder_start = width - 8;
    let is_finder = (x < 9 && (y < 9 || y >= far_finder_start)) || (x >= far_finder_start && y < 9);
    let alignment_centre = width - 7;
    let is_alignment = x.abs_diff(alignment_centre) <= 2 && y.abs_diff(alignment_centre) <= 2;
    !is_finder && !is_alignment && x != 6 && y != 6
}

/// Inverts a tenth of the data modules: a stain around the module that the seed picks.
fn stain(sharp: &GreyPicture, width: usize, seed: usize) -> GreyPicture {
    let scale = sharp.side / (width + 2 * QUIET_ZONE);
    let mut data: Vec<(usize, usize)> = (0..width * width).map(|index| (index % width, index / width)).collect();
    data.retain(|(x, y)| carries_data(*x, *y, width));
    // The multiplier spreads consecutive seeds over the code.
    let (centre_x, centre_y) = data[seed.wrapping_mul(2_654_435_761) % data.len()];
    data.sort_by_key(|(x, y)| x.abs_diff(centre_x).pow(2) + y.abs_diff(centre_y).pow(2));
    let mut stained = sharp.clone();
    for (x, y) in &data[..data.len().div_ceil(10)] {
        for row in (y + QUIET_ZONE) * scale..(y + QUIET_ZONE + 1) * scale {
            for column in (x + QUIET_ZONE) * scale..(x + QUIET_ZONE + 1) * scale {
                stained.pixels[row * sharp.side + column] ^= 0xff;
            }
        }
    }
    stained
}

#[actix_rt::test]
async fn the_png_code_is_read_when_reduced_to_a_tenth_or_stained() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let url = format!("https://v.example/e/{}", event.id);
    let (status, content_type, png) = fetch_file(&fixture, &event, "qr.png").await;
    assert_eq!((status, content_type.as_str()), (200, "image/png"));
    let sharp = GreyPicture::from_png(&png);
    assert!(sharp.side >= 1_000 && png.len() < 20_000, "{} pixels, {} bytes", sharp.side, png.len());
    assert_eq!(scan_file(&png, "png").as_ref(), Some(&url));
    for side in [400, 200, sharp.side / 10] {
        assert_eq!(sharp.resize(side).scan().as_ref(), Some(&url), "{side} pixels");
    }

    // 37 characters at level Q are version 4: 33 modules. At level M they would be version 3.
    let width = 33;
    let scale = sharp.side / (width + 2 * QUIET_ZONE);
    assert_eq!(sharp.side, scale * (width + 2 * QUIET_ZONE));
    let border = QUIET_ZONE * scale;
    assert!(sharp.pixels[..border * sharp.side].iter().all(|pixel| *pixel == 255), "the quiet zone is light");
    assert_eq!((sharp.pixels[border * sharp.side + border], sharp.pixels[border * sharp.side + border - 1]), (0, 255));
    for seed in 0..25 {
        let stained = stain(&sharp, width, seed);
        assert_eq!(stained.resize(500).scan().as_ref(), Some(&url), "stain {seed}");
    }
}

#[actix_rt::test]
async fn the_svg_code_is_read_by_a_scanner() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let (status, content_type, svg) = fetch_file(&fixture, &event, "qr.svg").await;
    assert_eq!((status, content_type.as_str()), (200, "image/svg+xml"));
    let svg = String::from_utf8(svg).unwrap();
    assert!(
        svg.starts_with("<svg viewBox=\"0 0 41 41\"") && svg.contains("xmlns=\"http://www.w3.org/2000/svg\""),
        "{svg}"
    );
    assert_eq!(draw_path(&svg, 41).scan(), Some(format!("https://v.example/e/{}", event.id)));
}

#[actix_rt::test]
async fn the_poster_shows_name_code_steps_organiser_purpose_and_end() {
    let fixture = PagesFixture::new().await;
    let event_text = |text| EventText::parse(text).unwrap();
    let event = fixture
        .create_event(|terms| {
            terms.name = event_text("Open day <i>& tour</i>");
            (terms.organiser, terms.purpose) =
                (Some(event_text("A & B College")), Some(event_text("Entry to the campus")));
        })
        .await;
    let (status, content_type, html) = fetch_file(&fixture, &event, "poster").await;
    let html = String::from_utf8(html).unwrap();
    assert_eq!((status, content_type.as_str()), (200, "text/html; charset=utf-8"));
    assert!(html.contains(">Open day &#60;i&#62;&#38; tour&#60;/i&#62;</bdi></h1>") && !html.contains("<i>"), "{html}");
    assert_eq!(html.matches("<li>").count(), 3);
    for part in [
        "<p class=\"organiser\"><bdi>A &#38; B College · Sandbox client</bdi></p>",
        "<p class=\"purpose\"><bdi>Entry to the campus</bdi></p>",
        "<p class=\"asked\">You are asked to share: Full name",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(
        html.contains(
            "Open until <time datetime=\"2023-11-14T23:13:20.000Z\" dir=\"auto\">15 November 2023, 04:43 IST</time>"
        ),
        "{html}"
    );
    assert!(
        html.contains("href=\"https://v.example/assets/poster.css?v=")
            && html.contains(&format!("https://v.example/e/{}", event.id))
    );
    let style = html.split("https://v.example").nth(1).unwrap().split('"').next().unwrap();
    let style = fixture.call(TestRequest::get().uri(style)).await;
    assert!(style.status() == 200 && text(style).await.contains("@page{size:A4"));

    let (status, content_type, svg) = fetch_file(&fixture, &event, "poster.svg").await;
    let svg = String::from_utf8(svg).unwrap();
    assert_eq!((status, content_type.as_str()), (200, "image/svg+xml"));
    assert!(
        svg.contains("width=\"210mm\" height=\"297mm\"") && svg.contains("&#60;i&#62;") && !svg.contains("<i>"),
        "{svg}"
    );
    for part in [
        ">A &#38; B College · Sandbox client</text>",
        ">Entry to the campus</text>",
        ">You are asked to share: Full name",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let (_, _, large) = fetch_file(&fixture, &event, "poster.svg?size=A3").await;
    assert_eq!(
        String::from_utf8(large).unwrap(),
        svg.replace("width=\"210mm\" height=\"297mm\"", "width=\"297mm\" height=\"420mm\"")
    );
    let (_, _, large) = fetch_file(&fixture, &event, "poster?size=A3").await;
    assert!(String::from_utf8(large).unwrap().contains("href=\"https://v.example/assets/poster-a3.css?v="));
    assert!(svg.contains("15 November 2023, 04:43 IST") && svg.matches("<circle").count() == 3);
    assert_eq!(draw_path(&svg, 41).scan(), Some(format!("https://v.example/e/{}", event.id)));
}

#[actix_rt::test]
async fn only_the_organiser_gets_poster_and_codes() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let mut create_foreign = sakshi_store::CreateEvent { event: event.clone(), events_max: None, idempotency: None };
    create_foreign.event.id = fixture.shared.service.events.new_id(&event.client);
    create_foreign.event.app = AppId::generate();
    let foreign = create_foreign.event.clone();
    fixture.shared.service.store.create_event(create_foreign).await.unwrap();
    for name in ["poster", "poster.svg", "qr.svg", "qr.png"] {
        let path = format!("/api/v1/nationalid-ovse/events/{}/{name}", event.id);
        assert_eq!(fixture.call(TestRequest::get().uri(&path)).await.status(), 401, "{name}");
        assert_eq!(fetch_file(&fixture, &foreign, name).await.0, 404, "{name}");
    }
    for name in ["poster", "poster.svg", "qr.svg", "qr.png"] {
        assert_eq!(fetch_file(&fixture, &event, &format!("{name}?colour=red")).await.0, 400, "{name}");
        assert_eq!(fetch_file(&fixture, &event, &format!("{name}?size=A5")).await.0, 400, "{name}");
        let expected = if name.starts_with("poster") { 200 } else { 400 };
        assert_eq!(fetch_file(&fixture, &event, &format!("{name}?size=A3")).await.0, expected, "{name}");
    }
}

/// Draws the strokes of a code's path, `side` modules wide, ten pixels each.
fn draw_path(svg: &str, side: usize) -> GreyPicture {
    let path = svg.split(" d=\"M4 4.5").nth(1).unwrap().split('"').next().unwrap();
    let path = format!("M4 4.5{path}");
    let mut pixels = vec![255; side * side * 100];
    for line in path.split('M').filter(|line| !line.is_empty()) {
        let start = line.find(['h', 'm']).unwrap();
        let (x, y) = line[..start].split_once(' ').unwrap();
        let (mut x, y): (usize, usize) = (x.parse().unwrap(), y.trim_end_matches(".5").parse().unwrap());
        let mut rest = &line[start..];
        while let Some(command) = rest.chars().next() {
            let end = rest[1..].find(['h', 'm']).map_or(rest.len(), |position| position + 1);
            let length: usize = rest[1..end].split(' ').next().unwrap().parse().unwrap();
            if command == 'h' {
                for row in y * 10..y * 10 + 10 {
                    pixels[row * side * 10 + x * 10..row * side * 10 + (x + length) * 10].fill(0);
                }
            }
            x += length;
            rest = &rest[end..];
        }
    }
    GreyPicture { side: side * 10, pixels }
}
