//! The footer of a Parquet file, which says what the file holds, before the decoder reads it.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use super::thrift::{Kind, read_struct};

/// The end of a file: the size of the footer, and what the file begins with too.
const END: u64 = 8;
const MAGIC: &[u8] = b"PAR1";

const INTS: Kind = Kind::List(&Kind::Int);
const BYTES: Kind = Kind::Struct(&[Kind::Bytes]);
const EMPTY: Kind = Kind::Struct(&[]);
/// `KeyValue` of Parquet.
const PAIRS: Kind = Kind::List(&Kind::Struct(&[Kind::Bytes, Kind::Bytes]));
/// `TimeType`, with a union of units.
const TIME: Kind = Kind::Struct(&[Kind::Bool, Kind::Struct(&[EMPTY, EMPTY, EMPTY])]);
/// `LogicalType`, a union.
const LOGICAL: Kind = Kind::Struct(&[
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    Kind::Struct(&[Kind::Int, Kind::Int]),
    EMPTY,
    TIME,
    TIME,
    EMPTY,
    Kind::Struct(&[Kind::Byte, Kind::Bool]),
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    Kind::Struct(&[Kind::Byte]),
    BYTES,
    Kind::Struct(&[Kind::Bytes, Kind::Int]),
]);
/// `SchemaElement`.
const COLUMN: Kind =
    Kind::Struct(&[Kind::Int, Kind::Int, Kind::Int, Kind::Bytes, Kind::Int, Kind::Int, Kind::Int, Kind::Int, Kind::Int, LOGICAL]);
/// `Statistics`.
const STATISTICS: Kind =
    Kind::Struct(&[Kind::Bytes, Kind::Bytes, Kind::Int, Kind::Int, Kind::Bytes, Kind::Bytes, Kind::Bool, Kind::Bool, Kind::Int]);
/// `BoundingBox`.
const BOX: Kind = Kind::Struct(&[
    Kind::Double,
    Kind::Double,
    Kind::Double,
    Kind::Double,
    Kind::Double,
    Kind::Double,
    Kind::Double,
    Kind::Double,
]);
/// `ColumnMetaData`.
const CHUNK: Kind = Kind::Struct(&[
    Kind::Int,
    INTS,
    Kind::List(&Kind::Bytes),
    Kind::Int,
    Kind::Int,
    Kind::Int,
    Kind::Int,
    PAIRS,
    Kind::Int,
    Kind::Int,
    Kind::Int,
    STATISTICS,
    Kind::List(&Kind::Struct(&[Kind::Int, Kind::Int, Kind::Int])),
    Kind::Int,
    Kind::Int,
    Kind::Struct(&[Kind::Int, INTS, INTS]),
    Kind::Struct(&[BOX, INTS]),
]);
/// `ColumnChunk`.
const PLACE: Kind = Kind::Struct(&[
    Kind::Bytes,
    Kind::Int,
    CHUNK,
    Kind::Int,
    Kind::Int,
    Kind::Int,
    Kind::Int,
    Kind::Any, // encryption, which is not supported
    Kind::Bytes,
]);
/// `RowGroup`.
const GROUP: Kind = Kind::Struct(&[
    Kind::List(&PLACE),
    Kind::Int,
    Kind::Int,
    Kind::List(&Kind::Struct(&[Kind::Int, Kind::Bool, Kind::Bool])),
    Kind::Int,
    Kind::Int,
    Kind::Int,
]);
/// `FileMetaData`.
const FOOTER: &[Kind] = &[
    Kind::Int,
    Kind::List(&COLUMN),
    Kind::Int,
    Kind::List(&GROUP),
    PAIRS,
    Kind::Bytes,
    Kind::List(&Kind::Struct(&[EMPTY, EMPTY])),
    Kind::Any,
    Kind::Bytes,
];

/// Refuses a footer that would take the decoder longer than its size explains. What is no footer at
/// all is left to the decoder.
pub(super) fn check_footer<F: Read + Seek>(mut file: F, bytes: u64) -> io::Result<()> {
    let Some(end) = bytes.checked_sub(END) else { return Ok(()) };
    let mut size = [0; END as usize];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut size)?;
    let (size, magic) = size.split_at(END as usize - MAGIC.len());
    let size = size.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    match end.checked_sub(size) {
        Some(begin) if magic == MAGIC => {
            file.seek(SeekFrom::Start(begin))?;
            read_struct(BufReader::new(file.take(size)), FOOTER, &mut |_, _| {}).map(drop)
        }
        _ => Ok(()),
    }
}
