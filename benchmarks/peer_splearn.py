"""scikit-splearn's weighted automata on pairs of action and observation, conditioned on actions; what is not positive is floored."""

import itertools
import json
import sys
import time

import numpy as np
from splearn.datasets.data_sample import DataSample
from splearn.spectral import Spectral

RANKS = [2, 5, 10, 20, 40]
VERSIONS = ["prefix", "factor"]
LENGTHS = [1, 2]  # of rows and columns of its Hankel matrix
FLOOR = 1e-4


def main(path: str) -> None:
    data = json.load(open(path))
    width, actions = len(data["observation_names"]), len(data["action_names"])

    def sequences(part):
        symbols = np.array(part["action"]) * width + np.array(part["observation"])
        ends = np.flatnonzero(np.diff(part["episode"])) + 1
        return [sequence.tolist() for sequence in np.split(symbols, ends)]

    training, test = sequences(data["training"]), sequences(data["test"])
    cut = int(0.8 * len(training))
    longest = max(len(sequence) for sequence in training)
    rows = np.full((cut, longest), -1)
    for i, sequence in enumerate(training[:cut]):
        rows[i, : len(sequence)] = sequence
    sample = DataSample(data=(actions * width, cut, rows)).data
    best = None
    started = time.perf_counter()
    for rank, version, length in itertools.product(RANKS, VERSIONS, LENGTHS):
        spectral = Spectral(rank=rank, lrows=length, lcolumns=length, version=version, partial=True, sparse=True)
        try:
            spectral.fit(sample)
            # Its automaton gives the probability of whole sequences; ours to predict with is that of beginnings.
            automaton = spectral.automaton.transformation(source="classic", target="prefix")
        except (ValueError, np.linalg.LinAlgError):
            continue  # a rank that its matrix does not have
        valid = conditional(automaton, training[cut:], width)
        if best is None or valid > best[0]:
            best = (valid, automaton)
    seconds = time.perf_counter() - started
    name = f"scikit-splearn, best of {len(RANKS)} ranks, {len(VERSIONS)} versions, {len(LENGTHS)} lengths"
    print(json.dumps({"name": name, "log_likelihood": conditional(best[1], test, width), "seconds": seconds}))


def conditional(automaton, sequences, width) -> float:
    """Mean over sequences of ln P(o_1..n | a_1..n), each step normalised over observations."""
    initial, final = np.asarray(automaton.initial), np.asarray(automaton.final)
    transitions = np.stack([np.asarray(t) for t in automaton.transitions])
    readouts = transitions @ final
    total = 0.0
    for sequence in sequences:
        state = initial
        for symbol in sequence:
            a, o = divmod(symbol, width)
            weights = np.maximum(readouts[a * width : (a + 1) * width] @ state, 0.0)
            weights = weights / weights.sum() if weights.sum() > 0 else np.full(width, 1 / width)
            weights = np.maximum(weights, FLOOR)
            total += np.log(weights[o] / weights.sum())
            after = state @ transitions[symbol]
            size = after @ final
            state = after / size if abs(size) > 1e-12 else initial
    return total / len(sequences)


if __name__ == "__main__":
    main(sys.argv[1])
