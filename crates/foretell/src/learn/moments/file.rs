//! Moments as bytes: in model files and in checkpoints.

use std::path::Path;

use faer::Mat;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{BoundaryEpisodes, Factors, Moments, OperatorStore, WideOperators, padded};
use crate::data::{ActionObservation, Alphabet, CutRule, End, Episodes, Observation, Overlap, Vocabulary};
use crate::error::{Error, Result};
use crate::learn::bases::{MOST_WIDTH, Span, Wide};
use crate::learn::features::{Features, Side};
use crate::learn::operators::Operator;
use crate::learn::pairs::{Entries, PairSums, PerPair, array_size};
use crate::learn::source::empty_batch;
use crate::learn::sums::{Accumulator, Counts, LANES, Layout, LayoutKind, Map, Sums, Wanted};
use crate::learn::survey::Survey;
use crate::model::{LearnParams, MOST_COUNT, Model};
use crate::store;
use crate::store::tensors::{self, Array, Arrays, Kind};

const MOMENTS: Kind = Kind { name: "set of moments", again: "learn the model again" };

/// Arrays of more numbers than this (256 MiB) are unfolded to at most so many times what a file holds
/// of them.
const MOST_UNFOLDED: usize = 1 << 25;
const MOST_TIMES: usize = 1024;

#[derive(Serialize, Deserialize)]
struct Header {
    params: LearnParams,
    alphabet: Alphabet,
    episodes: u64,
    steps: u64,
    skipped: u64,
    longest_truncated: Option<usize>,
    overlap: Overlap,
    ngram_zeros: Vec<u32>,
    room: usize,
    limit: Option<usize>,
    kept: KeptKind,
    has_factors: bool,
    width: usize,
    late_is_full: bool,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeptKind {
    Nothing,
    Pairs,
    Cores,
}

/// The name of the array of a model file that holds moments.
const ARRAY: &str = "moments";

impl Model {
    /// [`Model::save`] with the moments that it was computed from, so that other logs can be added.
    pub fn save_with_moments(&self, moments: &Moments, path: impl AsRef<Path>) -> Result<()> {
        store::write(path, &self.to_bytes_with_moments(moments))
    }

    /// The bytes that [`Model::save_with_moments`] writes.
    pub fn to_bytes_with_moments(&self, moments: &Moments) -> Vec<u8> {
        self.to_bytes_with([Array::bytes(ARRAY, moments.to_bytes())])
    }
}

impl Moments {
    /// Reads the moments in a model file.
    pub fn load(path: impl AsRef<Path>) -> Result<Moments> {
        let path = path.as_ref();
        Moments::load_kept(path)?.ok_or_else(|| Error::NoMoments { file: path.display().to_string() })
    }

    /// [`Moments::load`]; `None` if the file contains none.
    pub fn load_kept(path: impl AsRef<Path>) -> Result<Option<Moments>> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Moments::kept_in(&bytes, &path.display().to_string())
    }

    /// [`Moments::load_kept`] from the bytes of a model file; `file` is named in errors.
    pub fn kept_in(bytes: &[u8], file: &str) -> Result<Option<Moments>> {
        Model::bytes_within(bytes, file, ARRAY)?.map(|bytes| Moments::from_bytes(bytes, file)).transpose()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let survey = &self.survey;
        let kept = match &self.kept {
            OperatorStore::Nothing => KeptKind::Nothing,
            OperatorStore::PerPair(_) => KeptKind::Pairs,
            OperatorStore::Wide(_) => KeptKind::Cores,
        };
        let header = Header {
            params: self.params.clone(),
            alphabet: survey.alphabet.clone(),
            episodes: survey.episodes,
            steps: survey.steps,
            skipped: survey.skipped,
            longest_truncated: survey.longest_truncated,
            overlap: survey.overlap,
            ngram_zeros: survey.counter.levels.iter().map(|level| level.zeros).collect(),
            room: self.rule.room,
            limit: self.rule.limit,
            kept,
            has_factors: matches!(&self.kept, OperatorStore::Wide(cores) if cores.factors.is_some()),
            width: self.width,
            late_is_full: self.boundary.is_full,
        };
        let pairs = survey.pairs();
        let counts: Vec<u64> = pairs.iter().map(|ao| survey.counts[ao]).collect();
        let mut arrays = vec![Array::u32s("pairs", &[pairs.len(), 2], &numbers(&pairs)), Array::u64s("pair_counts", &counts)];
        for level in &survey.counter.levels {
            let mut entries: Vec<_> = level.counts.iter().collect();
            entries.sort_unstable();
            let name = |what: &str| format!("ngram{}.{what}", level.length);
            arrays.push(Array::u64s(name("contexts"), &entries.iter().map(|((context, _), _)| *context).collect::<Vec<_>>()));
            let symbols: Vec<u32> = entries.iter().map(|((_, o), _)| o.0).collect();
            arrays.push(Array::u32s(name("symbols"), &[symbols.len()], &symbols));
            let counts: Vec<u32> = entries.iter().map(|(_, n)| **n).collect();
            arrays.push(Array::u32s(name("counts"), &[counts.len()], &counts));
        }
        for (name, side) in [("tests", &self.features.tests), ("histories", &self.features.histories)] {
            let nodes = side.vocabulary.nodes();
            let numbers: Vec<u32> = nodes.iter().flat_map(|(parent, ao)| [*parent, ao.action.0, ao.observation.0]).collect();
            arrays.push(Array::u32s(format!("words.{name}"), &[nodes.len(), 3], &numbers));
        }
        write_sums(&mut arrays, &self.sums);
        match &self.kept {
            OperatorStore::Nothing => {}
            OperatorStore::PerPair(kept) => write_pairs(&mut arrays, kept, &pairs, &self.features),
            OperatorStore::Wide(cores) => write_cores(&mut arrays, cores, &pairs, &self.features),
        }
        write_episodes(&mut arrays, "late", &self.boundary.episodes);
        tensors::to_bytes(MOMENTS, header, &arrays)
    }

    pub(crate) fn from_bytes(bytes: &[u8], file: &str) -> Result<Moments> {
        let (header, arrays): (Header, _) = Arrays::open(MOMENTS, bytes, file)?;
        let params = header.params;
        params.validate().map_err(|e| arrays.damaged(&e.to_string()))?;
        let alphabet = header.alphabet;
        let pairs = pairs_of(&arrays, "pairs", &alphabet)?;
        if !pairs.is_sorted_by(|x, y| x < y) {
            return Err(arrays.damaged("its pairs are not in order"));
        }
        let mut survey = Survey::new(alphabet.clone(), params.ngram_length);
        let counts = arrays.sized("pair_counts", arrays.u64s("pair_counts")?, pairs.len())?;
        survey.counts = pairs.iter().copied().zip(counts).collect();
        // Steps whose observation is missing are of no pair.
        let sum = survey.counts.values().try_fold(0, |sum: u64, n| sum.checked_add(*n));
        let known = [header.episodes, header.steps, header.skipped].iter().all(|n| *n <= MOST_COUNT);
        if !(known && header.overlap.is_within(header.steps) && sum.is_some_and(|sum| sum <= header.steps)) {
            return Err(arrays.damaged("its pairs do not add up to its steps"));
        }
        if header.width == 0 || header.width > MOST_WIDTH {
            return Err(arrays.damaged(&format!("its bases are {} times as wide as the model's", header.width)));
        }
        (survey.episodes, survey.steps, survey.skipped) = (header.episodes, header.steps, header.skipped);
        (survey.longest_truncated, survey.overlap) = (header.longest_truncated, header.overlap);
        if header.ngram_zeros.len() != survey.counter.levels.len() || header.ngram_zeros.iter().any(|zeros| *zeros > u64::BITS) {
            return Err(arrays.damaged("its n-gram has other contexts than its parameters say"));
        }
        for (level, zeros) in survey.counter.levels.iter_mut().zip(header.ngram_zeros) {
            let name = |what: &str| format!("ngram{}.{what}", level.length);
            let contexts = arrays.u64s(&name("contexts"))?;
            let symbols = arrays.sized("ngram", arrays.u32s(&name("symbols"))?, contexts.len())?;
            let counts = arrays.sized("ngram", arrays.u32s(&name("counts"))?, contexts.len())?;
            if symbols.iter().any(|&o| o as usize >= alphabet.observations().len()) {
                return Err(arrays.damaged("the n-gram has symbols that are not in the alphabet"));
            }
            let keys = contexts.into_iter().zip(symbols.into_iter().map(Observation));
            (level.zeros, level.counts) = (zeros, keys.zip(counts).collect());
        }
        let mut features = Features::new(&params, &alphabet);
        read_words(&arrays, "tests", &mut features.tests, &alphabet)?;
        read_words(&arrays, "histories", &mut features.histories, &alphabet)?;
        let sums = read_sums(&arrays, super::wanted(&params), &features)?;
        let kept = match header.kept {
            KeptKind::Nothing => OperatorStore::Nothing,
            KeptKind::Pairs => OperatorStore::PerPair(read_pairs(&arrays, &features, &pairs)?),
            KeptKind::Cores => OperatorStore::Wide(Box::new(read_cores(&arrays, &features, &pairs, header.has_factors)?)),
        };
        let mut episodes = empty_batch(params.weighting);
        read_episodes(&arrays, "late", &alphabet, &mut episodes)?;
        let boundary = BoundaryEpisodes { episodes, is_full: header.late_is_full };
        let rule = CutRule { room: header.room, limit: header.limit };
        Ok(Moments { params, survey, features, rule, sums, kept, width: header.width, boundary })
    }
}

fn numbers(pairs: &[ActionObservation]) -> Vec<u32> {
    pairs.iter().flat_map(|ao| [ao.action.0, ao.observation.0]).collect()
}

fn pairs_of(arrays: &Arrays<'_>, name: &str, alphabet: &Alphabet) -> Result<Vec<ActionObservation>> {
    let pairs: Vec<_> = arrays.rows(name, 2)?.chunks_exact(2).map(|ao| ActionObservation::new(ao[0], ao[1])).collect();
    check_pairs(arrays, &pairs, alphabet)?;
    Ok(pairs)
}

fn check_pairs(arrays: &Arrays<'_>, pairs: &[ActionObservation], alphabet: &Alphabet) -> Result<()> {
    let (actions, observations) = (alphabet.actions().len() as u32, alphabet.observations().len() as u32);
    match pairs.iter().all(|ao| ao.action.0 < actions && ao.observation.0 < observations) {
        true => Ok(()),
        false => Err(arrays.damaged("its pairs do not match its alphabet")),
    }
}

/// Like [`check_pairs`], for steps whose observation may be missing.
fn check_steps(arrays: &Arrays<'_>, steps: &[ActionObservation], alphabet: &Alphabet) -> Result<()> {
    let seen: Vec<_> = steps.iter().filter(|ao| !ao.observation.is_missing()).copied().collect();
    let actions = alphabet.actions().len();
    match steps.iter().all(|ao| ao.action.index() < actions) {
        true => check_pairs(arrays, &seen, alphabet),
        false => Err(arrays.damaged("its episodes have actions that it does not know")),
    }
}

fn read_words(arrays: &Arrays<'_>, name: &str, side: &mut Side, alphabet: &Alphabet) -> Result<()> {
    let numbers = arrays.rows(&format!("words.{name}"), 3)?;
    let mut words = Vocabulary::default();
    for (node, word) in (1..).zip(numbers.chunks_exact(3)) {
        let ao = ActionObservation::new(word[1], word[2]);
        check_pairs(arrays, &[ao], alphabet)?;
        if u64::from(word[0]) >= node || words.intern(u64::from(word[0]), ao) != node {
            return Err(arrays.damaged("its sequences are not in order"));
        }
    }
    side.vocabulary = words;
    Ok(())
}

/// Whether so many of the numbers of an array may be all that a file holds of it: the memory that
/// reading takes stays within a bound that depends on the size of the file.
fn may_be_sparse(others: usize, size: usize) -> bool {
    size <= MOST_UNFOLDED || size / MOST_TIMES <= others
}

/// `size` numbers of which many may be zero, and all are if there are no values: as non-zeros with
/// their indices, if that is shorter.
fn write_numbers(arrays: &mut Vec<Array>, name: &str, values: &[f64], size: usize) {
    let at: Vec<u64> = (0..).zip(values).filter(|(_, x)| x.to_bits() != 0).map(|(i, _)| i).collect();
    let is_zero = values.is_empty() && size > 0;
    if is_zero || 2 * at.len() < size && may_be_sparse(at.len(), size) {
        let others: Vec<f64> = at.iter().map(|&i| values[i as usize]).collect();
        arrays.push(Array::u64s(format!("{name}.at"), &at));
        arrays.push(Array::f64s(format!("{name}.values"), &[others.len()], &others));
    } else {
        arrays.push(Array::f64s(name, &[values.len()], values));
    }
}

fn read_numbers(arrays: &Arrays<'_>, name: &str, size: usize) -> Result<Vec<f64>> {
    if arrays.has(name) {
        return arrays.sized(name, arrays.f64s(name)?, size);
    }
    let (at, others) = numbers_of(arrays, name)?;
    if !may_be_sparse(at.len(), size) {
        return Err(arrays.damaged(&format!("array {name} would have {size} numbers, of which the file holds {}", at.len())));
    }
    let mut values = vec![0.0; size];
    for (i, x) in at.into_iter().zip(others) {
        *values.get_mut(i as usize).ok_or_else(|| arrays.damaged(&format!("{name} points outside its array")))? = x;
    }
    Ok(values)
}

/// The non-zeros of an array: where they are, and their values.
fn numbers_of(arrays: &Arrays<'_>, name: &str) -> Result<(Vec<u64>, Vec<f64>)> {
    let at = arrays.u64s(&format!("{name}.at"))?;
    let others = arrays.sized(name, arrays.f64s(&format!("{name}.values"))?, at.len())?;
    Ok((at, others))
}

fn write_sums(arrays: &mut Vec<Array>, sums: &Accumulator) {
    let of = |lanes: &[&Sums], arrays: &mut Vec<Array>| {
        for (i, lane) in lanes.iter().enumerate() {
            for ((name, values), size) in [("th", &lane.th), ("tt", &lane.tt), ("hh", &lane.hh)].into_iter().zip(lane.sizes()) {
                write_numbers(arrays, &format!("sums{i}.{name}"), values, size);
            }
        }
    };
    match &sums.layout {
        Layout::Buckets(lanes) => of(&lanes.iter().collect::<Vec<_>>(), arrays),
        Layout::Dense(sums, _) => of(&[sums], arrays),
        Layout::Counts(Counts { th, tt, hh }) => {
            for (name, map) in [("th", th), ("tt", tt), ("hh", hh)] {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(at, _)| **at);
                let at: Vec<u32> = entries.iter().flat_map(|((i, j), _)| [*i, *j]).collect();
                let values: Vec<f64> = entries.iter().map(|(_, x)| **x).collect();
                arrays.push(Array::u32s(format!("counts.{name}.at"), &[values.len(), 2], &at));
                arrays.push(Array::f64s(format!("counts.{name}.values"), &[values.len()], &values));
            }
        }
    }
}

/// Nothing is allocated before it is known what the file holds of it.
fn read_sums(arrays: &Arrays<'_>, wanted: Wanted, features: &Features) -> Result<Accumulator> {
    let (d_t, d_h) = (features.tests.rows(), features.histories.rows());
    let layout = match Layout::kind(features) {
        LayoutKind::Buckets => {
            Layout::Buckets((0..LANES).map(|i| read_lane(arrays, i, wanted, d_t, d_h)).collect::<Result<_>>()?)
        }
        LayoutKind::Dense => Layout::Dense(read_lane(arrays, 0, wanted, d_t, d_h)?, Default::default()),
        LayoutKind::Counts => {
            let th = read_counts(arrays, "th", d_t, d_h)?;
            Layout::Counts(Counts { th, tt: read_counts(arrays, "tt", d_t, d_t)?, hh: read_counts(arrays, "hh", d_h, d_h)? })
        }
    };
    Ok(Accumulator { wanted, layout })
}

fn read_lane(arrays: &Arrays<'_>, i: usize, wanted: Wanted, d_t: usize, d_h: usize) -> Result<Sums> {
    let empty = Sums::empty(d_t, d_h, wanted);
    let [th, tt, hh] = empty.sizes();
    let all = [("th", th), ("tt", tt), ("hh", hh)].map(|(name, size)| (format!("sums{i}.{name}"), size));
    let is_zero = |(name, size): &(String, usize)| match *size {
        0 => Ok(arrays.f64s(name)?.is_empty()),
        _ => Ok(!arrays.has(name) && numbers_of(arrays, name)?.0.is_empty()),
    };
    if i > 0 && all.iter().map(is_zero).collect::<Result<Vec<bool>>>()?.into_iter().all(|is_zero| is_zero) {
        return Ok(empty);
    }
    let read = |(name, size): &(String, usize)| read_numbers(arrays, name, *size);
    Ok(Sums::of(d_t, d_h, wanted, [read(&all[0])?, read(&all[1])?, read(&all[2])?]))
}

fn read_counts(arrays: &Arrays<'_>, name: &str, rows: usize, columns: usize) -> Result<Map> {
    let at = arrays.rows(&format!("counts.{name}.at"), 2)?;
    let values = arrays.sized(name, arrays.f64s(&format!("counts.{name}.values"))?, at.len() / 2)?;
    let places = at.chunks_exact(2).map(|at| (at[0], at[1]));
    match places.clone().any(|(i, j)| i as usize >= rows || j as usize >= columns) {
        true => Err(arrays.damaged("it counts sequences that it does not contain")),
        false => Ok(places.zip(values).collect()),
    }
}

/// Pairs that were seen but not summed yet have zeros.
fn write_pairs(arrays: &mut Vec<Array>, kept: &PerPair, pairs: &[ActionObservation], features: &Features) {
    let weights: Vec<f64> = pairs.iter().map(|ao| kept.of(*ao).map_or(0.0, |sums| sums.weight)).collect();
    arrays.push(Array::f64s("pair_weights", &[pairs.len()], &weights));
    let (mut start, mut keys, mut values, mut all) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for ao in pairs {
        match kept.of(*ao).map(|sums| &sums.entries) {
            Some(Entries::Array(array)) => all.extend_from_slice(array),
            Some(Entries::Map(map)) => {
                let entries = Entries::sorted(map);
                keys.extend(entries.iter().map(|(key, _)| *key));
                values.extend(entries.iter().map(|(_, x)| *x));
            }
            None => all.resize(all.len() + array_size(features).unwrap_or(0), 0.0),
        }
        start.push(keys.len() as u64);
    }
    if array_size(features).is_some() {
        return write_numbers(arrays, "pair_sums", &all, all.len());
    }
    arrays.push(Array::u64s("pair_start", &start));
    arrays.push(Array::u64s("pair_keys", &keys));
    arrays.push(Array::f64s("pair_values", &[values.len()], &values));
}

fn read_pairs(arrays: &Arrays<'_>, features: &Features, pairs: &[ActionObservation]) -> Result<PerPair> {
    let weights = arrays.sized("pair_weights", arrays.f64s("pair_weights")?, pairs.len())?;
    let entries = match array_size(features) {
        Some(size) => {
            let all = size.checked_mul(pairs.len()).ok_or_else(|| arrays.damaged("its moments of pairs fit no memory"))?;
            let all = read_numbers(arrays, "pair_sums", all)?;
            all.chunks_exact(size).map(|values| Entries::Array(values.to_vec())).collect()
        }
        None => read_maps(arrays, features, pairs.len())?,
    };
    let sums = entries.into_iter().zip(weights).map(|(entries, weight)| PairSums { entries, weight }).collect();
    Ok(PerPair::from_sums(features, pairs, sums))
}

/// The moments of `n` pairs as maps.
fn read_maps(arrays: &Arrays<'_>, features: &Features, n: usize) -> Result<Vec<Entries>> {
    let start = arrays.sized("pair_start", arrays.u64s("pair_start")?, n + 1)?;
    let keys = arrays.u64s("pair_keys")?;
    let values = arrays.sized("pair_values", arrays.f64s("pair_values")?, keys.len())?;
    let read = |range: &[u64]| {
        let range = range[0] as usize..range[1] as usize;
        let (Some(keys), Some(values)) = (keys.get(range.clone()), values.get(range)) else {
            return Err(arrays.damaged("the moments of pairs point outside their arrays"));
        };
        if keys.iter().any(|&key| !crate::learn::pairs::is_within(key, features)) {
            return Err(arrays.damaged("the moments of pairs refer to sequences that it does not contain"));
        }
        let map: FxHashMap<u64, f64> = keys.iter().copied().zip(values.iter().copied()).collect();
        Ok(Entries::Map(map))
    };
    match start.is_sorted() {
        true => start.windows(2).map(read).collect(),
        false => Err(arrays.damaged("the moments of pairs are not in order")),
    }
}

fn write_matrix(arrays: &mut Vec<Array>, name: &str, matrix: &Mat<f64>) {
    let values: Vec<f64> = (0..matrix.nrows()).flat_map(|i| (0..matrix.ncols()).map(move |j| matrix[(i, j)])).collect();
    arrays.push(Array::f64s(name, &[matrix.nrows(), matrix.ncols()], &values));
}

fn read_matrix(arrays: &Arrays<'_>, name: &str, rows: usize) -> Result<Mat<f64>> {
    let values = arrays.f64s(name)?;
    let columns = values.len().checked_div(rows).unwrap_or(0);
    if rows * columns != values.len() {
        return Err(arrays.damaged(&format!("array {name} has {} values in {rows} rows", values.len())));
    }
    Ok(Mat::from_fn(rows, columns, |i, j| values[i * columns + j]))
}

pub(crate) fn write_operators(arrays: &mut Vec<Array>, operators: &[Operator]) {
    let n = operators.len();
    let matrices: Vec<f64> =
        operators.iter().flat_map(|o| (0..o.matrix.ncols()).flat_map(|j| o.matrix.col_as_slice(j))).copied().collect();
    let states: Vec<f64> = operators.iter().flat_map(|o| &o.state).copied().collect();
    let readouts: Vec<f64> = operators.iter().flat_map(|o| &o.readout).copied().collect();
    let weights: Vec<f64> = operators.iter().map(|o| o.weight).collect();
    arrays.push(Array::f64s("operators.matrices", &[matrices.len()], &matrices));
    arrays.push(Array::f64s("operators.states", &[states.len()], &states));
    arrays.push(Array::f64s("operators.readouts", &[readouts.len()], &readouts));
    arrays.push(Array::f64s("operators.weights", &[n], &weights));
}

/// `n` operators with `rows` × `columns` matrices.
pub(crate) fn read_operators(arrays: &Arrays<'_>, n: usize, rows: usize, columns: usize) -> Result<Vec<Operator>> {
    // Sizes beyond any memory fit no array.
    let read = |name: &str, size: usize| arrays.sized(name, arrays.f64s(name)?, n.saturating_mul(size));
    let (states, readouts) = (read("operators.states", rows)?, read("operators.readouts", columns)?);
    let (matrices, weights) = (read("operators.matrices", rows.saturating_mul(columns))?, read("operators.weights", 1)?);
    let operator = |i: usize| Operator {
        matrix: Mat::from_fn(rows, columns, |r, c| matrices[(i * columns + c) * rows + r]),
        state: states[i * rows..(i + 1) * rows].to_vec(),
        readout: readouts[i * columns..(i + 1) * columns].to_vec(),
        weight: weights[i],
    };
    Ok((0..n).map(operator).collect())
}

/// Sequences and pairs that were seen but not summed yet have zeros.
fn write_cores(arrays: &mut Vec<Array>, cores: &WideOperators, pairs: &[ActionObservation], features: &Features) {
    let Wide { tests, histories } = &cores.wide;
    for (name, span, side) in [("tests", tests, &features.tests), ("histories", histories, &features.histories)] {
        write_matrix(arrays, &format!("wide.{name}"), &padded(&span.basis, side.rows()));
        if cores.factors.is_none() {
            write_matrix(arrays, &format!("wide.{name}.dual"), &padded(&span.dual, side.rows()));
        }
    }
    let zero = Operator::zero(tests.basis.ncols(), histories.basis.ncols());
    let of = |ao| cores.operators.get(ao).cloned().unwrap_or_else(|| zero.clone());
    let operators: Vec<Operator> = pairs.iter().map(of).collect();
    write_operators(arrays, &operators);
    if let Some(Factors { s, histories }) = &cores.factors {
        arrays.push(Array::f64s("factors.s", &[s.len()], s));
        let mut histories = histories.clone();
        histories.resize(features.histories.rows(), 0.0);
        arrays.push(Array::f64s("factors.histories", &[histories.len()], &histories));
    }
}

fn read_cores(arrays: &Arrays<'_>, features: &Features, pairs: &[ActionObservation], has_factors: bool) -> Result<WideOperators> {
    let span = |name: &str, side: &Side| -> Result<Span> {
        let basis = read_matrix(arrays, &format!("wide.{name}"), side.rows())?;
        if has_factors {
            return Ok(Span::orthonormal(basis));
        }
        let dual = read_matrix(arrays, &format!("wide.{name}.dual"), side.rows())?;
        match dual.ncols() == basis.ncols() {
            true => Ok(Span { basis, dual }),
            false => Err(arrays.damaged(&format!("the basis of {name} and its dual differ in size"))),
        }
    };
    let wide = Wide { tests: span("tests", &features.tests)?, histories: span("histories", &features.histories)? };
    let (k_t, k_h) = (wide.tests.basis.ncols(), wide.histories.basis.ncols());
    if k_t == 0 || k_h == 0 || (has_factors && k_t != k_h) {
        return Err(arrays.damaged(&format!("its bases have {k_t} and {k_h} directions")));
    }
    let operators = read_operators(arrays, pairs.len(), k_t, k_h)?;
    let factors = has_factors.then(|| -> Result<Factors> {
        Ok(Factors {
            s: arrays.sized("factors.s", arrays.f64s("factors.s")?, k_t)?,
            histories: arrays.sized("factors.histories", arrays.f64s("factors.histories")?, features.histories.rows())?,
        })
    });
    Ok(WideOperators { factors: factors.transpose()?, wide, operators: pairs.iter().copied().zip(operators).collect() })
}

pub(crate) fn write_episodes(arrays: &mut Vec<Array>, name: &str, episodes: &Episodes) {
    let lengths: Vec<u64> = episodes.iter().map(|z| z.steps.len() as u64).collect();
    let weights: Vec<f64> = episodes.iter().map(|z| z.weight).collect();
    let steps = numbers(episodes.steps());
    arrays.push(Array::u64s(format!("{name}.lengths"), &lengths));
    arrays.push(Array::f64s(format!("{name}.weights"), &[weights.len()], &weights));
    arrays.push(Array::u32s(format!("{name}.steps"), &[steps.len() / 2, 2], &steps));
    let probabilities = episodes.probabilities();
    arrays.push(Array::f64s(format!("{name}.probabilities"), &[probabilities.len()], probabilities));
}

/// Adds the episodes written by [`write_episodes`], all of them terminated.
pub(crate) fn read_episodes(arrays: &Arrays<'_>, name: &str, alphabet: &Alphabet, episodes: &mut Episodes) -> Result<()> {
    let lengths = arrays.u64s(&format!("{name}.lengths"))?;
    let weights = arrays.sized(name, arrays.f64s(&format!("{name}.weights"))?, lengths.len())?;
    let steps = arrays.rows(&format!("{name}.steps"), 2)?;
    let steps: Vec<_> = steps.chunks_exact(2).map(|ao| ActionObservation::new(ao[0], ao[1])).collect();
    check_steps(arrays, &steps, alphabet)?;
    let probabilities = arrays.f64s(&format!("{name}.probabilities"))?;
    let mut first = 0usize;
    for (length, weight) in lengths.into_iter().zip(weights) {
        let range = first..first.saturating_add(length as usize);
        first = range.end;
        let probabilities = probabilities.get(range.clone()).unwrap_or_default();
        let steps = steps.get(range).ok_or_else(|| arrays.damaged("its episodes are longer than their steps"))?;
        episodes.push_episode(crate::data::Episode { steps, end: End::Terminated, weight, probabilities });
    }
    let kept = episodes.probabilities();
    if first != steps.len() || !probabilities.iter().all(|p| *p > 0.0) {
        return Err(arrays.damaged("its episodes do not fit their steps and the probabilities of actions"));
    }
    match kept.len() == if episodes.has_probabilities() { steps.len() } else { 0 } {
        true => Ok(()),
        false => Err(arrays.damaged("some of its episodes lack the probabilities of actions")),
    }
}
