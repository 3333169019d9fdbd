//! `resource.Quantity`: a decimal number with a suffix, read, compared and written as Kubernetes does.
//!
//! The number is exact to 36 significant digits; what is longer is rounded up. Never a binary fraction.

use std::{cmp::Ordering, fmt};

/// An amount of something: `500m`, `1.5Gi`, `2e3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text it was read from, where the real server writes that text back: `1.500` stays `1.500`.
    kept: Option<Box<str>>,
}

/// `mantissa × 10^scale`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Amount {
    mantissa: i128,
    scale: i32,
}

/// Which suffixes a quantity is written with: those it was read with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `1k`
    Decimal,
    /// `1Ki`
    Binary,
    /// `1e3`
    Exponent,
}

/// Why a text is no quantity, in the real server's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It does not look like one.
    Shape,
    /// Its number cannot be read.
    Number,
    /// Its suffix means nothing.
    Suffix,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Problem::Shape => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Problem::Number => "unable to parse numeric part of quantity",
            Problem::Suffix => "unable to parse quantity's suffix",
        })
    }
}

/// The smallest amount there is: less is rounded up to it.
const NANO: i32 = -9;

/// How many digits the real server reads without arbitrary precision. It decides which texts are kept as they are.
const FAST_DIGITS: usize = 18;

/// How many digits a mantissa holds such that it can still be multiplied by 100.
const MOST_DIGITS: usize = 36;

impl Quantity {
    /// Reads a quantity. Space around it is not part of it: trim first.
    pub fn parse(text: &str) -> Result<Quantity, Problem> {
        if text.is_empty() {
            return Err(Problem::Shape);
        }
        let Parts { negative, whole, fraction, suffix } = split(text)?;
        let (base, exponent, format) = interpret(suffix).ok_or(Problem::Suffix)?;
        let digits = whole.len().max(1) + fraction.len();
        let scale = if base == 10 { exponent } else { 0 };

        let fast = match format {
            Format::Decimal | Format::Exponent => {
                digits <= FAST_DIGITS && scale.saturating_sub(fraction.len() as i32) >= NANO
            }
            // As the real one estimates whether the product fits.
            Format::Binary => {
                fraction.is_empty() && whole.len().max(1) as i32 + (exponent as f32 * 3.0 / 10.0) as i32 <= 14
            }
        };
        if fast {
            let amount = Amount::read(whole, fraction, scale);
            let kept = match format {
                Format::Binary => amount.mantissa & 7 != 0,
                _ => {
                    amount.scale % 3 == 0 && !whole.is_empty() && {
                        let last = fraction.len().min(3);
                        let zeros = |text: &str, n: usize| text.len() >= n && text.ends_with(&"000"[..n]);
                        !(zeros(fraction, last) && zeros(whole, 3 - last))
                    }
                }
            };
            let power = if base == 2 { 1i128 << exponent } else { 1 };
            let mantissa = amount.mantissa * power * if negative { -1 } else { 1 };
            let amount = Amount { mantissa, ..amount };
            return Ok(Quantity { amount, format, kept: kept.then(|| text.into()) });
        }
        if whole.is_empty() && fraction.is_empty() && !text.contains('0') {
            return Err(Problem::Number);
        }
        Ok(Quantity::read_slowly(negative, whole, fraction, base, exponent, format))
    }

    /// What the fast path cannot read: many digits, tiny amounts, fractions of binary units. Nothing of the text is kept.
    fn read_slowly(
        negative: bool,
        whole: &str,
        fraction: &str,
        base: u8,
        exponent: i32,
        mut format: Format,
    ) -> Quantity {
        let mut amount = Amount::read(whole, fraction, if base == 10 { exponent } else { 0 });
        if base == 2 {
            amount = match amount.mantissa.checked_mul(1i128 << exponent) {
                Some(mantissa) => Amount { mantissa, ..amount },
                // Too many digits: those far behind the point give way, or the cap below applies anyway.
                None => {
                    Amount { mantissa: amount.rounded_up(NANO).mantissa.saturating_mul(1i128 << exponent), scale: NANO }
                }
            };
        }
        amount = amount.rounded_up(NANO);
        if format == Format::Binary {
            let cap = Amount { mantissa: i64::MAX.into(), scale: 0 };
            if amount.cmp(&cap) == Ordering::Greater {
                amount = cap;
            }
            if amount.mantissa != 0 && amount.cmp(&Amount { mantissa: 1, scale: 0 }) == Ordering::Less {
                format = Format::Decimal;
            }
        }
        if negative {
            amount.mantissa = -amount.mantissa;
        }
        Quantity { amount, format, kept: None }
    }

    /// A whole number.
    pub fn from_int(value: i64) -> Quantity {
        Quantity { amount: Amount { mantissa: value.into(), scale: 0 }, format: Format::Decimal, kept: None }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        self.amount.mantissa.signum() as i32
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.amount.mantissa == 0
    }

    /// The next whole number away from zero, within 64 bits.
    pub fn value(&self) -> i64 {
        self.amount.scaled(0)
    }

    /// Thousandths, rounded away from zero, within 64 bits.
    pub fn milli_value(&self) -> i64 {
        self.amount.scaled(-3)
    }

    /// The nearest floating-point number.
    pub fn to_f64(&self) -> f64 {
        self.amount.mantissa as f64 * 10f64.powi(self.amount.scale)
    }

    /// Whether it has digits behind `10^scale`: `1500m` is not exact to the unit, scale 0.
    pub fn is_exact(&self, scale: i32) -> bool {
        let reduced = self.amount.reduced();
        reduced.mantissa == 0 || reduced.scale >= scale
    }

    /// Rounds away from zero to a multiple of `10^scale`.
    pub fn round_up(&mut self, scale: i32) {
        if self.amount.scale < scale {
            self.amount = self.amount.rounded_up(scale);
            self.kept = None;
        }
    }

    /// Adds another amount; nothing takes on the other's suffixes.
    pub fn add(&mut self, other: &Quantity) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.kept = None;
        let scale = self.amount.scale.min(other.amount.scale);
        let (a, b) = (self.amount.at(scale), other.amount.at(scale));
        self.amount = Amount { mantissa: a.saturating_add(b), scale };
    }

    /// Takes another amount away.
    pub fn sub(&mut self, other: &Quantity) {
        let amount = Amount { mantissa: -other.amount.mantissa, ..other.amount };
        self.add(&Quantity { amount, format: other.format, kept: None });
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.amount.cmp(&other.amount))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.kept {
            return f.write_str(text);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        let unit = Amount { mantissa: 1024, scale: 0 };
        let small = Amount { mantissa: self.amount.mantissa.abs(), ..self.amount }.cmp(&unit) == Ordering::Less;
        // A binary quantity that is small or has a fraction is written in decimals, so that nothing is rounded.
        let format =
            if self.format == Format::Binary && (small || !self.is_exact(0)) { Format::Decimal } else { self.format };
        if format == Format::Binary {
            let (mut mantissa, mut power) = (self.amount.at(0), 0);
            while mantissa % 1024 == 0 && power < 6 {
                (mantissa, power) = (mantissa / 1024, power + 1);
            }
            return write!(f, "{mantissa}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
        }
        let Amount { mut mantissa, mut scale } = self.amount.reduced();
        while scale % 3 != 0 {
            (mantissa, scale) = (mantissa.saturating_mul(10), scale - 1);
        }
        match (format, scale) {
            (Format::Exponent, 0) => write!(f, "{mantissa}"),
            (Format::Exponent, _) => write!(f, "{mantissa}e{scale}"),
            // Beyond E the real server forgets the magnitude and writes the bare mantissa.
            _ => write!(f, "{mantissa}{}", DECIMAL.iter().find(|(_, s)| *s == scale).map_or("", |(suffix, _)| suffix)),
        }
    }
}

impl Amount {
    /// Reads digits; of more than fit, the last are rounded up.
    fn read(whole: &str, fraction: &str, scale: i32) -> Amount {
        let mut amount = Amount { mantissa: 0, scale: scale.saturating_sub(fraction.len() as i32) };
        let digits = whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0');
        let mut inexact = false;
        for (i, digit) in digits.enumerate() {
            if i < MOST_DIGITS {
                amount.mantissa = amount.mantissa * 10 + i128::from(digit - b'0');
            } else {
                inexact |= digit != b'0';
                amount.scale = amount.scale.saturating_add(1);
            }
        }
        amount.mantissa += i128::from(inexact);
        amount
    }

    /// The same amount without zeros at the end of its mantissa.
    fn reduced(mut self) -> Amount {
        while self.mantissa != 0 && self.mantissa % 10 == 0 {
            (self.mantissa, self.scale) = (self.mantissa / 10, self.scale.saturating_add(1));
        }
        self
    }

    /// Rounds away from zero to a multiple of `10^scale`; exact amounts stay as they are.
    fn rounded_up(self, scale: i32) -> Amount {
        if self.scale >= scale {
            return self;
        }
        let places = scale.saturating_sub(self.scale);
        let mantissa = match 10i128.checked_pow(places.unsigned_abs()) {
            Some(unit) => self.mantissa / unit + if self.mantissa % unit == 0 { 0 } else { self.mantissa.signum() },
            None => self.mantissa.signum(),
        };
        Amount { mantissa, scale }
    }

    /// The mantissa at another scale, rounded away from zero, within 128 bits.
    fn at(self, scale: i32) -> i128 {
        if self.scale <= scale {
            return self.rounded_up(scale).mantissa;
        }
        let places = self.scale.saturating_sub(scale).unsigned_abs();
        10i128.checked_pow(places).map_or(i128::MAX * self.mantissa.signum(), |unit| self.mantissa.saturating_mul(unit))
    }

    fn scaled(self, scale: i32) -> i64 {
        self.at(scale).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    fn cmp(&self, other: &Amount) -> Ordering {
        let (a, b) = (self.reduced(), other.reduced());
        match a.mantissa.signum().cmp(&b.mantissa.signum()) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
        let scale = a.scale.min(b.scale);
        a.at(scale).cmp(&b.at(scale))
    }
}

struct Parts<'a> {
    negative: bool,
    /// The digits before the point, without leading zeros.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

fn split(text: &str) -> Result<Parts<'_>, Problem> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let rest = rest.trim_start_matches('0');
    let (whole, rest) = digits(rest);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    let letters = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if !exponent.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Problem::Shape);
    }
    Ok(Parts { negative, whole, fraction, suffix })
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

const DECIMAL: [(&str, i32); 10] =
    [("", 0), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18), ("u", -6), ("n", -9)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The base, the exponent and the family of a suffix.
fn interpret(suffix: &str) -> Option<(u8, i32, Format)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((10, *exponent, Format::Decimal));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((2, *exponent, Format::Binary));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((10, exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32, Format::Exponent))
}

/// The canonical form of a quantity's text, or `None` if it is canonical already.
pub fn canonical(text: &str) -> Result<Option<String>, Problem> {
    // The common case costs no parsing: a small whole number of units, bytes or thousandths.
    let (number, suffix) = digits(text);
    if matches!(number.len(), 1..=9)
        && !number.starts_with('0')
        && match suffix {
            "" | "m" | "k" | "M" | "G" => !number.ends_with("000"),
            "Ki" | "Mi" | "Gi" => !number.as_bytes()[number.len() - 1].is_multiple_of(2),
            _ => false,
        }
    {
        return Ok(None);
    }
    let quantity = Quantity::parse(text.trim())?;
    let written = quantity.to_string();
    Ok((written != text).then_some(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows were written by the real type: `tests/control-plane/facts -quantities`.
    #[test]
    fn every_text_is_read_and_written_as_the_real_type_does() {
        for row in include_str!("testdata/quantities.txt").lines() {
            let cells: Vec<&str> = row.split('\t').collect();
            match (Quantity::parse(cells[0].trim()), cells.as_slice()) {
                (Err(problem), [_, message]) => assert_eq!(problem.to_string(), *message, "{row}"),
                (Ok(quantity), [text, written, value, milli, rounded]) => {
                    assert_eq!(quantity.to_string(), *written, "{row}");
                    assert_eq!(canonical(text), Ok((text != written).then(|| (*written).into())), "{row}");
                    // The real type's arithmetic overflows silently, of negative numbers even early; ours stays at the bound.
                    if (0..i64::MAX).contains(&quantity.value()) {
                        assert_eq!(quantity.value().to_string(), *value, "{row}");
                    }
                    if (0..i64::MAX).contains(&quantity.milli_value()) {
                        assert_eq!(quantity.milli_value().to_string(), *milli, "{row}");
                    }
                    let mut up = quantity.clone();
                    up.round_up(-3);
                    assert_eq!(up.to_string(), *rounded, "{row}");
                }
                (found, _) => panic!("{found:?} for {row}"),
            }
        }
    }

    #[test]
    fn amounts_are_compared_not_texts() {
        let ordered = [
            "-1Gi", "-1", "-1m", "0", "1n", "0.5m", "1m", "999m", "1", "1k", "1Ki", "1M", "1Mi", "1e7", "1E", "1e30",
            "1e300",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                let (x, y) = (Quantity::parse(a).unwrap(), Quantity::parse(b).unwrap());
                assert_eq!(x.partial_cmp(&y), Some(i.cmp(&j)), "{a} {b}");
            }
        }
        assert!(
            Quantity::parse("1024Ki").unwrap().partial_cmp(&Quantity::parse("1Mi").unwrap()) == Some(Ordering::Equal)
        );
    }

    #[test]
    fn sums_keep_the_suffix_of_the_first_amount_that_is_something() {
        let sum = |a: &str, b: &str| {
            let mut sum = Quantity::parse(a).unwrap();
            sum.add(&Quantity::parse(b).unwrap());
            sum.to_string()
        };
        assert_eq!(sum("500m", "500m"), "1");
        assert_eq!(sum("0", "1536Mi"), "1536Mi");
        assert_eq!(sum("1Gi", "1k"), "1073742824");
        assert_eq!(sum("1", "-1"), "0");
    }

    #[test]
    fn no_text_makes_it_panic() {
        for text in
            ["1e2147483647", "1e-2147483648", "0.1e2147483647", "1e-2147483640", "99999999999999999999e2147483647"]
        {
            let quantity = Quantity::parse(text).unwrap();
            let _ = (
                quantity.to_string(),
                quantity.value(),
                quantity.milli_value(),
                quantity.partial_cmp(&Quantity::from_int(1)),
            );
            let mut sum = quantity.clone();
            sum.add(&Quantity::parse("1e-2147483648").unwrap());
            sum.sub(&quantity);
        }
        let long = "9".repeat(400);
        for suffix in ["", "Ei", "n", "e-300"] {
            assert!(Quantity::parse(&format!("{long}.{long}{suffix}")).is_ok());
        }
    }
}
