//! Models as safetensors files.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::latent::{Latent, LatentHeader, PomdpHeader, pomdp_arrays, read_pomdp};
use super::linear::Linear;
use super::mixture::{Member, MemberKind, Mixture, Part};
use super::ngram::NGram;
use super::params::{LearnParams, MOST_NGRAM};
use super::predictor::{Ensemble, Model, Origin, Predictor};
use super::recurrent::{NetworkHeader, Recurrent};
use crate::data::{ActionObservation, Alphabet, Digest};
use crate::error::{Error, Result};
use crate::log::Schema;
use crate::store;
use crate::store::tensors::{self, Array, Arrays, Kind};

const MODEL: Kind = Kind { name: "model", again: "learn the model again" };

/// Weights of a mixture sum to 1 up to rounding.
const WEIGHT_ERROR: f64 = 1e-6;
/// Counts up to this are exact as floating-point numbers, and do not overflow where some are added.
pub(crate) const MOST_COUNT: u64 = 1 << 53;

/// Whether a file may hold an ensemble: the models of one may not, so that files nest at most this
/// deep.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Whole,
    OfEnsemble,
}

/// The header.
#[derive(Serialize, Deserialize)]
struct Header {
    params: LearnParams,
    alphabet: Alphabet,
    episodes: u64,
    steps: u64,
    skipped: u64,
    ngram_length: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refined: Option<LatentHeader>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mixture: Option<MixtureHeader>,
    /// The network that the model predicts by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recurrent: Option<NetworkHeader>,
    /// Number of other models in an ensemble, trained on all logs and on halves; each is a file
    /// within the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ensemble: Option<[usize; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    #[serde(default, skip_serializing_if = "Schema::is_empty")]
    schema: Schema,
}

/// The part of a header about a mixture.
#[derive(Serialize, Deserialize)]
struct MixtureHeader {
    memory: f64,
    members: Vec<MemberHeader>,
}

/// The part of a header about a member of a mixture.
#[derive(Serialize, Deserialize)]
struct MemberHeader {
    kind: MemberKind,
    weight: f64,
    /// The longest context of an n-gram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length: Option<usize>,
    /// A POMDP other than the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<PomdpHeader>,
    /// A network other than the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<NetworkHeader>,
}

impl Model {
    /// Writes the model to a file, atomically.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        store::write(path, &self.to_bytes())
    }

    /// Reads a model written by [`Model::save`].
    pub fn load(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Model::from_bytes(&bytes, &path.display().to_string())
    }

    /// The model as the bytes of a safetensors file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with([])
    }

    /// The same with other arrays appended.
    pub(crate) fn to_bytes_with(&self, others: impl IntoIterator<Item = Array>) -> Vec<u8> {
        let (origin, ensemble) = (self.origin(), self.ensemble());
        let header = Header {
            params: origin.params.clone(),
            alphabet: self.alphabet().clone(),
            episodes: origin.episodes,
            steps: origin.steps,
            skipped: origin.skipped,
            ngram_length: self.ngram().length,
            refined: self.latent().map(Latent::header),
            mixture: self.mixture().map(mixture_header),
            recurrent: match self.predictor().core() {
                Predictor::Recurrent(net) => Some(net.header()),
                _ => None,
            },
            ensemble: ensemble.map(|ensemble| [ensemble.members.len(), ensemble.halves.len()]),
            encoding: origin.encoding.clone(),
            schema: (*origin.schema).clone(),
        };
        let mut arrays = self.linear().map(linear_arrays).unwrap_or_default();
        let pairs: Vec<u32> = origin.pairs.iter().flat_map(|ao| [ao.action.0, ao.observation.0]).collect();
        let NGram { keys, start, symbols, counts, .. } = self.ngram();
        arrays.extend([
            Array::u32s("pairs", &[origin.pairs.len(), 2], &pairs),
            Array::u64s("pair_counts", &origin.pair_counts),
            Array::u64s("ngram_keys", keys),
            Array::u32s("ngram_start", &[start.len()], start),
            Array::u32s("ngram_symbols", &[symbols.len()], symbols),
            Array::u32s("ngram_counts", &[counts.len()], counts),
        ]);
        arrays.extend(digest_arrays(&origin.digest));
        arrays.extend(self.latent().iter().flat_map(|latent| latent.arrays()));
        if let Predictor::Recurrent(net) = self.predictor().core() {
            arrays.push(net.array("recurrent"));
        }
        arrays.extend(self.mixture().iter().flat_map(|mixture| mixture_arrays(mixture)));
        if let Some(Ensemble { members, halves, .. }) = ensemble {
            for (name, models) in [("member", members), ("half", halves)] {
                let models = models.iter().enumerate();
                arrays.extend(models.map(|(i, model)| Array::bytes(format!("{name}{i}"), model.to_bytes())));
            }
        }
        arrays.extend(others);
        tensors::to_bytes(MODEL, header, &arrays)
    }

    /// An array of bytes that [`to_bytes_with`](Self::to_bytes_with) appended, if there is one.
    pub(crate) fn bytes_within<'a>(bytes: &'a [u8], file: &'a str, name: &str) -> Result<Option<&'a [u8]>> {
        let (_, arrays): (Header, _) = Arrays::open(MODEL, bytes, file)?;
        if arrays.has(name) { arrays.bytes(name).map(Some) } else { Ok(None) }
    }

    /// Reads a model from the bytes of a safetensors file; `file` is named in errors.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Model> {
        Model::read(bytes, file, Depth::Whole)
    }

    fn read(bytes: &[u8], file: &str, depth: Depth) -> Result<Model> {
        let (header, arrays): (Header, _) = Arrays::open(MODEL, bytes, file)?;
        let Header {
            params,
            alphabet,
            episodes,
            steps,
            skipped,
            ngram_length,
            refined,
            mixture,
            recurrent,
            ensemble,
            encoding,
            schema,
        } = header;
        params.validate().map_err(|e| arrays.damaged(&e.to_string()))?;
        let pairs: Vec<_> = arrays.rows("pairs", 2)?.chunks_exact(2).map(|ao| ActionObservation::new(ao[0], ao[1])).collect();
        check_pairs(&arrays, &pairs, &alphabet)?;
        let pair_counts = arrays.sized("pair_counts", arrays.u64s("pair_counts")?, pairs.len())?;
        check_counts(&arrays, &pair_counts, [episodes, steps, skipped])?;
        let linear = match arrays.has("initial") {
            true => Some(read_linear(&arrays, pairs.clone(), &pair_counts, &alphabet)?),
            false => None,
        };
        let core = match (refined, linear) {
            (None, _) if recurrent.is_some() => {
                let header = recurrent.expect("it was checked");
                Predictor::Recurrent(Box::new(Recurrent::read("recurrent", header, &alphabet, &arrays)?))
            }
            (Some(header), Some(linear)) => Predictor::Latent(Box::new(Latent::read(header, linear, &alphabet, &arrays)?)),
            (None, Some(linear)) => Predictor::Linear(linear),
            (None, None) => Predictor::NGram,
            (Some(_), None) => return Err(arrays.damaged("it has latent states and no linear model")),
        };
        let alone = match mixture {
            Some(header) => {
                let mixture = read_mixture(&arrays, header, &core, &alphabet)?;
                Predictor::Mixture(Box::new(core), mixture)
            }
            None => core,
        };
        let predictor = match ensemble {
            Some(_) if depth == Depth::OfEnsemble => return Err(arrays.damaged("a model of its ensemble is an ensemble itself")),
            Some(sizes) => Predictor::Ensemble(read_ensemble(&arrays, alone, sizes, &alphabet, file)?),
            None => alone,
        };
        let ngram = ngram(&arrays, ngram_length, alphabet.observations().len())?;
        let (schema, digest) = (Arc::new(schema), Arc::new(read_digest(&arrays)?));
        let note = arrays.note();
        let origin = Origin { params, episodes, steps, skipped, pairs, pair_counts, encoding, schema, digest, note };
        Ok(Model::new(alphabet, origin, ngram, predictor))
    }
}

/// The arrays of a digest, if it is not empty.
pub(crate) fn digest_arrays(digest: &Digest) -> Vec<Array> {
    if digest.is_empty() {
        return Vec::new();
    }
    let (keys, counts) = digest.to_arrays();
    vec![Array::u64s("episode_keys", &keys), Array::u32s("episode_counts", &[counts.len()], &counts)]
}

/// The digest of a file; empty if it has none.
pub(crate) fn read_digest(arrays: &Arrays<'_>) -> Result<Digest> {
    if !arrays.has("episode_keys") {
        return Ok(Digest::default());
    }
    Digest::from_arrays(&arrays.u64s("episode_keys")?, &arrays.u32s("episode_counts")?)
        .ok_or_else(|| arrays.damaged("the hashes of its episodes are not in order"))
}

fn mixture_header(mixture: &Mixture) -> MixtureHeader {
    let header = |Member { weight, part }: &Member| MemberHeader {
        kind: part.kind(),
        weight: *weight,
        length: if let Part::NGram(length) = part { Some(*length) } else { None },
        other: if let Part::Other(candidate, pomdp) = part { Some(PomdpHeader::of(*candidate, pomdp)) } else { None },
        network: if let Part::Recurrent(net) = part { Some(net.header()) } else { None },
    };
    MixtureHeader { memory: mixture.memory, members: mixture.members.iter().map(header).collect() }
}

/// The arrays of the POMDPs and networks of a mixture; their names begin with `mixture` and their place in it.
fn mixture_arrays(mixture: &Mixture) -> Vec<Array> {
    let others = mixture.members.iter().enumerate().filter_map(|(i, member)| match &member.part {
        Part::Other(_, pomdp) => Some(pomdp_arrays(&format!("mixture{i}"), pomdp)),
        Part::Recurrent(net) => Some(vec![net.array(&format!("mixture{i}"))]),
        _ => None,
    });
    others.flatten().collect()
}

fn read_mixture(arrays: &Arrays<'_>, header: MixtureHeader, core: &Predictor, alphabet: &Alphabet) -> Result<Mixture> {
    let mut members = Vec::new();
    for (i, MemberHeader { kind, weight, length, other, network }) in header.members.into_iter().enumerate() {
        let part = match (kind, length, other, core) {
            (MemberKind::Recurrent, None, None, _) if network.is_some() => {
                let header = network.expect("it was checked");
                Part::Recurrent(Box::new(Recurrent::read(&format!("mixture{i}"), header, alphabet, arrays)?))
            }
            (MemberKind::NGram, Some(length), None, _) => Part::NGram(length),
            (MemberKind::Linear, None, None, Predictor::Linear(_) | Predictor::Latent(_)) => Part::Linear,
            (MemberKind::Latent, None, None, Predictor::Latent(_)) => Part::Latent,
            (MemberKind::Latent, None, Some(header), _) => {
                let candidate = header.candidate;
                Part::Other(candidate, Box::new(read_pomdp(&format!("mixture{i}"), header, alphabet, arrays)?))
            }
            _ => return Err(arrays.damaged("its mixture has a member that is not there")),
        };
        members.push(Member { weight, part });
    }
    let may_be_twice = |part: &Part| matches!(part, Part::Other(..) | Part::Recurrent(_));
    let twice = |part: &Part| !may_be_twice(part) && members.iter().filter(|other| other.part == *part).count() > 1;
    let total: f64 = members.iter().map(|member| member.weight).sum();
    let positive = members.iter().all(|member| member.weight > 0.0);
    let fits = positive && (total - 1.0).abs() < WEIGHT_ERROR && (0.0..=1.0).contains(&header.memory);
    match fits && !members.iter().any(|member| twice(&member.part)) {
        true => Ok(Mixture { members, memory: header.memory }),
        false => Err(arrays.damaged("the weights of its mixture are no probabilities")),
    }
}

fn linear_arrays(linear: &Linear) -> Vec<Array> {
    let (d, n) = (linear.rank(), linear.pairs.len());
    vec![
        Array::f64s("initial", &[d], &linear.initial),
        Array::f64s("normalizer", &[d], &linear.normalizer),
        Array::f64s("operators", &[n, d, d], &linear.operators),
        Array::f64s("readouts", &[n, d], &linear.readouts),
        Array::f64s("mean_states", &[n, d], &linear.mean_states),
        Array::f64s("spectrum", &[linear.spectrum.len()], &linear.spectrum),
    ]
}

fn read_linear(arrays: &Arrays<'_>, pairs: Vec<ActionObservation>, counts: &[u64], alphabet: &Alphabet) -> Result<Linear> {
    let initial = arrays.f64s("initial")?;
    let (d, n) = (initial.len(), pairs.len());
    if d == 0 {
        return Err(arrays.damaged("its state has no dimensions"));
    }
    let linear = Linear {
        normalizer: arrays.sized("normalizer", arrays.f64s("normalizer")?, d)?,
        operators: arrays.sized("operators", arrays.f64s("operators")?, n * d * d)?,
        readouts: arrays.sized("readouts", arrays.f64s("readouts")?, n * d)?,
        mean_states: arrays.sized("mean_states", arrays.f64s("mean_states")?, n * d)?,
        spectrum: arrays.f64s("spectrum")?,
        initial,
        pairs,
        derived: Default::default(),
    };
    Ok(linear.derived(counts, alphabet.actions().len()))
}

fn read_ensemble(
    arrays: &Arrays<'_>,
    own: Predictor,
    [members, halves]: [usize; 2],
    alphabet: &Alphabet,
    file: &str,
) -> Result<Ensemble> {
    let read = |name: &str, n: usize| -> Result<Vec<Model>> {
        (0..n).map(|i| Model::read(arrays.bytes(&format!("{name}{i}"))?, file, Depth::OfEnsemble)).collect()
    };
    if halves == 0 {
        return Err(arrays.damaged("its ensemble has no models of halves of the logs"));
    }
    let ensemble = Ensemble { own: Box::new(own), members: read("member", members)?, halves: read("half", halves)? };
    let mut others = ensemble.members.iter().chain(&ensemble.halves);
    match others.any(|model| model.alphabet() != alphabet) {
        true => Err(arrays.damaged("the models of its ensemble have different alphabets")),
        false => Ok(ensemble),
    }
}

fn ngram(arrays: &Arrays<'_>, length: usize, symbols: usize) -> Result<NGram> {
    if length > MOST_NGRAM {
        return Err(arrays.damaged(&format!("its n-gram has contexts of {length} steps, and at most {MOST_NGRAM} are possible")));
    }
    let keys = arrays.u64s("ngram_keys")?;
    let start = arrays.sized("ngram_start", arrays.u32s("ngram_start")?, keys.len() + 1)?;
    let observed = arrays.u32s("ngram_symbols")?;
    let counts = arrays.sized("ngram_counts", arrays.u32s("ngram_counts")?, observed.len())?;
    let ascending = |range: &[u32]| {
        let (first, end) = (range[0] as usize, range[1] as usize);
        first < end && observed.get(first..end).is_some_and(|symbols| symbols.is_sorted_by(|x, y| x < y))
    };
    let ordered = keys.is_sorted_by(|x, y| x < y) && start[0] == 0 && start.windows(2).all(ascending);
    if !ordered || start[keys.len()] as usize != observed.len() || observed.iter().any(|&o| o as usize >= symbols) {
        return Err(arrays.damaged("the n-gram points outside its arrays"));
    }
    match counts.contains(&0) {
        false => Ok(NGram { length, keys, start, symbols: observed, counts }),
        true => Err(arrays.damaged("the n-gram counts what was never seen")),
    }
}

/// Counts of pairs, and of episodes, steps and episodes that were skipped.
fn check_counts(arrays: &Arrays<'_>, pairs: &[u64], others: [u64; 3]) -> Result<()> {
    let sum = pairs.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
    let fits = others.iter().all(|n| *n <= MOST_COUNT) && sum.is_some_and(|sum| sum <= others[1]) && !pairs.contains(&0);
    match fits {
        true => Ok(()),
        false => Err(arrays.damaged("the counts of its pairs do not fit its number of steps")),
    }
}

fn check_pairs(arrays: &Arrays<'_>, pairs: &[ActionObservation], alphabet: &Alphabet) -> Result<()> {
    let (actions, observations) = (alphabet.actions().len(), alphabet.observations().len());
    let sorted = pairs.windows(2).all(|w| w[0] < w[1]);
    let known = pairs.iter().all(|ao| ao.action.index() < actions && ao.observation.index() < observations);
    match sorted && known && !pairs.is_empty() {
        true => Ok(()),
        false => Err(arrays.damaged("its pairs do not match its alphabet")),
    }
}
