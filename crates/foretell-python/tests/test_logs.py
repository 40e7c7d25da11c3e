"""Logs from files, arrays, tables and back."""

import copy
import pickle

import numpy as np
import pandas
import polars
import pytest

import foretell as ft


def steps(logs):
    return [episode for episode in logs]


@pytest.fixture
def walks(tmp_path):
    logs = ft.sample("colored-gridworld", episodes=50, seed=1)
    path = tmp_path / "walks.csv"
    logs.write(path)
    return logs, path


@pytest.mark.parametrize("name", ["walks.csv", "walks.csv.gz", "walks.jsonl", "walks.parquet"])
def test_files_give_back_what_was_written(walks, tmp_path, name):
    logs, _ = walks
    logs.write(tmp_path / name)
    assert steps(ft.read(tmp_path / name)) == steps(logs)


def test_folders_and_patterns_are_read_in_order(tmp_path):
    for i, seed in [(10, 3), (2, 2)]:
        ft.sample("tiger", episodes=2, max_steps=3, seed=seed).write(tmp_path / f"part-{i}.csv")
    expected = steps(ft.read(tmp_path / "part-2.csv", tmp_path / "part-10.csv"))
    assert steps(ft.read(tmp_path)) == steps(ft.read(tmp_path / "part-*.csv")) == expected


def test_arrays_tables_and_files_are_the_same_logs(walks):
    logs, path = walks
    read = ft.read(path)
    columns = read.to_numpy()
    names = np.array([name.removesuffix(" [end]") for name in read.observations])[columns["observation"]]
    again = ft.from_numpy(
        np.array(read.actions)[columns["action"]],
        names,
        columns["reward"],
        episodes=columns["episode_id"],
        terminated=columns["terminated"],
        truncated=columns["truncated"],
    )
    assert steps(again) == steps(read)
    assert again.actions == read.actions and again.observations == read.observations


def test_pandas_arrow_and_polars(walks):
    logs, path = walks
    read = ft.read(path)
    frame = pandas.read_csv(path)
    assert steps(ft.from_pandas(frame)) == steps(read)
    assert steps(ft.from_pandas(read.to_pandas())) == steps(read)
    assert steps(ft.from_arrow(polars.read_csv(path))) == steps(read)
    assert steps(ft.from_arrow(polars.read_csv(path).with_columns(polars.col("action").cast(polars.Categorical)))) == steps(read)


def test_other_columns_may_hold_anything():
    frame = pandas.DataFrame({"action": ["N", "E"], "observation": [0, 1], "when": pandas.to_datetime(["2026-01-01"] * 2), "notes": [{}, 1.5]})
    logs = ft.from_pandas(frame)
    assert steps(logs) == [[("N", "0", None), ("E", "1", None)]]
    assert logs.summary()["notes"]["ignored_columns"] == ["when", "notes"]


def test_several_entries_make_one_symbol():
    logs = ft.from_numpy(actions=[[0, 1], [1, 1]], observations=[[0, 2, 1], [1, 0, 0]])
    assert logs.actions == ["0|1", "1|1"] and logs.observations == ["0|2|1", "1|0|0"]
    model = ft.learn(ft.from_numpy([[0, 1]] * 40, [[0, 2], [1, 0]] * 20, episodes=np.repeat(np.arange(4), 10)), mix=0, rank=2)
    assert model.predict([((0, 1), (0, 2))], action=(0, 1))["1|0"] > 0.9
    assert model.predict([(np.array([0, 1]), np.array([0, 2]))], action=[0, 1])["1|0"] > 0.9


def test_missing_rewards_stay_missing():
    logs = ft.from_numpy(["N", "N"], ["a", "b"], rewards=[np.nan, 1.0])
    assert steps(logs) == [[("N", "a", None), ("N", "b", 1.0)]]


def test_hmmlearn_sequences():
    logs = ft.from_hmmlearn(np.array([[0], [1], [2]]), lengths=[2, 1])
    assert len(logs) == 2 and logs.actions == ["wait"]
    with pytest.raises(ValueError, match="add up to 4"):
        ft.from_hmmlearn([[0], [1], [2]], [2, 2])


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.csv"):
        ft.read(tmp_path / "none.csv")
    with pytest.raises(TypeError, match="list has no Arrow interface"):
        ft.from_arrow([1, 2])
    with pytest.raises(ValueError, match="no file matches"):
        ft.read(tmp_path / "*.csv")
    with pytest.raises(ValueError, match="different lengths"):
        ft.from_numpy([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="row 2: observation 0.5 is not a whole number; divide the column into bins"):
        ft.from_numpy([0, 1], [1.0, 0.5])
    with pytest.raises(ValueError, match="the table"):
        ft.from_numpy([0, 1, 0], [0, 0, 0], episodes=[0, 1, 0])
    bad = tmp_path / "bad.csv"
    bad.write_text("episode_id,action,observation,reward\n0,N,wall,x\n1,N,wall,1\n")
    with pytest.raises(ValueError, match="bad.csv line 2"):
        ft.learn(ft.read(bad))
    assert len(ft.read(bad, skip_bad_episodes=True)) == 1


def test_parts_are_taken_by_number():
    logs = ft.sample("tiger", episodes=10, max_steps=4, seed=1)
    all_steps = steps(logs)
    assert steps(logs.take([7, 2])) == [all_steps[7], all_steps[2]]
    assert logs[-1] == all_steps[-1] and steps(logs[1:7:2]) == all_steps[1:7:2]
    first, second = logs.split(0.6, seed=3)
    assert sorted(map(str, steps(first) + steps(second))) == sorted(map(str, all_steps))
    with pytest.raises(IndexError, match="no episode 10"):
        logs.take([10])
    assert steps(logs.take(np.arange(10) % 3 == 0)) == all_steps[::3]
    with pytest.raises(ValueError, match="the mask has length 3, but there are 10 episodes"):
        logs.take([True, False, True])


def test_shared_columns_are_read_only():
    logs = ft.sample("tiger", episodes=3, max_steps=4, seed=1)
    with pytest.raises(ValueError, match="read-only"):
        logs.to_numpy()["reward"][:] = 99
    frame = logs.to_pandas()
    frame.loc[:, "reward"] = 99.0
    assert logs.to_numpy()["reward"].max() < 99


def test_pickles_are_the_same_logs():
    logs = ft.sample("colored-gridworld", episodes=200, seed=1)
    for again in (pickle.loads(pickle.dumps(logs)), copy.deepcopy(logs)):
        assert steps(again) == steps(logs) and again.actions == logs.actions
        assert (again.to_numpy()["terminated"] == logs.to_numpy()["terminated"]).all()


def test_findings_about_tables_are_reported(tmp_path):
    frame = pandas.DataFrame({"episode": [0, 0, 1], "animal": ["a", "b", "a"], "action": [0, 1, 0], "obs": [0, 1, 0]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    findings = ft.read(tmp_path / "table.csv").summary()["findings"]
    assert any("not read: animal" in finding for finding in findings)
    assert ft.from_pandas(frame).summary()["findings"] == findings
    assert ft.from_pandas(polars.DataFrame(frame.to_dict("list"))).summary()["findings"] == findings


def test_times_that_are_no_steps_are_named():
    frame = pandas.DataFrame({"action": [0, 1], "observation": [0, 1], "time": pandas.to_datetime(["2026-01-01", "2026-01-02"])})
    with pytest.raises(ValueError, match="time .* is not an integer; number the steps .* or leave the column out"):
        ft.from_pandas(frame)


def test_logs_add_up_whatever_the_order_of_their_names():
    first = ft.from_numpy(["N", "E"], ["wall", "open"], [0.0, 1.0])
    second = ft.from_numpy(["E", "N"], ["exit", "wall"], [2.0, 3.0], terminated=[False, True])
    assert steps(first + second) == steps(first) + steps(second)
    assert (first + second).actions == ["N", "E"]
    with pytest.raises(TypeError):
        first + 1


def test_summaries_and_notebooks():
    logs = ft.sample("tiger", episodes=10, seed=1)
    assert logs.summary()["episodes"] == 10
    assert "<table>" in logs._repr_html_()
