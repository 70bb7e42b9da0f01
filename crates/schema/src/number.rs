//! Numbers of JSON, compared and divided exactly: integers of 64 bits, and floats by their shortest decimal form.

use std::cmp::Ordering;
use std::fmt;

/// Floats from here on stay floats: below, every whole float fits the integer.
const WHOLE_FLOAT_MAX: f64 = 1e36;

/// A number. Whole floats are integers, so that equal numbers have equal forms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
}

impl From<&serde_json::Number> for Number {
    fn from(number: &serde_json::Number) -> Self {
        if let Some(integer) = number.as_i64() {
            return Self::Integer(integer.into());
        }
        if let Some(integer) = number.as_u64() {
            return Self::Integer(integer.into());
        }
        // Without arbitrary precision every other number is a finite float.
        let float = number.as_f64().unwrap_or(f64::MAX);
        if float.fract() == 0.0 && float.abs() < WHOLE_FLOAT_MAX {
            return Self::Integer(float as i128);
        }
        Self::Float(float)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(f),
            Self::Float(float) => write!(f, "{float:?}"),
        }
    }
}

impl Number {
    pub(crate) fn is_integer(self) -> bool {
        match self {
            Self::Integer(_) => true,
            Self::Float(float) => float.fract() == 0.0,
        }
    }

    pub(crate) fn is_positive(self) -> bool {
        self.compare(Self::Integer(0)) == Ordering::Greater
    }

    /// Compares the exact values.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            // Floats of JSON are finite.
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Self::Integer(a), Self::Float(b)) => compare_mixed(a, b),
            (Self::Float(a), Self::Integer(b)) => compare_mixed(b, a).reverse(),
        }
    }

    /// Whether this is a multiple of a number greater than 0.
    pub(crate) fn is_multiple_of(self, divisor: Self) -> bool {
        match (self, divisor) {
            (Self::Integer(value), Self::Integer(divisor)) => value % divisor == 0,
            (value, divisor) => Decimal::from(value).is_multiple_of(Decimal::from(divisor)),
        }
    }
}

/// Compares an integer with a float that is not whole, or beyond all integers.
fn compare_mixed(integer: i128, float: f64) -> Ordering {
    if float >= WHOLE_FLOAT_MAX {
        return Ordering::Less;
    }
    if float <= -WHOLE_FLOAT_MAX {
        return Ordering::Greater;
    }
    let below = float.floor() as i128;
    if integer <= below {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

/// The absolute value `digits` · 10^`exponent`.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl From<Number> for Decimal {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(integer) => Self {
                digits: integer.unsigned_abs(),
                exponent: 0,
            },
            Number::Float(float) => Self::from_float(float.abs()),
        }
    }
}

impl Decimal {
    /// The shortest decimal that reads as this float, which is what its author wrote.
    fn from_float(float: f64) -> Self {
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut digits = 0;
        let mut decimals = None;
        for c in mantissa.chars() {
            match c.to_digit(10) {
                Some(digit) => {
                    digits = digits * 10 + u128::from(digit);
                    decimals = decimals.map(|n: i32| n + 1);
                }
                None => decimals = Some(0),
            }
        }
        Self {
            digits,
            exponent: exponent.parse::<i32>().unwrap_or(0) - decimals.unwrap_or(0),
        }
    }

    fn is_multiple_of(self, divisor: Self) -> bool {
        if self.digits == 0 {
            return true;
        }
        // Divisors of more than 64 bits are whole numbers above 10^19; exact multiples of such by a float do not occur.
        let Ok(modulus) = u64::try_from(divisor.digits) else {
            return false;
        };
        let shift = self.exponent - divisor.exponent;
        if shift >= 0 {
            let modulus = u128::from(modulus);
            let scale = power_of_ten(shift.unsigned_abs(), modulus);
            return ((self.digits % modulus) * scale).is_multiple_of(modulus);
        }
        let scale = 10_u128.checked_pow(shift.unsigned_abs());
        let scaled = scale.and_then(|scale| scale.checked_mul(u128::from(modulus)));
        scaled.is_some_and(|scaled| self.digits.is_multiple_of(scaled))
    }
}

/// 10^`exponent` modulo a number of 64 bits.
fn power_of_ten(mut exponent: u32, modulus: u128) -> u128 {
    let (mut result, mut base) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn number(value: serde_json::Value) -> Number {
        Number::from(value.as_number().unwrap())
    }

    #[test]
    fn numbers_are_compared_exactly() {
        let ascending = [
            json!(-1e300),
            json!(i64::MIN),
            json!(-1.5),
            json!(-1),
            json!(0),
            json!(0.1),
            json!(9007199254740993_i64),
            json!(9007199254740994_i64),
            json!(u64::MAX),
            json!(18446744073709551616.0),
            json!(1e300),
        ];
        for (a, left) in ascending.iter().enumerate() {
            for (b, right) in ascending.iter().enumerate() {
                let compared = number(left.clone()).compare(number(right.clone()));
                assert_eq!(compared, a.cmp(&b), "{left} {right}");
            }
        }
        assert_eq!(number(json!(1.0)), number(json!(1)));
        assert_eq!(number(json!(-0.0)), number(json!(0)));
    }

    #[test]
    fn multiples_are_exact_in_decimal() {
        let cases = [
            (json!(7), json!(2), false),
            (json!(8), json!(2), true),
            (json!(4.5), json!(1.5), true),
            (json!(35), json!(1.5), false),
            (json!(0.0075), json!(0.0001), true),
            (json!(0.00751), json!(0.0001), false),
            (json!(1.1), json!(0.1), true),
            (json!(-0.3), json!(0.1), true),
            (json!(1e308), json!(0.5), true),
            (json!(1e308), json!(0.123456789), false),
            (json!(12391239123_i64), json!(1e-8), true),
            (json!(5e-324), json!(1e300), false),
            (json!(0), json!(0.3), true),
            (json!(1.5), json!(1), false),
        ];
        for (value, divisor, expected) in cases {
            let found = number(value.clone()).is_multiple_of(number(divisor.clone()));
            assert_eq!(found, expected, "{value} {divisor}");
        }
    }

    #[test]
    fn whole_floats_are_integers() {
        assert!(number(json!(1.0)).is_integer());
        assert!(number(json!(1e300)).is_integer());
        assert!(!number(json!(1.5)).is_integer());
        assert_eq!(number(json!(1.5)).to_string(), "1.5");
    }
}
