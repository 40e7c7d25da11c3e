//! Safetensors files: arrays that NumPy can read without Foretell, and everything else as JSON in
//! the header.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::checksum::{self, Seal};
use crate::error::{Error, Result};

/// Incremented whenever an older file would be read differently, including the column values of
/// projections.
const FORMAT_VERSION: u32 = 3;
/// The oldest format that is read: it differs in that it has no checksum.
const OLDEST_VERSION: u32 = 2;
/// The header key for everything that is not an array. One key, because the order of several is not
/// fixed.
const HEADER: &str = "foretell";

/// The kind of a file, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// "model"
    pub(crate) name: &'static str,
    /// The remedy for a damaged file.
    pub(crate) again: &'static str,
}

/// The fields of every header, and those of its kind.
#[derive(Serialize, Deserialize)]
struct Header<T> {
    kind: String,
    format_version: u32,
    /// Before everything that a user may have named.
    #[serde(default)]
    checksum: String,
    library_version: String,
    #[serde(flatten)]
    body: T,
}

/// The kind and versions of a Foretell file, from its header.
///
/// ```
/// # use foretell::{LearnParams, Logs, Seed, Stamp, domains, learn};
/// # let tiger = domains::get("tiger")?;
/// # let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 50, 10, Seed(1)).collect());
/// let model = learn(&logs, &LearnParams { rank: 2, ..LearnParams::default() })?;
/// assert_eq!(Stamp::of(&model.to_bytes()).unwrap().kind, "model");
/// assert!(Stamp::of(b"action,observation").is_none());
/// # Ok::<(), foretell::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// "model" or "policy".
    pub kind: String,
    /// Version of the format; this one and the one before are read.
    pub format_version: u32,
    /// Version of the library that wrote it.
    pub library_version: String,
}

impl Stamp {
    /// The stamp of a file with these bytes; `None` if Foretell did not write it.
    pub fn of(bytes: &[u8]) -> Option<Stamp> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
        serde_json::from_str(metadata.metadata().as_ref()?.get(HEADER)?).ok()
    }
}

/// An array to be written.
pub(crate) struct Array {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array {
    pub(crate) fn f64s(name: impl Into<String>, shape: &[usize], values: &[f64]) -> Array {
        Array { name: name.into(), dtype: Dtype::F64, shape: shape.to_vec(), bytes: le_bytes(values, f64::to_le_bytes) }
    }

    pub(crate) fn f32s(name: impl Into<String>, values: &[f32]) -> Array {
        Array { name: name.into(), dtype: Dtype::F32, shape: vec![values.len()], bytes: le_bytes(values, f32::to_le_bytes) }
    }

    pub(crate) fn u32s(name: impl Into<String>, shape: &[usize], values: &[u32]) -> Array {
        Array { name: name.into(), dtype: Dtype::U32, shape: shape.to_vec(), bytes: le_bytes(values, u32::to_le_bytes) }
    }

    pub(crate) fn u64s(name: impl Into<String>, values: &[u64]) -> Array {
        Array { name: name.into(), dtype: Dtype::U64, shape: vec![values.len()], bytes: le_bytes(values, u64::to_le_bytes) }
    }

    pub(crate) fn bytes(name: impl Into<String>, bytes: Vec<u8>) -> Array {
        Array { name: name.into(), dtype: Dtype::U8, shape: vec![bytes.len()], bytes }
    }
}

fn le_bytes<T: Copy, const N: usize>(values: &[T], convert: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&x| convert(x)).collect()
}

/// The bytes of a file.
pub(crate) fn to_bytes<T: Serialize>(kind: Kind, body: T, arrays: &[Array]) -> Vec<u8> {
    let library_version = env!("CARGO_PKG_VERSION").into();
    let (kind, checksum) = (kind.name.into(), checksum::ZEROS.into());
    let header = Header { kind, format_version: FORMAT_VERSION, checksum, library_version, body };
    let views = arrays.iter().map(|array| {
        let view = TensorView::new(array.dtype, array.shape.clone(), &array.bytes);
        (&array.name, view.expect("shape and bytes come from the same array"))
    });
    let json = serde_json::to_string(&header).expect("a header is plain data");
    let metadata = HashMap::from([(HEADER.to_string(), json)]);
    checksum::sealed(serialize(views, Some(metadata)).expect("names and shapes are valid"))
}

/// The arrays of a file, with errors that name it.
pub(crate) struct Arrays<'a> {
    tensors: SafeTensors<'a>,
    file: &'a str,
    kind: Kind,
    seal: Seal,
}

impl<'a> Arrays<'a> {
    /// Reads the bytes of a file of that kind; `file` is its name in errors. Returns the rest of
    /// the header and the arrays.
    pub(crate) fn open<T: DeserializeOwned>(kind: Kind, bytes: &'a [u8], file: &'a str) -> Result<(T, Arrays<'a>)> {
        let wrong = |problem: String, remedy: &str| Error::input(file, None, problem, remedy);
        let not_ours = format!("give a {} that foretell wrote", kind.name);
        let (_, metadata) = SafeTensors::read_metadata(bytes)
            .map_err(|_| wrong("not a safetensors file, or only a part of one".into(), &not_ours))?;
        let json = metadata.metadata().as_ref().and_then(|m| m.get(HEADER));
        let json = json.ok_or_else(|| wrong(format!("a safetensors file, but not a {} of foretell", kind.name), &not_ours))?;
        let seal = checksum::check(bytes);
        if seal == Seal::Broken {
            return Err(broken(kind, file));
        }
        check_version(kind, json, file, seal)?;
        let header: Header<T> =
            serde_json::from_str(json).map_err(|e| wrong(format!("its header is damaged ({e})"), kind.again))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|_| wrong("it is cut short or damaged".into(), kind.again))?;
        Ok((header.body, Arrays { tensors, file, kind, seal }))
    }

    pub(crate) fn damaged(&self, problem: &str) -> Error {
        let Kind { name, again } = self.kind;
        Error::Damaged { file: self.file.into(), kind: name, problem: problem.into(), again }
    }

    /// What a user should know of the file, if it is of an older format.
    pub(crate) fn note(&self) -> Option<String> {
        let problem = "was written by an earlier version, without a checksum: damage to it would not be noticed";
        (self.seal == Seal::Missing).then(|| format!("{} {problem}", self.file))
    }

    fn get<T, const N: usize>(&self, name: &str, dtype: Dtype, mut convert: impl FnMut([u8; N]) -> T) -> Result<Vec<T>> {
        let (values, _) = self.view(name, dtype)?.data().as_chunks();
        Ok(values.iter().map(|bytes| convert(*bytes)).collect())
    }

    fn view(&self, name: &str, dtype: Dtype) -> Result<TensorView<'a>> {
        let tensor = self.tensors.tensor(name).map_err(|_| self.damaged(&format!("array {name} is missing")))?;
        match tensor.dtype() == dtype {
            true => Ok(tensor),
            false => Err(self.damaged(&format!("array {name} is {:?}, not {dtype:?}", tensor.dtype()))),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.tensor(name).is_ok()
    }

    /// Numbers, all of them finite. That is found out while they are read: it costs no pass of its own.
    pub(crate) fn f64s(&self, name: &str) -> Result<Vec<f64>> {
        let mut finite = true;
        let checked = |bytes| {
            let x = f64::from_le_bytes(bytes);
            finite &= x.is_finite();
            x
        };
        let values = self.get(name, Dtype::F64, checked)?;
        if finite { Ok(values) } else { Err(self.not_finite(name)) }
    }

    /// Numbers of which some may be infinite, or none at all.
    pub(crate) fn any_f64s(&self, name: &str) -> Result<Vec<f64>> {
        self.get(name, Dtype::F64, f64::from_le_bytes)
    }

    /// Numbers, all of them finite.
    pub(crate) fn f32s(&self, name: &str) -> Result<Vec<f32>> {
        let values = self.get(name, Dtype::F32, f32::from_le_bytes)?;
        if values.iter().all(|x| x.is_finite()) { Ok(values) } else { Err(self.not_finite(name)) }
    }

    fn not_finite(&self, name: &str) -> Error {
        self.damaged(&format!("array {name} has numbers that are not finite"))
    }

    pub(crate) fn u32s(&self, name: &str) -> Result<Vec<u32>> {
        self.get(name, Dtype::U32, u32::from_le_bytes)
    }

    pub(crate) fn u64s(&self, name: &str) -> Result<Vec<u64>> {
        self.get(name, Dtype::U64, u64::from_le_bytes)
    }

    /// Rows of `width` numbers.
    pub(crate) fn rows(&self, name: &str, width: usize) -> Result<Vec<u32>> {
        let values = self.u32s(name)?;
        match values.len().is_multiple_of(width) {
            true => Ok(values),
            false => Err(self.damaged(&format!("array {name} has {} values, not rows of {width}", values.len()))),
        }
    }

    /// The bytes of a file within the file.
    pub(crate) fn bytes(&self, name: &str) -> Result<&'a [u8]> {
        Ok(self.view(name, Dtype::U8)?.data())
    }

    pub(crate) fn sized<T>(&self, name: &str, array: Vec<T>, size: usize) -> Result<Vec<T>> {
        if array.len() == size {
            Ok(array)
        } else {
            Err(self.damaged(&format!("array {name} has {} values, not {size}", array.len())))
        }
    }
}

fn broken(kind: Kind, file: &str) -> Error {
    let problem = "its checksum is wrong, so some of its bytes are not those that were written, and none can be relied on";
    Error::Damaged { file: file.into(), kind: kind.name, problem: problem.into(), again: kind.again }
}

/// Refuses files of another kind or version before the rest is read, and those that have lost their
/// checksum.
fn check_version(kind: Kind, json: &str, file: &str, seal: Seal) -> Result<()> {
    #[derive(Deserialize)]
    struct Version {
        kind: String,
        format_version: u32,
    }
    let version: Version =
        serde_json::from_str(json).map_err(|e| Error::input(file, None, format!("its header is damaged ({e})"), kind.again))?;
    if version.kind != kind.name {
        return Err(Error::WrongKind { file: file.into(), found: version.kind, expected: kind.name });
    }
    if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version.format_version) {
        let Kind { name, again } = kind;
        let (found, supported) = (version.format_version, FORMAT_VERSION);
        return Err(Error::Version { file: file.into(), kind: name, found, supported, again });
    }
    if version.format_version > OLDEST_VERSION && seal == Seal::Missing {
        return Err(broken(kind, file));
    }
    Ok(())
}
