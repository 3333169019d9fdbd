//! Gob's numbers: one byte if small, else a count of bytes and the bytes, big endian.

use super::decode::DecodeError;

/// Appends an unsigned number: 127 is `7f`, 128 is `ff80`, 256 is `fe0100`.
pub(super) fn put_uint(out: &mut Vec<u8>, number: u64) {
    if number < 128 {
        return out.extend_from_slice(&number.to_be_bytes()[7..]);
    }
    let bytes = number.to_be_bytes();
    let zeros = (number.leading_zeros() / 8) as usize;
    // The count of bytes is written negated, so that it cannot be taken for a small number.
    out.push((zeros as u8).wrapping_sub(8));
    out.extend_from_slice(&bytes[zeros..]);
}

/// Appends a signed number: the sign in the lowest bit, negative ones complemented.
pub(super) fn put_int(out: &mut Vec<u8>, number: i64) {
    let doubled = (number as u64) << 1;
    put_uint(out, if number < 0 { !doubled } else { doubled });
}

/// Appends a floating-point number: its bytes reversed, so that round numbers are short.
pub(super) fn put_float(out: &mut Vec<u8>, number: f64) {
    put_uint(out, number.to_bits().swap_bytes());
}

/// Appends a length and the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What is left of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn uint(&mut self) -> Result<u64, DecodeError> {
        let head = self.take(1)?.first().copied().ok_or(DecodeError::Truncated)?;
        if head < 128 {
            return Ok(head.into());
        }
        let length = usize::from(head.wrapping_neg());
        if length > 8 {
            return Err(DecodeError::Malformed("a number of more than eight bytes"));
        }
        Ok(self.take(length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(super) fn int(&mut self) -> Result<i64, DecodeError> {
        let number = self.uint()?;
        let half = (number >> 1) as i64;
        Ok(if number & 1 == 1 { !half } else { half })
    }

    pub(super) fn float(&mut self) -> Result<f64, DecodeError> {
        Ok(f64::from_bits(self.uint()?.swap_bytes()))
    }

    /// A length or a count. Whatever is counted takes at least a byte, so a count above what is left is refused before
    /// anything is allocated for it.
    pub(super) fn count(&mut self) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.uint()?).map_err(|_| DecodeError::Truncated)?;
        if count > self.0.len() { Err(DecodeError::Truncated) } else { Ok(count) }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.count()?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: i64, wire: &[u8]) {
        let mut out = Vec::new();
        put_int(&mut out, number);
        assert_eq!(out, wire);
        assert_eq!(Reader(wire).int(), Ok(number));
    }

    #[test]
    fn signed_numbers_keep_their_sign_in_the_lowest_bit() {
        check(0, &[0]);
        check(1, &[2]);
        check(-1, &[1]);
        check(63, &[0x7e]);
        check(64, &[0xff, 0x80]);
        check(-65, &[0xff, 0x81]);
        check(i64::MAX, &[0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
        check(i64::MIN, &[0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn a_number_that_ends_early_or_is_too_long_is_refused() {
        assert_eq!(Reader(&[]).uint(), Err(DecodeError::Truncated));
        assert_eq!(Reader(&[0xfe, 1]).uint(), Err(DecodeError::Truncated));
        assert_eq!(
            Reader(&[0xf7, 1, 1, 1, 1, 1, 1, 1, 1, 1]).uint(),
            Err(DecodeError::Malformed("a number of more than eight bytes"))
        );
        assert_eq!(Reader(&[5, 1]).bytes(), Err(DecodeError::Truncated));
    }
}
