//! Lines with intervals.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::{Area, Axis, COLOURS, Chart, Line, Look, failed, span};

/// Length and gap of dashes, in pixels.
const DASHES: (i32, i32) = (8, 5);
/// Maximum numbers of ticks.
const X_TICKS: usize = 13;
const Y_TICKS: usize = 10;

/// The position of a point, and its interval.
#[derive(Clone, Copy)]
struct Placed {
    x: f64,
    y: f64,
    from: f64,
    to: f64,
}

pub fn draw<B: DrawingBackend>(chart: &Chart, area: &Area<B>) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    let lines: Vec<Vec<Placed>> = chart.lines.iter().map(|line| placed(chart, line)).collect();
    let all = || lines.iter().flatten();
    let marks: Vec<f64> = chart.marks.iter().filter_map(|mark| chart.x.place(mark.at)).collect();
    let (left, right) = range(&chart.x, span(all().map(|p| p.x).chain(marks.iter().copied()), 0.04));
    let (low, high) = range(&chart.y, span(all().flat_map(|p| [p.from, p.to]), 0.05));
    let mut on = ChartBuilder::on(area)
        .margin(20)
        .caption(&chart.title, ("sans-serif", 24))
        .x_label_area_size(45)
        .y_label_area_size(70)
        .build_cartesian_2d(chart.x.scale(left, right, X_TICKS), chart.y.scale(low, high, Y_TICKS))
        .map_err(failed)?;
    on.configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.08))
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .x_labels(X_TICKS)
        .y_labels(Y_TICKS)
        .x_label_formatter(&|x| chart.x.text(*x))
        .y_label_formatter(&|y| chart.y.text(*y))
        .label_style(("sans-serif", 16))
        .draw()
        .map_err(failed)?;
    for (mark, at) in chart.marks.iter().zip(marks) {
        on.draw_series([PathElement::new([(at, low), (at, high)], BLACK.mix(0.5).stroke_width(1))]).map_err(failed)?;
        // On the side where there is more room.
        let side = if at > 0.5 * (left + right) { HPos::Right } else { HPos::Left };
        let style = TextStyle::from(("sans-serif", 16)).pos(Pos::new(side, VPos::Top));
        on.draw_series([Text::new(format!(" {} ", mark.name), (at, high), style)]).map_err(failed)?;
    }
    for ((line, points), colour) in chart.lines.iter().zip(&lines).zip(COLOURS.into_iter().cycle()) {
        let style = colour.stroke_width(2);
        let path = points.iter().map(|p| (p.x, p.y));
        let drawn = match line.look {
            Look::Line => on.draw_series(LineSeries::new(path, style)),
            Look::Dashed => on.draw_series(DashedLineSeries::new(path, DASHES.0, DASHES.1, style)),
            Look::Dots => on.draw_series(path.map(|at| Circle::new(at, 3, colour.filled()))),
        };
        let look = line.look;
        drawn.map_err(failed)?.label(&line.name).legend(move |(x, y)| {
            let line = |end: i32| PathElement::new([(x, y), (end, y)], style).into_dyn();
            match look {
                Look::Line => line(x + 24),
                Look::Dashed => line(x + DASHES.0),
                Look::Dots => Circle::new((x + 12, y), 3, colour.filled()).into_dyn(),
            }
        });
        let bars = points.iter().filter(|p| p.to > p.from);
        let bars = bars.map(|p| ErrorBar::new_vertical(p.x, p.from, p.y, p.to, colour.filled(), 6));
        on.draw_series(bars).map_err(failed)?;
    }
    if lines.len() > 1 {
        on.configure_series_labels()
            .position(emptiest(&lines, (left, right), (low, high)))
            .border_style(BLACK.mix(0.2))
            .background_style(WHITE.mix(0.9))
            .label_font(("sans-serif", 17))
            .draw()
            .map_err(failed)?;
    }
    Ok(())
}

/// The points that can be drawn.
fn placed(chart: &Chart, line: &Line) -> Vec<Placed> {
    let place = |p: &crate::Point| {
        let (x, y) = (chart.x.place(p.x)?, chart.y.place(p.y)?);
        let end = |value| chart.y.place(value).unwrap_or(y);
        Some(Placed { x, y, from: end(p.y - p.half), to: end(p.y + p.half) })
    };
    line.points.iter().filter_map(place).collect()
}

fn range(axis: &Axis, of_data: (f64, f64)) -> (f64, f64) {
    let given = axis.range.and_then(|(from, to)| Some((axis.place(from)?, axis.place(to)?)));
    given.unwrap_or(of_data)
}

/// The corner with the fewest points, for the legend.
fn emptiest(lines: &[Vec<Placed>], (left, right): (f64, f64), (low, high): (f64, f64)) -> SeriesLabelPosition {
    let corners = [
        (SeriesLabelPosition::LowerLeft, false, false),
        (SeriesLabelPosition::UpperRight, true, true),
        (SeriesLabelPosition::UpperLeft, false, true),
        (SeriesLabelPosition::LowerRight, true, false),
    ];
    let within = |p: &Placed, is_right: bool, is_upper: bool| {
        let (x, y) = ((p.x - left) / (right - left), (p.y - low) / (high - low));
        (if is_right { x > 0.6 } else { x < 0.4 }) && (if is_upper { y > 0.5 } else { y < 0.5 })
    };
    let points = |is_right, is_upper| lines.iter().flatten().filter(|p| within(p, is_right, is_upper)).count();
    let best = corners.into_iter().min_by_key(|&(_, is_right, is_upper)| points(is_right, is_upper));
    best.map_or(SeriesLabelPosition::LowerLeft, |(corner, _, _)| corner)
}
