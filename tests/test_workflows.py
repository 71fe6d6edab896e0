"""The workflows agree with pyproject.toml and call programs that exist. They have not been run."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
WORKFLOWS = {path.stem: path for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
README = (ROOT / "README.md").read_text("utf-8")


def text_of(name):
    return WORKFLOWS[name].read_text("utf-8")


def jobs_of(name):
    return yaml.safe_load(text_of(name))["jobs"]


def steps_of(name):
    return [step for job in jobs_of(name).values() for step in job["steps"]]


def commands_of(name):
    return [line for step in steps_of(name) for line in step.get("run", "").splitlines()]


def systems():
    """Return the pairs of system and Python version on which the fast tests run."""
    matrix = jobs_of("tests")["fast"]["strategy"]["matrix"]
    full = {(system, python) for system in matrix["os"] for python in matrix["python"]}
    return full | {(one["os"], one["python"]) for one in matrix["include"]}


def minor(version):
    return tuple(map(int, version.split(".")))


def test_there_is_a_workflow_for_each_purpose():
    assert sorted(WORKFLOWS) == ["docs", "nightly", "release", "tests"]


def test_the_matrix_covers_the_supported_versions():
    versions = [python for system, python in systems() if system == "ubuntu-latest"]
    classifiers = re.findall(
        r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE
    )
    assert sorted(versions, key=minor) == sorted(classifiers, key=minor)
    assert PROJECT["requires-python"] == f">={min(versions, key=minor)}"
    numbers = sorted(minor(version)[1] for version in versions)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    ends = {f"3.{numbers[0]}", f"3.{numbers[-1]}"}
    for other in ("macos-latest", "windows-latest"):
        assert {python for system, python in systems() if system == other} == ends


@pytest.mark.parametrize("name", WORKFLOWS)
def test_permissions_are_minimal(name):
    workflow = yaml.safe_load(text_of(name))
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for job_name, job in workflow["jobs"].items():
        granted = job.get("permissions", {})
        publishes = any("publish" in step.get("uses", "") for step in job["steps"])
        allowed = [{}, {"contents": "read"}, *([{"id-token": "write"}] if publishes else [])]
        assert granted in allowed, job_name


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_job_has_a_time_limit_and_no_credentials(name):
    for job in jobs_of(name).values():
        assert 0 < job["timeout-minutes"] <= 360
    for step in steps_of(name):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    assert "secrets." not in text_of(name)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_have_a_version(name):
    used = [step["uses"] for step in steps_of(name) if "uses" in step]
    assert used
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+|[0-9a-f]{40})", one)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_that_has_not_run_is_marked(name):
    assert text_of(name).startswith("# Not yet run")


def test_no_registry_is_named():
    files = [path for path in (ROOT / ".github").rglob("*") if path.is_file()]
    assert len(files) > 8
    host = re.compile(r"https?://", re.I)
    assert [path.name for path in files if host.search(path.read_text("utf-8"))] == []


@pytest.mark.unix
def test_commands_exist():
    commands = [command for name in WORKFLOWS for command in commands_of(name)]
    scripts = {command for command in commands if command.startswith(".ci/")}
    assert scripts == {".ci/run", ".ci/base", ".ci/lowest"}
    for script in scripts:
        assert (ROOT / script).stat().st_mode & 0o111
    (marked,) = re.findall(r"<!-- the tests -->\n```sh\n(.*?)\n```", README, re.DOTALL)
    install, test = [part.split("/", 2)[-1] for part in marked.split(" && ")[1:]]
    assert f"python -m {install}" in commands
    assert {test, f"{test} -m full"} <= set(commands)
    extras = PROJECT["optional-dependencies"]
    for command in commands:
        for group in re.findall(r"\.\[([\w,]+)\]", command):
            assert set(group.split(",")) <= extras.keys()


def test_the_full_tests_run_every_night():
    workflow = yaml.safe_load(text_of("nightly"))
    (when,) = workflow[True]["schedule"]  # YAML reads `on` as true
    assert re.fullmatch(r"\d+ \d+ \* \* \*", when["cron"])


def test_a_release_is_rehearsed_and_approved_first():
    jobs = jobs_of("release")
    order = ["build", "test", "rehearse", "install", "publish"]
    assert list(jobs) == order
    for before, job in pairwise(order):
        assert jobs[job]["needs"] == before
    assert "repository-url" in jobs["rehearse"]["steps"][-1]["with"]
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"
    assert jobs["publish"]["environment"] == "release"
    assert yaml.safe_load(text_of("release"))[True]["push"] == {"tags": ["v*"]}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_ask_for_something(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert form["name"]
    assert form["description"]
    identifiers = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(identifiers) == len(set(identifiers))
    assert any(field.get("validations", {}).get("required") for field in form["body"])


TOOLS = (ROOT / ".github" / "release-tools.txt").read_text("utf-8")


def pinned(text):
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE))


def test_faults_R15_a_release_is_built_with_pinned_tools():
    installs = [line for line in commands_of("release") if "pip install" in line]
    assert any("--require-hashes -r .github/release-tools.txt" in line for line in installs)
    assert "python -m build --no-isolation" in commands_of("release")
    tools = pinned(TOOLS)
    assert {"build", "twine", "hatchling", "cyclonedx-bom"} <= tools.keys()
    assert TOOLS.count("==") == len(tools)
    for requirement in re.split(r"\n(?=[\w.-]+==)", TOOLS)[1:]:
        assert "--hash=sha256:" in requirement, requirement


def test_faults_R15_the_build_system_is_pinned_everywhere_to_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    constraints = pinned((ROOT / "constraints.txt").read_text("utf-8"))
    version = pinned(TOOLS)["hatchling"]
    assert project["build-system"]["requires"] == [f"hatchling=={version}"]
    assert constraints["hatchling"] == version
    assert constraints["build"] == pinned(TOOLS)["build"]


def test_faults_R15_a_release_lists_its_components():
    build = jobs_of("release")["build"]["steps"]
    assert any("cyclonedx-py environment" in step.get("run", "") for step in build)
    kept = [step["with"] for step in build if "upload-artifact" in step.get("uses", "")]
    assert {one["name"] for one in kept} == {"dist", "sbom"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda p: p.name
)
def test_faults_R15_actions_are_pinned_by_commit(path):
    used = re.findall(r"uses: +(\S+)(.*)", path.read_text("utf-8"))
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), comment
