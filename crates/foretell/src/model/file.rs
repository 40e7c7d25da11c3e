//! Models as safetensors files: arrays that NumPy reads without our code, and everything else as JSON in the header.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};

use super::{Derived, Model};
use crate::data::{ActionObservation, Alphabet};
use crate::error::{Error, Result};
use crate::file::AtomicFile;
use crate::ngram::NGram;
use crate::params::LearnParams;

/// Raised whenever a file written before would be read differently, column values of projections included.
const FORMAT_VERSION: u32 = 1;
/// Key of the header under which everything that is not an array stands. One key: the order of several is not fixed.
const HEADER: &str = "foretell";

/// What the header says.
#[derive(Serialize, Deserialize)]
struct Header {
    kind: String,
    format_version: u32,
    library_version: String,
    params: LearnParams,
    alphabet: Alphabet,
    episodes: u64,
    steps: u64,
    skipped: u64,
    ngram_length: usize,
}

impl Model {
    /// Writes the model to a file, which appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut file = AtomicFile::create(path)?;
        file.write_all(&self.to_bytes()).map_err(Error::io("write", path))?;
        file.commit()
    }

    /// Reads a model that [`Model::save`] wrote.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Model::from_bytes(&bytes, &path.display().to_string())
    }

    /// The model as the bytes of a safetensors file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            kind: "model".into(),
            format_version: FORMAT_VERSION,
            library_version: env!("CARGO_PKG_VERSION").into(),
            params: self.params.clone(),
            alphabet: self.alphabet.clone(),
            episodes: self.episodes,
            steps: self.steps,
            skipped: self.skipped,
            ngram_length: self.ngram.length,
        };
        let (d, n) = (self.rank(), self.pairs.len());
        let pairs: Vec<u32> = self.pairs.iter().flat_map(|ao| [ao.action.0, ao.observation.0]).collect();
        let arrays = [
            ("initial", Dtype::F64, vec![d], le_bytes(&self.initial, f64::to_le_bytes)),
            ("normalizer", Dtype::F64, vec![d], le_bytes(&self.normalizer, f64::to_le_bytes)),
            ("operators", Dtype::F64, vec![n, d, d], le_bytes(&self.operators, f64::to_le_bytes)),
            ("readouts", Dtype::F64, vec![n, d], le_bytes(&self.readouts, f64::to_le_bytes)),
            ("mean_states", Dtype::F64, vec![n, d], le_bytes(&self.mean_states, f64::to_le_bytes)),
            ("spectrum", Dtype::F64, vec![self.spectrum.len()], le_bytes(&self.spectrum, f64::to_le_bytes)),
            ("pairs", Dtype::U32, vec![n, 2], le_bytes(&pairs, u32::to_le_bytes)),
            ("pair_counts", Dtype::U64, vec![n], le_bytes(&self.pair_counts, u64::to_le_bytes)),
            ("ngram_keys", Dtype::U64, vec![self.ngram.keys.len()], le_bytes(&self.ngram.keys, u64::to_le_bytes)),
            ("ngram_start", Dtype::U32, vec![self.ngram.start.len()], le_bytes(&self.ngram.start, u32::to_le_bytes)),
            ("ngram_symbols", Dtype::U32, vec![self.ngram.symbols.len()], le_bytes(&self.ngram.symbols, u32::to_le_bytes)),
            ("ngram_counts", Dtype::U32, vec![self.ngram.counts.len()], le_bytes(&self.ngram.counts, u32::to_le_bytes)),
        ];
        let views = arrays.iter().map(|(name, dtype, shape, bytes)| {
            (*name, TensorView::new(*dtype, shape.clone(), bytes).expect("shape and bytes come from the same array"))
        });
        let json = serde_json::to_string(&header).expect("a header is plain data");
        serialize(views, Some(HashMap::from([(HEADER.to_string(), json)]))).expect("names and shapes are valid")
    }

    /// Reads a model from the bytes of a safetensors file; `file` is named in errors.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Model> {
        let wrong = |problem: String, remedy: &str| Error::input(file, None, problem, remedy);
        let not_ours = "give a file that `foretell learn` wrote";
        let (_, metadata) = SafeTensors::read_metadata(bytes)
            .map_err(|_| wrong("not a safetensors file, or only a part of one".into(), not_ours))?;
        let json = metadata.metadata().as_ref().and_then(|m| m.get(HEADER));
        let json = json.ok_or_else(|| wrong("a safetensors file, but not a model of ours".into(), not_ours))?;
        check_version(json, file)?;
        let header: Header =
            serde_json::from_str(json).map_err(|e| wrong(format!("its header is damaged ({e})"), "learn the model again"))?;
        let tensors =
            SafeTensors::deserialize(bytes).map_err(|_| wrong("it is cut short or damaged".into(), "learn the model again"))?;
        let arrays = Arrays { tensors, file };

        let initial = arrays.f64s("initial")?;
        let d = initial.len();
        let pairs = arrays.u32s("pairs")?;
        let n = pairs.len() / 2;
        let model = Model {
            normalizer: arrays.sized("normalizer", arrays.f64s("normalizer")?, d)?,
            operators: arrays.sized("operators", arrays.f64s("operators")?, n * d * d)?,
            readouts: arrays.sized("readouts", arrays.f64s("readouts")?, n * d)?,
            mean_states: arrays.sized("mean_states", arrays.f64s("mean_states")?, n * d)?,
            spectrum: arrays.f64s("spectrum")?,
            pairs: pairs.chunks_exact(2).map(|ao| ActionObservation::new(ao[0], ao[1])).collect(),
            pair_counts: arrays.sized("pair_counts", arrays.u64s("pair_counts")?, n)?,
            ngram: arrays.ngram(header.ngram_length, header.alphabet.observations().len())?,
            initial,
            params: header.params,
            alphabet: header.alphabet,
            episodes: header.episodes,
            steps: header.steps,
            skipped: header.skipped,
            derived: Derived::empty(),
        };
        arrays.check(&model)?;
        model.params.validate().map_err(|e| arrays.damaged(&e.to_string()))?;
        model.with_derived().map_err(|e| arrays.damaged(&e.to_string()))
    }
}

/// Refuses files of another kind or version before anything else of them is read.
fn check_version(json: &str, file: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Version {
        kind: String,
        format_version: u32,
    }
    let version: Version = serde_json::from_str(json)
        .map_err(|e| Error::input(file, None, format!("its header is damaged ({e})"), "learn the model again"))?;
    if version.kind != "model" {
        return Err(Error::input(
            file,
            None,
            format!("it is a {}, not a model", version.kind),
            "give a file that `foretell learn` wrote",
        ));
    }
    if version.format_version != FORMAT_VERSION {
        let problem =
            format!("model format {}, but this version of foretell reads format {FORMAT_VERSION}", version.format_version);
        return Err(Error::input(file, None, problem, "learn the model again, or use the version of foretell that wrote it"));
    }
    Ok(())
}

fn le_bytes<T: Copy, const N: usize>(values: &[T], convert: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&x| convert(x)).collect()
}

/// The arrays of a file, with errors that name it.
struct Arrays<'a> {
    tensors: SafeTensors<'a>,
    file: &'a str,
}

impl Arrays<'_> {
    fn damaged(&self, problem: &str) -> Error {
        Error::input(self.file, None, format!("the model is damaged: {problem}"), "learn the model again")
    }

    fn get<T, const N: usize>(&self, name: &str, dtype: Dtype, convert: fn([u8; N]) -> T) -> Result<Vec<T>> {
        let tensor = self.tensors.tensor(name).map_err(|_| self.damaged(&format!("array {name} is missing")))?;
        if tensor.dtype() != dtype {
            return Err(self.damaged(&format!("array {name} is {:?}, not {dtype:?}", tensor.dtype())));
        }
        Ok(tensor.data().chunks_exact(N).map(|bytes| convert(bytes.try_into().expect("chunks of N bytes"))).collect())
    }

    fn f64s(&self, name: &str) -> Result<Vec<f64>> {
        self.get(name, Dtype::F64, f64::from_le_bytes)
    }

    fn u32s(&self, name: &str) -> Result<Vec<u32>> {
        self.get(name, Dtype::U32, u32::from_le_bytes)
    }

    fn u64s(&self, name: &str) -> Result<Vec<u64>> {
        self.get(name, Dtype::U64, u64::from_le_bytes)
    }

    fn sized<T>(&self, name: &str, array: Vec<T>, size: usize) -> Result<Vec<T>> {
        if array.len() == size {
            Ok(array)
        } else {
            Err(self.damaged(&format!("array {name} has {} values, not {size}", array.len())))
        }
    }

    fn ngram(&self, length: usize, symbols: usize) -> Result<NGram> {
        let keys = self.u64s("ngram_keys")?;
        let start = self.sized("ngram_start", self.u32s("ngram_start")?, keys.len() + 1)?;
        let met = self.u32s("ngram_symbols")?;
        let counts = self.sized("ngram_counts", self.u32s("ngram_counts")?, met.len())?;
        let ordered = keys.is_sorted()
            && start.windows(2).all(|w| w[0] <= w[1])
            && start.last().is_some_and(|&end| end as usize == met.len());
        if !ordered || met.iter().any(|&o| o as usize >= symbols) {
            return Err(self.damaged("the n-gram points outside its arrays"));
        }
        Ok(NGram { length, keys, start, symbols: met, counts })
    }

    fn check(&self, model: &Model) -> Result<()> {
        let (actions, observations) = (model.alphabet.actions().len() as u32, model.alphabet.observations().len() as u32);
        let sorted = model.pairs.windows(2).all(|w| w[0] < w[1]);
        let known = model.pairs.iter().all(|ao| ao.action.0 < actions && ao.observation.0 < observations);
        if !(sorted && known && !model.pairs.is_empty() && model.rank() > 0) {
            return Err(self.damaged("its pairs do not match its alphabet"));
        }
        Ok(())
    }
}
