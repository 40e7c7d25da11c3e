//! Plots: lines and bars with 95 % intervals, one or several side by side, as SVG or PNG.
//!
//! ```
//! use foretell_plots::{Axis, Chart, Line, Look, Point, drawn};
//!
//! let points = (1..=5).map(|n| Point { x: n as f64, y: -(n as f64), half: 0.1 }).collect();
//! let line = Line { name: "model".into(), points, look: Look::Line };
//! let (x, y) = (Axis::new("horizon"), Axis::new("nats"));
//! let chart = Chart { title: "Likelihood".into(), x, y, lines: vec![line], marks: vec![] };
//! let picture = drawn(&[chart.into()], "likelihood.svg".as_ref())?;
//! assert!(picture.starts_with(b"<svg"));
//! # Ok::<(), anyhow::Error>(())
//! ```

mod axis;
mod bars;
mod chart;

use std::path::Path;

use anyhow::anyhow;
use image::codecs::png::PngEncoder;
use image::{ColorType, ImageEncoder};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

pub use axis::Axis;

/// Size of a plot with one figure.
const SIZE: (u32, u32) = (960, 600);
/// Width of each of several figures.
const NARROW: u32 = 760;
/// Okabe & Ito's colours, which colour-blind readers can distinguish.
const COLOURS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(0, 0, 0),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 150, 150),
    RGBColor(240, 228, 66),
];

/// A point of a line, with half its 95 % interval (0 for none).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Half the interval.
    pub half: f64,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Solid line.
    Line,
    /// Dashed line, for references.
    Dashed,
    /// Points only.
    Dots,
}

/// A series of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points, in order of x.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub look: Look,
}

/// A labelled thin line at a position of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The position.
    pub at: f64,
    /// The label.
    pub name: String,
}

/// Lines over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub lines: Vec<Line>,
    /// Marks on the x axis.
    pub marks: Vec<Mark>,
}

/// A bar, with half its 95 % interval (0 for none).
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// Half the interval.
    pub half: f64,
    /// Whether it is our own, which is drawn in another colour than references.
    pub is_own: bool,
}

/// Horizontal bars, one below the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The title.
    pub title: String,
    /// The axis of their lengths.
    pub axis: Axis,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
    /// A reference length.
    pub mark: Option<Mark>,
}

/// Part of a plot.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Lines.
    Chart(Chart),
    /// Bars.
    Bars(Bars),
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Figure {
        Figure::Chart(chart)
    }
}

impl From<Bars> for Figure {
    fn from(bars: Bars) -> Figure {
        Figure::Bars(bars)
    }
}

/// Fails unless the file name ends in .svg or .png.
pub fn check_name(path: &Path) -> anyhow::Result<()> {
    kind(path).map(|_| ())
}

enum Kind {
    Svg,
    Png,
}

fn kind(path: &Path) -> anyhow::Result<Kind> {
    match path.extension().and_then(|e| e.to_str()).map(str::to_lowercase).as_deref() {
        Some("svg") => Ok(Kind::Svg),
        Some("png") => Ok(Kind::Png),
        _ => Err(anyhow!("cannot draw {}: the name must end in .svg or .png", path.display())),
    }
}

/// A picture of figures side by side, in the format of a file name that ends in .svg or .png.
pub fn drawn(figures: &[Figure], name: &Path) -> anyhow::Result<Vec<u8>> {
    let kind = kind(name)?;
    let font = epaint_default_fonts::UBUNTU_LIGHT;
    register_font("sans-serif", FontStyle::Normal, font).map_err(|_| anyhow!("the built-in font is damaged"))?;
    let size = if figures.len() > 1 { (NARROW * figures.len() as u32, SIZE.1) } else { SIZE };
    match kind {
        Kind::Svg => {
            let mut text = String::new();
            draw(figures, &SVGBackend::with_string(&mut text, size).into_drawing_area())?;
            Ok(text.into_bytes())
        }
        Kind::Png => {
            let mut pixels = vec![0; (size.0 * size.1) as usize * 3];
            draw(figures, &BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area())?;
            let mut bytes = Vec::new();
            PngEncoder::new(&mut bytes).write_image(&pixels, size.0, size.1, ColorType::Rgb8)?;
            Ok(bytes)
        }
    }
}

type Area<B> = DrawingArea<B, Shift>;

fn draw<B: DrawingBackend>(figures: &[Figure], area: &Area<B>) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    area.fill(&WHITE).map_err(failed)?;
    for (figure, part) in figures.iter().zip(area.split_evenly((1, figures.len().max(1)))) {
        match figure {
            Figure::Chart(chart) => chart::draw(chart, &part)?,
            Figure::Bars(bars) => bars::draw(bars, &part)?,
        }
    }
    area.present().map_err(failed)
}

fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

/// The minimum and maximum of some numbers, with a margin; an arbitrary range if there are none.
fn span(values: impl Iterator<Item = f64>, room: f64) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return (0.0, 1.0);
    }
    let room = if high > low { room * (high - low) } else { 0.5 };
    (low - room, high + room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_drawn_or_refused() {
        let points = vec![Point { x: 1.0, y: 0.1, half: 0.01 }, Point { x: 2.0, y: f64::NAN, half: 0.0 }];
        let line = |look| Line { name: "a <b> & c".into(), points: points.clone(), look };
        let lines = [Look::Line, Look::Dashed, Look::Dots].map(line).to_vec();
        let marks = vec![Mark { at: 1.5, name: "here".into() }];
        let chart = Chart { title: "t".into(), x: Axis::new("x"), y: Axis::log("y"), lines, marks: marks.clone() };
        let bar = |value, is_own| Bar { name: "bar".into(), value, half: 0.1, is_own };
        let bars = Bars { title: "t".into(), axis: Axis::new("x"), bars: vec![bar(1.0, true), bar(-2.0, false)], mark: None };
        let log = Bars {
            axis: Axis::log("s"),
            bars: vec![bar(0.01, true), bar(30.0, false)],
            mark: marks.into_iter().next(),
            ..bars.clone()
        };
        let nothing = Chart { lines: vec![], marks: vec![], ..chart.clone() };
        for name in ["a.svg", "a.png"] {
            let figures = [chart.clone().into(), bars.clone().into(), log.clone().into(), nothing.clone().into()];
            let bytes = drawn(&figures, name.as_ref()).unwrap();
            assert!(bytes.len() > 2000);
            if name.ends_with("svg") {
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.contains("a &lt;b&gt; &amp; c") && !text.contains("NaN") && !text.contains("inf"));
            }
        }
        let said = drawn(&[], "a.jpg".as_ref()).unwrap_err().to_string();
        assert!(said.ends_with("the name must end in .svg or .png"), "{said}");
    }
}
