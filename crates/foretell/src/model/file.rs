//! Models as safetensors files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ensemble::Ensemble;
use super::latent::{Refined, RefinedHeader};
use super::linear::{Derived, Model};
use super::ngram::NGram;
use super::params::LearnParams;
use crate::data::{ActionObservation, Alphabet};
use crate::error::{Error, Result};
use crate::learn::Moments;
use crate::store;
use crate::store::tensors::{self, Array, Arrays, Kind};

const MODEL: Kind = Kind { name: "model", again: "learn the model again", verb: "learn" };

/// What the header says.
#[derive(Serialize, Deserialize)]
struct Header {
    params: LearnParams,
    alphabet: Alphabet,
    episodes: u64,
    steps: u64,
    skipped: u64,
    ngram_length: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refined: Option<RefinedHeader>,
    /// How many other models an ensemble has, of all logs and of halves, each a file within the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ensemble: Option<[usize; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
}

impl Model {
    /// Writes the model to a file, which appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        store::write(path, &self.to_bytes())
    }

    /// [`Model::save`], with the moments it was made of, so that other logs can be added.
    pub fn save_with_moments(&self, moments: &Moments, path: impl AsRef<Path>) -> Result<()> {
        store::write(path, &self.to_bytes_with_moments(moments))
    }

    /// What [`Model::save_with_moments`] writes.
    pub fn to_bytes_with_moments(&self, moments: &Moments) -> Vec<u8> {
        self.bytes_with(Some(moments))
    }

    /// The bytes of the moments that the bytes of a model file carry.
    pub(crate) fn moments_of(bytes: &[u8], file: &str) -> Result<Option<Vec<u8>>> {
        let (_, arrays): (Header, _) = Arrays::open(MODEL, bytes, file)?;
        if arrays.has("moments") { arrays.bytes("moments").map(Some) } else { Ok(None) }
    }

    /// Reads a model that [`Model::save`] wrote.
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Model::from_bytes(&bytes, &path.display().to_string())
    }

    /// The model as the bytes of a safetensors file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes_with(None)
    }

    fn bytes_with(&self, moments: Option<&Moments>) -> Vec<u8> {
        let header = Header {
            params: self.params.clone(),
            alphabet: self.alphabet.clone(),
            episodes: self.episodes,
            steps: self.steps,
            skipped: self.skipped,
            ngram_length: self.ngram.length,
            refined: self.refined.as_ref().map(Refined::header),
            ensemble: (!self.ensemble.is_empty()).then_some([self.ensemble.members.len(), self.ensemble.halves.len()]),
            encoding: self.encoding.clone(),
        };
        let (d, n) = (self.rank(), self.pairs.len());
        let pairs: Vec<u32> = self.pairs.iter().flat_map(|ao| [ao.action.0, ao.observation.0]).collect();
        let NGram { keys, start, symbols, counts, .. } = &self.ngram;
        let mut arrays = vec![
            Array::f64s("initial", &[d], &self.initial),
            Array::f64s("normalizer", &[d], &self.normalizer),
            Array::f64s("operators", &[n, d, d], &self.operators),
            Array::f64s("readouts", &[n, d], &self.readouts),
            Array::f64s("mean_states", &[n, d], &self.mean_states),
            Array::f64s("spectrum", &[self.spectrum.len()], &self.spectrum),
            Array::u32s("pairs", &[n, 2], &pairs),
            Array::u64s("pair_counts", &self.pair_counts),
            Array::u64s("ngram_keys", keys),
            Array::u32s("ngram_start", &[start.len()], start),
            Array::u32s("ngram_symbols", &[symbols.len()], symbols),
            Array::u32s("ngram_counts", &[counts.len()], counts),
        ];
        arrays.extend(self.refined.iter().flat_map(Refined::arrays));
        for (name, models) in [("member", &self.ensemble.members), ("half", &self.ensemble.halves)] {
            let models = models.iter().enumerate();
            arrays.extend(models.map(|(i, model)| Array::bytes(format!("{name}{i}"), model.to_bytes())));
        }
        arrays.extend(moments.map(|moments| Array::bytes("moments", moments.to_bytes())));
        tensors::to_bytes(MODEL, header, &arrays)
    }

    /// Reads a model from the bytes of a safetensors file; `file` is named in errors.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Model> {
        let (header, arrays): (Header, _) = Arrays::open(MODEL, bytes, file)?;
        let initial = arrays.f64s("initial")?;
        let d = initial.len();
        let pairs = arrays.u32s("pairs")?;
        let n = pairs.len() / 2;
        let refined = header.refined.map(|refined| Refined::read(refined, &header.alphabet, &arrays)).transpose()?;
        let read = |name: &str, n: usize| -> Result<Vec<Model>> {
            (0..n).map(|i| Model::from_bytes(&arrays.bytes(&format!("{name}{i}"))?, file)).collect()
        };
        let [members, halves] = header.ensemble.unwrap_or_default();
        let ensemble = Ensemble { members: read("member", members)?, halves: read("half", halves)? };
        if ensemble.members.iter().chain(&ensemble.halves).any(|model| model.alphabet != header.alphabet) {
            return Err(arrays.damaged("the models of its ensemble have other alphabets"));
        }
        let model = Model {
            refined,
            ensemble,
            encoding: header.encoding,
            normalizer: arrays.sized("normalizer", arrays.f64s("normalizer")?, d)?,
            operators: arrays.sized("operators", arrays.f64s("operators")?, n * d * d)?,
            readouts: arrays.sized("readouts", arrays.f64s("readouts")?, n * d)?,
            mean_states: arrays.sized("mean_states", arrays.f64s("mean_states")?, n * d)?,
            spectrum: arrays.f64s("spectrum")?,
            pairs: pairs.chunks_exact(2).map(|ao| ActionObservation::new(ao[0], ao[1])).collect(),
            pair_counts: arrays.sized("pair_counts", arrays.u64s("pair_counts")?, n)?,
            ngram: ngram(&arrays, header.ngram_length, header.alphabet.observations().len())?,
            initial,
            params: header.params,
            alphabet: header.alphabet,
            episodes: header.episodes,
            steps: header.steps,
            skipped: header.skipped,
            derived: Derived::empty(),
        };
        check(&arrays, &model)?;
        model.params.validate().map_err(|e| arrays.damaged(&e.to_string()))?;
        model.with_derived().map_err(|e| arrays.damaged(&e.to_string()))
    }
}

fn ngram(arrays: &Arrays<'_>, length: usize, symbols: usize) -> Result<NGram> {
    let keys = arrays.u64s("ngram_keys")?;
    let start = arrays.sized("ngram_start", arrays.u32s("ngram_start")?, keys.len() + 1)?;
    let met = arrays.u32s("ngram_symbols")?;
    let counts = arrays.sized("ngram_counts", arrays.u32s("ngram_counts")?, met.len())?;
    let ordered =
        keys.is_sorted() && start.windows(2).all(|w| w[0] <= w[1]) && start.last().is_some_and(|&end| end as usize == met.len());
    if !ordered || met.iter().any(|&o| o as usize >= symbols) {
        return Err(arrays.damaged("the n-gram points outside its arrays"));
    }
    Ok(NGram { length, keys, start, symbols: met, counts })
}

fn check(arrays: &Arrays<'_>, model: &Model) -> Result<()> {
    let (actions, observations) = (model.alphabet.actions().len() as u32, model.alphabet.observations().len() as u32);
    let sorted = model.pairs.windows(2).all(|w| w[0] < w[1]);
    let known = model.pairs.iter().all(|ao| ao.action.0 < actions && ao.observation.0 < observations);
    if !(sorted && known && !model.pairs.is_empty() && model.rank() > 0) {
        return Err(arrays.damaged("its pairs do not match its alphabet"));
    }
    Ok(())
}
