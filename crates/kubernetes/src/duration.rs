//! Durations as Go reads and writes them: `1h30m`, `300ms`, `-1.5s`.
//!
//! Never guesses: a day is not a unit, a number without a unit is an error, and what does not fit 64 bits of nanoseconds
//! is refused.

use std::fmt::Write as _;

use jiff::SignedDuration;

use super::schema::gotime::quote;

/// 2^63: the magnitude of the longest negative duration.
const LIMIT: u64 = 1 << 63;

/// Reads a duration; the error is Go's.
pub fn parse(text: &str) -> Result<SignedDuration, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let Some(nanos) = nanoseconds(unit) else {
            // Go reads the number first, and a number that does not fit is what it complains about.
            integer(whole).ok_or_else(invalid)?;
            return Err(match unit {
                "" => format!("time: missing unit in duration {}", quote(text)),
                unit => format!("time: unknown unit {} in duration {}", quote(unit), quote(text)),
            });
        };
        let value = integer(whole).filter(|value| *value <= LIMIT / nanos).ok_or_else(invalid)? * nanos;
        total = total.checked_add(value + part(fraction, nanos)).filter(|total| *total <= LIMIT).ok_or_else(invalid)?;
        rest = after;
    }
    match (negative, i64::try_from(total)) {
        (true, Ok(nanos)) => Ok(SignedDuration::from_nanos(-nanos)),
        (false, Ok(nanos)) => Ok(SignedDuration::from_nanos(nanos)),
        (true, Err(_)) => Ok(SignedDuration::from_nanos(i64::MIN)),
        (false, Err(_)) => Err(invalid()),
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn integer(digits: &str) -> Option<u64> {
    digits.bytes().try_fold(0u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0')).filter(|number| *number <= LIMIT)
    })
}

/// The nanoseconds of a fraction of a unit. Digits that no longer fit are not read, and the rest is computed in floating
/// point, as Go does it: `0.3333333333333333333h` is 20m0s.
fn part(digits: &str, nanos: u64) -> u64 {
    let (mut number, mut scale) = (0u64, 1f64);
    for digit in digits.bytes() {
        let next = number.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0')));
        let Some(next) = next.filter(|next| number <= (LIMIT - 1) / 10 && *next <= LIMIT) else { break };
        (number, scale) = (next, scale * 10.0);
    }
    if number == 0 { 0 } else { (number as f64 * (nanos as f64 / scale)) as u64 }
}

/// Writes a duration; one that Go could not hold as the longest it could.
pub fn print(duration: SignedDuration) -> String {
    let nanos = i64::try_from(duration.as_nanos()).unwrap_or(if duration.is_negative() { i64::MIN } else { i64::MAX });
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    match magnitude {
        0 => return "0s".into(),
        1..1_000 => return format!("{sign}{magnitude}ns"),
        1_000..1_000_000 => return format!("{sign}{}µs", decimal(magnitude, 1_000)),
        1_000_000..1_000_000_000 => return format!("{sign}{}ms", decimal(magnitude, 1_000_000)),
        1_000_000_000.. => {}
    }
    let (minutes, rest) = (magnitude / 60_000_000_000, magnitude % 60_000_000_000);
    let mut out = String::from(sign);
    if minutes >= 60 {
        let _ = write!(out, "{}h", minutes / 60);
    }
    if minutes > 0 {
        let _ = write!(out, "{}m", minutes % 60);
    }
    out.push_str(&decimal(rest, 1_000_000_000));
    out.push('s');
    out
}

/// `amount / unit` without zeros at its end.
fn decimal(amount: u64, unit: u64) -> String {
    let places = unit.ilog10() as usize;
    let text = format!("{}.{:0places$}", amount / unit, amount % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_read_as_go_reads_them() {
        let rows = [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            (".5s", Ok(500_000_000)),
            ("1.s", Ok(1_000_000_000)),
            ("1h15m30.918273645s", Ok(4_530_918_273_645)),
            ("0.3333333333333333333h", Ok(1_200_000_000_000)),
            ("-9223372036854775808ns", Ok(i64::MIN)),
            ("0.9223372036854775807h", Ok(3_320_413_933_267)),
            ("9223372036854775808ns", Err(r#"time: invalid duration "9223372036854775808ns""#)),
            ("99999999999999999999x", Err(r#"time: invalid duration "99999999999999999999x""#)),
            ("5", Err(r#"time: missing unit in duration "5""#)),
            ("1\u{7f}é", Err("time: unknown unit \"\u{7f}\\xc3\\xa9\" in duration \"1\u{7f}\\xc3\\xa9\"")),
            ("1d\"", Err(r#"time: unknown unit "d\"" in duration "1d\"""#)),
        ];
        for (text, expected) in rows {
            let ours = parse(text).map(|duration| duration.as_nanos() as i64);
            assert_eq!(ours, expected.map_err(str::to_owned), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+]?([0-9.]{0,25}(ns|us|µs|ms|s|m|h|d|)){0,4}|.*") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_is_read_back(nanos in any::<i64>()) {
            let duration = SignedDuration::from_nanos(nanos);
            prop_assert_eq!(parse(&print(duration)), Ok(duration));
        }
    }
}
