"""scikit-splearn's weighted automata on pairs of action and observation, conditioned on actions; what is not positive is floored."""

import json
import sys
import time

import numpy as np
from splearn.datasets.data_sample import DataSample
from splearn.spectral import Spectral

RANKS = [5, 10, 20]
FLOOR = 1e-6


def main(path: str) -> None:
    data = json.load(open(path))
    width = data["observations"]

    def sequences(part):
        symbols = np.array(part["action"]) * width + np.array(part["observation"])
        ends = np.flatnonzero(np.diff(part["episode"])) + 1
        return [sequence.tolist() for sequence in np.split(symbols, ends)]

    training, test = sequences(data["training"]), sequences(data["test"])
    letters = data["actions"] * width
    longest = max(len(sequence) for sequence in training)
    rows = np.full((len(training), longest), -1)
    for i, sequence in enumerate(training):
        rows[i, : len(sequence)] = sequence
    best = None
    started = time.perf_counter()
    for rank in RANKS:
        spectral = Spectral(rank=rank, lrows=2, lcolumns=2, version="prefix", partial=True, sparse=True)
        spectral.fit(DataSample(data=(letters, len(training), rows)).data)
        automaton = spectral.automaton
        valid = conditional(automaton, training[: len(training) // 5], data["actions"], width)
        if best is None or valid > best[0]:
            best = (valid, automaton, rank)
    seconds = time.perf_counter() - started
    score = conditional(best[1], test, data["actions"], width)
    print(json.dumps({"name": f"scikit-splearn, rank {best[2]}", "log_likelihood": score, "seconds": seconds}))


def conditional(automaton, sequences, actions, width) -> float:
    """Mean over sequences of ln P(o_1..n | a_1..n), each step normalised over observations."""
    initial, final = np.asarray(automaton.initial), np.asarray(automaton.final)
    transitions = np.stack([np.asarray(t) for t in automaton.transitions])
    readouts = transitions @ final
    total = 0.0
    for sequence in sequences:
        state = initial
        for symbol in sequence:
            a, o = divmod(symbol, width)
            weights = np.maximum(state @ readouts[a * width : (a + 1) * width].T, 0.0)
            weights = weights / weights.sum() if weights.sum() > 0 else np.full(width, 1 / width)
            weights = np.maximum(weights, FLOOR)
            total += np.log(weights[o] / weights.sum())
            after = state @ transitions[symbol]
            size = after @ final
            state = after / size if size > 1e-12 else initial
    return total / len(sequences)


if __name__ == "__main__":
    main(sys.argv[1])
