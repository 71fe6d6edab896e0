"""Forged model files are refused or load as models that work, and any harm is detected."""

import json

import pytest

from tests.support.damage import OF_MODELS
from tests.support.forging.files import ATTACKS, FOR_TABLES
from tests.support.forging.uses import COMMANDS, USES
from tests.support.processes import ONE_THREAD, answer_of, output_of


def forge(count, seed, damaged, for_tables=0):
    outcome = answer_of("forged_model_files.run", count, seed, damaged, for_tables)
    causes = [
        f"{found['count']} x {cause}\n  seed {found['seed']} ({found['name']}): {found['said']}\n"
        + found["trace"]
        for cause, found in outcome.pop("causes").items()
    ]
    assert not causes, "\n".join(causes)
    assert outcome["failed"] == 0
    assert outcome["memory"] < 10
    attacks = sum(not for_tables or name in FOR_TABLES for name, _ in ATTACKS.values())
    assert outcome["files"] == outcome["refused"] + outcome["works"] == count + damaged + attacks
    assert set(outcome["damage"]) == {f"damage: {change.__name__}" for change in OF_MODELS}
    assert set(outcome["damage"]["damage: flip_bits"]) == {"refused"}
    return outcome


@pytest.mark.slow
def test_forged_files_are_refused_or_load_as_working_models():
    outcome = forge(40, 0, 300)
    assert outcome["refused"] > 300
    assert outcome["works"] > 5
    assert set(outcome["uses"]) == {*USES, *COMMANDS}  # otherwise the test proves little


@pytest.mark.full
def test_20_000_forged_files(capsys):
    outcome = forge(20_000, 3, 10_000)
    assert outcome["works"] > 1000
    with capsys.disabled():
        print(f"\n20 000 forged and 10 000 damaged model files: {json.dumps(outcome)}")


@pytest.mark.full
def test_2000_forged_files_of_models_for_tables(capsys):
    """Models that read tables and encode categories by ranks, by the target and one-hot."""
    outcome = forge(2000, 37, 400, 1)
    assert outcome["works"] > 100
    with capsys.disabled():
        print(f"\n2000 forged and 400 damaged files of models for tables: {json.dumps(outcome)}")


# ---- the checks themselves -----------------------------------------------------------------

HARM = {
    "raise KeyError('x')": "KeyError",
    "raise ValueError('who knows')": "ValueError",
    "open('/tmp/quadric_harm', 'w')": "open",
    "os.makedirs('/tmp/quadric_harm')": "os.mkdir",
    "os.system('true')": "os.system",
    "subprocess.run(['true'])": "subprocess.Popen",
    "os.fork() or time.sleep(60)": "os.fork",
    "multiprocessing.resource_tracker.ensure_running()": "a process was started",
    "socket.socket()": "socket",
    "importlib.import_module('antigravity')": "import",
    "eval('1 + 1')": "compile",
    "pickle.loads(b'cos\\nsystem\\n.')": "pickle.find_class",
    "faulthandler._sigsegv()": "died of SIGSEGV",
    "bytearray(2**31)": "MemoryError",
    "time.sleep(60)": "died of SIGALRM",
    "any(i < 0 for i in itertools.count())": "died of SIG",  # either time limit may come first
    "[0] * 10**6": "times the file's size in memory",
}
SCRIPT = """
import faulthandler, importlib, itertools, json, multiprocessing.resource_tracker, os, pickle
import socket, subprocess, sys, time, warnings
warnings.simplefilter("ignore")
from tests.support.forging import files, workers

files.FEW = ()
originals = files.originals(0)
workers.SECONDS, workers.PATIENCE, workers.COMMANDS = 1, 4, {}
workers._warm_up_commands = lambda *_: None
seen = []
for code in json.loads(os.environ["HARM"]):
    exec(f"def harm(path): {code}")
    workers.quadric.load = harm
    (outcome,) = workers.outcomes([0], originals)
    seen.append([cause for cause, _ in outcome["failures"]])
print(json.dumps(seen))
"""


@pytest.mark.full  # checks the detectors, not the library
def test_harm_is_detected():
    seen = json.loads(output_of(SCRIPT, HARM=json.dumps(list(HARM)), **ONE_THREAD))
    for (harm, sign), causes in zip(HARM.items(), seen, strict=True):
        assert any(sign in cause for cause in causes), (harm, causes)
