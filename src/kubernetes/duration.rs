//! Go's durations as text: `1h30m`, `300ms`, `-1.5h`.
//!
//! Never rounds: a text names whole nanoseconds, or Go's error for it.

use std::fmt::Write as _;

use jiff::SignedDuration;

use super::status::go_quoted;

/// The longest duration Go can hold, in nanoseconds; one more is still allowed below zero.
const LIMIT: u64 = 1 << 63;

/// Reads a duration as Go's `time.ParseDuration` does; the error is Go's.
pub fn parse(text: &str) -> Result<SignedDuration, String> {
    let invalid = || format!("time: invalid duration {}", go_quoted(text));
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
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
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", go_quoted(text)));
        }
        let Some(nanoseconds) = unit_of(unit) else {
            return Err(format!("time: unknown unit {} in duration {}", go_quoted(unit), go_quoted(text)));
        };
        let whole = number(whole).and_then(|whole| whole.checked_mul(nanoseconds)).filter(|n| *n <= LIMIT);
        let part = whole.and_then(|whole| whole.checked_add(fraction_of(fraction, nanoseconds)));
        let sum = part.and_then(|part| total.checked_add(part)).filter(|n| *n <= LIMIT);
        total = sum.ok_or_else(invalid)?;
        rest = after;
    }
    match (negative, i64::try_from(total)) {
        (true, Ok(nanoseconds)) => Ok(SignedDuration::from_nanos(-nanoseconds)),
        (true, Err(_)) => Ok(SignedDuration::from_nanos(i64::MIN)),
        (false, Ok(nanoseconds)) => Ok(SignedDuration::from_nanos(nanoseconds)),
        (false, Err(_)) => Err(invalid()),
    }
}

/// The digits a text begins with, and what follows.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The number that digits stand for, up to [`LIMIT`].
fn number(digits: &str) -> Option<u64> {
    digits.bytes().try_fold(0u64, |sum, digit| {
        let sum = sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        (sum <= LIMIT).then_some(sum)
    })
}

/// The nanoseconds of the digits behind the point. Go stops reading digits where they no longer fit, and computes with
/// floats.
fn fraction_of(digits: &str, nanoseconds: u64) -> u64 {
    let (mut sum, mut scale) = (0u64, 1.0f64);
    for digit in digits.bytes() {
        let next = sum.checked_mul(10).and_then(|sum| sum.checked_add(u64::from(digit - b'0')));
        match next.filter(|next| *next < LIMIT) {
            Some(next) => (sum, scale) = (next, scale * 10.0),
            None => break,
        }
    }
    (sum as f64 * (nanoseconds as f64 / scale)) as u64
}

fn unit_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Writes a duration as Go's `Duration.String` does.
pub fn print(duration: SignedDuration) -> String {
    let nanoseconds = duration.as_nanos();
    let size = nanoseconds.unsigned_abs();
    let mut text = String::new();
    if nanoseconds < 0 {
        text.push('-');
    }
    // Writing to a string cannot fail.
    let _ = match size {
        0 => write!(text, "0s"),
        1..1_000 => write!(text, "{size}ns"),
        1_000..1_000_000 => write!(text, "{}\u{b5}s", decimal(size, 1_000)),
        1_000_000..1_000_000_000 => write!(text, "{}ms", decimal(size, 1_000_000)),
        _ => {
            let (minutes, rest) = (size / 60_000_000_000, size % 60_000_000_000);
            let (hours, minutes) = (minutes / 60, minutes % 60);
            if hours > 0 {
                let _ = write!(text, "{hours}h");
            }
            if hours > 0 || minutes > 0 {
                let _ = write!(text, "{minutes}m");
            }
            write!(text, "{}s", decimal(rest, 1_000_000_000))
        }
    };
    text
}

/// `value / unit`, without trailing zeros behind the point.
fn decimal(value: u128, unit: u128) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = format!("{:0width$}", rest, width = unit.ilog10() as usize);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_read_as_go_reads_them() {
        let rows: &[(&str, Result<i64, &str>)] = &[
            ("0", Ok(0)),
            ("+5s", Ok(5_000_000_000)),
            ("-.5s", Ok(-500_000_000)),
            ("1.s", Ok(1_000_000_000)),
            ("1h30m", Ok(5_400_000_000_000)),
            ("9223372036854775807ns", Ok(i64::MAX)),
            ("-9223372036854775808ns", Ok(i64::MIN)),
            ("9223372036854775808ns", Err("time: invalid duration \"9223372036854775808ns\"")),
            ("", Err("time: invalid duration \"\"")),
            (".", Err("time: invalid duration \".\"")),
            ("10", Err("time: missing unit in duration \"10\"")),
            ("1d", Err("time: unknown unit \"d\" in duration \"1d\"")),
            ("1h-30m", Err("time: unknown unit \"h-\" in duration \"1h-30m\"")),
        ];
        for (text, expected) in rows {
            let read = parse(text).map(|duration| duration.as_nanos() as i64);
            assert_eq!(read, expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn durations_print_as_go_prints_them() {
        for (nanoseconds, text) in
            [(0, "0s"), (1, "1ns"), (1_500, "1.5µs"), (1_500_000, "1.5ms"), (5_400_000_000_000, "1h30m0s")]
        {
            assert_eq!(print(SignedDuration::from_nanos(nanoseconds)), text);
        }
        assert_eq!(print(SignedDuration::from_nanos(i64::MIN)), "-2562047h47m16.854775808s");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_the_same(nanoseconds: i64) {
            let duration = SignedDuration::from_nanos(nanoseconds);
            prop_assert_eq!(parse(&print(duration)), Ok(duration));
        }

        #[test]
        fn no_text_is_too_odd_to_be_answered(text: String) {
            let _ = parse(&text);
        }
    }
}
