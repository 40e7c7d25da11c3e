"""The ecologist's question: which sites of a flyway to protect, where the sea rises unseen (adaptive migratory management).

Learned from 5000 random episodes of 50 years, without the model of the birds.
"""

import foretell as ft

domain = ft.Domain("amm-cpsr")
print(domain.story)
logs = ft.sample(domain, episodes=5000, seed=1)
print(logs)

model = ft.learn(logs, rank=20, refine=True)
print(model)
policy = ft.plan(model, logs)
earned = ft.evaluate(policy, domain, episodes=2000)
random = logs.to_numpy()["reward"].sum() / len(logs)
print(f"birds over an episode: {earned.mean_return:,.0f} ± {earned.ci95:,.0f}, at random {random:,.0f}: {earned.mean_return / random - 1:+.1%}")

run = policy.start()
site = run.action
print("first it protects", site)
