//! A picture of the latencies of one scenario: percentiles to the right, ever denser towards 100 %, microseconds
//! upwards, both logarithmic.

use anyhow::{Result, anyhow};
use plotters::coord::combinators::IntoLogRange as _;
use plotters::prelude::{
    ChartBuilder, Color as _, DrawingBackend, IntoDrawingArea as _, LineSeries, PathElement, RGBColor,
    SVGBackend, SeriesLabelPosition, WHITE,
};

use crate::result::Report;

const SIZE: (u32, u32) = (860, 420);

/// Colours that differ in lightness as well, for those who don't see them.
const RINGMAIN: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const ITSELF: RGBColor = RGBColor(0xbb, 0xbb, 0xbb);
const OTHERS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x33, 0x33, 0x33),
    RGBColor(0xf0, 0xc8, 0x08),
    RGBColor(0x7a, 0x4f, 0x9e),
];

/// The picture as SVG; `None` if the scenario has no latencies.
///
/// # Errors
/// The plotter's.
pub fn picture(report: &Report, scenario: &str, title: &str) -> Result<Option<String>> {
    let curves: Vec<(&str, Vec<(f64, f64)>)> = report
        .outcomes_of(scenario)
        .map(|outcome| (outcome.target.as_str(), points(&outcome.curve)))
        .filter(|(_, points)| points.len() > 1)
        .collect();
    if curves.is_empty() {
        return Ok(None);
    }
    let mut svg = String::new();
    {
        let backend = SVGBackend::with_string(&mut svg, SIZE);
        draw(backend, title, &curves).map_err(|error| anyhow!("can't draw {scenario}: {error}"))?;
    }
    Ok(Some(svg))
}

/// Places on the picture: 1 / (1 - quantile) to the right.
fn points(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    curve
        .iter()
        .filter(|(percentile, micros)| *percentile < 100.0 && *micros > 0.0)
        .map(|(percentile, micros)| (100.0 / (100.0 - percentile), *micros))
        .collect()
}

fn draw<B: DrawingBackend>(backend: B, title: &str, curves: &[(&str, Vec<(f64, f64)>)]) -> Result<(), String>
where
    B::ErrorType: 'static,
{
    let all = || curves.iter().flat_map(|(_, points)| points);
    let right = all().map(|(x, _)| *x).fold(100.0, f64::max);
    let top = all().map(|(_, y)| *y).fold(1.0, f64::max) * 1.3;
    let bottom = all().map(|(_, y)| *y).fold(f64::INFINITY, f64::min) / 1.3;
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let area = backend.into_drawing_area();
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d((1.0..right).log_scale(), (bottom..top).log_scale())
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .x_desc("percentile")
        .y_desc("latency, µs")
        .x_label_formatter(&|x| percentile(*x))
        .y_label_formatter(&|y| crate::metric::short(*y))
        .light_line_style(RGBColor(0xf2, 0xf2, 0xf2))
        .draw()
        .map_err(|error| failed(&error))?;
    let mut others = OTHERS.iter().cycle();
    for (target, points) in curves {
        let colour = match *target {
            "ringmain" => RINGMAIN,
            "itself" => ITSELF,
            _ => *others.next().unwrap_or(&RINGMAIN),
        };
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))
            .map_err(|error| failed(&error))?
            .label(*target)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(0xcc, 0xcc, 0xcc))
        .label_font(("sans-serif", 13))
        .draw()
        .map_err(|error| failed(&error))?;
    area.present().map_err(|error| failed(&error))
}

/// The label of a place: 100 is 99 %, 1000 is 99.9 %.
fn percentile(place: f64) -> String {
    let digits = (place.log10().ceil() as usize).saturating_sub(2);
    format!("{:.digits$} %", 100.0 - 100.0 / place)
}

#[cfg(test)]
mod tests {
    use super::{percentile, picture, points};
    use crate::result::tests::report;

    #[test]
    fn places_and_their_labels() {
        let places = points(&[(0.0, 10.0), (90.0, 20.0), (99.0, 30.0), (100.0, 40.0)]);
        assert_eq!(places.iter().map(|(x, _)| x.round()).collect::<Vec<_>>(), [1.0, 10.0, 100.0]);
        assert_eq!(
            ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"],
            [1.0, 10.0, 100.0, 1e3, 1e4].map(percentile)
        );
    }

    #[test]
    fn a_picture_names_its_targets() {
        let mut report = report(&[("ringmain", &[1.0])]);
        assert_eq!(picture(&report, "pair-1", "1 pair").unwrap(), None);
        report.outcomes[0].curve =
            vec![(0.0, 10.0), (50.0, 12.0), (99.0, 30.0), (99.9, 100.0), (100.0, 140.0)];
        let svg = picture(&report, "pair-1", "1 pair").unwrap().unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("ringmain") && svg.contains("99.9 %"));
    }
}
