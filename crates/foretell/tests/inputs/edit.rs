//! Safetensors files taken apart, changed and put together again, with the checksum that belongs to
//! the result: a wrong checksum would hide everything behind it.

use std::collections::HashMap;

use foretell::Rng;
use foretell::store::sealed;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde_json::Value;

/// The header key for everything that is not an array.
const HEADER: &str = "foretell";
/// Numbers at which readers that trust them break.
const NUMBERS: [f64; 16] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    -1.0,
    0.0,
    -0.0,
    1.0,
    0.5,
    2.0,
    1e-310,
    1e-30,
    1e30,
    1e154,
    1e300,
    f64::MAX,
    f64::MIN,
];
const COUNTS: [u64; 14] =
    [0, 1, 2, 3, 7, 255, 256, 65_535, 1 << 31, u32::MAX as u64 - 1, u32::MAX as u64, 1 << 53, u64::MAX - 1, u64::MAX];

/// An array of a file.
#[derive(Clone)]
pub struct Tensor {
    pub name: String,
    pub dtype: Dtype,
    pub data: Vec<u8>,
}

/// A file in parts.
#[derive(Clone)]
pub struct Parts {
    pub header: Value,
    pub tensors: Vec<Tensor>,
}

impl Tensor {
    fn view(&self) -> Option<(String, TensorView<'_>)> {
        let shape = vec![self.data.len() / self.size().max(1)];
        TensorView::new(self.dtype, shape, &self.data).ok().map(|view| (self.name.clone(), view))
    }

    fn size(&self) -> usize {
        self.dtype.bitsize() / 8
    }
}

impl Parts {
    /// `None` if it is no file of Foretell.
    pub fn of(bytes: &[u8]) -> Option<Parts> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
        let header = serde_json::from_str(metadata.metadata().as_ref()?.get(HEADER)?).ok()?;
        let own = |(name, view): (String, TensorView<'_>)| Tensor { name, dtype: view.dtype(), data: view.data().to_vec() };
        let mut tensors: Vec<Tensor> = SafeTensors::deserialize(bytes).ok()?.tensors().into_iter().map(own).collect();
        tensors.sort_by(|x, y| x.name.cmp(&y.name));
        Some(Parts { header, tensors })
    }

    /// The file; `None` if the parts make none.
    pub fn put_together(&self) -> Option<Vec<u8>> {
        let views: Option<HashMap<_, _>> = self.tensors.iter().map(Tensor::view).collect();
        let metadata = HashMap::from([(HEADER.to_string(), self.header_text())]);
        serialize(views?, Some(metadata)).ok().map(sealed)
    }

    /// The header with the fields first that are read first: the order of a map is another.
    fn header_text(&self) -> String {
        let mut rest = self.header.clone();
        let mut first = Vec::new();
        for name in ["kind", "format_version", "checksum"] {
            if let Some(value) = rest.as_object_mut().and_then(|fields| fields.remove(name)) {
                first.push(format!("\"{name}\":{value}"));
            }
        }
        let rest = rest.to_string();
        match rest.strip_prefix('{') {
            Some("}") => format!("{{{}}}", first.join(",")),
            Some(rest) => format!("{{{},{rest}", first.join(",")),
            None => rest,
        }
    }

    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("there is no array {name}"))
    }
}

/// A file with its parts changed.
pub fn edited(bytes: &[u8], change: impl FnOnce(&mut Parts)) -> Vec<u8> {
    let mut parts = Parts::of(bytes).expect("a file of Foretell");
    change(&mut parts);
    parts.put_together().expect("still a file")
}

/// The same for a file within the file.
pub fn edited_within(bytes: &[u8], name: &str, change: impl FnOnce(&mut Parts)) -> Vec<u8> {
    edited(bytes, |parts| {
        let inner = parts.tensor(name);
        inner.data = edited(&inner.data, change);
    })
}

/// A file with one part of it changed at random; as it was if it is no file of Foretell.
pub fn changed(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let Some(mut parts) = Parts::of(bytes) else { return bytes.to_vec() };
    let nested: Vec<usize> = (0..parts.tensors.len()).filter(|&i| Parts::of(&parts.tensors[i].data).is_some()).collect();
    match rng.below(10) {
        0..4 => change_value(&mut parts.header, rng, 0),
        4..6 if !nested.is_empty() => {
            let inner = &mut parts.tensors[nested[rng.below(nested.len())]];
            inner.data = changed(&inner.data, rng);
        }
        _ => change_tensor(&mut parts.tensors, rng),
    }
    parts.put_together().unwrap_or_else(|| bytes.to_vec())
}

/// Changes something in a JSON value.
fn change_value(value: &mut Value, rng: &mut Rng, depth: usize) {
    let goes_in = depth == 0 || rng.below(8) > 0;
    match value {
        Value::Object(fields) if goes_in && !fields.is_empty() => {
            let name = fields.keys().nth(rng.below(fields.len())).expect("it is below their number").clone();
            match rng.below(24) {
                0 => drop(fields.remove(&name)),
                _ => change_value(&mut fields[&name], rng, depth + 1),
            }
        }
        Value::Array(items) if goes_in && !items.is_empty() => {
            let i = rng.below(items.len());
            match rng.below(10) {
                0 => drop(items.remove(i)),
                1 => items.push(items[i].clone()),
                2 => items.truncate(i),
                3 => items.reverse(),
                _ => change_value(&mut items[i], rng, depth + 1),
            }
        }
        Value::Number(number) if rng.below(4) > 0 => *value = other_number(number.as_f64().unwrap_or(0.0), rng),
        Value::Bool(flag) if rng.below(4) > 0 => *flag = !*flag,
        other => *other = any_value(rng),
    }
}

fn other_number(number: f64, rng: &mut Rng) -> Value {
    match rng.below(4) {
        0 => Value::from(NUMBERS[rng.below(NUMBERS.len())]),
        1 => Value::from(COUNTS[rng.below(COUNTS.len())]),
        2 => Value::from((number as i64).wrapping_add(rng.below(5) as i64 - 2)),
        _ => Value::from((number as i64).wrapping_mul(rng.below(40) as i64)),
    }
}

fn any_value(rng: &mut Rng) -> Value {
    let values = [
        Value::Null,
        Value::from(""),
        Value::from("|a|||(1)"),
        Value::from("none"),
        Value::from("predictive"),
        Value::from("table"),
        Value::from("identity"),
        Value::Array(Vec::new()),
        Value::Object(Default::default()),
        Value::from(1u64 << 40),
        Value::from(-1),
        Value::from(true),
    ];
    values[rng.below(values.len())].clone()
}

/// Changes numbers, the size, the name or the type of an array.
fn change_tensor(tensors: &mut Vec<Tensor>, rng: &mut Rng) {
    if tensors.is_empty() {
        return;
    }
    let i = rng.below(tensors.len());
    let other = tensors[rng.below(tensors.len())].clone();
    let tensor = &mut tensors[i];
    let (size, n) = (tensor.size().max(1), tensor.data.len() / tensor.size().max(1));
    match rng.below(24) {
        0 => drop(tensors.remove(i)),
        1 => tensor.name = other.name,
        2 => tensor.dtype = other.dtype,
        3 => (tensor.data, tensor.dtype) = (other.data, other.dtype),
        4 => tensor.data.truncate(rng.below(n + 1) * size),
        5 => tensor.data.clear(),
        6 => tensor.data.extend(vec![0; size * (1 + rng.below(4))]),
        7 => tensor.data = [&tensor.data[..], &tensor.data].concat(),
        8 => tensor.data.chunks_exact_mut(size).for_each(|number| number.fill(0)),
        9 => (0..n).for_each(|at| set(tensor, at, rng)),
        _ if n > 0 => (0..1 + rng.below(3)).for_each(|_| set(tensor, rng.below(n), rng)),
        _ => {}
    }
    if let Some(tensor) = tensors.get_mut(i) {
        tensor.data.truncate(tensor.data.len() / tensor.size().max(1) * tensor.size().max(1));
    }
}

/// Changes one number.
fn set(tensor: &mut Tensor, at: usize, rng: &mut Rng) {
    let (number, count) = (NUMBERS[rng.below(NUMBERS.len())], COUNTS[rng.below(COUNTS.len())]);
    let size = tensor.size();
    let bytes = &mut tensor.data[at * size..(at + 1) * size];
    let near = rng.below(5) as u64;
    match tensor.dtype {
        Dtype::F64 if rng.below(3) == 0 => {
            let scale = [-1.0, 0.5, 3.0, 1e3, 1e-3][rng.below(5)];
            let scaled = scale * f64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            bytes.copy_from_slice(&scaled.to_le_bytes());
        }
        Dtype::F64 => bytes.copy_from_slice(&number.to_le_bytes()),
        Dtype::F32 => bytes.copy_from_slice(&(number as f32).to_le_bytes()),
        Dtype::U32 if rng.below(2) == 0 => {
            let n = u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
            bytes.copy_from_slice(&n.wrapping_add(near as u32).wrapping_sub(2).to_le_bytes());
        }
        Dtype::U32 => bytes.copy_from_slice(&(count as u32).to_le_bytes()),
        Dtype::U64 if rng.below(2) == 0 => {
            let n = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            bytes.copy_from_slice(&n.wrapping_add(near).wrapping_sub(2).to_le_bytes());
        }
        Dtype::U64 => bytes.copy_from_slice(&count.to_le_bytes()),
        _ => bytes[0] ^= 1 << rng.below(8),
    }
}
