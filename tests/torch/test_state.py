"""Tools that read, change and load a state_dict, on models with quadratic layers.

Such tools expect an entry of the state_dict to share memory with the parameter of the same name.
"""

import copy
import warnings
from inspect import signature

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.func import functional_call, grad  # noqa: E402
from torch.nn.utils import parametrizations, parametrize, prune  # noqa: E402
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn  # noqa: E402

from quadric.torch import Quadratic, QuadraticRNNCell  # noqa: E402

INPUTS = 140  # more than one block of rows
NAMES = ["0.packed", "0.W", "0.b", "2.packed", "2.W", "2.b"]


def make_model(seed=0):
    model = nn.Sequential(Quadratic(INPUTS, 3), nn.Tanh(), Quadratic(3, 2)).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.1, generator=generator)
    return model


@pytest.fixture
def model():
    return make_model()


@pytest.fixture
def x():
    generator = torch.Generator().manual_seed(2)
    return torch.randn(6, INPUTS, generator=generator, dtype=torch.float64)


def assert_same_function(ours, theirs, x):
    """Check that two models are bit-identical, not just similar."""
    assert torch.equal(ours(x), theirs(x))


def assert_different_function(ours, theirs, x):
    assert not torch.allclose(ours(x), theirs(x), rtol=1e-3)


# ---- names, shapes, memory -----------------------------------------------------------------


def test_entries_are_the_parameters_in_name_shape_and_memory(model):
    state = model.state_dict()
    assert list(state) == [name for name, _ in model.named_parameters()] == NAMES
    assert state["0.packed"].shape == (INPUTS * (INPUTS + 1) // 2, 3)
    for name, parameter in model.named_parameters():
        assert state[name].shape == parameter.shape
        assert state[name].data_ptr() == parameter.data_ptr(), name


def test_a_recurrent_cells_entries_are_its_parameters():
    cell = QuadraticRNNCell(4, 3)
    held = dict(cell.named_parameters())
    assert set(cell.state_dict()) == set(held)
    for name, entry in cell.state_dict().items():
        assert entry.data_ptr() == held[name].data_ptr(), name


PACKED_ROWS_OF_300 = {  # pair (i, j), i <= j: row i n - i (i - 1)/2 + (j - i)
    (0, 0): 0,
    (0, 1): 1,
    (0, 127): 127,
    (0, 128): 128,
    (0, 299): 299,
    (1, 1): 300,
    (1, 2): 301,
    (5, 260): 1745,
    (127, 127): 30099,
    (127, 128): 30100,
    (128, 128): 30272,
    (128, 129): 30273,
    (128, 299): 30443,
    (200, 250): 40150,
    (255, 256): 44116,
    (256, 256): 44160,
    (299, 299): 45149,
}


@pytest.mark.parametrize(("pair", "row"), PACKED_ROWS_OF_300.items())
def test_the_row_order_at_300_inputs_never_changes(pair, row):
    """The order must never change, because checkpoints of other versions depend on it."""
    i, j = pair
    layer = Quadratic(300, 2, bias=False, linear=False, dtype=torch.float64)
    packed = torch.zeros(45150, 2, dtype=torch.float64)
    packed[row, 1] = 1
    layer.load_state_dict({"packed": packed})
    assert layer.Q.nonzero().tolist() == ([[1, i, j]] if i == j else [[1, i, j], [1, j, i]])
    x = torch.arange(1, 301, dtype=torch.float64)[None]
    wanted = x[0, i] * x[0, j] * (1 if i == j else 2)
    torch.testing.assert_close(layer(x), torch.stack([wanted * 0, wanted])[None])


def test_all_rows_at_300_inputs_are_the_row_major_triangle():
    layer = Quadratic(300, 1, dtype=torch.float64)
    layer.load_state_dict(layer.state_dict() | {"packed": torch.arange(45150.0)[:, None]})
    i, j = torch.triu_indices(300, 300)
    assert torch.equal(layer.Q[0, i, j].long(), i * 300 - i * (i - 1) // 2 + (j - i))


# ---- loading -------------------------------------------------------------------------------


@pytest.mark.parametrize("assign", [False, True])
def test_a_strict_load_gives_the_same_function(model, x, assign):
    other = make_model(seed=1)
    assert_different_function(model, other, x)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    missing, unexpected = other.load_state_dict(state, strict=True, assign=assign)
    assert missing == unexpected == []
    assert_same_function(model, other, x)


def test_strict_load_reports_packed_by_name(model):
    state = model.state_dict()
    without = {name: tensor for name, tensor in state.items() if name != "0.packed"}
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0\.packed"'):
        model.load_state_dict(without)
    with pytest.raises(RuntimeError, match=r"size mismatch for 2\.packed"):
        model.load_state_dict(state | {"2.packed": torch.zeros(7, 2)})


def test_a_safetensors_file_gives_the_same_function(model, x, tmp_path):
    from safetensors.torch import load_file, load_model, save_model

    file = tmp_path / "model.safetensors"
    save_model(model, file)
    assert set(load_file(file)) == set(NAMES)
    other = make_model(seed=1)
    assert load_model(other, file, strict=True) == (set(), [])
    assert_same_function(model, other, x)


# ---- changing the state_dict's tensors in place --------------------------------------------


def test_copying_into_the_state_dict_changes_the_model(model, x):
    other = make_model(seed=1)
    source = model.state_dict()
    for name, entry in other.state_dict().items():
        entry.copy_(source[name])
    assert_same_function(model, other, x)


def test_a_moving_average_over_the_state_dict_changes_the_model(model):
    average = make_model(seed=1)
    start = copy.deepcopy(average)
    for mean, entry in zip(average.state_dict().values(), model.state_dict().values(), strict=True):
        mean.lerp_(entry, 0.25)
    pairs = zip(average.parameters(), start.parameters(), model.parameters(), strict=True)
    for mean, before, new in pairs:
        torch.testing.assert_close(mean, 0.75 * before + 0.25 * new)


def test_an_averaged_model_is_saved_and_loaded(model, x):
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.75))
    average.update_parameters(model)  # the first call copies
    new = make_model(seed=1)
    average.update_parameters(new)
    wanted = 0.75 * model[0].packed + 0.25 * new[0].packed
    torch.testing.assert_close(average.module[0].packed, wanted)
    assert "module.0.packed" in average.state_dict()
    again = AveragedModel(make_model(seed=3))
    again.load_state_dict(average.state_dict())
    assert_same_function(average, again, x)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")  # intended by no_dist
def test_distributed_checkpoint_loads_in_place(model, x, tmp_path):
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    if not torch.distributed.is_available() or "no_dist" not in signature(dcp.save).parameters:
        pytest.skip("needs torch.distributed, and a torch that saves without a process group")
    dcp.save(model.state_dict(), checkpoint_id=tmp_path, no_dist=True)
    other = make_model(seed=1)
    dcp.load(other.state_dict(), checkpoint_id=tmp_path, no_dist=True)
    assert_same_function(model, other, x)


# ---- functional calls ----------------------------------------------------------------------


def test_a_functional_call_uses_the_state_dict(model, x):
    assert torch.equal(functional_call(model, model.state_dict(), x), model(x))
    other = make_model(seed=1)
    assert torch.equal(functional_call(other, model.state_dict(), x), model(x))


def test_gradients_by_the_state_dict_are_those_of_the_parameters(model, x):
    gradients = grad(lambda state: functional_call(model, state, x).square().sum())(
        model.state_dict()
    )
    model(x).square().sum().backward()
    assert list(gradients) == NAMES
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad)


# ---- pruning and parametrizations ----------------------------------------------------------


def test_pruned_model_is_saved_and_loaded(model, x):
    other = make_model(seed=1)
    for pruned in (model, other):
        prune.l1_unstructured(pruned[0], "packed", amount=0.5)
    state = model.state_dict()
    assert {"0.packed_orig", "0.packed_mask"} < set(state)
    assert "0.packed" not in state
    assert state["0.packed_mask"].mean().item() == 0.5
    other.load_state_dict(state, strict=True)
    assert_same_function(model, other, x)
    model(x).sum().backward()
    gradient = model[0].packed_orig.grad
    assert ((gradient == 0) == (state["0.packed_mask"] == 0)).all()

    prune.remove(model[0], "packed")
    assert set(model.state_dict()) == set(NAMES)
    assert (model.state_dict()["0.packed"] == 0).double().mean().item() == 0.5
    assert_same_function(model, other, x)


def test_global_pruning_removes_a_share_of_all_quadratic_layers(model):
    prune.global_unstructured(
        [(model[0], "packed"), (model[2], "packed")],
        pruning_method=prune.L1Unstructured,
        amount=0.3,
    )
    masks = [model.state_dict()[f"{l}.packed_mask"] for l in (0, 2)]
    total = sum(mask.numel() for mask in masks)
    assert sum(int((mask == 0).sum()) for mask in masks) == round(0.3 * total)


class Cubed(nn.Module):
    def forward(self, original):
        return original**3

    def right_inverse(self, value):
        return value.sign() * value.abs() ** (1 / 3)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda layer: parametrize.register_parametrization(layer, "packed", Cubed()),
        lambda layer: parametrizations.weight_norm(layer, name="packed"),
        lambda layer: parametrizations.spectral_norm(layer, name="packed").eval(),
    ],
    ids=["custom", "weight_norm", "spectral_norm"],
)
def test_parametrized_model_is_saved_and_loaded(model, x, wrap):
    other = make_model(seed=1)
    for wrapped in (model, other):
        wrap(wrapped[0])
    state = model.state_dict()
    assert "0.packed" not in state
    assert any(name.startswith("0.parametrizations.packed.original") for name in state)
    assert_different_function(model, other, x)
    other.load_state_dict(state, strict=True)
    assert_same_function(model, other, x)
    originals = dict(model[0].parametrizations.packed.named_parameters())
    model(x).square().sum().backward()
    assert originals
    for name, original in originals.items():
        assert original.grad.abs().max() > 0, name

    parametrize.remove_parametrizations(model[0], "packed")
    assert set(model.state_dict()) == set(NAMES)
    torch.testing.assert_close(model(x), other(x))


# ---- export --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("n", [5, INPUTS])
def test_gradients_of_an_exported_model_reach_packed(n, strict):
    model = nn.Sequential(nn.Linear(4, n), Quadratic(n, 3), nn.Tanh()).double()
    x = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with warnings.catch_warnings(action="ignore"):  # warnings of torch's tracing
        exported = torch.export.export(model, (x,), strict=strict).module()
    held = dict(exported.named_parameters())
    assert set(held) == {"0.weight", "0.bias", "1.packed", "1.W", "1.b"}

    def gradients(of, parameters):  # not .grad: the exported model may share its parameters
        loss = of(x).square().sum()
        found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        return dict(zip(parameters, found, strict=True))

    found = gradients(exported, held)
    for name, wanted in gradients(model, dict(model.named_parameters())).items():
        assert found[name] is not None, f"no gradient reaches {name}"
        torch.testing.assert_close(found[name], wanted)


# ---- Hugging Face --------------------------------------------------------------------------


def test_transformers_from_pretrained_keeps_the_numbers(x, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers")

    class Config(transformers.PretrainedConfig):
        model_type = "quadric-test"

    class Model(transformers.PreTrainedModel):
        config_class = Config

        def __init__(self, config):
            super().__init__(config)
            self.body = nn.Linear(INPUTS, 20)
            self.head = Quadratic(20, 3)
            self.post_init()

        def forward(self, inputs):
            return self.head(self.body(inputs).tanh())

    model, x = Model(Config()).eval(), x.float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)
    model.save_pretrained(tmp_path)
    again, found = Model.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(found.values()), found
    for name, parameter in model.named_parameters():
        assert torch.equal(again.get_parameter(name), parameter), name
    assert_same_function(model, again.eval(), x)


@pytest.fixture
def accelerate():
    return pytest.importorskip("accelerate", reason="needs accelerate")


@pytest.mark.parametrize("empty", [False, True])
def test_accelerate_loads_a_checkpoint(accelerate, model, x, tmp_path, empty):
    from safetensors.torch import save_model

    file = tmp_path / "model.safetensors"
    save_model(model, str(file))
    if empty:
        with accelerate.init_empty_weights():
            other = make_model(seed=1)
        assert all(parameter.is_meta for parameter in other.parameters())
        placed = {"device_map": {"": "cpu"}}
    else:
        other, placed = make_model(seed=1), {}
    accelerate.load_checkpoint_in_model(other, str(file), **placed, strict=True)
    assert_same_function(model, other, x)


def test_accelerate_loads_and_dispatches_a_checkpoint(accelerate, model, x, tmp_path):
    accelerate.Accelerator().save_model(model, tmp_path)
    with accelerate.init_empty_weights():
        other = make_model(seed=1)
    other = accelerate.load_checkpoint_and_dispatch(other, tmp_path, device_map={"": "cpu"})
    assert_same_function(model, other, x)


def test_accelerate_offloads_to_disk(accelerate, model, x, tmp_path):
    wanted = model(x).detach()
    accelerate.disk_offload(model, str(tmp_path), execution_device=torch.device("cpu"))
    assert all(parameter.is_meta for parameter in model.parameters())
    with torch.no_grad():
        assert torch.equal(model(x), wanted)
