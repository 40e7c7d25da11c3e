"""How well a POMDP can be learned from few episodes by maximum likelihood where its structure is known: EM begins with
the true model, and keeps its states and which transitions and observations are possible.

    python known_structure.py hallway.POMDP --episodes 1000

Of Cassandra's format it reads entries and rows of T and O with numbers or `*`, `R: * : * : s' : * r`, and a start that is
a list of numbers: hallway and tiger-grid. All episodes have 30 steps of random actions.
"""

import argparse

import numpy as np

STEPS = 30
HELD_OUT = 2000
PRIOR = 0.5  # counts for each possible transition
ROUNDS = 60
DISCOUNT = 0.95


class Pomdp:
    def __init__(self, path):
        lines = [line.split("#")[0].strip() for line in open(path)]
        lines = [line for line in lines if line]
        size = {key: int(line.split(":")[1]) for line in lines for key in ("states", "actions", "observations") if line.startswith(key)}
        states, actions, observations = size["states"], size["actions"], size["observations"]
        self.transitions = np.zeros((actions, states, states))
        self.emissions = np.zeros((actions, states, observations))
        self.rewards = np.zeros(states)  # by the state that is entered
        for i, line in enumerate(lines):
            words = [word for part in line.split(":") for word in part.split()]
            if words[0] == "start":
                self.start = np.array([float(word) for word in (words[1:] or lines[i + 1].split())])
            elif words[0] == "R":
                self.rewards[int(words[3])] = float(words[-1])
            elif words[0] in ("T", "O"):
                at = tuple(slice(None) if word == "*" else int(word) for word in words[1:4])
                row = [float(word) for word in words[4:] or lines[i + 1].split()]
                (self.transitions if words[0] == "T" else self.emissions)[at] = row if len(row) > 1 else row[0]
        self.start /= self.start.sum()
        self.transitions /= self.transitions.sum(2, keepdims=True)
        self.emissions /= self.emissions.sum(2, keepdims=True)

    def parameters(self):
        return self.transitions, self.emissions, self.start


def drawn(rng, rows):
    return np.minimum((rows.cumsum(1) < rng.random(len(rows))[:, None]).sum(1), rows.shape[1] - 1)


def sample(rng, pomdp, episodes):
    transitions, emissions, start = pomdp.parameters()
    state = rng.choice(len(start), size=episodes, p=start)
    actions = rng.integers(len(transitions), size=(episodes, STEPS))
    observations = np.zeros((episodes, STEPS), int)
    for t in range(STEPS):
        state = drawn(rng, transitions[actions[:, t], state])
        observations[:, t] = drawn(rng, emissions[actions[:, t], state])
    return actions, observations


def forward(parameters, episodes):
    """Beliefs before each step, and the probability of each observation."""
    (transitions, emissions, start), (actions, observations) = parameters, episodes
    beliefs, chances = [np.tile(start, (len(actions), 1))], []
    for t in range(STEPS):
        joint = np.einsum("ns,nsj->nj", beliefs[t], transitions[actions[:, t]]) * emissions[actions[:, t], :, observations[:, t]]
        chances.append(joint.sum(1))
        beliefs.append(joint / joint.sum(1, keepdims=True))
    return beliefs, chances


def per_episode(parameters, episodes):
    return np.log(forward(parameters, episodes)[1]).sum() / len(episodes[0])


def em_round(parameters, episodes, possible):
    (transitions, emissions, _), (actions, observations) = parameters, episodes
    beliefs, chances = forward(parameters, episodes)
    moves, shown = np.zeros_like(transitions), np.zeros_like(emissions)
    later = np.ones_like(beliefs[0])
    for t in reversed(range(STEPS)):
        for a in range(len(transitions)):
            of = actions[:, t] == a
            seen = observations[of, t]
            weighted = later[of] * emissions[a][:, seen].T / chances[t][of][:, None]
            moves[a] += transitions[a] * (beliefs[t][of].T @ weighted)
            np.add.at(shown[a].T, seen, (beliefs[t + 1] * later)[of])
        weighted = later * emissions[actions[:, t], :, observations[:, t]] / chances[t][:, None]
        later = np.einsum("nj,nsj->ns", weighted, transitions[actions[:, t]])
    moves += PRIOR * possible[0]
    shown = shown.sum(0) + 1e-3 * possible[1]
    start = (beliefs[0] * later).sum(0) + 1e-6
    return moves / moves.sum(2, keepdims=True), shown / shown.sum(1, keepdims=True), start / start.sum()


def qmdp(parameters, rewards):
    values = np.zeros(len(rewards))
    for _ in range(2000):
        q = np.einsum("asj,j->as", parameters[0], rewards + DISCOUNT * values)
        values = q.max(0)
    return q


def earned(rng, pomdp, parameters, q):
    """Mean discounted return in the true system of QMDP on beliefs of these parameters; of random actions without q."""
    state = rng.choice(len(pomdp.start), size=HELD_OUT, p=pomdp.start)
    belief, total = np.tile(parameters[2], (HELD_OUT, 1)), np.zeros(HELD_OUT)
    for t in range(STEPS):
        actions = rng.integers(len(pomdp.transitions), size=HELD_OUT) if q is None else (belief @ q.T).argmax(1)
        state = drawn(rng, pomdp.transitions[actions, state])
        observed = drawn(rng, pomdp.emissions[actions, state])
        total += DISCOUNT**t * pomdp.rewards[state]
        joint = np.einsum("ns,nsj->nj", belief, parameters[0][actions]) * parameters[1][actions, :, observed]
        belief = np.where(joint.sum(1, keepdims=True) > 0, joint / np.maximum(joint.sum(1, keepdims=True), 1e-300), belief)
    return f"{total.mean():.3f} ± {1.96 * total.std() / HELD_OUT**0.5:.3f}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("file")
    arguments.add_argument("--episodes", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments = arguments.parse_args()
    pomdp, rng = Pomdp(arguments.file), np.random.default_rng(arguments.seed)
    training, held_out = sample(rng, pomdp, arguments.episodes), sample(rng, pomdp, HELD_OUT)
    truth = per_episode(pomdp.parameters(), held_out)
    possible, parameters = (pomdp.transitions > 0, pomdp.emissions[0]), pomdp.parameters()
    for done in range(1, ROUNDS + 1):
        parameters = em_round(parameters, training, possible)
        parameters = (parameters[0], np.broadcast_to(parameters[1], pomdp.emissions.shape), parameters[2])
        if done in (1, 2, 5, 10, 20, 40, ROUNDS):
            print(f"{done:2} rounds: {truth - per_episode(parameters, held_out):.3f} nats behind the truth per held-out episode")
    print("random actions earn", earned(rng, pomdp, parameters, None))
    print("QMDP with the truth", earned(rng, pomdp, pomdp.parameters(), qmdp(pomdp.parameters(), pomdp.rewards)))
    print("QMDP with the learned model", earned(rng, pomdp, parameters, qmdp(parameters, pomdp.rewards)))


if __name__ == "__main__":
    main()
