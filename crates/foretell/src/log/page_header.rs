//! The headers of pages of Parquet, before the decoder believes their sizes.

use std::io::{self, Read};

use super::thrift::{Kind, read_struct};

/// What a header says of its page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PageHeader {
    /// Bytes of the header itself.
    pub length: u64,
    /// Bytes of the page in the file, and unpacked.
    pub packed: u64,
    pub unpacked: u64,
}

/// `PageHeader` of Parquet. Nobody reads statistics.
const HEADER: &[Kind] = &[
    Kind::Int,
    Kind::Int,
    Kind::Int,
    Kind::Int,
    Kind::Struct(&[Kind::Int, Kind::Int, Kind::Int, Kind::Int, Kind::Any]),
    Kind::Struct(&[]),
    Kind::Struct(&[Kind::Int, Kind::Int, Kind::Bool]),
    Kind::Struct(&[Kind::Int, Kind::Int, Kind::Int, Kind::Int, Kind::Int, Kind::Int, Kind::Bool, Kind::Any]),
];
/// The fields with the sizes.
const UNPACKED: usize = 2;
const PACKED: usize = 3;

impl PageHeader {
    /// Reads a header.
    pub fn read(input: impl Read) -> io::Result<PageHeader> {
        let mut sizes = [0; HEADER.len() + 1];
        let length = read_struct(input, HEADER, &mut |field, value| sizes[field] = value)?;
        // The decoder takes the lower bits of what is larger.
        let size = |field: usize| u32::try_from(sizes[field]).map(u64::from).map_err(|_| io::Error::other("a page has no size"));
        Ok(PageHeader { length, packed: size(PACKED)?, unpacked: size(UNPACKED)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<PageHeader, String> {
        PageHeader::read(bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_are_found_behind_and_before_whatever_else_there_is() {
        let dictionary = [0x15, 4, 0x15, 30, 0x15, 14, 0x4c, 0x15, 6, 0x15, 0, 0x12, 0, 0];
        assert_eq!(read(&dictionary), Ok(PageHeader { length: 14, packed: 7, unpacked: 15 }));
        let statistics = [0x15, 0, 0x15, 30, 0x15, 14, 0x2c, 0x15, 6, 0x4c, 0x18, 3, b'a', b'b', b'c', 0x16, 2, 0, 0, 0, 9];
        assert_eq!(read(&statistics), Ok(PageHeader { length: 20, packed: 7, unpacked: 15 }));
    }

    #[test]
    fn whatever_another_reader_could_read_otherwise_is_refused() {
        let cases: [(&[u8], &str); 7] = [
            (&[0x15, 0, 0x18, 1, 0x15, 0], "a field of another type"),
            (&[0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0], "no size"),
            (&[0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0], "a number without an end"),
            (&[0x15, 0, 0x15, 29, 0], "no size"),
            (&[0x99, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0], "a list of booleans"),
            (&[0x98, 100, 0], "an end too early"),
            (&[0x15], "fill whole buffer"),
        ];
        for (bytes, problem) in cases {
            let said = read(bytes).unwrap_err();
            assert!(said.contains(problem), "{said} is not {problem}");
        }
        assert!(read(&[&[0x9c; 2000][..], &[0; 2001]].concat()).is_err(), "structs in structs");
    }
}
