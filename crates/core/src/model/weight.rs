//! Shares and amounts: of traffic, of pods.
//!
//! Never holds a number that its type does not allow; what a manifest may write is decided in `parse`.

use std::fmt;

use crate::api::IntOrString;

/// What counts as all of the traffic: 100, unless the router counts otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaxWeight(u32);

impl MaxWeight {
    /// Hundredths.
    pub const PERCENT: MaxWeight = MaxWeight(100);

    /// `None` unless the number is above zero: weights are divided by it.
    pub fn new(parts: i32) -> Option<MaxWeight> {
        u32::try_from(parts).ok().filter(|parts| *parts > 0).map(MaxWeight)
    }

    /// The number of parts.
    pub fn parts(self) -> u32 {
        self.0
    }
}

/// A share of the traffic, in parts of a [`MaxWeight`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    /// Nothing.
    pub const ZERO: Weight = Weight(0);

    /// `None` unless the number lies within `0..=max`.
    pub fn new(parts: i32, max: MaxWeight) -> Option<Weight> {
        u32::try_from(parts).ok().filter(|parts| *parts <= max.0).map(Weight)
    }

    /// All of the traffic.
    pub fn all(max: MaxWeight) -> Weight {
        Weight(max.0)
    }

    /// The number of parts.
    pub fn parts(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many pods more or fewer than wanted there may be: `maxSurge`, `maxUnavailable`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Limit {
    /// So many.
    Pods(i32),
    /// So many in a hundred of the wanted ones.
    Percent(i32),
    /// A text that is no number; it makes this limit and its neighbour zero.
    Unreadable(String),
}

impl Limit {
    /// What holds if nothing is said.
    pub const DEFAULT: Limit = Limit::Percent(25);

    /// Reads a limit. A text is a percentage with or without its sign, as Argo Rollouts has it.
    pub fn of(given: &IntOrString) -> Limit {
        match given {
            IntOrString::Int(pods) => Limit::Pods(*pods),
            IntOrString::String(text) => {
                let number = text.strip_suffix('%').unwrap_or(text);
                go_int(number).map_or_else(|| Limit::Unreadable(text.clone()), Limit::Percent)
            }
        }
    }
}

/// Reads a number as Go's `strconv.Atoi` does, within 32 bits: an optional sign and digits.
pub fn go_int(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Go's `IntOrString.IntValue`: a text that is no number is 0.
pub fn int_value(given: &IntOrString) -> i64 {
    match given {
        IntOrString::Int(number) => (*number).into(),
        // 64 bits here: Go's `int`.
        IntOrString::String(text) => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if plain { text.parse().unwrap_or(0) } else { 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_lies_within_its_maximum() {
        let max = MaxWeight::new(10).unwrap();
        assert_eq!(MaxWeight::new(0), None);
        for (parts, kept) in [(-1, None), (0, Some(0)), (10, Some(10)), (11, None)] {
            assert_eq!(Weight::new(parts, max).map(Weight::parts), kept);
        }
    }

    #[test]
    fn a_limit_is_a_percentage_with_or_without_its_sign() {
        for (given, limit) in [
            (IntOrString::Int(3), Limit::Pods(3)),
            ("25%".into(), Limit::Percent(25)),
            ("25".into(), Limit::Percent(25)),
            ("+5%".into(), Limit::Percent(5)),
            ("abc".into(), Limit::Unreadable("abc".into())),
            ("".into(), Limit::Unreadable("".into())),
            ("5%%".into(), Limit::Unreadable("5%%".into())),
        ] {
            assert_eq!(Limit::of(&given), limit);
        }
    }

    #[test]
    fn a_text_that_is_no_number_counts_as_zero() {
        for (given, number) in
            [("7", 7), ("-3", -3), ("50%", 0), ("x", 0), ("", 0), ("+", 0), ("9999999999", 9999999999)]
        {
            assert_eq!(int_value(&given.into()), number);
        }
    }
}
