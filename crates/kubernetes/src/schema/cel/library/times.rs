//! The functions on times and durations.

use jiff::{Zoned, tz};

use super::{Function, one};
use crate::{
    schema::cel::value::{Fault, Outcome, Val},
    status::go_quoted,
};

/// The function of this name.
pub(super) fn function(name: &str, method: bool) -> Option<Function> {
    if !method {
        return None;
    }
    Some(match name {
        "getFullYear" => |_, args| of_time(args, |time| i64::from(time.year())),
        "getMonth" => |_, args| of_time(args, |time| i64::from(time.month()) - 1),
        "getDate" => |_, args| of_time(args, |time| i64::from(time.day())),
        "getDayOfMonth" => |_, args| of_time(args, |time| i64::from(time.day()) - 1),
        "getDayOfWeek" => |_, args| of_time(args, |time| i64::from(time.weekday().to_sunday_zero_offset())),
        "getDayOfYear" => |_, args| of_time(args, |time| i64::from(time.day_of_year()) - 1),
        "getHours" => |_, args| match one(args)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 3_600_000_000_000)),
            _ => of_time(args, |time| i64::from(time.hour())),
        },
        "getMinutes" => |_, args| match one(args)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 60_000_000_000)),
            _ => of_time(args, |time| i64::from(time.minute())),
        },
        "getSeconds" => |_, args| match one(args)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 1_000_000_000)),
            _ => of_time(args, |time| i64::from(time.second())),
        },
        "getMilliseconds" => |_, args| match one(args)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 1_000_000)),
            _ => of_time(args, |time| i64::from(time.subsec_nanosecond()) / 1_000_000),
        },
        _ => return None,
    })
}

fn of_time<'a>(args: &[Val<'a>], part: impl Fn(&Zoned) -> i64) -> Outcome<'a> {
    let Some(Val::Timestamp(time)) = args.first() else { return Err(Fault::Overload) };
    let zone = match args.get(1) {
        None => tz::TimeZone::UTC,
        Some(Val::Str(name)) => zone(name)?,
        Some(_) => return Err(Fault::Overload),
    };
    Ok(Val::Int(part(&time.to_zoned(zone))))
}

/// `+02:30`, or the name of a place.
fn zone(name: &str) -> Result<tz::TimeZone, Fault> {
    if let Some((hours, minutes)) = name.split_once(':') {
        let negative = hours.starts_with('-');
        let number = |text: &str| {
            text.parse::<i32>()
                .map_err(|_| Fault::Words(format!("strconv.Atoi: parsing {}: invalid syntax", go_quoted(text))))
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let seconds = (hours.abs() * 60 + minutes) * 60;
        let offset = tz::Offset::from_seconds(if negative { -seconds } else { seconds });
        return offset.map(tz::TimeZone::fixed).map_err(|_| Fault::Overload);
    }
    match name {
        "" | "UTC" => Ok(tz::TimeZone::UTC),
        name => tz::TimeZone::get(name).map_err(|_| Fault::Words(format!("unknown time zone {name}"))),
    }
}
