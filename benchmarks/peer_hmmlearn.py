"""hmmlearn's CategoricalHMM on pairs of action and observation, conditioned on actions by dividing through their probability."""

import json
import sys
import time
import warnings

import numpy as np
from hmmlearn.hmm import CategoricalHMM

warnings.filterwarnings("ignore")
STATES = [40, 80, 160]  # its next state does not depend on the pair shown, so that it needs many
ROUNDS = 50


def main(path: str) -> None:
    data = json.load(open(path))
    width, actions = len(data["observation_names"]), len(data["action_names"])

    def symbols(part):
        return np.array(part["action"]) * width + np.array(part["observation"]), np.array(part["episode"])

    def lengths(episodes):
        return np.diff(np.flatnonzero(np.r_[True, episodes[1:] != episodes[:-1], True]))

    x, episodes = symbols(data["training"])
    y, test = symbols(data["test"])
    sizes, held = lengths(episodes), lengths(test)
    cut = sizes[: int(0.8 * len(sizes))]
    best = None
    started = time.perf_counter()
    for states in STATES:
        model = CategoricalHMM(
            states, n_iter=ROUNDS, random_state=data["seed"], n_features=actions * width, implementation="scaling"
        )
        model.fit(x[: cut.sum(), None], cut)
        valid = conditional(model, x[cut.sum() :], sizes[len(cut) :], actions, width)
        if best is None or valid > best[0]:
            best = (valid, model)
    seconds = time.perf_counter() - started
    score = conditional(best[1], y, held, actions, width)
    name = f"hmmlearn, best of {STATES} states"
    print(json.dumps({"name": name, "log_likelihood": score, "seconds": seconds}))


def conditional(model, x, sizes, actions, width) -> float:
    """Mean over sequences of ln P(o_1..n | a_1..n) by filtering: each step is divided by the probability of its action."""
    emissions = np.maximum(model.emissionprob_.reshape(model.n_components, actions, width), 1e-10)
    total, start = 0.0, 0
    for size in sizes:
        belief = model.startprob_
        for symbol in x[start : start + size]:
            a, o = divmod(int(symbol), width)
            of_action = emissions[:, a].sum(axis=1)
            joint = belief * emissions[:, a, o]
            total += np.log(joint.sum() / (belief @ of_action))
            belief = (joint / joint.sum()) @ model.transmat_
        start += size
    return total / len(sizes)


if __name__ == "__main__":
    main(sys.argv[1])
