"""Behind one of two doors is a tiger: listen, then open the other. From random logs to a policy that opens a door once the evidence suffices."""

import foretell as ft

logs = ft.sample("tiger", episodes=2000, seed=1)
model = ft.learn(logs, refine=True)
policy = ft.plan(model, logs, discount=0.95)

run = policy.start()
print("action      values of listen, open-left, open-right")
for heard in ["growl-left", "growl-right", "growl-left", "growl-left"]:
    print(f"{run.action:<11}", "  ".join(f"{value:8.2f}" for value in run.values.values()), "  hears", heard)
    run.observe(heard)
print(run.action)

earned = ft.evaluate(policy, "tiger", episodes=10_000, discount=0.95)
best = ft.solve("tiger", discount=0.95)
print(f"earns {earned.discounted_return:.2f} ± {earned.discounted_ci95:.2f}; the best possible is {best.lower:.2f} to {best.upper:.2f}")
