"""Pages of all kinds, made with the real program in a folder."""

import subprocess

MAZE = "colored-gridworld"
SMALL = ["--test-dim", "64", "--history-dim", "64", "--rank", "8"]
# What a log may call things, and what must not become a part of a page.
NASTY = "</script><b>{{data}}&amp;"


def pages(binary, folder):
    """Makes one page of each kind; their names and the sections that they must have."""

    def foretell(*args, into=None):
        with open(folder / into, "w") if into else open("/dev/null", "w") as out:
            subprocess.run([binary, *map(str, args), "-q"], cwd=folder, stdout=out, check=True)

    def sample(domain, episodes, seed, name):
        foretell("sample", domain, "--episodes", episodes, "--seed", seed, "-o", name)

    sample(MAZE, 1000, 1, "walks.csv")
    sample(MAZE, 300, 2, "heldout.csv")
    foretell("learn", "walks.csv", "--refine", "--em-rounds", 5, *SMALL, "-o", "model.safetensors")
    foretell("learn", "walks.csv", *SMALL, "-o", "linear.safetensors")
    foretell("report", "model.safetensors", "--logs", "heldout.csv", "--truth", MAZE, "-o", "model.html")
    foretell("report", "linear.safetensors", "-o", "bare.html")
    foretell("plan", "model.safetensors", "walks.csv", "-o", "policy.safetensors")
    foretell("report", "policy.safetensors", "--domain", MAZE, "--logs", "heldout.csv", "--test-episodes", 300, "-o", "policy.html")
    foretell("report", "policy.safetensors", "--logs", "heldout.csv", "--test-episodes", 300, "-o", "watching.html")
    quick = ["--episodes", 400, "--agent-rounds", 2, "--test-episodes", 200]
    foretell("agent", MAZE, "--refine", "false", *quick, "-o", "agent.safetensors", "--json", into="run.json")
    foretell("report", "run.json", "-o", "run.html")

    rows = "".join(f"{i},{t},{'ab'[(i + t) % 2]},\"{NASTY if (i * t) % 3 else 'plain'}\",{t % 2}\n" for i in range(40) for t in range(6))
    (folder / "nasty.csv").write_text("episode_id,step,action,observation,reward\n" + rows)
    foretell("learn", "nasty.csv", *SMALL, "-o", "nasty.safetensors")
    foretell("report", "nasty.safetensors", "--logs", "nasty.csv", "-o", "nasty.html")

    always = ["foresight", "episodes", "data", "parameters", "provenance", "words", "spectrum"]
    return {
        "model": [*always, "calibration"],
        "bare": always,
        "policy": [*always, "calibration", "earned", "estimates"],
        "watching": [*always, "calibration", "earned", "estimates"],
        "run": [*always, "earned", "estimates", "rounds"],
        "nasty": [*always, "calibration"],
    }
