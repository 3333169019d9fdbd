//! What a number or a string means as a share of a total, in Kubernetes' own arithmetic.
//!
//! Validation reads the same values as plain numbers ([`int_value`](super::weight::int_value)); the two disagree about a
//! string without a percent sign. Never judges an amount.

use std::borrow::Cow;

use thiserror::Error;

use crate::{api::IntOrString, kubernetes::status::go_quoted};

/// Which way a share that is no whole number is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// To more.
    Up,
    /// To less.
    Down,
}

/// A string that is no percentage, in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: {what}", go_quoted(.text), go_quoted(.number))]
pub struct NotAPercentage {
    /// The string.
    text: String,
    /// The string without its percent signs.
    number: String,
    what: &'static str,
}

/// The share of a total: a number stands for itself, a string is a percentage with or without its sign (`"10"` is 10 %).
pub fn share(value: &IntOrString, total: i32, round: Round) -> Result<i32, NotAPercentage> {
    let text = match value {
        IntOrString::Int(number) => return Ok(*number),
        IntOrString::String(text) => text,
    };
    let bare = text.strip_suffix('%').unwrap_or(text);
    let number = if bare.contains('%') { Cow::Owned(bare.replace('%', "")) } else { Cow::Borrowed(bare) };
    let percent =
        atoi(&number).map_err(|what| NotAPercentage { text: text.clone(), number: number.into_owned(), what })?;
    Ok(percentage(percent, total, round))
}

/// So many per cent of a total.
pub fn percentage(percent: i64, total: i32, round: Round) -> i32 {
    let share = percent as f64 * f64::from(total) / 100.0;
    // The cast keeps within the range; no Rollout has that many pods.
    match round {
        Round::Up => share.ceil() as i32,
        Round::Down => share.floor() as i32,
    }
}

/// Go's `strconv.Atoi`.
fn atoi(text: &str) -> Result<i64, &'static str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("invalid syntax");
    }
    text.parse().map_err(|_| "value out of range")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_string_is_a_percentage_with_or_without_its_sign() {
        let share_of =
            |value: &str, total, round| share(&value.into(), total, round).map_err(|error| error.to_string());
        assert_eq!(share_of("25%", 10, Round::Up), Ok(3));
        assert_eq!(share_of("25%", 10, Round::Down), Ok(2));
        assert_eq!(share_of("25", 10, Round::Up), Ok(3));
        assert_eq!(share_of("%1%0%", 10, Round::Up), Ok(1));
        assert_eq!(share(&7.into(), 10, Round::Up), Ok(7));
        assert_eq!(
            share_of("x%", 10, Round::Up),
            Err(r#"invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax"#
                .into())
        );
        assert_eq!(
            share_of("99999999999999999999", 10, Round::Up),
            Err(r#"invalid value for IntOrString: invalid value "99999999999999999999": strconv.Atoi: parsing "99999999999999999999": value out of range"#.into())
        );
    }

    proptest! {
        #[test]
        fn no_value_makes_it_panic(text in "[-+]?[0-9%]{0,25}|.*", total in any::<i32>()) {
            let value = IntOrString::String(text);
            let _ = (share(&value, total, Round::Up).map_err(|error| error.to_string()), share(&value, total, Round::Down));
        }
    }
}
