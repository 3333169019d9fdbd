//! The syntax of a CronJob's schedule, and what is wrong with one in the words of the real server's parser.

/// What is wrong with this schedule, if anything.
pub(super) fn problem(schedule: &str) -> Option<String> {
    let mut spec = schedule;
    if spec.starts_with("TZ=") || spec.starts_with("CRON_TZ=") {
        // A zone must be followed by the schedule; the zone itself is refused elsewhere.
        spec = spec.split_once(' ').map_or("", |(_, rest)| rest.trim());
    }
    if spec.starts_with('@') {
        return descriptor(spec);
    }
    let fields: Vec<&str> = spec.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        let found = fields.join(" ");
        return Some(format!("expected exactly 5 fields, found {}: [{found}]", fields.len()));
    };
    let bounds = [
        (minute, Bounds { least: 0, most: 59, names: &[] }),
        (hour, Bounds { least: 0, most: 23, names: &[] }),
        (day, Bounds { least: 1, most: 31, names: &[] }),
        (month, Bounds { least: 1, most: 12, names: &MONTHS }),
        (weekday, Bounds { least: 0, most: 6, names: &WEEKDAYS }),
    ];
    bounds.into_iter().find_map(|(field, bounds)| {
        // Go's FieldsFunc drops empty parts.
        field.split(',').filter(|part| !part.is_empty()).find_map(|part| range(part, &bounds).err())
    })
}

struct Bounds {
    least: i64,
    most: i64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

fn descriptor(spec: &str) -> Option<String> {
    match spec {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => None,
        _ => match spec.strip_prefix("@every ") {
            Some(every) => duration_problem(every).map(|why| format!("failed to parse duration {spec}: time: {why}")),
            None => Some(format!("unrecognized descriptor: {spec}")),
        },
    }
}

/// What is wrong with a Go duration such as `1h30m`.
fn duration_problem(text: &str) -> Option<String> {
    let invalid = || Some(format!("invalid duration {text:?}"));
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return invalid();
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if number == 0 || &rest[..number] == "." || rest[..number].matches('.').count() > 1 {
            return invalid();
        }
        rest = &rest[number..];
        let unit = &rest[..rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len())];
        match unit {
            "" => return Some(format!("missing unit in duration {text:?}")),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => {}
            _ => return Some(format!("unknown unit {unit:?} in duration {text:?}")),
        }
        rest = &rest[unit.len()..];
    }
    None
}

fn range(expression: &str, bounds: &Bounds) -> Result<(), String> {
    let mut parts = expression.split('/');
    let span: Vec<&str> = parts.next().unwrap_or_default().split('-').collect();
    let (start, mut end) = match span[..] {
        ["*" | "?", ..] => (bounds.least, bounds.most),
        [one] => {
            let one = number_or_name(one, bounds)?;
            (one, one)
        }
        [low, high] => (number_or_name(low, bounds)?, number_or_name(high, bounds)?),
        [low, ..] => {
            number_or_name(low, bounds)?;
            return Err(format!("too many hyphens: {expression}"));
        }
        [] => (bounds.least, bounds.most),
    };
    let step = match (parts.next(), parts.next()) {
        (None, _) => 1,
        (Some(step), None) => {
            let step = number(step)?;
            if span.len() == 1 {
                end = bounds.most; // "N/step" means "N-max/step"
            }
            step
        }
        (Some(_), Some(_)) => return Err(format!("too many slashes: {expression}")),
    };
    if start < bounds.least {
        return Err(format!("beginning of range ({start}) below minimum ({}): {expression}", bounds.least));
    }
    if end > bounds.most {
        return Err(format!("end of range ({end}) above maximum ({}): {expression}", bounds.most));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {expression}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {expression}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<i64, String> {
    match bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(i) => Ok(bounds.least + i as i64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<i64, String> {
    let quoted = crate::status::go_quoted(text);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax"));
    }
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: value out of range")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_schedule_is_told_what_is_wrong() {
        let rows = [
            ("*/5 * * * *", None),
            ("0 0 1,15 jan-jun MON", None),
            ("@daily", None),
            ("@every 1h30m", None),
            ("? * * * ?", None),
            ("bad", Some("expected exactly 5 fields, found 1: [bad]")),
            ("60 * * * *", Some("end of range (60) above maximum (59): 60")),
            ("* * 0 * *", Some("beginning of range (0) below minimum (1): 0")),
            ("a * * * *", Some("failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax")),
            ("1-2-3 * * * *", Some("too many hyphens: 1-2-3")),
            ("5-1 * * * *", Some("beginning of range (5) beyond end of range (1): 5-1")),
            ("*/0 * * * *", Some("step of range should be a positive number: */0")),
            ("@sometimes", Some("unrecognized descriptor: @sometimes")),
            ("@every x", Some("failed to parse duration @every x: time: invalid duration \"x\"")),
            ("@every 5", Some("failed to parse duration @every 5: time: missing unit in duration \"5\"")),
            ("@every 1x", Some("failed to parse duration @every 1x: time: unknown unit \"x\" in duration \"1x\"")),
        ];
        for (schedule, wrong) in rows {
            assert_eq!(problem(schedule).as_deref(), wrong, "{schedule}");
        }
    }
}
