//! The text that Prometheus reads, version 0.0.4. Knows nothing about what is counted.

use std::fmt::Write;

/// Names and values of labels, in the order in which they are written.
pub(super) type Labels = Vec<(&'static str, String)>;

/// What sort of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It is so at the moment.
    Gauge,
    /// How often a number was at most each of several bounds.
    Histogram,
}

impl Kind {
    /// As Prometheus calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// Numbers of one name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    name: &'static str,
    help: &'static str,
    kind: Kind,
}

impl Family {
    pub fn new(name: &'static str, help: &'static str, kind: Kind) -> Family {
        Family { name, help, kind }
    }
}

/// How often a number was at most each of the bounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram {
    /// By the first bound that holds it; the last is for what none holds.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// Counts a number; the bounds are always the same for one histogram.
    pub fn observe(&mut self, bounds: &[f64], number: f64) {
        self.counts.resize(bounds.len() + 1, 0);
        let place = bounds.iter().position(|bound| number <= *bound).unwrap_or(bounds.len());
        self.counts[place] += 1;
        self.sum += number;
    }
}

/// The page.
#[derive(Debug, Default)]
pub(super) struct Page(Vec<(&'static str, String)>);

impl Page {
    /// Adds numbers; a family without any is left out.
    pub fn samples(&mut self, family: Family, samples: impl IntoIterator<Item = (Labels, f64)>) {
        let mut out = String::new();
        for (labels, number) in samples {
            sample(&mut out, family.name, &labels, number);
        }
        self.add(family, out);
    }

    /// Adds histograms.
    pub fn histograms<'a>(
        &mut self,
        family: Family,
        bounds: &[f64],
        histograms: impl IntoIterator<Item = (Labels, &'a Histogram)>,
    ) {
        let mut out = String::new();
        for (labels, histogram) in histograms {
            let mut sum = 0;
            for (place, bound) in bounds.iter().copied().chain([f64::INFINITY]).enumerate() {
                sum += histogram.counts.get(place).copied().unwrap_or_default();
                let mut labels = labels.clone();
                labels.push(("le", shown(bound)));
                sample(&mut out, &format!("{}_bucket", family.name), &labels, sum as f64);
            }
            sample(&mut out, &format!("{}_sum", family.name), &labels, histogram.sum);
            sample(&mut out, &format!("{}_count", family.name), &labels, sum as f64);
        }
        self.add(family, out);
    }

    fn add(&mut self, family: Family, samples: String) {
        if samples.is_empty() {
            return;
        }
        let Family { name, help, kind } = family;
        let kind = kind.as_str();
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.0.push((name, format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}")));
    }

    /// All of it, by name.
    pub fn text(mut self) -> String {
        self.0.sort_by_key(|(name, _)| *name);
        self.0.into_iter().map(|(_, text)| text).collect()
    }
}

fn sample(out: &mut String, name: &str, labels: &Labels, number: f64) {
    out.push_str(name);
    for (place, (key, value)) in labels.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{}{key}=\"{value}\"", if place == 0 { '{' } else { ',' });
    }
    if !labels.is_empty() {
        out.push('}');
    }
    let _ = writeln!(out, " {}", shown(number));
}

/// A number as Go writes it.
fn shown(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let mut page = Page::default();
        let mut histogram = Histogram::default();
        for number in [0.01, 0.2, 7.0] {
            histogram.observe(&[0.01, 1.0], number);
        }
        page.histograms(Family::new("b", "two\nlines", Kind::Histogram), &[0.01, 1.0], [(Vec::new(), &histogram)]);
        page.samples(Family::new("none", "", Kind::Gauge), []);
        let labels = vec![("x", "a\"b\\c\nd".to_owned()), ("y", String::new())];
        page.samples(Family::new("a", "help", Kind::Counter), [(labels, 3.0)]);
        let expected = "\
# HELP a help
# TYPE a counter
a{x=\"a\\\"b\\\\c\\nd\",y=\"\"} 3
# HELP b two\\nlines
# TYPE b histogram
b_bucket{le=\"0.01\"} 1
b_bucket{le=\"1\"} 2
b_bucket{le=\"+Inf\"} 3
b_sum 7.21
b_count 3
";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.25, "0.25"),
            (1e-5, "1e-05"),
            (28800.0, "28800"),
            (2.5e21, "2.5e+21"),
            (-3.0, "-3"),
        ] {
            assert_eq!(shown(number), text);
        }
    }
}
