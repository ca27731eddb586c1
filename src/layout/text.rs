//! The texts of which keys and values are made: labels, times, ids, digests. Each has one way to be written.

use std::fmt;
use std::str::FromStr;

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime};

/// Why a text is not what it should be: `` `x_1` is no label: … ``.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no {what}: {form}", .text.escape_debug())]
pub struct TextError {
    /// The text, cut when it is long.
    pub text: String,
    /// What it should be.
    pub what: &'static str,
    /// How such a text is written.
    pub form: &'static str,
}

impl TextError {
    pub(super) fn new(text: &str, what: &'static str, form: &'static str) -> TextError {
        /// Enough to recognise it; a message stays readable when a megabyte stands in a key.
        const SHOWN: usize = 80;
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        TextError { text: shown, what, form }
    }
}

/// A type whose values are texts of one form.
pub trait Text: Sized {
    /// What it is, in a word.
    const WHAT: &'static str;
    /// How it is written, for people.
    const FORM: &'static str;
    /// The same as a regular expression (ECMA-262, as JSON Schema wants it).
    const PATTERN: &'static str;
    /// Reads it.
    ///
    /// # Errors
    /// When the text is not of the form.
    fn of_text(text: &str) -> Result<Self, TextError>;
    /// Writes it.
    fn to_text(&self) -> String;
}

/// A text that is kept as it is, once it has been looked at.
macro_rules! texts {
    ($($(#[$about:meta])+ $name:ident { what: $what:literal, form: $form:literal, pattern: $pattern:literal, is: $is:expr })+) => {$(
        $(#[$about])+
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Text for $name {
            const WHAT: &'static str = $what;
            const FORM: &'static str = $form;
            const PATTERN: &'static str = $pattern;
            fn of_text(text: &str) -> Result<$name, TextError> {
                let is: fn(&str) -> bool = $is;
                if is(text) { Ok($name(text.to_owned())) } else { Err(TextError::new(text, $what, $form)) }
            }
            fn to_text(&self) -> String {
                self.0.clone()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        std_traits!($name);
    )+};
}

/// `Display`, `Debug` and `FromStr` by [`Text`].
macro_rules! std_traits {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.to_text())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.to_text())
            }
        }

        impl FromStr for $name {
            type Err = TextError;
            fn from_str(text: &str) -> Result<$name, TextError> {
                $name::of_text(text)
            }
        }
    };
}

texts! {
    /// An RFC 1123 label (section 2.1, with RFC 1035 section 2.3.1), in lower case: the name of a mesh, site, node,
    /// service, data set or check.
    Label {
        what: "name",
        form: "lower-case letters, digits and inner hyphens, at most 63",
        pattern: "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        is: |text| {
            let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            (1..=63).contains(&text.len()) && text.bytes().all(legal) && !text.starts_with('-') && !text.ends_with('-')
        }
    }

    /// A UUID (RFC 9562, section 4) in lower case with hyphens.
    Uuid {
        what: "UUID",
        form: "8-4-4-4-12 lower-case hex digits",
        pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        is: |text| {
            let groups: Vec<&str> = text.split('-').collect();
            groups.iter().map(|g| g.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(|g| hex(g))
        }
    }

    /// A SHA-256 as 64 lower-case hex digits.
    Sha256 {
        what: "SHA-256",
        form: "64 lower-case hex digits",
        pattern: "^[0-9a-f]{64}$",
        is: |text| text.len() == 64 && hex(text)
    }

    /// A certificate's serial number as the hex digits of its octets; at most 20 of them (RFC 5280, section 4.1.2.2).
    Serial {
        what: "serial number",
        form: "2 to 40 lower-case hex digits, two for each octet",
        pattern: "^([0-9a-f]{2}){1,20}$",
        is: |text| (2..=40).contains(&text.len()) && text.len().is_multiple_of(2) && hex(text)
    }
}

impl Uuid {
    /// A random one (RFC 9562, section 5.4: version 4) of 16 random bytes.
    pub fn of_random(mut bytes: [u8; 16]) -> Uuid {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let all: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        Uuid(format!("{}-{}-{}-{}-{}", &all[..8], &all[8..12], &all[12..16], &all[16..20], &all[20..]))
    }
}

fn hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// A 64-bit number as 16 lower-case hex digits: JSON's readers keep only 53 bits of a number (RFC 8259, section 6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HexId(pub u64);

impl Text for HexId {
    const WHAT: &'static str = "id";
    const FORM: &'static str = "16 lower-case hex digits";
    const PATTERN: &'static str = "^[0-9a-f]{16}$";
    fn of_text(text: &str) -> Result<HexId, TextError> {
        let number = if text.len() == 16 && hex(text) { u64::from_str_radix(text, 16).ok() } else { None };
        number.map(HexId).ok_or_else(|| TextError::new(text, HexId::WHAT, HexId::FORM))
    }
    fn to_text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

std_traits!(HexId);

/// A point in time, whole seconds since 1970 UTC; written as RFC 3339 in UTC, `2026-11-30T10:53:00Z`, in no other way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0
    }

    /// The second in which a point in time lies; years 0 to 9999.
    pub fn of(at: OffsetDateTime) -> Time {
        /// `0000-01-01T00:00:00Z` and `9999-12-31T23:59:59Z`.
        const BOUNDS: (i64, i64) = (-62_167_219_200, 253_402_300_799);
        Time(at.unix_timestamp().clamp(BOUNDS.0, BOUNDS.1))
    }

    /// Seconds from `earlier` to this one; negative when that is later.
    pub fn since(self, earlier: Time) -> i64 {
        self.0 - earlier.0
    }

    fn parse(text: &str) -> Option<Time> {
        let bytes = text.as_bytes();
        let form = b"dddd-dd-ddTdd:dd:ddZ";
        let fits = |(byte, like): (&u8, &u8)| if *like == b'd' { byte.is_ascii_digit() } else { byte == like };
        if bytes.len() != form.len() || !bytes.iter().zip(form).all(fits) {
            return None;
        }
        let number = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<u16>().ok());
        let small = |from: usize| number(from, from + 2).and_then(|n| u8::try_from(n).ok());
        let month = Month::try_from(small(5)?).ok()?;
        let date = Date::from_calendar_date(i32::from(number(0, 4)?), month, small(8)?).ok()?;
        let time = time::Time::from_hms(small(11)?, small(14)?, small(17)?).ok()?;
        Some(Time(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp()))
    }
}

impl Text for Time {
    const WHAT: &'static str = "time";
    const FORM: &'static str = "RFC 3339 in UTC and whole seconds, as `2026-11-30T10:53:00Z`";
    const PATTERN: &'static str =
        "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$";
    fn of_text(text: &str) -> Result<Time, TextError> {
        Time::parse(text).ok_or_else(|| TextError::new(text, Time::WHAT, Time::FORM))
    }
    fn to_text(&self) -> String {
        // Both constructors keep to four-digit years.
        let at = OffsetDateTime::from_unix_timestamp(self.0).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (date, time) = (at.date(), at.time());
        let (month, day) = (u8::from(date.month()), date.day());
        let (hour, minute, second) = time.as_hms();
        format!("{:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", date.year())
    }
}

std_traits!(Time);

#[cfg(test)]
mod tests {
    use super::*;

    fn takes<T: Text + PartialEq + fmt::Debug>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(T::of_text(text).map(|t| t.to_text()).as_deref(), Ok(*text), "{}", T::WHAT);
        }
        for text in bad {
            let error = T::of_text(text).unwrap_err();
            assert_eq!((error.what, error.form), (T::WHAT, T::FORM), "{text}");
        }
    }

    #[test]
    fn each_text_has_one_form() {
        let long = "x".repeat(64);
        takes::<Label>(
            &["a", "lis1", "a-b", "0a", &long[1..]],
            &["", "A", "a_b", "-a", "a-", "a.b", "ä", &long, "a/b"],
        );
        takes::<Uuid>(
            &["6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f"],
            &[
                "",
                "6F1C2F0E-8d3b-4f7a-9c55-0a1b2c3d4e5f",
                "6f1c2f0e8d3b4f7a9c550a1b2c3d4e5f",
                "{6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f}",
            ],
        );
        takes::<Sha256>(&[&"0f".repeat(32)], &["", "0f", &"0F".repeat(32), &"0g".repeat(32)]);
        takes::<Serial>(&["4f", &"4f".repeat(20)], &["", "4", "4f0", "4F", &"4f".repeat(21), "4f:11"]);
        takes::<HexId>(&["00000000000004d2", "ffffffffffffffff"], &["4d2", "00000000000004D2", "+0000000000004d2", ""]);
        takes::<Time>(
            &["2026-11-30T10:53:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2028-02-29T00:00:00Z"],
            &[
                "2026-11-30T10:53:00.5Z",
                "2026-11-30T10:53:00+00:00",
                "2026-11-30 10:53:00Z",
                "2026-11-30t10:53:00z",
                "2027-02-29T00:00:00Z",
                "2026-13-01T00:00:00Z",
                "2026-11-30T24:00:00Z",
                "2026-11-30T10:53:60Z",
                "",
                "+026-11-30T10:53:00Z",
            ],
        );
    }

    #[test]
    fn times_are_seconds() {
        let at: Time = "2026-11-30T10:53:00Z".parse().unwrap();
        assert_eq!(at.seconds(), 1_796_035_980);
        let later = Time::of(time::macros::datetime!(2026-11-30 12:53:07.9 +1));
        assert_eq!((later.to_string().as_str(), later.since(at)), ("2026-11-30T11:53:07Z", 3607));
    }

    #[test]
    fn a_random_uuid_is_of_version_4() {
        assert_eq!(Uuid::of_random([0xff; 16]).as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(Uuid::of_text(Uuid::of_random([0; 16]).as_str()), Ok(Uuid::of_random([0; 16])));
    }

    #[test]
    fn a_message_stays_short() {
        let text = Label::of_text(&"x".repeat(1 << 20)).unwrap_err().to_string();
        assert!(text.len() < 200 && text.contains('…'), "{text}");
        assert_eq!(
            Label::of_text("a\n").unwrap_err().to_string(),
            "`a\\n` is no name: lower-case letters, digits and inner hyphens, at most 63"
        );
    }
}
