//! Names of actions and observations, from Python objects.

use foretell::{Action, Alphabet, Error, Model, Observation, ObservationSymbol, Schema};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::error::raised;

/// Separates the parts of a composite name, as in files.
const SEPARATOR: &str = "|";
/// Stands for a value that is missing.
const MISSING: &str = "?";
/// Appended to the name of an observation that ends the episode.
const END: &str = " [end]";

/// The name of a symbol: a string unchanged, an integer or boolean as in files; a tuple, list or
/// array of these is joined.
pub fn name(symbol: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = symbol.cast::<PyString>() {
        return text.extract();
    }
    if symbol.cast::<PyTuple>().is_ok() || symbol.cast::<PyList>().is_ok() {
        let parts = symbol.try_iter()?.map(|part| name(&part?)).collect::<PyResult<Vec<_>>>()?;
        return Ok(parts.join(SEPARATOR));
    }
    // NumPy arrays become lists, and NumPy scalars become Python scalars.
    if let Ok(plain) = symbol.call_method0("tolist") {
        return name(&plain);
    }
    if let Ok(truth) = symbol.extract::<bool>() {
        return Ok(truth.to_string());
    }
    if let Ok(number) = symbol.extract::<i128>() {
        return Ok(number.to_string());
    }
    match symbol.extract::<f64>() {
        Ok(number) if number.is_finite() && number.fract() == 0.0 => Ok((number + 0.0).to_string()),
        _ => {
            Err(PyTypeError::new_err(format!("{} is not a name; give a string, an integer, or a tuple of these", symbol.repr()?)))
        }
    }
}

/// What a symbol is named by in a model: its name, or the values of its columns, as a number, a tuple
/// in their order, or a dict; None and NaN are missing values.
fn written(symbol: &Bound<'_, PyAny>) -> PyResult<String> {
    let joined = |parts: Vec<String>| parts.join(SEPARATOR);
    if let Ok(columns) = symbol.cast::<PyDict>() {
        let part = |(column, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok(format!("{}={}", name(&column)?, written(&value)?));
        return columns.iter().map(part).collect::<PyResult<Vec<_>>>().map(joined);
    }
    if symbol.cast::<PyTuple>().is_ok() || symbol.cast::<PyList>().is_ok() {
        return symbol.try_iter()?.map(|part| written(&part?)).collect::<PyResult<Vec<_>>>().map(joined);
    }
    if symbol.is_none() {
        return Ok(MISSING.into());
    }
    if symbol.cast::<PyString>().is_err() {
        if let Ok(plain) = symbol.call_method0("tolist") {
            return written(&plain);
        }
        match symbol.extract::<f64>() {
            Ok(number) if number.is_nan() => return Ok(MISSING.into()),
            Ok(number) if number.is_finite() && number.fract() != 0.0 => return Ok(number.to_string()),
            _ => {}
        }
    }
    name(symbol)
}

/// [`name`] for the Python part of the package.
#[pyfunction]
pub fn name_of(symbol: &Bound<'_, PyAny>) -> PyResult<String> {
    name(symbol)
}

/// The names of a model or policy, and what the columns of its logs meant.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub alphabet: &'a Alphabet,
    pub schema: &'a Schema,
}

impl<'a> Names<'a> {
    pub fn of(model: &'a Model) -> Names<'a> {
        Names { alphabet: model.alphabet(), schema: &model.origin().schema }
    }
}

/// The action of that name, or with these values of its columns.
pub fn action(names: Names<'_>, symbol: &Bound<'_, PyAny>) -> PyResult<Action> {
    let text = written(symbol)?;
    names.schema.action_of(names.alphabet, &text).map_or_else(|| action_named(names.alphabet, &text), Ok)
}

/// The same for a name that is known.
pub fn action_named(alphabet: &Alphabet, name: &str) -> PyResult<Action> {
    let known = || alphabet.actions().iter().map(String::as_str);
    alphabet.action(name).ok_or_else(|| raised(Error::unknown("action", name, known())))
}

/// The symbol of that name, or with these values of its columns. A name with the suffix ` [end]` is always terminal.
fn symbol_named(names: Names<'_>, symbol: &Bound<'_, PyAny>, terminal: bool) -> PyResult<ObservationSymbol> {
    let Names { alphabet, schema } = names;
    let name = schema.observation_name(alphabet, &written(symbol)?);
    let ends = name.strip_suffix(END).filter(|_| alphabet.observation(&name).is_none());
    Ok(ObservationSymbol { name: ends.unwrap_or(&name).to_string(), terminal: terminal || ends.is_some() })
}

/// The only reward that was seen with an action and an observation; `None` if there are others, or
/// if the name of the observation includes it.
pub fn only_reward(model: &Model, a: Action, symbol: &Bound<'_, PyAny>, terminal: bool) -> PyResult<Option<f64>> {
    let symbol = symbol_named(Names::of(model), symbol, terminal)?;
    Ok(match model.observations_whatever_reward(a, &symbol)[..] {
        [only] => model.alphabet().symbol(only).split_reward().filter(|(plain, _)| *plain == symbol).map(|(_, reward)| reward),
        _ => None,
    })
}

/// The observation of that name, terminal or not; an index beyond the alphabet if it was not seen
/// in training. A name with the suffix ` [end]` is always terminal.
pub fn observation(names: Names<'_>, symbol: &Bound<'_, PyAny>, terminal: bool, reward: Option<f64>) -> PyResult<Observation> {
    let (symbol, alphabet) = (symbol_named(names, symbol, terminal)?, names.alphabet);
    let known = match reward {
        // The name may already include the reward.
        _ if !alphabet.observes_rewards() => alphabet.same_observation(&symbol),
        Some(reward) => alphabet.same_observation(&symbol.with_reward(reward)),
        None if symbol.split_reward().is_some() => alphabet.same_observation(&symbol),
        None => return Err(PyValueError::new_err("observations of this model include rewards; give the reward as well")),
    };
    Ok(known.unwrap_or(Observation(alphabet.observations().len() as u32)))
}

/// The name of an observation of which some parts are missing, or whose reward is part of it but was
/// not given: any that agrees may be meant.
pub fn partly_known(
    names: Names<'_>,
    symbol: &Bound<'_, PyAny>,
    terminal: bool,
    reward: Option<f64>,
) -> PyResult<Option<String>> {
    let (symbol, alphabet) = (symbol_named(names, symbol, terminal)?, names.alphabet);
    let lacks_reward = alphabet.observes_rewards() && reward.is_none() && symbol.split_reward().is_none();
    let lacks_parts =
        alphabet.same_observation(&symbol).is_none() && symbol.name.split(SEPARATOR).any(|part| part.ends_with(MISSING));
    let is_open = (lacks_reward || lacks_parts) && !symbol.terminal;
    Ok(Some(symbol.name).filter(|name| is_open && !alphabet.agreeing(name).is_empty()))
}

/// Names of observations for display: ` [end]` is appended to those that end an episode.
pub fn shown(alphabet: &Alphabet) -> Vec<String> {
    alphabet.observations().iter().map(ToString::to_string).collect()
}
