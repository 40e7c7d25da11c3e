"""The `paper` preset in NumPy and SciPy, written plainly: the second opponent that `run.py` races against Foretell.

Batch learning of a compressed predictive state representation (Hamilton et al. 2014, section 3.2.1) as the paper's formulas
suggest it: vectorised, one random column for each distinct test and history, indicator matrices times Φ. Nothing is slowed
down, and nothing is tuned; `numpy_learner.py` is the tuned one, with the same conventions and the same arguments.

pandas would read the CSV, but importing it takes longer than `np.loadtxt` does, and pyarrow imports it wherever it is
installed, which would cost the tuned opponent 0.3 s.
"""

import time

STARTED = time.perf_counter()  # Before the imports: a user waits for them too.

import argparse

import numpy as np
from learner import NOTHING, Logs, Model, count_cuts, race
from scipy import sparse


def read_logs(path: str) -> Logs:
    """Reads the columns that learning needs; rows of an episode stand together, in order."""
    with open(path) as file:
        header = file.readline().strip().split(",")
    wanted = [header.index(name) for name in ("episode_id", "action", "observation", "terminated")]
    cells = np.loadtxt(path, str, comments=None, delimiter=",", skiprows=1, usecols=wanted, quotechar='"', encoding="utf-8")
    action, observation = (np.unique(column, return_inverse=True)[1] for column in cells[:, 1:3].T)
    terminated = cells[:, 3] == "true"

    # An observation that ends the episode is another symbol than the same one that does not.
    codes, pairs = np.unique((action * 2 + terminated) * (observation.max() + 1) + observation, return_inverse=True)
    action_of = np.concatenate(([-1], codes // (2 * (observation.max() + 1))))
    first = np.concatenate(([0], np.flatnonzero(cells[1:, 0] != cells[:-1, 0]) + 1))
    length = np.diff(first, append=len(cells))
    return Logs(pairs + 1, action_of, first, length, terminated[first + length - 1])


def pad(logs: Logs, room: int) -> np.ndarray:
    """The pairs as a matrix, one episode a row, with at least `room` NOTHINGs after each episode."""
    steps = np.full((len(logs.length), logs.length.max() + room), NOTHING)
    steps[np.arange(steps.shape[1]) < logs.length[:, None]] = logs.pairs
    return steps


def name_tests(steps: np.ndarray, episode: np.ndarray, t: np.ndarray, max_length: int) -> sparse.csr_array:
    """Which tests succeed at each place (row) of the episodes: 0, the null test, always, and the sequences that follow."""
    symbols, place, count = steps.max() + 1, np.arange(len(t)), 1
    rows, columns, test = [place], [np.zeros(len(t), dtype=np.int64)], np.zeros(len(t), dtype=np.int64)
    for offset in range(max_length):
        step = steps[episode[place], t[place] + offset]
        place, longer = place[step != NOTHING], (test * symbols + step)[step != NOTHING]
        distinct, test = np.unique(longer, return_inverse=True)
        rows.append(place)
        columns.append(count + test)
        count += len(distinct)
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(t), count))


def name_histories(steps: np.ndarray, episode: np.ndarray, t: np.ndarray) -> sparse.csr_array:
    """Which history each cut has: 0, the null history, or the prefix of its episode."""
    symbols, name = steps.max() + 1, np.zeros(len(steps), dtype=np.int64)
    names = np.zeros((len(steps), t.max() + 1), dtype=np.int64)
    for length in range(1, t.max() + 1):
        name = np.unique(name * symbols + steps[:, length - 1], return_inverse=True)[1]
        names[:, length] = names.max() + 1 + name
    distinct, history = np.unique(names[episode, t], return_inverse=True)
    return sparse.csr_array((np.ones(len(t)), (np.arange(len(t)), history)), shape=(len(t), len(distinct)))


def draw_columns(rng: np.random.Generator, projection: str, count: int, dim: int) -> np.ndarray:
    """Φ transposed: a coordinate of its own for the null sequence, which is the first, and random columns for others."""
    phi = np.zeros((count, 1 + dim))
    phi[0, 0] = 1.0
    if projection == "spherical":
        phi[1:, 1:] = rng.normal(size=(count - 1, dim)) / np.sqrt(dim)
    elif projection == "rademacher":
        phi[1:, 1:] = rng.choice([-1.0, 1.0], size=(count - 1, dim)) / np.sqrt(dim)
    else:
        phi[np.arange(1, count), rng.integers(1, 1 + dim, size=count - 1)] = 1.0
    return phi


def learn(logs: Logs, args: argparse.Namespace) -> Model:
    """Σ̂_TH over all cuts, its thin SVD, and the operators."""
    steps, cuts = pad(logs, args.max_test_length), count_cuts(logs, args.max_test_length)
    # Places 0 … cuts of each episode that has cuts: a cut at t uses ψ_t, χ_t and ψ_{t+1}, the row after it.
    episode, t = np.nonzero((np.arange(cuts.max() + 1) <= cuts[:, None]) & (cuts[:, None] > 0))
    cut = np.flatnonzero(t < cuts[episode])
    tests = name_tests(steps, episode, t, args.max_test_length)
    histories = name_histories(steps, episode[cut], t[cut])

    rng, episodes = np.random.default_rng(args.seed), np.count_nonzero(cuts)
    psi = tests @ draw_columns(rng, args.projection, tests.shape[1], args.dim)
    chi = histories @ draw_columns(rng, args.projection, histories.shape[1], args.dim)
    sigma = psi[cut].T @ chi / episodes
    u, s, vt = np.linalg.svd(sigma, full_matrices=False)
    u, b = u[:, : args.rank], vt[: args.rank].T / s[: args.rank]

    after, before, pair = psi[cut + 1] @ u, chi @ b, steps[episode[cut], t[cut]]
    operators, means = sum_operators(after, before, pair, len(logs.action_of))
    # c₁ is the column of the null history, projected; the row of the null test is Σ̂_H.
    return Model(u.T @ sigma[:, 0], sigma[0] @ b, operators / episodes, means)


def sum_operators(after: np.ndarray, before: np.ndarray, pair: np.ndarray, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """C_ao over the cuts whose next pair is ao, and the mean state after it."""
    rank = after.shape[1]
    operators, means = np.zeros((pairs, rank, rank)), np.zeros((pairs, rank))
    for ao in np.unique(pair):
        mask = pair == ao
        operators[ao] = after[mask].T @ before[mask]
        means[ao] = after[mask].mean(axis=0)
    return operators, means


if __name__ == "__main__":
    race(STARTED, __doc__, read_logs, learn)
