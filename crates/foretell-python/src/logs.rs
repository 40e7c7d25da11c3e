//! Logs.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchReader, StringArray};
use foretell::log::{ObservationCount, OnBadEpisode, ReadOptions, Writer};
use foretell::{Alphabet, End, ObservationSymbol, Schema, Summary, Trajectory};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::convert::dict;
use crate::error::raised;
use crate::names::name;
use crate::task;

/// The name of tables in memory in errors.
const TABLE: &str = "the table";

/// Episodes to learn from: in files, which are read when needed, or in memory.
#[pyclass(frozen, module = "foretell", name = "Logs")]
pub struct Logs {
    pub logs: foretell::Logs,
    summary: OnceLock<Summary>,
    /// Sentences about columns whose meaning was guessed.
    guessed: Vec<String>,
    loaded: OnceLock<Arc<Loaded>>,
}

/// All episodes, in memory.
struct Loaded {
    alphabet: Alphabet,
    episodes: Vec<Trajectory>,
}

impl From<foretell::Logs> for Logs {
    fn from(logs: foretell::Logs) -> Logs {
        Logs { logs, summary: OnceLock::new(), guessed: Vec::new(), loaded: OnceLock::new() }
    }
}

impl Logs {
    pub fn of(alphabet: Alphabet, episodes: Vec<Trajectory>) -> Logs {
        foretell::Logs::memory(alphabet, episodes).into()
    }

    /// The same, from tables that were read as those of others.
    fn read_as(self, others: &foretell::Logs) -> Logs {
        Logs { logs: self.logs.with_schema(others.schema().clone()), ..self }
    }

    fn loaded(&self, py: Python<'_>) -> PyResult<Arc<Loaded>> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded.clone());
        }
        let logs = self.logs.clone();
        let loaded = task::run(py, None, move |_| {
            let mut reader = logs.open(Alphabet::default())?;
            let episodes = reader.by_ref().collect::<foretell::Result<_>>()?;
            Ok(Loaded { alphabet: reader.into_alphabet(), episodes })
        })?;
        Ok(self.loaded.get_or_init(|| Arc::new(loaded)).clone())
    }

    fn summarised(&self, py: Python<'_>) -> PyResult<&Summary> {
        if let Some(summary) = self.summary.get() {
            return Ok(summary);
        }
        let logs = self.logs.clone();
        let summary = task::run(py, None, move |_| Summary::of(&logs))?;
        Ok(self.summary.get_or_init(|| summary))
    }
}

/// How to read, with a schema in JSON.
fn options(skip_bad_episodes: bool, schema: &str) -> PyResult<ReadOptions> {
    let schema: Schema = serde_json::from_str(schema).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let on_bad = if skip_bad_episodes { OnBadEpisode::Skip } else { OnBadEpisode::Fail };
    Ok(ReadOptions { on_bad, schema: Arc::new(schema) })
}

#[pymethods]
impl Logs {
    /// Logs in files.
    #[staticmethod]
    fn from_files(py: Python<'_>, paths: Vec<PathBuf>, skip_bad_episodes: bool, schema: &str) -> PyResult<Logs> {
        let options = options(skip_bad_episodes, schema)?;
        let (logs, guess) = task::run(py, None, move |_| {
            let (logs, guess) = foretell::Logs::files(paths, options).understood()?;
            let logs = logs.fitted()?;
            logs.open(Alphabet::default())?; // reports invalid files at once
            Ok((logs, guess))
        })?;
        let guessed = guess.map(|guess| [guess.sentences(), guess.doubts].concat()).unwrap_or_default();
        Ok(Logs { guessed, ..logs.into() })
    }

    /// Sentences about columns whose meaning was guessed.
    #[getter]
    fn guessed(&self) -> Vec<String> {
        self.guessed.clone()
    }

    /// What the columns of the tables meant, in JSON.
    #[getter]
    fn schema(&self) -> PyResult<String> {
        serde_json::to_string(&**self.logs.schema()).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// Logs of a table whose columns are NumPy arrays or lists of one length.
    #[staticmethod]
    fn from_columns(py: Python<'_>, columns: &Bound<'_, PyDict>, skip_bad_episodes: bool, schema: &str) -> PyResult<Logs> {
        let columns = columns.iter().map(|(name, values)| Ok((name.extract::<String>()?, column(&values)?)));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
        let batch = batch.map_err(|e| PyValueError::new_err(format!("the columns do not form a table: {e}")))?;
        from_batches(py, vec![batch], options(skip_bad_episodes, schema)?)
    }

    /// Logs of a table that has the Arrow stream interface.
    #[staticmethod]
    fn from_arrow(py: Python<'_>, table: &Bound<'_, PyAny>, skip_bad_episodes: bool, schema: &str) -> PyResult<Logs> {
        let capsule = table.call_method0("__arrow_c_stream__")?;
        let capsule =
            capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__arrow_c_stream__ did not return a capsule"))?;
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: the interface defines what a capsule of that name points to; the reader takes ownership and marks it as
        // released.
        let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr().cast::<FFI_ArrowArrayStream>()) };
        let broken = |e| PyValueError::new_err(format!("the table cannot be read: {e}"));
        let reader = reader.map_err(broken)?;
        let columns = reader.schema();
        let mut batches = reader.collect::<Result<Vec<_>, _>>().map_err(broken)?;
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(columns));
        }
        from_batches(py, batches, options(skip_bad_episodes, schema)?)
    }

    /// Their summary.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, self.summarised(py)?)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.loaded.get() {
            Some(loaded) => Ok(loaded.episodes.len()),
            None => Ok(self.summarised(py)?.episodes as usize),
        }
    }

    /// Names of the actions, in order of first occurrence.
    #[getter]
    fn actions(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.summarised(py)?.actions.iter().map(|action| action.name.clone()).collect())
    }

    /// Names of the observations, in order of first occurrence.
    #[getter]
    fn observations(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let symbol = |o: &ObservationCount| ObservationSymbol { name: o.name.clone(), terminal: o.terminal }.to_string();
        Ok(self.summarised(py)?.observations.iter().map(symbol).collect())
    }

    /// One row for each step: indices of episode, step, action and observation, rewards (NaN if
    /// missing), and how episodes end.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let loaded = self.loaded(py)?;
        let rows: usize = loaded.episodes.iter().map(|z| z.steps.len()).sum();
        let mut episode: Vec<i64> = Vec::with_capacity(rows);
        let mut step: Vec<i64> = Vec::with_capacity(rows);
        let (mut action, mut observation): (Vec<i64>, Vec<i64>) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let mut reward: Vec<f64> = Vec::with_capacity(rows);
        let (mut terminated, mut truncated) = (vec![false; rows], vec![false; rows]);
        let mut probability: Vec<f64> = Vec::with_capacity(rows);
        for (i, z) in loaded.episodes.iter().enumerate() {
            for (t, ao) in z.steps.iter().enumerate() {
                episode.push(i as i64);
                step.push(t as i64);
                action.push(i64::from(ao.action.0));
                observation.push(if ao.observation.is_missing() { -1 } else { i64::from(ao.observation.0) });
                reward.push(z.rewards[t].unwrap_or(f64::NAN));
                probability.push(z.action_probabilities.get(t).copied().unwrap_or(f64::NAN));
            }
            if let Some(last) = episode.len().checked_sub(1).filter(|_| !z.steps.is_empty()) {
                match z.end {
                    End::Terminated => terminated[last] = true,
                    End::Truncated => truncated[last] = true,
                }
            }
        }
        let columns = PyDict::new(py);
        columns.set_item("episode_id", PyArray1::from_vec(py, episode))?;
        columns.set_item("step", PyArray1::from_vec(py, step))?;
        columns.set_item("action", PyArray1::from_vec(py, action))?;
        columns.set_item("observation", PyArray1::from_vec(py, observation))?;
        columns.set_item("reward", PyArray1::from_vec(py, reward))?;
        columns.set_item("terminated", PyArray1::from_vec(py, terminated))?;
        columns.set_item("truncated", PyArray1::from_vec(py, truncated))?;
        columns.set_item("action_prob", PyArray1::from_vec(py, probability))?;
        Ok(columns)
    }

    /// Some of the episodes, by index.
    fn take(&self, py: Python<'_>, episodes: PyReadonlyArray1<'_, i64>) -> PyResult<Logs> {
        let loaded = self.loaded(py)?;
        let all = loaded.episodes.len();
        let one = |&i: &i64| {
            let episode = usize::try_from(i).ok().and_then(|i| loaded.episodes.get(i)).cloned();
            episode.ok_or_else(|| {
                PyIndexError::new_err(format!("there is no episode {i}; episodes are numbered from 0 to {}", all.max(1) - 1))
            })
        };
        let episodes = episodes.as_array().iter().map(one).collect::<PyResult<_>>()?;
        Ok(Logs::of(loaded.alphabet.clone(), episodes).read_as(&self.logs))
    }

    /// These episodes followed by those of others.
    fn joined(&self, py: Python<'_>, others: Vec<Bound<'_, Logs>>) -> PyResult<Logs> {
        let all: Vec<_> = [self.logs.clone()].into_iter().chain(others.iter().map(|other| other.get().logs.clone())).collect();
        task::run(py, None, move |_| {
            let (mut alphabet, mut episodes) = (Alphabet::default(), Vec::new());
            for logs in all {
                let mut reader = logs.open(alphabet)?;
                for episode in reader.by_ref() {
                    episodes.push(episode?);
                }
                alphabet = reader.into_alphabet();
            }
            Ok(Logs::of(alphabet, episodes))
        })
        .map(|joined| joined.read_as(&self.logs))
    }

    /// The same episodes, with these actions in this order, including actions that were never
    /// taken.
    fn with_actions(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Logs> {
        let logs = self.logs.clone();
        task::run(py, None, move |_| {
            let mut alphabet = Alphabet::default();
            for name in &names {
                alphabet.intern_action(name);
            }
            let mut reader = logs.open(alphabet)?;
            let episodes = reader.by_ref().collect::<foretell::Result<_>>()?;
            Ok(Logs::of(reader.into_alphabet(), episodes))
        })
        .map(|renamed| renamed.read_as(&self.logs))
    }

    /// Writes them to a file; its extension selects CSV, JSON Lines or Parquet.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let logs = self.logs.clone();
        task::run(py, None, move |task| {
            let mut writer = Writer::create(&path)?;
            let mut reader = logs.open(Alphabet::default())?;
            let mut written = 0;
            while let Some(episode) = reader.next() {
                writer.write(reader.alphabet(), &episode?)?;
                written += 1;
                task.tell("writing", written, None);
            }
            writer.finish()
        })
    }
}

/// Names of the columns of a table that are ignored.
#[pyfunction]
pub fn unused_columns(names: Vec<String>, schema: &str) -> PyResult<Vec<String>> {
    let schema = options(false, schema)?.schema;
    let unused = foretell::log::unused_columns(TABLE, &names, &schema).map_err(raised)?;
    Ok(unused.into_iter().map(String::from).collect())
}

fn from_batches(py: Python<'_>, batches: Vec<RecordBatch>, options: ReadOptions) -> PyResult<Logs> {
    Ok(task::run(py, None, move |_| foretell::Logs::table(TABLE, batches, options))?.into())
}

/// A column of integers, floats, booleans or names.
fn column(values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if let Ok(values) = values.extract::<PyReadonlyArray1<'_, i64>>() {
        return Ok(Arc::new(values.as_array().iter().copied().collect::<Int64Array>()));
    }
    if let Ok(values) = values.extract::<PyReadonlyArray1<'_, f64>>() {
        // NaN stands for a missing value.
        return Ok(Arc::new(values.as_array().iter().map(|x| Some(*x).filter(|x| !x.is_nan())).collect::<Float64Array>()));
    }
    if let Ok(values) = values.extract::<PyReadonlyArray1<'_, bool>>() {
        return Ok(Arc::new(values.as_array().iter().map(|b| Some(*b)).collect::<BooleanArray>()));
    }
    let list = values.call_method0("tolist").unwrap_or_else(|_| values.clone());
    let list = list.cast::<PyList>().map_err(|_| PyTypeError::new_err("a column must be a NumPy array or a list"))?;
    let cell = |value: Bound<'_, PyAny>| if value.is_none() { Ok(None) } else { name(&value).map(Some) };
    Ok(Arc::new(list.iter().map(cell).collect::<PyResult<StringArray>>()?))
}
