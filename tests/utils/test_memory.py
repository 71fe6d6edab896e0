"""The memory that the system and its control groups leave to this process."""

import os
from pathlib import Path

import pytest

from quadric.utils._memory_and_threads import available_bytes, control_group_bytes, control_groups
from tests.support.processes import output_of

MB = 2**20


def machine(root, cgroup, files):
    """Create a fake /proc and /sys below `root`."""
    process = root / "proc" / "self"
    process.mkdir(parents=True)
    (process / "cgroup").write_text(cgroup)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


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


UNLIMITED = 2**63 - 4096  # what version 1 reports
CASES = {
    "v2, the group itself": ("0::/app\n", v2("/app", 300 * MB, 100 * MB), 200 * MB),
    "v2, a child without a limit in a parent with one": (
        "0::/pod/app\n",
        v2("/pod", 500 * MB, 450 * MB) | v2("/pod/app", "max", 9),
        50 * MB,
    ),
    "v2, the smallest of three": (
        "0::/a/b/c\n",
        v2("/a", 900 * MB, 100 * MB)
        | v2("/a/b", 700 * MB, 100 * MB)
        | v2("/a/b/c", 650 * MB, 10 * MB),
        600 * MB,
    ),
    "v2, a neighbor has used up the parent": (
        "0::/a/b\n",
        v2("/a", 100 * MB, 120 * MB) | v2("/a/b", 90 * MB, MB),
        0,
    ),
    "v2, the cache is reclaimable": (
        "0::/app\n",
        v2("/app", 300 * MB, 290 * MB, inactive=250 * MB),
        260 * MB,
    ),
    "v2, only a neighbor is limited": (
        "0::/app\n",
        v2("/app", "max", 5) | v2("/other", 10 * MB, MB),
        None,
    ),
    "v2, unlimited": ("0::/app\n", v2("/app", "max", 5), None),
    "v2, in its own namespace": ("0::/\n", v2("", 64 * MB, 4 * MB), 60 * MB),
    "v2, outside of its namespace": ("0::/../other\n", v2("", 64 * MB, 4 * MB), 60 * MB),
    "v1, nested": (
        "9:name=systemd:/\n4:memory:/x/y\n1:cpu:/\n0::/\n",
        v1("/x/y", 300 * MB, 20 * MB) | v1("/x", 250 * MB, 50 * MB) | v1("", UNLIMITED, 7),
        200 * MB,
    ),
    "v1, the cache is reclaimable": (
        "4:cpu,memory:/x\n",
        v1("/x", 300 * MB, 300 * MB, 80 * MB),
        80 * MB,
    ),
    "v1, a container sees its own group as the root": (
        "4:memory:/docker/123\n",
        v1("", 128 * MB, 28 * MB),
        100 * MB,
    ),
    "v1, unlimited": ("4:memory:/x\n", v1("/x", UNLIMITED, 7), UNLIMITED - 7),
    "both, memory in v1": (
        "4:memory:/x\n0::/user.slice\n",
        v1("/x", 70 * MB, 20 * MB) | {"sys/fs/cgroup/unified/user.slice/cgroup.procs": 1},
        50 * MB,
    ),
    "another controller of a similar name": (
        "4:nomemory,memoryless:/x\n",
        v1("/x", 70 * MB, 20 * MB),
        None,
    ),
    "nonsense": ("4:memory\n\n0::\n:::\n", {}, None),
    "files that are not numbers": ("0::/app\n", {"sys/fs/cgroup/app/memory.max": "soon"}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_control_groups_leave_the_minimum_of_the_group_and_its_parents(case, tmp_path):
    cgroup, files, left = CASES[case]
    assert control_group_bytes(machine(tmp_path, cgroup, files)) == left


def test_no_control_groups_mean_no_limit(tmp_path):
    assert control_group_bytes(tmp_path) is None


def test_the_first_control_group_lists_this_process():
    found = control_groups()
    if not found or not (found[0] / "cgroup.procs").exists():
        pytest.skip("this machine has no control groups, or they are not mounted")
    assert str(os.getpid()) in (found[0] / "cgroup.procs").read_text().split()


def test_available_memory_is_a_sensible_number():
    assert 2**20 < available_bytes() < 2**50


def test_available_memory_is_limited_by_a_new_control_group():
    """Runs only if QUADRIC_TEST_CGROUP names a group in which the tests may create one."""
    parent = os.environ.get("QUADRIC_TEST_CGROUP")
    if parent is None:
        pytest.skip("QUADRIC_TEST_CGROUP is not set")
    group = Path(parent) / f"quadric-{os.getpid()}"
    group.mkdir()
    try:
        limit = group / "memory.max"
        limit = limit if limit.exists() else group / "memory.limit_in_bytes"
        limit.write_text(str(300 * MB))
        script = (
            f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
            "from quadric.utils._memory_and_threads import available_bytes\n"
            "print(available_bytes())\n"
        )
        assert 100 * MB < int(output_of(script)) <= 300 * MB
    finally:
        group.rmdir()
