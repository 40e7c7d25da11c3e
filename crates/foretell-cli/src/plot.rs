//! Scores and returns as pictures.

use std::path::Path;

use anyhow::anyhow;
use foretell::baselines::Tested;
use foretell::{HorizonScore, Score};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use crate::output;

const SIZE: (u32, u32) = (960, 600);
/// Okabe & Ito's colours, which colour-blind readers can tell apart.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(0, 0, 0),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
];

/// The pictures we can draw.
#[derive(Clone, Copy)]
pub enum Kind {
    Svg,
    Png,
}

/// The kind of picture a file name asks for.
pub fn kind(path: &Path) -> anyhow::Result<Kind> {
    match path.extension().and_then(|e| e.to_str()).map(str::to_lowercase).as_deref() {
        Some("svg") => Ok(Kind::Svg),
        Some("png") => Ok(Kind::Png),
        _ => Err(anyhow!("cannot draw {}: the name must end in .svg or .png", path.display())),
    }
}

/// Log-likelihood by horizon of the model, the truth and the n-grams.
pub fn likelihood(score: &Score, path: &Path, kind: Kind) -> anyhow::Result<()> {
    save(path, kind, |picture| match picture {
        Picture::Svg(area) => draw_likelihood(score, &area),
        Picture::Png(area) => draw_likelihood(score, &area),
    })
}

/// What policies earn, as bars with intervals, and the most that anyone could earn.
pub fn returns(title: &str, policies: &[Tested], bound: Option<f64>, path: &Path, kind: Kind) -> anyhow::Result<()> {
    save(path, kind, |picture| match picture {
        Picture::Svg(area) => draw_returns(title, policies, bound, &area),
        Picture::Png(area) => draw_returns(title, policies, bound, &area),
    })
}

/// Where to draw.
enum Picture<'a> {
    Svg(DrawingArea<SVGBackend<'a>, Shift>),
    Png(DrawingArea<BitMapBackend<'a>, Shift>),
}

/// Draws a picture, which appears whole or not at all.
fn save(path: &Path, kind: Kind, draw: impl FnOnce(Picture<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let font = epaint_default_fonts::UBUNTU_LIGHT;
    register_font("sans-serif", FontStyle::Normal, font).map_err(|_| anyhow!("the built-in font is damaged"))?;
    let suffix = match kind {
        Kind::Svg => ".svg",
        Kind::Png => ".png",
    };
    let cannot = |e| output::cannot_write(path, &e);
    let file = tempfile::Builder::new().prefix(".plot").suffix(suffix).tempfile_in(output::folder(path)).map_err(cannot)?;
    draw(match kind {
        Kind::Svg => Picture::Svg(SVGBackend::new(file.path(), SIZE).into_drawing_area()),
        Kind::Png => Picture::Png(BitMapBackend::new(file.path(), SIZE).into_drawing_area()),
    })?;
    // Temporary files are private; a picture is for everyone who may read the folder.
    #[cfg(unix)]
    std::fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(cannot)?;
    file.persist(path).map_err(|e| cannot(e.error))?;
    Ok(())
}

fn draw_likelihood<B: DrawingBackend>(score: &Score, area: &DrawingArea<B, Shift>) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    let failed = |e: DrawingAreaErrorKind<B::ErrorType>| anyhow!("cannot draw: {e}");
    let mut lines: Vec<(&str, &[HorizonScore])> = vec![("model", &score.horizons)];
    lines.extend(score.truth.iter().map(|truth| ("truth", truth.as_slice())));
    // Uniform and the bare action are so far below that the rest would be squeezed flat.
    let beside = score.baselines.iter().filter(|(name, _)| !["uniform", "ngram-0"].contains(&name.as_str()));
    lines.extend(beside.map(|(name, scores)| (name.as_str(), scores.as_slice())));
    let last = score.horizons.len() as f64;
    let lowest = lines.iter().flat_map(|(_, l)| l.iter().map(|h| h.log_likelihood - h.ci95)).fold(0.0, f64::min);

    area.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(area)
        .margin(20)
        .caption("Log-likelihood of held-out logs by horizon", ("sans-serif", 24))
        .x_label_area_size(45)
        .y_label_area_size(65)
        .build_cartesian_2d(0.5..last + 0.5, 1.05 * lowest..0.0)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.08))
        .x_desc("horizon n (steps)")
        .y_desc("mean ln P(o_1..n || a_1..n), nats")
        .x_labels((last as usize).min(20))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .label_style(("sans-serif", 16))
        .draw()
        .map_err(failed)?;
    for ((name, scores), colour) in lines.into_iter().zip(COLOURS.into_iter().cycle()) {
        let points: Vec<(f64, f64)> = scores.iter().map(|h| (h.horizon as f64, h.log_likelihood)).collect();
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.clone(), style))
            .map_err(failed)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        let bar = |h: &HorizonScore| {
            ErrorBar::new_vertical(
                h.horizon as f64,
                h.log_likelihood - h.ci95,
                h.log_likelihood,
                h.log_likelihood + h.ci95,
                colour.filled(),
                6,
            )
        };
        chart.draw_series(scores.iter().map(bar)).map_err(failed)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerLeft)
        .border_style(BLACK.mix(0.2))
        .background_style(WHITE.mix(0.9))
        .label_font(("sans-serif", 17))
        .draw()
        .map_err(failed)?;
    area.present().map_err(failed)
}

fn draw_returns<B: DrawingBackend>(
    title: &str,
    policies: &[Tested],
    bound: Option<f64>,
    area: &DrawingArea<B, Shift>,
) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    let failed = |e: DrawingAreaErrorKind<B::ErrorType>| anyhow!("cannot draw: {e}");
    let ends = |t: &Tested| {
        [t.returns.discounted_return - t.returns.discounted_ci95, t.returns.discounted_return + t.returns.discounted_ci95]
    };
    let all = || policies.iter().flat_map(ends).chain(bound);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    // Bars begin at zero, unless that would hide how they differ.
    let room = 0.05 * (high - low).max(1e-9);
    let base = if low > 0.5 * high { low - room } else { 0.0 };
    let (low, high) = (low.min(base), high.max(base) + room);
    let rows = policies.len() as f64;

    area.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(area)
        .margin(20)
        .caption(title, ("sans-serif", 24))
        .x_label_area_size(45)
        .y_label_area_size(190)
        .build_cartesian_2d(low..high, rows..0.0)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.08))
        .x_desc("discounted return, with 95 % intervals")
        .y_labels(0)
        .label_style(("sans-serif", 16))
        .draw()
        .map_err(failed)?;
    for (i, tested) in policies.iter().enumerate() {
        let (y, value, [from, to]) = (i as f64 + 0.5, tested.returns.discounted_return, ends(tested));
        let colour = COLOURS[if tested.policy == crate::cmd::agent::OWN { 0 } else { 3 }].mix(0.8);
        let bar = Rectangle::new([(base, y - 0.32), (value, y + 0.32)], colour.filled());
        chart.draw_series([bar]).map_err(failed)?;
        chart.draw_series([PathElement::new([(from, y), (to, y)], BLACK.stroke_width(2))]).map_err(failed)?;
        let (_, row) = chart.backend_coord(&(low, y));
        let left = area.strip_coord_spec();
        let style = TextStyle::from(("sans-serif", 17)).pos(Pos::new(HPos::Right, VPos::Center));
        left.draw(&Text::new(tested.policy.clone(), (200, row), style)).map_err(failed)?;
    }
    if let Some(bound) = bound {
        chart.draw_series([PathElement::new([(bound, 0.0), (bound, rows)], BLACK.stroke_width(1))]).map_err(failed)?;
        let style = TextStyle::from(("sans-serif", 15)).pos(Pos::new(HPos::Right, VPos::Top));
        chart.draw_series([Text::new("most that could be earned ", (bound, 0.02), style)]).map_err(failed)?;
    }
    area.present().map_err(failed)
}
