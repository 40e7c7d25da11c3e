"""Games of memory from POPGym: what was seen must be remembered. Needs ``pip install popgym``."""

import warnings

import foretell as ft

warnings.filterwarnings("ignore")


def train(env, episodes: int, **learning):
    """A policy planned from random play, and its return compared with random play."""
    logs = ft.gymnasium.record(env, episodes=episodes, seed=1)
    policy = ft.plan(ft.learn(logs, refine=True, **learning), logs)
    earned = ft.evaluate(policy, env, episodes=200, seed=2)
    columns = logs.to_numpy()
    random = columns["reward"].sum() / len(logs)
    print(f"{type(env.unwrapped).__name__}: {logs}")
    print(f"  earns {earned.mean_return:.3f} ± {earned.ci95:.3f}, random play {random:.3f}")


def main() -> None:
    from popgym.envs.multiarmed_bandit import MultiarmedBandit
    from popgym.envs.repeat_previous import RepeatPrevious

    # Say which suit was seen two cards ago. Past cards carry no information about the next, only about rewards: rewards must be observed.
    train(RepeatPrevious(num_decks=1, k=2), episodes=1000, observe_reward=True)
    train(MultiarmedBandit(num_bandits=4, episode_length=50), episodes=1000)


if __name__ == "__main__":
    main()
