//! Numbers as Go's `strconv` reads them, and why it does not.

use std::num::IntErrorKind;

/// What Go says of a text that is no number.
pub const SYNTAX: &str = "invalid syntax";
/// What Go says of a number that does not fit.
pub const RANGE: &str = "value out of range";

/// A number with a fraction: decimal, hexadecimal with an exponent, or a word. Underscores may stand between digits.
pub fn float(text: &str) -> Result<f64, &'static str> {
    let plain = separated(text).ok_or(SYNTAX)?;
    let (sign, digits) = signed(&plain);
    let lower = digits.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        "nan" if plain.len() == 3 => return Ok(f64::NAN),
        _ => {}
    }
    let number = match lower.strip_prefix("0x") {
        Some(digits) => sign * hexadecimal(digits)?,
        None if lower.starts_with(|c: char| c.is_ascii_digit() || c == '.') => plain.parse().map_err(|_| SYNTAX)?,
        None => return Err(SYNTAX),
    };
    if f64::is_finite(number) { Ok(number) } else { Err(RANGE) }
}

/// A whole number in decimal.
pub fn int(text: &str) -> Result<i64, &'static str> {
    text.parse::<i64>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => RANGE,
        _ => SYNTAX,
    })
}

fn signed(text: &str) -> (f64, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        _ => (1.0, text),
    }
}

/// A text without its underscores; nothing if one stands where none may.
fn separated(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_hex = text.to_ascii_lowercase().contains("0x");
    let is_digit = |at: Option<usize>| {
        let byte = at.and_then(|at| bytes.get(at));
        byte.is_some_and(|byte| byte.is_ascii_digit() || is_hex && (byte.is_ascii_hexdigit() || b"xX".contains(byte)))
    };
    let mut places = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').map(|(at, _)| at);
    let is_well_placed = places.all(|at| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    is_well_placed.then(|| text.replace('_', ""))
}

/// The digits behind `0x`: a mantissa, and an exponent to the base of two, which must be there.
fn hexadecimal(text: &str) -> Result<f64, &'static str> {
    let (mantissa, exponent) = text.split_once('p').ok_or(SYNTAX)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(SYNTAX);
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(exponent.trim_start_matches(['+', '-'])) || exponent.len() > 1 && is_sign(exponent.as_bytes()[1]) {
        return Err(SYNTAX);
    }
    // More would be far beyond what a number can be.
    let exponent = exponent.parse::<i64>().unwrap_or(if exponent.starts_with('-') { -100_000 } else { 100_000 });
    let mut exponent = exponent.clamp(-100_000, 100_000) - 4 * i64::try_from(fraction.len()).unwrap_or(100_000);
    // Sixty bits of it, and whether there was more: enough to round as if all had been there.
    let (mut bits, mut is_more) = (0_u64, false);
    for digit in digits().filter_map(|byte| char::from(byte).to_digit(16)) {
        if bits >> 60 == 0 {
            bits = bits << 4 | u64::from(digit);
        } else {
            is_more |= digit != 0;
            exponent += 4;
        }
    }
    Ok(scaled(bits | u64::from(is_more), exponent))
}

fn is_sign(byte: u8) -> bool {
    b"+-".contains(&byte)
}

/// `bits · 2^exponent`, rounded once, half to even.
fn scaled(bits: u64, exponent: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    let top = 63 - i64::from(bits.leading_zeros()) + exponent;
    if top > 1023 {
        return f64::INFINITY;
    }
    // The weight of the last bit that a number of this size has.
    let last = (top - 52).max(-1074);
    let dropped = last - exponent;
    let kept = match u32::try_from(dropped) {
        Err(_) => bits << u32::try_from(-dropped).unwrap_or(63).min(63),
        Ok(0) => bits,
        Ok(dropped) if dropped > 64 => 0,
        Ok(dropped) => {
            let kept = bits.checked_shr(dropped).unwrap_or(0);
            let half = 1_u128 << (dropped - 1);
            let rest = u128::from(bits) & ((half << 1) - 1);
            kept + u64::from(rest > half || rest == half && kept % 2 == 1)
        }
    };
    // In two steps: a power of two that small is no number.
    let (first, second) = (last / 2, last - last / 2);
    kept as f64 * 2_f64.powi(first as i32) * 2_f64.powi(second as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("1.5", Ok(1.5)),
            ("+.5e1", Ok(5.0)),
            ("1_000.2_5", Ok(1000.25)),
            ("-Inf", Ok(f64::NEG_INFINITY)),
            ("infinity", Ok(f64::INFINITY)),
            ("1e400", Err(RANGE)),
            ("-1e400", Err(RANGE)),
            ("1e-400", Ok(0.0)),
            ("0x1p-2", Ok(0.25)),
            ("0X_1F.8p1", Ok(63.0)),
            ("-0x.8p0", Ok(-0.5)),
            ("0x1p1024", Err(RANGE)),
            ("0x1.fffffffffffff8p0", Ok(2.0)),
            ("0x1.00000000000008p0", Ok(1.0)),
            ("0x1.000000000000080000000000001p0", Ok(1.0 + f64::EPSILON)),
            ("0x1p-1074", Ok(5e-324)),
            ("0x1p-1076", Ok(0.0)),
            ("0x1", Err(SYNTAX)),
            ("0xp1", Err(SYNTAX)),
            ("0x1p+-2", Err(SYNTAX)),
            ("+nan", Err(SYNTAX)),
            ("--1", Err(SYNTAX)),
            ("1__0", Err(SYNTAX)),
            ("_1", Err(SYNTAX)),
            ("", Err(SYNTAX)),
            ("1 ", Err(SYNTAX)),
        ] {
            assert_eq!(float(text), expected, "{text}");
        }
        assert!(float("NaN").is_ok_and(f64::is_nan));
        for (text, expected) in [
            ("-7", Ok(-7)),
            ("+7", Ok(7)),
            ("9223372036854775808", Err(RANGE)),
            ("-9223372036854775809", Err(RANGE)),
            ("1.0", Err(SYNTAX)),
            ("", Err(SYNTAX)),
        ] {
            assert_eq!(int(text), expected, "{text}");
        }
    }
}
