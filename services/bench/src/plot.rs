//! Drawings for the page: bars of figures that have the same unit, and curves.

use anyhow::Context;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use crate::section::{Figure, Point, Series};
use crate::table::number;

const WIDTH: u32 = 860;
const FONT: (&str, u32) = ("sans-serif", 13);
const BLUE_GREY: RGBColor = RGBColor(70, 110, 160);
const DARK: RGBColor = RGBColor(40, 40, 40);

/// One bar for each figure, as long as its median, with a line from its least to its most.
pub(crate) fn bars(unit: &str, figures: &[&Figure]) -> anyhow::Result<String> {
    let most = figures.iter().map(|figure| figure.spread.max).fold(0.0, f64::max);
    let height = 60 + 34 * u32::try_from(figures.len())?;
    let count = i32::try_from(figures.len())?;
    draw(height, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(8)
            .margin_right(24)
            .set_label_area_size(LabelAreaPosition::Left, room_for_names(figures)?)
            .set_label_area_size(LabelAreaPosition::Bottom, 40)
            .build_cartesian_2d(0.0..room_above(most), (0..count).into_segmented())?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(figures.len())
            .y_label_formatter(&|segment| match segment {
                // The first figure is the topmost.
                SegmentValue::CenterOf(at) if (0..count).contains(at) => {
                    figures[(count - 1 - at) as usize].name.clone()
                }
                _ => String::new(),
            })
            .x_label_formatter(&|x| number(*x))
            .x_desc(unit)
            .label_style(FONT)
            .axis_desc_style(FONT)
            .draw()?;
        for (at, figure) in (0..count).rev().zip(figures) {
            let spread = figure.spread;
            let (from, until) = (SegmentValue::Exact(at), SegmentValue::Exact(at + 1));
            let mut bar =
                Rectangle::new([(0.0, from), (spread.median, until)], BLUE_GREY.mix(0.7).filled());
            bar.set_margin(6, 6, 0, 0);
            chart.draw_series([bar])?;
            let middle = SegmentValue::CenterOf(at);
            let line = [(spread.min, middle.clone()), (spread.max, middle)];
            chart.draw_series([PathElement::new(line, DARK.stroke_width(2))])?;
        }
        Ok(())
    })
}

/// The width of the longest name, as far as the bars leave room; a letter takes about half of the
/// font's height.
fn room_for_names(figures: &[&Figure]) -> anyhow::Result<u32> {
    let longest = figures.iter().map(|figure| figure.name.chars().count()).max().unwrap_or(0);
    Ok((u32::try_from(longest)? * FONT.1 / 2 + 12).min(WIDTH * 2 / 3))
}

/// A curve through medians, with a line from the least to the most at each point. What spans two
/// orders of magnitude or more is drawn by its logarithm, which has no place for zero: it is moved
/// to the left edge.
pub(crate) fn curve(series: &Series) -> anyhow::Result<String> {
    let least = series.points.iter().map(|point| point.x).filter(|x| *x > 0.0).reduce(f64::min);
    let most = series.points.last().context("a curve without points")?.x;
    let top = room_above(series.points.iter().map(|p| p.spread.max).fold(0.0, f64::max));
    draw(300, |root| match least {
        Some(least) if most / least >= 100.0 => {
            let left = if series.points[0].x > 0.0 { least } else { least / 10.0 };
            let chart = axes(root).build_cartesian_2d((left..most * 1.1).log_scale(), 0.0..top)?;
            line(chart, series, left)
        }
        _ => {
            let left = series.points[0].x;
            let chart =
                axes(root).build_cartesian_2d(left..(most * 1.02).max(left + 1.0), 0.0..top)?;
            line(chart, series, left)
        }
    })
}

type Root<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn axes<'a, 'b>(root: &'a Root<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(root);
    builder
        .margin(8)
        .margin_right(24)
        .set_label_area_size(LabelAreaPosition::Left, 90)
        .set_label_area_size(LabelAreaPosition::Bottom, 44);
    builder
}

fn line<X>(
    mut chart: ChartContext<
        '_,
        SVGBackend<'_>,
        Cartesian2d<X, plotters::coord::types::RangedCoordf64>,
    >,
    series: &Series,
    left: f64,
) -> anyhow::Result<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .x_desc(&series.x_label)
        .y_desc(&series.y_label)
        .x_label_formatter(&|x| number(*x))
        .y_label_formatter(&|y| number(*y))
        .label_style(FONT)
        .axis_desc_style(FONT)
        .draw()?;
    let place = |point: &Point| point.x.max(left);
    let medians = series.points.iter().map(|point| (place(point), point.spread.median));
    chart.draw_series(LineSeries::new(medians.clone(), BLUE_GREY.stroke_width(2)))?;
    chart.draw_series(medians.map(|at| Circle::new(at, 4, BLUE_GREY.filled())))?;
    chart.draw_series(series.points.iter().map(|point| {
        let ends = [point.spread.min, point.spread.max].map(|y| (place(point), y));
        PathElement::new(ends, DARK.stroke_width(1))
    }))?;
    Ok(())
}

/// So that the longest bar does not touch the edge, and nothing is as long as an empty axis.
fn room_above(most: f64) -> f64 {
    if most > 0.0 && most.is_finite() { most * 1.08 } else { 1.0 }
}

fn draw(
    height: u32,
    paint: impl FnOnce(&Root<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        paint(&root)?;
        root.present()?;
    }
    Ok(svg)
}
