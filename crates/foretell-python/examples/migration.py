"""Which sites of a flyway should be protected while the sea level, which is hidden, rises? (Adaptive migratory management.)

First from 2000 random histories of 50 years, without a model of the birds; then adaptively, where each round of management is planned
from the data of all earlier rounds.
"""

import foretell as ft

domain = ft.Domain("amm-cpsr")
print(domain.story)
logs = ft.sample(domain, episodes=2000, seed=1)
random = logs.to_numpy()["reward"].sum() / len(logs)
print(f"{logs}, {random:,.0f} birds over an episode")

model = ft.learn(logs, refine=True)
policies = {
    "from random logs": ft.plan(model, logs),
    "wary of what was rarely tried": ft.plan(model, logs, pessimism=1),
    "adaptively": ft.agent(domain, episodes=2000, seed=1).policy,
}
for name, policy in policies.items():
    earned = ft.evaluate(policy, domain, episodes=2000)
    print(f"{name:<30} {earned.mean_return:,.0f} ± {earned.ci95:,.0f}, {earned.mean_return / random - 1:+.1%} over random")

print("\nWhat it would do along a history it never saw:")
run = policies["adaptively"].start()
for action, observation, _ in next(iter(ft.sample(domain, episodes=1, max_steps=8, seed=2))):
    print(f"  {run.action:<10} ({action} was done), then sees {observation}")
    run.observe(observation, action=action)
