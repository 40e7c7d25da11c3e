//! Dates and times of day as people write them.

/// Seconds of a day.
pub(super) const DAY: f64 = 86_400.0;
/// Two digits of a year below this belong to this century.
const THIS_CENTURY: i64 = 70;
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// What comes first in dates such as `03/04/2026`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayOrder {
    MonthFirst,
    DayFirst,
}

/// How all dates of a column can be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Dates {
    /// In one way: seconds since 1970.
    Read(Vec<f64>),
    /// With either the month or the day first.
    Ambiguous { month_first: Vec<f64>, day_first: Vec<f64> },
}

impl Dates {
    /// Reads all texts as dates; `None` if some is none. A single `13/01/2026` tells that days come
    /// first everywhere.
    pub fn of(texts: &[&str]) -> Option<Dates> {
        let all = |order| texts.iter().map(|text| date_with(text, Some(order))).collect::<Option<Vec<f64>>>();
        match (all(DayOrder::MonthFirst), all(DayOrder::DayFirst)) {
            (Some(month_first), Some(day_first)) if month_first == day_first => Some(Dates::Read(day_first)),
            (Some(month_first), Some(day_first)) => Some(Dates::Ambiguous { month_first, day_first }),
            (one, other) => one.or(other).map(Dates::Read),
        }
    }
}

/// Seconds since 1970 of a date whose parts have only one meaning: `2026-11-18`, `2026/11/18`,
/// `18.11.2026`, `18 Nov 2026`, `Nov 18, 2026`, with or without a time of day and a zone.
pub(super) fn date(text: &str) -> Option<f64> {
    date_with(text, None)
}

/// The same, and dates such as `03/04/2026` in a given order.
fn date_with(text: &str, order: Option<DayOrder>) -> Option<f64> {
    let (parts, rest) = date_parts(text.trim())?;
    let [first, second, third] = parts.map(|(part, _)| part);
    let month = |name: &str| {
        let name = name.to_ascii_lowercase();
        let i = MONTHS.iter().position(|short| name.starts_with(short))?;
        name.bytes().all(|c| c.is_ascii_alphabetic()).then_some(i as i64 + 1)
    };
    let separator = parts[0].1;
    let (year, month, day) = match (month(first), month(second)) {
        (Some(month), _) => (third, month, second),
        (_, Some(month)) => (third, month, first),
        _ if first.len() == 4 => (first, second.parse().ok()?, third),
        _ if separator == '.' => (third, second.parse().ok()?, first),
        _ => match order? {
            DayOrder::MonthFirst => (third, first.parse().ok()?, second),
            DayOrder::DayFirst => (third, second.parse().ok()?, first),
        },
    };
    let is_short = year.len() == 2 && (separator == '/' || !second.starts_with(|c: char| c.is_ascii_digit()));
    let year = match year.parse::<i64>().ok()? {
        year if is_short => year + if year < THIS_CENTURY { 2000 } else { 1900 },
        year if parts.iter().any(|(part, _)| part.len() == 4 && part.parse() == Ok(year)) => year,
        _ => return None,
    };
    Some(days(year, month, day.parse().ok()?)? as f64 * DAY + time_of_day(rest)?)
}

/// The three parts of a date, each with the character after it, and what follows them.
fn date_parts(text: &str) -> Option<([(&str, char); 3], &str)> {
    let mut parts = [("", ' '); 3];
    let mut rest = text;
    for part in &mut parts {
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
        let belongs = |c: char| if is_number { c.is_ascii_digit() } else { c.is_ascii_alphabetic() };
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let (this, after) = rest.split_at(end);
        if !(1..=9).contains(&end) {
            return None;
        }
        *part = (this, after.chars().next().unwrap_or(' '));
        let spaces = if is_number { after.trim_start_matches(',') } else { after.trim_start_matches('.') };
        rest = if spaces.starts_with(' ') { spaces.trim_start() } else { after.get(1..).unwrap_or("") };
    }
    let [(_, one), (_, other), (_, end)] = parts;
    let has_name = parts[..2].iter().any(|(part, _)| part.starts_with(|c: char| c.is_ascii_alphabetic()));
    let is_date = if has_name { " ,-.".contains(one) && " ,-.".contains(other) } else { "/.-".contains(one) && one == other };
    (is_date && "T ,".contains(end)).then_some((parts, rest))
}

/// Seconds since midnight of `15:04`, `15:04:05.5`, `3:04 PM`, less a zone such as `+02:00`.
fn time_of_day(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches(['Z', 'z']).trim_end();
    if text.is_empty() {
        return Some(0.0);
    }
    let lower = text.to_ascii_lowercase();
    let half = ["am", "pm"].iter().position(|half| lower.ends_with(half));
    let text = if half.is_some() { lower[..lower.len() - 2].trim_end() } else { lower.as_str() };
    let (clock, zone) = match text.rfind(['+', '-']) {
        Some(i) => (&text[..i], zone(&text[i..])?),
        None => (text, 0.0),
    };
    let mut units = clock.trim_end().splitn(3, ':');
    let mut number = |below: f64| units.next().unwrap_or("0").parse::<f64>().ok().filter(|x| (0.0..below).contains(x));
    let (hours, minutes, seconds) = (number(24.0)?, number(60.0)?, number(61.0)?);
    if hours.fract() != 0.0 || minutes.fract() != 0.0 || !clock.contains(':') && half.is_none() {
        return None;
    }
    let hours = match half {
        Some(_) if !(1.0..=12.0).contains(&hours) => return None,
        Some(half) => hours % 12.0 + 12.0 * half as f64,
        None => hours,
    };
    Some(3600.0 * hours + 60.0 * minutes + seconds - zone)
}

/// Seconds of `+02:00`, `+0200` or `+02`.
fn zone(text: &str) -> Option<f64> {
    let (sign, digits) = (if text.starts_with('-') { -1.0 } else { 1.0 }, text[1..].replace(':', ""));
    let number = |range: std::ops::Range<usize>| digits.get(range).map_or(Some(0.0), |text| text.parse::<f64>().ok());
    let is_zone = digits.bytes().all(|c| c.is_ascii_digit()) && matches!(digits.len(), 2 | 4);
    is_zone.then_some(sign * (3600.0 * number(0..2)? + 60.0 * number(2..4)?))
}

/// Days since 1970 of a date of the Gregorian calendar (Hinnant 2013), with years that begin in
/// March; `None` if the month does not have that day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_since_1970() {
        assert_eq!(date("1970-01-01"), Some(0.0));
        assert_eq!(date("2000-03-01"), Some(951_868_800.0));
        assert_eq!(date("2024-02-29T12:30:05Z"), Some(1_709_209_805.0));
        assert_eq!(date("1969-12-31 23:59"), Some(-60.0));
        assert_eq!(date("2024-02-29T12:30:05.5+02:00"), Some(1_709_209_805.5 - 7200.0));
        assert_eq!(date("2024-02-29 12:30 -0530"), Some(1_709_209_800.0 + 19_800.0));
    }

    #[test]
    fn one_day_is_written_in_many_ways() {
        let day = date("2026-11-18");
        let ways = ["2026/11/18", "18.11.2026", "18 Nov 2026", "18-Nov-2026", "18-nov-26", "November 18, 2026", "Nov. 18 2026"];
        for text in ways {
            assert_eq!(date(text), day, "{text}");
        }
        let afternoon = day.map(|day| day + 15.0 * 3600.0 + 240.0);
        for text in ["2026-11-18 3:04 PM", "18.11.2026 15:04", "Nov 18, 2026 15:04:00", "18 Nov 2026, 03:04pm"] {
            assert_eq!(date(text), afternoon, "{text}");
        }
        assert_eq!(date("2026-11-18 12:00 AM"), day);
    }

    #[test]
    fn what_is_no_date_or_has_two_meanings_is_not_read() {
        let none = [
            "",
            "12",
            "2024-13-01",
            "2024-01-40",
            "2023-02-29",
            "01-02-2024",
            "03/04/2026",
            "2024-01-01T99:00",
            "2024-01-01Tx",
            "1.2.10",
            "week 3",
            "Nov 2026",
            "18 Nev 2026",
            "2024-01-01 15",
            "2024-01-01 13:00 PM",
            "2024-1/2",
            "١/٢/2024",
        ];
        for text in none {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn one_date_tells_the_order_of_all() {
        let us = ["03/04/2026", "11/18/2026 3:04 PM"];
        assert_eq!(Dates::of(&us), Some(Dates::Read(vec![date("2026-03-04").unwrap(), date("2026-11-18 15:04").unwrap()])));
        let european = ["03/04/26", "18/11/26"];
        assert_eq!(Dates::of(&european), Some(Dates::Read(vec![date("2026-04-03").unwrap(), date("2026-11-18").unwrap()])));
        let either = Dates::of(&["03/04/2026"]);
        let read = |text: &str| vec![date(text).unwrap()];
        assert_eq!(either, Some(Dates::Ambiguous { month_first: read("2026-03-04"), day_first: read("2026-04-03") }));
        assert_eq!(Dates::of(&["03/03/2026"]), Some(Dates::Read(read("2026-03-03"))));
        assert_eq!(Dates::of(&["13/01/2026", "01/13/2026"]), None);
    }
}
