//! Pods and weight over time, as a picture: in characters, and as SVG. Nothing in either comes from a manifest.

use std::fmt::Write;

use jiff::SignedDuration;

use crate::plan::forecast::{Forecast, Point, length};

/// How many columns the picture in characters has.
const COLUMNS: usize = 60;
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A small picture in characters: a line for the weight, one for each sort of pods. None if nothing moves.
pub fn drawing(forecast: &Forecast) -> Vec<String> {
    let curve = &forecast.curve;
    let most = curve.iter().map(|point| point.stable.max(point.canary)).max().unwrap_or_default();
    if curve.len() < 2 || most == 0 {
        return Vec::new();
    }
    let columns: Vec<Point> = (0..COLUMNS).map(|column| at(curve, moment(forecast.ends, column))).collect();
    let row = |title: &str, value: fn(&Point) -> i64, most: i64, end: &str| {
        let bars: String = columns.iter().map(|point| level(value(point), most)).collect();
        format!("{title:>7} {bars} {end}")
    };
    vec![
        row("weight", |point| point.weight, 100, "of 100%"),
        row("canary", |point| point.canary, most, &format!("of {most}")),
        row("stable", |point| point.stable, most, &format!("of {most}")),
        format!("{:>7} 0{:>width$}", "", length(forecast.ends), width = COLUMNS - 1),
    ]
}

/// The moment of a column: the last shows the end.
fn moment(ends: SignedDuration, column: usize) -> SignedDuration {
    let share = i32::try_from(column).unwrap_or_default();
    let last = i32::try_from(COLUMNS - 1).unwrap_or(1);
    ends.saturating_mul(share).checked_div(last).unwrap_or_default()
}

fn at(curve: &[Point], moment: SignedDuration) -> Point {
    curve.iter().rev().find(|point| point.at <= moment).or(curve.first()).copied().unwrap_or_default()
}

fn level(value: i64, most: i64) -> char {
    // Rounded up: one pod of a hundred is to be seen.
    let index = (value.clamp(0, most) * 8 + most - 1) / most.max(1);
    LEVELS[usize::try_from(index).unwrap_or_default().min(8)]
}

const WIDTH: i64 = 640;
const HEIGHT: i64 = 200;
const LEFT: i64 = 40;
const RIGHT: i64 = 40;
const TOP: i64 = 24;
const BOTTOM: i64 = 28;

/// Pods (left scale) and weight (right scale) over time. Colours follow the reader's scheme.
pub fn svg(forecast: &Forecast) -> String {
    let curve = &forecast.curve;
    let most = curve.iter().map(|point| point.stable.max(point.canary)).max().unwrap_or_default().max(1);
    let total = i64::try_from(forecast.ends.as_millis()).unwrap_or(i64::MAX).max(1);
    let x = |at: SignedDuration| {
        let at = i64::try_from(at.as_millis()).unwrap_or(total).clamp(0, total);
        LEFT + i64::try_from(i128::from(at) * i128::from(WIDTH - LEFT - RIGHT) / i128::from(total)).unwrap_or_default()
    };
    let y = |value: i64, most: i64| HEIGHT - BOTTOM - value.clamp(0, most) * (HEIGHT - TOP - BOTTOM) / most;
    let path = |value: fn(&Point) -> i64, most: i64| {
        let mut path = String::new();
        for (index, point) in curve.iter().enumerate() {
            let (across, up) = (x(point.at), y(value(point), most));
            let _ = if index == 0 { write!(path, "M{across} {up}") } else { write!(path, "H{across}V{up}") };
        }
        let _ = write!(path, "H{}", WIDTH - RIGHT);
        path
    };
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="pods and weight over time" font-family="system-ui,sans-serif" font-size="11" fill="#777">
<path d="M{LEFT} {TOP}V{bottom}H{right}V{TOP}" fill="none" stroke="#999"/>
<path d="{}" fill="none" stroke="#1a7f37" stroke-width="2"/>
<path d="{}" fill="none" stroke="#bf8700" stroke-width="2"/>
<path d="{}" fill="none" stroke="#0969da" stroke-width="2" stroke-dasharray="4 3"/>
<text x="{}" y="{}" text-anchor="end">{most}</text><text x="{}" y="{bottom}" text-anchor="end">0</text>
<text x="{}" y="{}">100%</text><text x="{}" y="{bottom}">0%</text>
<text x="{LEFT}" y="{}">0</text><text x="{right}" y="{}" text-anchor="end">{}</text>
<text x="{LEFT}" y="14" fill="#1a7f37">stable pods</text><text x="{}" y="14" fill="#bf8700">canary pods</text><text x="{}" y="14" fill="#0969da">weight</text>
</svg>
"##,
        path(|point| point.stable, most),
        path(|point| point.canary, most),
        path(|point| point.weight, 100),
        LEFT - 4,
        TOP + 4,
        LEFT - 4,
        right + 4,
        TOP + 4,
        right + 4,
        HEIGHT - 10,
        HEIGHT - 10,
        length(forecast.ends),
        LEFT + 90,
        LEFT + 180,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_seen_to_grow() {
        let point =
            |seconds, stable, canary, weight| Point { at: SignedDuration::from_secs(seconds), stable, canary, weight };
        let forecast = Forecast {
            ends: SignedDuration::from_secs(60),
            curve: vec![point(0, 4, 0, 0), point(20, 3, 1, 25), point(40, 0, 4, 100)],
            ..Forecast::default()
        };
        assert_eq!(
            drawing(&forecast),
            [
                " weight                     ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂████████████████████ of 100%",
                " canary                     ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂████████████████████ of 4",
                " stable ████████████████████▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆                     of 4",
                "        0                                                         1m",
            ]
        );
        let svg = svg(&forecast);
        assert!(svg.contains(r#"d="M40 24H226V61H413V172H600""#), "{svg}");
        assert!(drawing(&Forecast::default()).is_empty());
    }
}
