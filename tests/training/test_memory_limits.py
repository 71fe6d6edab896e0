"""The memory guards: what a process may use, and a limit that holds."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadric
from quadric import QuadraticClassifier
from quadric._utils.control_groups import groups, remaining_bytes
from quadric.errors import MemoryLimitError
from tests.support.memory_cases import FEW_CASES, MORE_CASES, random_cases

MB = 2**20


def machine(root, cgroup, mounts, files):
    """A fake /proc and /sys below `root`."""
    process = root / "proc" / "self"
    process.mkdir(parents=True)
    (process / "cgroup").write_text(cgroup)
    (process / "mountinfo").write_text(mounts)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 {} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


def v2(path, limit, usage, inactive=0):
    where = f"sys/fs/cgroup{path}"
    return {
        f"{where}/memory.max": limit,
        f"{where}/memory.current": usage,
        f"{where}/memory.stat": f"anon 5\nfile 7\ninactive_file {inactive}\nactive_file 3",
    }


def v1(path, limit, usage, inactive=0):
    where = f"sys/fs/cgroup/memory{path}"
    return {
        f"{where}/memory.limit_in_bytes": limit,
        f"{where}/memory.usage_in_bytes": usage,
        f"{where}/memory.stat": f"inactive_file 1\ntotal_inactive_file {inactive}",
    }


UNLIMITED = 2**63 - 4096  # of version 1
CASES = {
    "v2, the group itself": (
        "0::/app\n", V2, v2("/app", 300 * MB, 100 * MB), 200 * MB,
    ),
    "v2, a child without a limit in a parent with one": (
        "0::/pod/app\n", V2, v2("/pod", 500 * MB, 450 * MB) | v2("/pod/app", "max", 9), 50 * MB,
    ),
    "v2, the smallest of three": (
        "0::/a/b/c\n", V2,
        v2("/a", 900 * MB, 100 * MB) | v2("/a/b", 700 * MB, 100 * MB)
        | v2("/a/b/c", 650 * MB, 10 * MB), 600 * MB,
    ),
    "v2, the parent is used up by a neighbour": (
        "0::/a/b\n", V2, v2("/a", 100 * MB, 120 * MB) | v2("/a/b", 90 * MB, MB), 0,
    ),
    "v2, what the cache holds can be taken back": (
        "0::/app\n", V2, v2("/app", 300 * MB, 290 * MB, inactive=250 * MB), 260 * MB,
    ),
    "v2, a limit of the neighbour": (
        "0::/app\n", V2, v2("/app", "max", 5) | v2("/other", 10 * MB, MB), None,
    ),
    "v2, no limits": ("0::/app\n", V2, v2("/app", "max", 5), None),
    "v2, in a namespace of its own": ("0::/\n", V2, v2("", 64 * MB, 4 * MB), 60 * MB),
    "v2, outside of the namespace": ("0::/../other\n", V2, v2("", 64 * MB, 4 * MB), 60 * MB),
    "v2, mounted elsewhere, a blank in its name": (
        "0::/app\n", V2.replace("/sys/fs/cgroup", "/mnt/my\\040groups"),
        {"mnt/my groups/app/memory.max": 10 * MB, "mnt/my groups/app/memory.current": MB}, 9 * MB,
    ),
    "v1, nested": (
        "9:name=systemd:/\n4:memory:/x/y\n1:cpu:/\n0::/\n", V1.format("/"),
        v1("/x/y", 300 * MB, 20 * MB) | v1("/x", 250 * MB, 50 * MB) | v1("", UNLIMITED, 7),
        200 * MB,
    ),
    "v1, the cache": (
        "4:cpu,memory:/x\n", V1.format("/"), v1("/x", 300 * MB, 300 * MB, 80 * MB), 80 * MB,
    ),
    "v1, of a container that sees its own group as the root": (
        "4:memory:/docker/123\n", V1.format("/docker/123"), v1("", 128 * MB, 28 * MB), 100 * MB,
    ),
    "v1, no limits": ("4:memory:/x\n", V1.format("/"), v1("/x", UNLIMITED, 7), None),
    "both, the memory in v1": (
        "4:memory:/x\n0::/user.slice\n", V1.format("/"),
        v1("/x", 70 * MB, 20 * MB) | {"sys/fs/cgroup/unified/user.slice/cgroup.procs": 1}, 50 * MB,
    ),
    "nonsense": ("4:memory\n\n0::\n:::\n", "30 23\n - cgroup2\n", {}, None),
    "files that cannot be read": (
        "0::/app\n", V2, {"sys/fs/cgroup/app/memory.max": "soon"}, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_least_that_a_group_or_one_above_it_leaves(case, tmp_path):
    cgroup, mounts, files, left = CASES[case]
    assert remaining_bytes(machine(tmp_path, cgroup, mounts, files)) == left


def test_a_machine_without_control_groups(tmp_path):
    assert remaining_bytes(tmp_path) is None


def test_the_groups_of_this_very_process():
    """Nothing is changed: the first directory that is found lists this process."""
    found = groups()
    if not found or not (found[0] / "cgroup.procs").exists():
        pytest.skip("this machine has no control groups, or they are not mounted")
    assert str(os.getpid()) in (found[0] / "cgroup.procs").read_text().split()


def test_a_child_group_with_a_limit():
    """A group is made, so this runs only where somebody says in which one that is allowed."""
    parent = os.environ.get("QUADRIC_TEST_CGROUP")
    if parent is None:
        pytest.skip("QUADRIC_TEST_CGROUP names no control group in which the tests may make one")
    group = Path(parent) / f"quadric-{os.getpid()}"
    group.mkdir()
    try:
        limit = group / "memory.max"
        limit = limit if limit.exists() else group / "memory.limit_in_bytes"
        limit.write_text(str(300 * MB))
        script = (
            f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
            "from quadric._utils.memory import available_bytes\n"
            "print(available_bytes())\n"
        )
        run = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert 100 * MB < int(run.stdout) <= 300 * MB
    finally:
        group.rmdir()


# ---- a limit that holds ----------------------------------------------------------------------


@pytest.fixture
def limit():
    yield lambda size: quadric.set_config(max_memory=size)
    quadric.set_config(max_memory=None)


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(FEW_CASES, id="few"),
        pytest.param(MORE_CASES, id="more", marks=pytest.mark.full),
        pytest.param(random_cases(200), id="random", marks=pytest.mark.full),
    ],
)
def test_a_limit_of_the_users_holds(cases):
    """Refused before the memory is taken, or done with at most a fifth more than the limit."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this system does not tell by how much a process has grown")
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.memory_process"],
        input=json.dumps(cases), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(results) == len(cases)
    spare = 2 * MB  # Python's own objects, and what the libraries keep
    broken = [
        (result["case"], [(limit // MB, grown // MB) for limit, grown in result["steps"]])
        for result in results
        if any(grown > 1.2 * limit + spare for limit, grown in result["steps"])
    ]
    assert not broken, "\n".join(map(str, broken))
    # and what is said to be needed is not needed many times over
    over = [steps[-1][0] / (steps[-1][1] + spare) for steps in (r["steps"] for r in results)]
    assert np.median(over) < 2.5
    assert all(len(r["steps"]) > 1 for r in results if "limit" not in r["case"])


def test_classes_count(limit):
    """Five thousand classes are few parameters, and many targets."""
    X, y = np.zeros((20_000, 2)), np.arange(20_000) % 5000
    limit("300 MB")
    for options in ({"solver": "adam"}, {"solver": "lbfgs"}, {"solver": "sgd", "batch_size": 1}):
        model = QuadraticClassifier((), layer_kinds="linear", **options)
        with pytest.raises(MemoryLimitError, match=r"20,000 samples of 2 inputs and 5,000 outputs"):
            model.fit(X, y)
    with pytest.raises(MemoryLimitError, match="partial_fit"):
        model.fit(X, y)
    small = QuadraticClassifier((), layer_kinds="linear", solver="adam", max_iter=1, tol=1e9)
    small.partial_fit(X[:500], y[:500] % 100, classes=np.arange(5000))
    with pytest.raises(MemoryLimitError, match="20,000 samples"):
        small.partial_fit(X, y)
    with pytest.raises(MemoryLimitError, match="the answers for 20,000 samples, 40,000 bytes each"):
        small.predict_proba(X)
    assert small.predict(X).shape == (20_000,)  # classes alone are small
    limit(None)


def test_the_error_has_its_facts_and_travels(limit):
    limit("1 MB")
    with pytest.raises(MemoryError) as caught:
        QuadraticClassifier((), alpha=1.0).fit(np.ones((10, 200)), [0, 1] * 5)
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert error.limit == MB < error.needed
    assert "layer 0 (quadratic, 200 inputs, 1 neurons)" in error.fact
    assert "set_config(max_memory=...)" in error.ways


# ---- categories in the command line ----------------------------------------------------------


def write_table(path, rows, categories):
    rng = np.random.default_rng(0)
    names = rng.permutation(np.arange(rows) % categories)
    values = rng.normal(size=rows).round(3).tolist()
    lines = [f"name{k},{x},{'ab'[x > 0]}\n" for k, x in zip(names, values, strict=True)]
    path.write_text("name,x,y\n" + "".join(lines))
    return path


MEASURED = """
import resource, sys, warnings
from quadric.cli import app
import quadric
sys.argv[1:2] = []
if sys.argv[1].isdigit():
    quadric.set_config(max_memory=int(sys.argv.pop(1)))
code = 0
try:
    app()
except SystemExit as end:
    code = end.code
print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB", file=sys.stderr)
sys.exit(code)
"""


def command(*arguments):
    """Exit code, stderr, and the most memory that the process had, in megabytes."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, "-", *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    *said, last = run.stderr.splitlines()
    return run.returncode, said, int(last.split()[1])


@pytest.mark.parametrize("count", [8000, pytest.param(100_000, marks=pytest.mark.full)])
def test_many_categories_stay_sparse(count, tmp_path):
    """Dense, the inputs would take 0.5 GB (75 GB for the full count)."""
    table, model = write_table(tmp_path / "t.csv", count, count), tmp_path / "m.quadric"
    train = ["train", table, "-t", "y", "-o", model, "--max-categories", 2 * count]
    code, _, usual = command("train", write_table(tmp_path / "s.csv", 300, 3), "-t", "y", "-o",
                             tmp_path / "s.quadric")  # fmt: skip
    assert code == 0
    most = usual + (200 if count < 10_000 else 1500)
    code, said, peak = command(200 * MB, *train)
    assert code == 1
    assert peak < most
    assert len(said) == 1
    assert "inputs, 1 neurons) has" in said[0]
    assert "Use --kind reduced, --hidden 30, or fewer columns (--drop)." in said[0]
    assert not model.exists()
    code, said, peak = command(*train, "--kind", "reduced")
    assert code == 0, said
    assert peak < most
    code, said, peak = command("predict", model, table, "-o", tmp_path / "out.csv", "--proba")
    assert code == 0, said
    assert peak < most
    assert len((tmp_path / "out.csv").read_text().splitlines()) == count + 1
    code, said, peak = command(200 * MB, "explain", model)
    assert (code, len(said)) == (1, 1)
    assert "would need about" in said[0]
    assert peak < most


def test_a_dense_model_of_many_categories_predicts_in_small_batches(tmp_path):
    """Files that earlier versions wrote encode densely: a batch has fewer rows then."""
    from sklearn.preprocessing import OneHotEncoder

    from quadric import save
    from quadric.tables import Settings, Wishes, open_table, train

    table = write_table(tmp_path / "t.csv", 4000, 4000)
    trained = train(open_table(table), Wishes("y", most_categories=5000), Settings(kind="reduced"))
    encoder = trained.model[0].named_transformers_["categories"][-1]
    assert isinstance(encoder, OneHotEncoder)
    trained.model[0].sparse_output_ = encoder.sparse_output = False
    extra = {"table": trained.schema.to_dict()}
    save(trained.model, tmp_path / "m.quadric", extra=extra)
    _, _, usual = command("predict", tmp_path / "m.quadric", write_table(tmp_path / "s.csv", 9, 3))
    wide = write_table(tmp_path / "w.csv", 16_000, 4000)  # 0.5 GB if it is encoded at once
    code, said, peak = command("predict", tmp_path / "m.quadric", wide, "-o", tmp_path / "o.csv")
    assert code == 0, said
    assert peak < usual + 250
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 16_001
