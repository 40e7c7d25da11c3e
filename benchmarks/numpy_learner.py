"""The `paper` preset in NumPy: the opponent that `run.py` races against Foretell.

Batch learning of a compressed predictive state representation (Hamilton et al. 2014, section 3.2.1), written to be as
fast as NumPy allows on one machine, so that the comparison is honest:

* the double sum over tests and histories is bilinear, so columns are summed first: ψ (tests) and χ (histories) of a
  cut, then one matrix product for all cuts;
* sequences are small integers, one `np.unique` for each length; the tests of a window are the prefixes of its longest
  one, so ψ is summed once for each distinct window, down the tree of prefixes;
* hashed columns have one non-zero and are counted with `np.bincount`, never multiplied;
* the second pass projects distinct windows and histories to d′ numbers first and only then looks at cuts;
* Rademacher columns are random bits, summed as bytes; Gaussian ones are drawn by one generator for each core.

Measured and left out: indicator matrices of `scipy.sparse` take 1.5–10 times as long for the same sums, and importing
them longer than learning with hashed columns; so does importing pandas, where pyarrow reads the CSV on all cores.
"""

import time

STARTED = time.perf_counter()  # Before the imports: a user waits for them too.

import argparse
import os
import threading
from typing import Iterator, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from learner import NOTHING, Logs, Model, count_cuts, race

CACHED = 512  # Columns drawn and summed at a time: they stay in the second-level cache.
GATHERED = 4096  # Rows gathered for one product: large enough for BLAS to share among cores, small beside its caches.
FLOOR = 1e-4  # Least probability of an observation seen in training.
LOST = 1e-2  # Share of what the action's frequency allows below which a prediction means that the filter is lost.


class Rows(NamedTuple):
    """The places t = 0 … cuts of every episode that has cuts: a cut at t uses ψ_t, χ_t and ψ_{t+1}, the row after it."""

    at: np.ndarray  # position in the padded steps
    episode_first: np.ndarray  # first row of each episode
    cuts: np.ndarray  # cuts of each episode
    is_cut: np.ndarray  # all but the last row of an episode


class Level(NamedTuple):
    """The distinct tests of one length: a level of the tree of prefixes."""

    parent: np.ndarray  # prefix that is one step shorter, in the level above
    real: np.ndarray  # whether the last step happened; after the end of an episode there are no tests
    of_row: np.ndarray  # test that succeeds at each row


class FirstPass(NamedTuple):
    """c₁, c_∞ and, for each row, x = Ûᵀψ and z = (V̂Ŝ⁻¹)ᵀχ."""

    c_1: np.ndarray
    c_inf: np.ndarray
    x: np.ndarray
    z: np.ndarray


def chunks(count: int, size: int) -> Iterator[slice]:
    """0 … count in slices of `size`."""
    return (slice(begin, min(begin + size, count)) for begin in range(0, count, size))


def read_logs(path: str) -> Logs:
    """Reads the columns that learning needs; rows of an episode stand together, in order."""
    names = pa.dictionary(pa.int32(), pa.string())
    columns = ["episode_id", "action", "observation", "terminated"]
    options = pa_csv.ConvertOptions(include_columns=columns, column_types={"action": names, "observation": names})
    table = pa_csv.read_csv(path, convert_options=options).unify_dictionaries()
    episode, action, observation, terminated = (table[name].combine_chunks() for name in columns)
    action, observations, observation = action.indices.to_numpy(), len(observation.dictionary), observation.indices.to_numpy()
    episode, terminated = episode.to_numpy(zero_copy_only=False), terminated.to_numpy(zero_copy_only=False)

    # An observation that ends the episode is another symbol than the same one that does not.
    code = (action.astype(np.int64) * 2 + terminated) * observations + observation
    seen = np.bincount(code) > 0
    pair_of_code = np.cumsum(seen)
    first = np.concatenate(([0], np.flatnonzero(episode[1:] != episode[:-1]) + 1))
    length = np.diff(first, append=len(code))
    action_of = np.concatenate(([-1], np.flatnonzero(seen) // (2 * observations)))
    return Logs(pair_of_code[code], action_of, first, length, terminated[first + length - 1])


def pad(logs: Logs, room: int) -> tuple[np.ndarray, np.ndarray]:
    """The steps with `room` NOTHINGs after each episode, so that every window can be read; and where episodes begin."""
    first = logs.first + room * np.arange(len(logs.first))
    steps = np.full(len(logs.pairs) + room * len(logs.first), NOTHING)
    steps[np.arange(len(logs.pairs)) + np.repeat(first - logs.first, logs.length)] = logs.pairs
    return steps, first


def lay_rows(cuts: np.ndarray, first: np.ndarray) -> Rows:
    """Rows of the episodes that begin at `first` and have `cuts`."""
    first, cuts = first[cuts > 0], cuts[cuts > 0]
    end = np.cumsum(cuts + 1)
    episode_first = end - cuts - 1
    at = np.arange(end[-1]) + np.repeat(first - episode_first, cuts + 1)
    is_cut = np.ones(len(at), dtype=bool)
    is_cut[end - 1] = False
    return Rows(at, episode_first, cuts, is_cut)


def name_tests(steps: np.ndarray, rows: Rows, max_length: int, symbols: int) -> list[Level]:
    """The tree of tests, level by level; tests of a level are sorted by their parents."""
    levels, test = [], np.zeros(len(rows.at), dtype=np.int64)
    for offset in range(max_length):
        codes, test = np.unique(test * symbols + steps[rows.at + offset], return_inverse=True)
        levels.append(Level(codes // symbols, codes % symbols != NOTHING, test))
    return levels


def name_histories(steps: np.ndarray, rows: Rows, symbols: int) -> tuple[np.ndarray, int]:
    """The history (a prefix of the episode) of each row, 0 for the null history; and how many there are.

    Rows that are no cuts get the history after the last, whose column is zero: they drop out of every sum.
    """
    history_of_row, count = np.zeros(len(rows.at), dtype=np.int64), 1
    history = np.zeros(len(rows.cuts), dtype=np.int64)
    for longer, row in longer_histories(rows):
        step = steps[rows.at[row] - 1]
        codes, history = np.unique(history[longer] * symbols + step, return_inverse=True)
        history_of_row[row] = count + history
        count += len(codes)
    history_of_row[~rows.is_cut] = count
    return history_of_row, count


def longer_histories(rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each length: which of the episodes with histories one step shorter have them, and the rows at their ends."""
    row, cuts = rows.episode_first, rows.cuts
    for length in range(1, int(cuts.max())):
        longer = cuts > length
        row, cuts = row[longer], cuts[longer]
        yield longer, row + length


class Spherical:
    """Independent Gaussian entries of variance 1/d: a generator and a thread for each core (NumPy releases the lock)."""

    def __init__(self, seed: int, dim: int) -> None:
        self.dim, self.scale = dim, dim**-0.5
        streams = np.random.SeedSequence(seed).spawn(os.cpu_count() or 1)
        self.generators = [np.random.Generator(np.random.SFC64(stream)) for stream in streams]

    def add_columns(self, sums: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """One new column of Φ (as a row, times √d) for each parent, plus what the parent has."""
        out = np.empty((len(parent), self.dim))

        def fill(generator: np.random.Generator, out: np.ndarray, parent: np.ndarray) -> None:
            for part in chunks(len(parent), CACHED):
                generator.standard_normal(out=out[part])
                out[part] += sums.take(parent[part], axis=0)

        share = -(-len(parent) // len(self.generators))
        parts = zip(self.generators, chunks(len(parent), share))
        threads = [threading.Thread(target=fill, args=(g, out[part], parent[part])) for g, part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return out


class Rademacher:
    """Independent entries ±1/√d, one random bit each; as bytes, since the few of a window are summed before scaling."""

    def __init__(self, seed: int, dim: int) -> None:
        self.dim, self.scale = dim, dim**-0.5
        self.generator = np.random.Generator(np.random.SFC64(seed))

    def add_columns(self, sums: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """One new column of Φ (as a row, times √d) for each parent, plus what the parent has."""
        width = -(-self.dim // 8)
        bits = np.frombuffer(self.generator.bytes(len(parent) * width), np.uint8).reshape(-1, width)
        signs = np.unpackbits(bits, axis=1, count=self.dim).view(np.int8)
        signs *= 2
        signs -= 1
        signs += sums.take(parent, axis=0)
        return signs


def sum_tests(levels: list[Level], projection: Spherical | Rademacher) -> np.ndarray:
    """√d Σ_l φ_T(first l steps) of each distinct window, down the tree."""
    sums = np.zeros((1, projection.dim), dtype=np.int8)
    for level in levels:
        longer = projection.add_columns(sums, level.parent)
        ended = np.flatnonzero(~level.real)
        longer[ended] = sums[level.parent[ended]]
        sums = longer
    return sums


def history_columns(count: int, projection: Spherical | Rademacher) -> np.ndarray:
    """χ of each distinct history: a unit vector for the null history, [0 | φ_H(h)] for others, and a last row of zeros."""
    chi = np.zeros((count + 1, 1 + projection.dim))
    chi[0, 0] = 1.0
    nothing = np.zeros((1, projection.dim), dtype=np.int8)
    columns = projection.add_columns(nothing, np.zeros(count - 1, dtype=np.int64))
    np.multiply(columns, projection.scale, out=chi[1:count, 1:])
    return chi


def learn_dense(kind: type, steps: np.ndarray, rows: Rows, symbols: int, args: argparse.Namespace) -> FirstPass:
    """The first pass for columns without zeros."""
    levels = name_tests(steps, rows, args.max_test_length, symbols)
    window_of_row = levels[-1].of_row
    history_of_row, count = name_histories(steps, rows, symbols)
    # Φ_T and Φ_H are independent.
    tests, histories = kind(2 * args.seed, args.dim), kind(2 * args.seed + 1, args.dim)
    psi, chi = sum_tests(levels, tests), history_columns(count, histories)

    # Σ̂_TH = Σ ψ_t χ_tᵀ. The null test always succeeds: ψ = [1 | …], and its row of the sum is Σ̂_H.
    sigma = np.zeros((1 + args.dim, 1 + args.dim))
    sigma[0] = np.bincount(history_of_row) @ chi
    for part in chunks(len(rows.at), GATHERED):
        gathered = psi.take(window_of_row[part], axis=0).astype(np.float64, copy=False)
        sigma[1:] += gathered.T @ chi.take(history_of_row[part], axis=0)
    sigma[1:] *= tests.scale
    u, b, c_1, c_inf = solve(sigma / len(rows.cuts), args.rank)
    scaled = tests.scale * u[1:]
    x = np.concatenate([psi[part].astype(np.float64, copy=False) @ scaled for part in chunks(len(psi), GATHERED)]) + u[0]
    return FirstPass(c_1, c_inf, x[window_of_row], (chi @ b)[history_of_row])


def learn_hashed(steps: np.ndarray, rows: Rows, symbols: int, args: argparse.Namespace) -> FirstPass:
    """The first pass for columns with a single 1: coordinates are counted, and a product with a basis is a look-up."""
    generator, d = np.random.Generator(np.random.SFC64(args.seed)), 1 + args.dim
    # Coordinate d is nowhere: what is no test or no cut goes there, and is dropped.
    tests = hash_tests(generator, steps, rows, symbols, args)
    history = hash_histories(generator, steps, rows, symbols, args)
    counts = sum(np.bincount(test * (d + 1) + history, minlength=(d + 1) ** 2) for test in tests)
    u, b, c_1, c_inf = solve(counts.reshape(d + 1, d + 1)[:d, :d] / len(rows.cuts), args.rank)
    u, b = (np.vstack((basis, np.zeros(args.rank))) for basis in (u, b))
    return FirstPass(c_1, c_inf, sum(u.take(test, axis=0) for test in tests), b[history])


def hash_tests(
    generator: np.random.Generator, steps: np.ndarray, rows: Rows, symbols: int, args: argparse.Namespace
) -> list[np.ndarray]:
    """Coordinates of the tests of each length, from 0, at every row."""
    multiplier, values = hash_function(generator, symbols)
    tests, key = [np.zeros(len(rows.at), dtype=np.int64)], np.zeros(len(rows.at), dtype=np.uint64)
    for offset in range(args.max_test_length):
        step = steps[rows.at + offset]
        key = key * multiplier + values[step]
        tests.append(np.where(step != NOTHING, bucket(key, args.dim), 1 + args.dim))
    return tests


def hash_histories(
    generator: np.random.Generator, steps: np.ndarray, rows: Rows, symbols: int, args: argparse.Namespace
) -> np.ndarray:
    """Coordinate of the history of every row."""
    multiplier, values = hash_function(generator, symbols)
    keys = np.zeros(len(rows.at), dtype=np.uint64)
    for _, row in longer_histories(rows):
        keys[row] = keys[row - 1] * multiplier + values[steps[rows.at[row] - 1]]
    history = bucket(keys, args.dim)
    history[rows.episode_first] = 0
    history[~rows.is_cut] = 1 + args.dim
    return history


def hash_function(generator: np.random.Generator, symbols: int) -> tuple[np.uint64, np.ndarray]:
    """A random odd multiplier and a random number for each symbol: a polynomial hash of sequences."""
    multiplier, *values = generator.integers(2**64, size=1 + symbols, dtype=np.uint64)
    return multiplier | np.uint64(1), np.array(values)


def bucket(keys: np.ndarray, dim: int) -> np.ndarray:
    """A coordinate among 1 … dim, from the upper bits, which depend on all steps."""
    return (1 + ((keys >> np.uint64(32)) * np.uint64(dim) >> np.uint64(32))).astype(np.int64)


def solve(sigma: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Û and V̂Ŝ⁻¹ of the thin SVD, c₁ = ŜV̂ᵀe and c_∞ᵀ = Σ̂_Hᵀ V̂Ŝ⁻¹; Σ̂_H is the row of the null test."""
    u, s, vt = np.linalg.svd(sigma, full_matrices=False)
    u, b = u[:, :rank], vt[:rank].T / s[:rank]
    return u, b, u.T @ sigma[:, 0], sigma[0] @ b


def sum_operators(x: np.ndarray, z: np.ndarray, pair: np.ndarray, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """C_ao = Σ x_{t+1} z_tᵀ over the cuts whose next pair is ao, and the mean of x_{t+1}: one product for each pair."""
    order = np.argsort(pair)
    x, z = x[order], z[order]
    ends = np.cumsum(np.bincount(pair, minlength=pairs))
    groups = [slice(begin, end) for begin, end in zip(np.append(0, ends[:-1]), ends)]
    operators = np.stack([x[group].T @ z[group] for group in groups])
    means = np.stack([x[group].sum(axis=0) / max(group.stop - group.start, 1) for group in groups])
    return operators, means


def learn(logs: Logs, args: argparse.Namespace) -> Model:
    """Both passes over the logs."""
    steps, first = pad(logs, args.max_test_length)
    rows = lay_rows(count_cuts(logs, args.max_test_length), first)
    symbols = len(logs.action_of)
    if args.projection == "hashed":
        c_1, c_inf, x, z = learn_hashed(steps, rows, symbols, args)
    else:
        kind = {"rademacher": Rademacher, "spherical": Spherical}[args.projection]
        c_1, c_inf, x, z = learn_dense(kind, steps, rows, symbols, args)
    cut = np.flatnonzero(rows.is_cut)
    operators, means = sum_operators(x[cut + 1], z[cut], steps[rows.at[cut]], symbols)
    return Model(c_1, c_inf, operators / len(rows.cuts), means)


def check(logs: Logs, model: Model) -> float:
    """Asserts that the model is one, and returns its mean one-step log-likelihood on the logs it was learned from."""
    unit = model.c_inf @ model.c_1
    assert abs(unit - 1.0) < 0.1, f"c_∞ᵀc₁ = {unit}, which should be near 1"
    states, alive, given = np.tile(model.c_1, (len(logs.first), 1)), np.arange(len(logs.first)), []
    for t in range(int(logs.length.max())):
        alive = alive[logs.length[alive] > t]
        pair = logs.pairs[logs.first[alive] + t]
        given.append(predict(logs, model, states[alive], pair))
        states[alive] = update(logs, model, states[alive], pair)
    mean = float(np.log(np.concatenate(given)).mean())
    guess = float(-np.log(np.bincount(logs.action_of[1:])).mean())
    assert guess < mean < 0.0, f"mean log-likelihood of a step is {mean}, and {guess} for guessing"
    return mean


def predict(logs: Logs, model: Model, states: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """P(o ‖ a) of each observation that was made: c_∞ᵀC_ao c, floored and normalised over the observations of the action."""
    same_action = logs.action_of == logs.action_of[pair][:, None]
    joint = np.where(same_action, np.maximum(states @ (model.c_inf @ model.operators).T, 0.0), 0.0)
    joint /= np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    p = np.where(same_action, np.maximum(joint, FLOOR), 0.0)
    return p[np.arange(len(pair)), pair] / p.sum(axis=1)


def update(logs: Logs, model: Model, states: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """C_ao c / c_∞ᵀC_ao c, or the mean state after the pair where the filter is lost."""
    frequency = np.bincount(logs.action_of[logs.pairs]) / len(logs.pairs)
    after = np.einsum("nij,nj->ni", model.operators[pair], states)
    lost = after @ model.c_inf <= LOST * frequency[logs.action_of[pair]]
    after[lost] = model.mean_states[pair[lost]]
    return after / np.where(after @ model.c_inf > 0.0, after @ model.c_inf, 1.0)[:, None]


if __name__ == "__main__":
    race(STARTED, __doc__, read_logs, learn)
