//! Bars with intervals.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::{Area, Bar, Bars, COLOURS, failed, span};

/// Maximum number of ticks.
const TICKS: usize = 10;
/// Approximate width of a letter of a bar's name, in pixels.
const LETTER: u32 = 8;
/// Maximum width of a bar's name, in pixels.
const WIDEST: u32 = 330;
/// Margin left and right of the bars, as a fraction of their range.
const ROOM: f64 = 0.05;

pub fn draw<B: DrawingBackend>(bars: &Bars, area: &Area<B>) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    let axis = &bars.axis;
    let interval = |bar: &Bar| {
        let value = axis.place(bar.value)?;
        let end = |at| axis.place(at).unwrap_or(value);
        Some((value, end(bar.value - bar.half), end(bar.value + bar.half)))
    };
    let mark = bars.mark.as_ref().and_then(|mark| Some((axis.place(mark.at)?, &mark.name)));
    let ends = bars.bars.iter().filter_map(interval).flat_map(|(_, from, to)| [from, to]);
    let (low, high) = span(ends.chain(mark.iter().map(|(at, _)| *at)), ROOM);
    // Bars start at zero, unless that would hide their differences, or the scale has no zero.
    let base = if axis.is_log || low > 0.5 * high { low } else { 0.0 };
    let (low, high) = axis.range.unwrap_or((if low < 0.0 || base == low { low } else { 0.0 }, high.max(base)));
    let base = base.clamp(low, high);
    let rows = bars.bars.len().max(1) as f64;
    let longest = bars.bars.iter().map(|bar| bar.name.chars().count() as u32).max().unwrap_or(0);
    let names = (longest * LETTER + 15).min(WIDEST);
    let mut chart = ChartBuilder::on(area)
        .margin(20)
        .caption(&bars.title, ("sans-serif", 24))
        .x_label_area_size(45)
        .y_label_area_size(names)
        .build_cartesian_2d(axis.scale(low, high, TICKS), rows..0.0)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.08))
        .x_desc(&axis.label)
        .x_label_formatter(&|x| axis.text(*x))
        .x_labels(TICKS)
        .y_labels(0)
        .label_style(("sans-serif", 16))
        .draw()
        .map_err(failed)?;
    let top_left = area.get_base_pixel();
    let left = area.strip_coord_spec();
    for (i, bar) in bars.bars.iter().enumerate() {
        let y = i as f64 + 0.5;
        if let Some((value, from, to)) = interval(bar) {
            let colour = COLOURS[if bar.is_own { 0 } else { 3 }].mix(0.8);
            chart.draw_series([Rectangle::new([(base, y - 0.32), (value, y + 0.32)], colour.filled())]).map_err(failed)?;
            if to > from {
                chart.draw_series([PathElement::new([(from, y), (to, y)], BLACK.stroke_width(2))]).map_err(failed)?;
            }
        }
        let (_, row) = chart.backend_coord(&(low, y));
        let style = TextStyle::from(("sans-serif", 17)).pos(Pos::new(HPos::Right, VPos::Center));
        left.draw(&Text::new(bar.name.clone(), (names as i32 + 10, row - top_left.1), style)).map_err(failed)?;
    }
    if let Some((at, name)) = mark {
        chart.draw_series([PathElement::new([(at, 0.0), (at, rows)], BLACK.stroke_width(1))]).map_err(failed)?;
        let style = TextStyle::from(("sans-serif", 15)).pos(Pos::new(HPos::Right, VPos::Top));
        chart.draw_series([Text::new(format!("{name} "), (at, 0.02), style)]).map_err(failed)?;
    }
    Ok(())
}
