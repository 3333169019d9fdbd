//! `metav1.Time` and `metav1.MicroTime`: RFC 3339 as Go's `time` package reads and writes it, with its words for what it
//! cannot read.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::Offset};

use crate::{
    clock::{rfc3339, rfc3339_micro},
    value::Text,
};

/// A time as it is written: to the second, or to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// `metav1.Time`
    Second,
    /// `metav1.MicroTime`
    Micro,
}

/// What becomes of a text that should be a time.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// It is canonical.
    Same,
    /// The same moment in UTC and with the right number of digits.
    Written(Text),
    /// Go's zero time, which is written as `null`.
    Zero,
}

/// Reads a time and writes it again; the error is Go's.
pub fn reread(text: &str, precision: Precision) -> Result<Read, String> {
    if is_canonical(text, precision) {
        return Ok(Read::Same);
    }
    let time = parse(text, precision)?;
    if time == Some(zero()) {
        return Ok(Read::Zero);
    }
    let Some(time) = time else { return Ok(Read::Same) };
    let written = match precision {
        Precision::Second => rfc3339(time),
        Precision::Micro => rfc3339_micro(time),
    };
    Ok(if written == text { Read::Same } else { Read::Written(written) })
}

/// Reads a time; the error is Go's, or ours for a moment beyond the year 9999.
pub fn read(text: &str, precision: Precision) -> Result<Timestamp, String> {
    parse(text, precision)?.ok_or_else(|| format!("parsing time {}: out of range", quote(text)))
}

/// The start of year 1: Go's zero time.
pub fn zero() -> Timestamp {
    Timestamp::constant(-62_135_596_800, 0)
}

/// Whether a text is plainly a valid time in UTC: the common case, decided by looking at its bytes.
fn is_canonical(text: &str, precision: Precision) -> bool {
    let pattern: &[u8] = match precision {
        Precision::Second => b"dddd-dd-ddTdd:dd:ddZ",
        Precision::Micro => b"dddd-dd-ddTdd:dd:dd.ddddddZ",
    };
    let bytes = text.as_bytes();
    let shaped = bytes.len() == pattern.len()
        && bytes.iter().zip(pattern).all(|(byte, p)| if *p == b'd' { byte.is_ascii_digit() } else { byte == p });
    // Days after the 28th and year 1 are left to the slow path, which knows the calendar and Go's zero.
    shaped && &bytes[..4] != b"0001" && {
        let two = |at: usize| (bytes[at] - b'0') * 10 + bytes[at + 1] - b'0';
        (1..=12).contains(&two(5)) && (1..=28).contains(&two(8)) && two(11) < 24 && two(14) < 60 && two(17) < 60
    }
}

/// Reads RFC 3339 element by element, as `time.Parse` does. `None` is a moment that cannot be represented.
fn parse(text: &str, precision: Precision) -> Result<Option<Timestamp>, String> {
    let layout = match precision {
        Precision::Second => "2006-01-02T15:04:05Z07:00",
        Precision::Micro => "2006-01-02T15:04:05.000000Z07:00",
    };
    let mut rest = Rest { layout, text, left: text };
    let year = rest.digits(4, "2006")?;
    rest.literal("-")?;
    let month = rest.digits(2, "01")?;
    rest.within(month, 1..=12, "month")?;
    rest.literal("-")?;
    let day = rest.digits(2, "02")?;
    rest.literal("T")?;
    let hour = rest.hour()?;
    rest.within(hour, 0..=23, "hour")?;
    rest.literal(":")?;
    let minute = rest.digits(2, "04")?;
    rest.within(minute, 0..=59, "minute")?;
    rest.literal(":")?;
    let second = rest.digits(2, "05")?;
    rest.within(second, 0..=59, "second")?;
    let nanos = match precision {
        Precision::Second => rest.optional_fraction(),
        Precision::Micro => rest.micros()?,
    };
    let offset = rest.zone()?;
    if !rest.left.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", quote(text), quote(rest.left)));
    }
    let Ok(date) = Date::new(year as i16, month as i8, day as i8) else {
        return Err(format!("parsing time {}: day out of range", quote(text)));
    };
    let civil = date.at(hour as i8, minute as i8, second as i8, nanos as i32);
    let utc = Offset::UTC.to_timestamp(civil).ok();
    Ok(utc.and_then(|utc| utc.checked_sub(SignedDuration::from_secs(offset)).ok()))
}

/// What is left to read of a text.
struct Rest<'a> {
    layout: &'static str,
    text: &'a str,
    left: &'a str,
}

impl Rest<'_> {
    fn cannot(&self, element: &str) -> String {
        let (text, layout, left) = (quote(self.text), self.layout, quote(self.left));
        format!("parsing time {text} as \"{layout}\": cannot parse {left} as \"{element}\"")
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.left = self.left.strip_prefix(literal).ok_or_else(|| self.cannot(literal))?;
        Ok(())
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<u32, String> {
        let digits = self.left.get(..count).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| self.cannot(element))?;
        self.left = &self.left[count..];
        Ok(number)
    }

    /// Go takes an hour of one digit.
    fn hour(&mut self) -> Result<u32, String> {
        let bytes = self.left.as_bytes();
        let two = bytes.get(1).is_some_and(u8::is_ascii_digit);
        self.digits(if two { 2 } else { 1 }, "15")
    }

    fn within(&self, number: u32, range: std::ops::RangeInclusive<u32>, what: &str) -> Result<(), String> {
        if range.contains(&number) {
            return Ok(());
        }
        Err(format!("parsing time {}: {what} out of range", quote(self.text)))
    }

    /// Nanoseconds behind a point or a comma, if there are any.
    fn optional_fraction(&mut self) -> u32 {
        let Some(digits) = self.left.strip_prefix(['.', ',']) else { return 0 };
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return 0;
        }
        self.left = &digits[count..];
        format!("{:0<9.9}", &digits[..count]).parse().unwrap_or(0)
    }

    fn micros(&mut self) -> Result<u32, String> {
        let digits = self.left.strip_prefix(['.', ',']).and_then(|digits| digits.get(..6));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let micros: u32 = digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| self.cannot(".000000"))?;
        self.left = &self.left[7..];
        Ok(micros * 1000)
    }

    /// Seconds east of UTC.
    fn zone(&mut self) -> Result<i64, String> {
        if let Some(left) = self.left.strip_prefix('Z') {
            self.left = left;
            return Ok(0);
        }
        let bytes = self.left.as_bytes();
        let number = |at: usize| {
            let (tens, ones) = (bytes[at], bytes[at + 1]);
            (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| u32::from((tens - b'0') * 10 + ones - b'0'))
        };
        let shaped = bytes.len() >= 6 && matches!(bytes[0], b'+' | b'-') && bytes[3] == b':';
        let Some((hours, minutes)) = shaped.then(|| number(1).zip(number(4))).flatten() else {
            return Err(self.cannot("Z07:00"));
        };
        self.within(hours, 0..=24, "time zone offset hour")?;
        self.within(minutes, 0..=60, "time zone offset minute")?;
        let seconds = i64::from(hours * 3600 + minutes * 60);
        let east = bytes[0] == b'+';
        self.left = &self.left[6..];
        Ok(if east { seconds } else { -seconds })
    }
}

/// A text as Go's time errors quote it: byte by byte, escaping what is not ASCII or below a space.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte.into()]),
            b' '..0x80 => out.push(byte.into()),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(precision: Precision, text: &str, expected: Result<&str, &str>) {
        let found = reread(text, precision).map(|read| match read {
            Read::Same => text.to_owned(),
            Read::Written(text) => text.to_string(),
            Read::Zero => "null".into(),
        });
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    /// Texts and messages are the real server's answers.
    #[test]
    fn times_are_read_and_refused_as_the_real_server_does() {
        const AS: &str = r#"as "2006-01-02T15:04:05Z07:00""#;
        for (text, expected) in [
            ("2020-01-01T00:00:00Z", Ok("2020-01-01T00:00:00Z")),
            ("2020-01-01T00:00:00+02:00", Ok("2019-12-31T22:00:00Z")),
            ("2020-01-01T00:00:00-23:59", Ok("2020-01-01T23:59:00Z")),
            ("2020-01-01T00:00:00.123456789Z", Ok("2020-01-01T00:00:00Z")),
            ("2020-01-01T00:00:00,5Z", Ok("2020-01-01T00:00:00Z")),
            ("2020-01-01T0:00:00Z", Ok("2020-01-01T00:00:00Z")),
            ("2020-02-29T00:00:00Z", Ok("2020-02-29T00:00:00Z")),
            ("0001-01-01T00:00:00Z", Ok("null")),
            ("", Err(r#""" AS: cannot parse "" as "2006""#)),
            ("2020-01-01", Err(r#""2020-01-01" AS: cannot parse "" as "T""#)),
            ("2020-13-01T00:00:00Z", Err(r#""2020-13-01T00:00:00Z": month out of range"#)),
            ("2020-00-01T00:00:00Z", Err(r#""2020-00-01T00:00:00Z": month out of range"#)),
            ("2020-02-30T00:00:00Z", Err(r#""2020-02-30T00:00:00Z": day out of range"#)),
            ("2021-02-29T00:00:00Z", Err(r#""2021-02-29T00:00:00Z": day out of range"#)),
            ("2020-01-00T00:00:00Z", Err(r#""2020-01-00T00:00:00Z": day out of range"#)),
            ("2020-01-01T00:00:00Zfoo", Err(r#""2020-01-01T00:00:00Zfoo": extra text: "foo""#)),
            ("2020-01-01T00:00:00", Err(r#""2020-01-01T00:00:00" AS: cannot parse "" as "Z07:00""#)),
            ("2020-01-01T25:00:00Z", Err(r#""2020-01-01T25:00:00Z": hour out of range"#)),
            ("2020-01-01T24:00:00Z", Err(r#""2020-01-01T24:00:00Z": hour out of range"#)),
            ("2020-01-01T00:61:00Z", Err(r#""2020-01-01T00:61:00Z": minute out of range"#)),
            ("2020-01-01T00:00:61Z", Err(r#""2020-01-01T00:00:61Z": second out of range"#)),
            ("2020-01-01 00:00:00Z", Err(r#""2020-01-01 00:00:00Z" AS: cannot parse " 00:00:00Z" as "T""#)),
            ("2020-01-01T00:00:00+25:00", Err(r#""2020-01-01T00:00:00+25:00": time zone offset hour out of range"#)),
            ("2020-01-01T00:00:00.Z", Err(r#""2020-01-01T00:00:00.Z" AS: cannot parse ".Z" as "Z07:00""#)),
            ("20-01-01T00:00:00Z", Err(r#""20-01-01T00:00:00Z" AS: cannot parse "20-01-01T00:00:00Z" as "2006""#)),
            ("2020-1-01T00:00:00Z", Err(r#""2020-1-01T00:00:00Z" AS: cannot parse "1-01T00:00:00Z" as "01""#)),
            ("2020-01-01T00:00:00z", Err(r#""2020-01-01T00:00:00z" AS: cannot parse "z" as "Z07:00""#)),
            ("2020-01-01t00:00:00Z", Err(r#""2020-01-01t00:00:00Z" AS: cannot parse "t00:00:00Z" as "T""#)),
            ("2020-01-01T00:00:00+0200", Err(r#""2020-01-01T00:00:00+0200" AS: cannot parse "+0200" as "Z07:00""#)),
            ("é", Err(r#""\xc3\xa9" AS: cannot parse "\xc3\xa9" as "2006""#)),
            ("a\"b\\", Err(r#""a\"b\\" AS: cannot parse "a\"b\\" as "2006""#)),
        ] {
            let message = expected.err().map(|message| format!("parsing time {}", message.replace("AS", AS)));
            check(Precision::Second, text, expected.map_err(|_| message.as_deref().unwrap_or_default()));
        }
    }

    #[test]
    fn micro_times_have_six_digits() {
        check(Precision::Micro, "2020-01-01T00:00:00.123456Z", Ok("2020-01-01T00:00:00.123456Z"));
        check(Precision::Micro, "2020-01-01T00:00:00.000000+01:00", Ok("2019-12-31T23:00:00.000000Z"));
        let layout = "2006-01-02T15:04:05.000000Z07:00";
        let text = "2020-01-01T00:00:00Z";
        let message = format!(r#"parsing time "{text}" as "{layout}": cannot parse "Z" as ".000000""#);
        check(Precision::Micro, text, Err(&message));
        let text = "2020-01-01T00:00:00.1234567Z";
        let message = format!(r#"parsing time "{text}" as "{layout}": cannot parse "7Z" as "Z07:00""#);
        check(Precision::Micro, text, Err(&message));
    }
}
