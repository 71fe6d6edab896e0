"""`replace_head`: outputs are bit-identical before and after, wherever the Linear is."""

import copy
import re
import runpy
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm  # noqa: E402

import quadric  # noqa: E402
from quadric.torch import Quadratic, Reduced, replace_head  # noqa: E402
from tests.support.process_groups import one_process, shard  # noqa: E402

pytestmark = pytest.mark.usefixtures("seeded")
EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_head.py"
KINDS = {"quadratic": Quadratic, "reduced": Reduced}
kinds = pytest.mark.parametrize("kind", KINDS)


def cnn(width=64, classes=10, bias=True):
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, width),
        nn.Tanh(),
        nn.Linear(width, classes, bias=bias),
    )


class Branches(nn.Module):
    """Linears in a ModuleDict, in a ModuleList, and finally in a block."""

    def __init__(self):
        super().__init__()
        self.stem = nn.ModuleDict({"left": nn.Linear(6, 5), "right": nn.Linear(6, 5)})
        self.middle = nn.ModuleList([nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5)])
        self.block = nn.Sequential(nn.Sequential(nn.ReLU(), nn.Linear(5, 3)), nn.Identity())

    def forward(self, x):
        x = self.stem["left"](x) * self.stem["right"](x)
        for layer in self.middle:
            x = layer(x)
        return self.block(x)


class Twice(nn.Module):
    """One Linear, under two names and in a list."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again = self.first
        self.others = nn.ModuleList([nn.Linear(4, 4), self.first])

    def forward(self, x):
        for layer in (self.first, self.again, *self.others):
            x = torch.tanh(layer(x))
        return x


def assert_same(model, kind, x, **options):
    """Check that outputs and gradients of the existing parameters are bit-identical."""
    old = copy.deepcopy(model)
    random_state = torch.get_rng_state()
    new = replace_head(model, kind, **options)
    assert torch.equal(torch.get_rng_state(), random_state)
    layers = [module for module in new.modules() if isinstance(module, KINDS[kind])]
    assert len(layers) == 1
    before, after = old(x), new(x)
    assert after.dtype == before.dtype
    assert torch.equal(after, before)
    slopes = torch.randn(before.shape, dtype=before.dtype)
    before.backward(slopes)
    after.backward(slopes)
    gradients = {name: p.grad for name, p in new.named_parameters()}
    renamed = {".weight": ".W", ".bias": ".b"}
    for name, parameter in old.named_parameters():
        if name not in gradients:
            stem, dot, last = f".{name}".rpartition(".")
            name = f"{stem}{renamed[dot + last]}".lstrip(".")
        assert gradients[name].dtype == parameter.dtype
        assert torch.equal(gradients[name], parameter.grad), name
    return layers[0]


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("width", "classes"), [(20, 10), (140, 3), (20, 50), (140, 70)])
def test_a_cnn_is_the_same_function(kind, bias, width, classes):
    model = cnn(width, classes, bias)
    layer = assert_same(model, kind, torch.randn(7, 1, 8, 8))
    assert model[6] is layer
    assert (layer.in_features, layer.out_features) == (width, classes)
    assert (layer.b is not None) == bias
    if kind == "quadratic":
        assert not layer.packed.any()
    else:
        assert not layer.U.any()
        assert (layer.c == 1).all()


@kinds
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bias", [True, False])
def test_the_dtype_is_kept(kind, dtype, bias):
    model = nn.Sequential(nn.Linear(6, 140), nn.Tanh(), nn.Linear(140, 5, bias=bias)).to(dtype)
    layer = assert_same(model, kind, torch.randn(9, 6, dtype=dtype))
    assert {p.dtype for p in layer.parameters()} == {dtype}


@kinds
@pytest.mark.parametrize("shape", [(6,), (1, 6), (0, 6), (3, 2, 6), (2, 3, 4, 6)])
def test_inputs_of_any_shape_give_the_same_bits(kind, shape):
    assert_same(nn.Linear(6, 5), kind, torch.randn(shape))


@kinds
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_inputs_that_are_not_contiguous_give_the_same_bits(kind, dtype):
    """For such inputs, nn.Linear sums in a different order, with different rounding errors."""
    for n in (5, 17, 128, 129):
        x = torch.randn(n, 3, 2, dtype=dtype).permute(2, 1, 0)
        assert_same(nn.Linear(n, 10, dtype=dtype), kind, x)


@kinds
def test_autocast_gives_the_same_bits(kind):
    model = cnn()
    x = torch.randn(5, 1, 8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        before = model(x)
        after = replace_head(model, kind)(x)
    assert after.dtype == before.dtype == torch.bfloat16
    assert torch.equal(after, before)


@kinds
def test_the_last_linear_is_replaced_anywhere_in_the_model(kind):
    model = Branches()
    layer = assert_same(model, kind, torch.randn(8, 6))
    assert model.block[0][1] is layer
    assert list(model._modules) == ["stem", "middle", "block"]
    assert list(model.block[0]._modules) == ["0", "1"]


@kinds
@pytest.mark.parametrize("name", ["stem.left", "stem.right", "middle.0", "middle.2", "block.0.1"])
def test_a_linear_can_be_named(kind, name):
    model = Branches()
    layer = assert_same(model, kind, torch.randn(8, 6), name=name)
    assert model.get_submodule(name) is layer


@kinds
@pytest.mark.parametrize("name", [None, "first", "again", "others.1"])
def test_a_shared_linear_is_replaced_everywhere(kind, name):
    model = Twice()
    layer = assert_same(model, kind, torch.randn(8, 4), name=name)
    assert model.first is model.again is model.others[1] is layer
    assert type(model.others[0]) is nn.Linear


@kinds
def test_a_bare_linear_is_not_modified(kind):
    head = nn.Linear(3, 2)
    layer = replace_head(head, kind)
    assert type(layer) is KINDS[kind]
    assert type(head) is nn.Linear
    assert layer.W is not head.weight
    assert torch.equal(layer.W, head.weight)
    assert layer.W.data_ptr() != head.weight.data_ptr()
    assert type(replace_head(nn.Linear(3, 2), kind, name="")) is KINDS[kind]


def test_the_model_itself_is_returned():
    model = cnn()
    assert replace_head(model) is model
    assert type(model[6]) is Quadratic


@kinds
def test_mode_and_requires_grad_are_kept(kind):
    model = cnn().eval()
    model[6].weight.requires_grad_(False)
    layer = replace_head(model, kind)[6]
    assert not layer.training
    assert not layer.W.requires_grad
    assert layer.b.requires_grad
    assert (layer.packed if kind == "quadratic" else layer.U).requires_grad
    model = cnn()
    model[6].bias.requires_grad_(False)
    layer = replace_head(model, kind)[6]
    assert layer.training
    assert layer.W.requires_grad
    assert not layer.b.requires_grad


@kinds
def test_a_second_call_replaces_the_linear_before(kind):
    model = cnn()
    x = torch.randn(5, 1, 8, 8)
    before = model(x)
    replace_head(replace_head(model, kind), kind)
    assert type(model[4]) is type(model[6]) is KINDS[kind]
    assert torch.equal(model(x), before)


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("bias", [True, False])
def test_training_continues_with_the_new_head(kind, bias):
    """A linear head on the inputs cannot learn XOR, but the new head can."""
    x = torch.randn(400, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    model = nn.Sequential(nn.Linear(2, 2, bias=bias))
    for head in ("linear", kind):
        if head != "linear":
            replace_head(model, kind)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(200):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        right = (model(x).argmax(1) == y).float().mean().item()
        assert right > 0.95 if head == kind else right < 0.8
    state = model.state_dict()
    again = replace_head(nn.Sequential(nn.Linear(2, 2, bias=bias)), kind)
    again.load_state_dict(state)
    assert torch.equal(again(x), model(x))


@pytest.mark.slow
def test_the_example_trains(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--epochs", "2", "--seeds", "1"])
    threads = torch.get_num_threads()
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    torch.set_num_threads(threads)
    found = re.findall(r"^(\w+) +([0-9.]+) % of the test images", capsys.readouterr().out, re.M)
    assert [head for head, _ in found] == ["linear", "quadratic", "reduced"]
    for _, accuracy in found:  # random guessing would be 10
        assert float(accuracy) > 70


# ---- unsupported models --------------------------------------------------------------------


def refused(model, part, error=ValueError, **options):
    """Check that the call raises an error and leaves the model unchanged."""
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    with pytest.raises(error, match=part):
        replace_head(model, **options)
    assert not modules or list(model.modules()) == modules


def test_arguments_are_checked():
    refused("fc", "model must be a torch.nn.Module. Got str", TypeError)
    refused(cnn(), "kind must be one of 'quadratic', 'reduced'. Got 'cubic'", kind="cubic")
    refused(cnn(), "kind must be one of .* Got 'linear'", kind="linear")
    refused(cnn(), "name must be a dotted name", TypeError, name=6)
    refused(
        cnn(), "must be the name of a torch.nn.Linear: '4', '6'. Got 'fc', which does", name="fc"
    )
    refused(cnn(), "must be the name of a torch.nn.Linear: '4', '6'. Got '0', a Conv2d", name="0")
    refused(nn.Sequential(*[nn.Linear(2, 2) for _ in range(9)]), r"'8' \(the last 8\)", name="fc")


def test_a_model_without_linear_is_refused():
    refused(
        nn.Sequential(nn.Conv2d(1, 1, 3)), "must contain a torch.nn.Linear.*Sequential contains no"
    )
    refused(nn.Conv2d(1, 1, 3), "This Conv2d contains none")


def test_tied_weights_are_refused():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(7, 4)
            self.decoder = nn.Linear(4, 7, bias=False)
            self.decoder.weight = self.embedding.weight

    refused(Language(), "'decoder' shares a parameter with 'embedding.weight'.*of its own first")
    model = cnn()
    model.register_parameter("kept", model[6].bias)
    refused(model, "'6' shares a parameter with 'kept'")


@pytest.mark.parametrize(
    "wrap",
    [
        parametrizations.weight_norm,
        parametrizations.spectral_norm,
        parametrizations.orthogonal,
    ],
)
def test_parametrized_weights_are_refused(wrap):
    model = cnn(20)
    wrap(model[6])
    refused(model, "the Linear '6' is parametrized: call .*remove_parametrizations")


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def test_weights_computed_before_each_forward_are_refused():
    for wrap in (weight_norm, spectral_norm, lambda m: prune.random_unstructured(m, "weight", 0.5)):
        model = cnn(20)
        wrap(model[6])
        refused(model, "weight that is computed from others.*remove_weight_norm.*prune.remove")
    prune.remove(model[6], "weight")
    assert_same(model, "quadratic", torch.randn(3, 1, 8, 8))


def test_an_overridden_forward_is_refused():
    class Scaled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    class Renamed(nn.Linear):
        """A subclass without changes."""

    model = nn.Sequential(nn.Linear(4, 4), Scaled(4, 3))
    refused(model, "'1' is a Scaled that overrides forward")
    assert_same(model, "quadratic", torch.randn(5, 4), name="0")
    assert_same(nn.Sequential(Renamed(4, 3)), "quadratic", torch.randn(5, 4))
    model = nn.Sequential(nn.Linear(4, 3))
    model[0].forward = lambda x: x
    refused(model, "overrides forward")


@pytest.mark.parametrize(
    "register",
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ],
)
def test_hooks_are_refused(register):
    model = cnn()
    handle = getattr(model[6], register)(lambda *_: None)
    refused(model, "'6' has hooks, which would be lost: remove them first")
    handle.remove()
    assert_same(model, "reduced", torch.randn(3, 1, 8, 8))


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_of_parameters_are_refused(register):
    model = cnn()
    handle = getattr(model[6].weight, register)(lambda *_: None)
    refused(model, "has hooks")
    handle.remove()
    assert_same(model, "reduced", torch.randn(3, 1, 8, 8))


def test_a_lazy_linear_is_refused():
    model = nn.Sequential(nn.Flatten(), nn.LazyLinear(3))
    refused(model, "'1' does not know its number of inputs yet .LazyLinear.: run a batch through")
    model(torch.randn(2, 1, 2, 2))
    assert_same(model, "quadratic", torch.randn(5, 1, 2, 2))


def test_modules_that_read_the_weights_are_refused():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    refused(layer, "'linear2' belongs to a TransformerEncoderLayer, which reads its weight")
    refused(nn.MultiheadAttention(8, 2), "'out_proj' belongs to a MultiheadAttention")
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(24, 3))
    assert_same(model.eval(), "quadratic", torch.randn(4, 3, 8))


def test_parameters_without_values_are_refused():
    refused(cnn().to("meta"), "weight of the Linear '6' is on the meta device")
    refused(nn.Linear(3, 2, dtype=torch.complex64), "weight of the Linear must hold real floating")


def test_a_head_that_does_not_fit_into_memory_is_refused():
    model = nn.Linear(3000, 20)
    quadric.set_config(max_memory="100 MB")
    try:
        refused(
            model,
            "90,030,000 entries of Q; it would need about 343.4 MB, and the limit is 100.0",
            MemoryError,
        )
        assert type(replace_head(model, "reduced")) is Reduced
    finally:
        quadric.set_config(max_memory=None)


def test_wrapped_and_sharded_models_are_refused(tmp_path):
    with one_process(tmp_path):
        model = cnn(20)
        refused(nn.parallel.DistributedDataParallel(model), "wrapped in DistributedDataParallel")
        refused(shard(model), "weight of the Linear '6' is sharded, .* before sharding")


class HeadFirst(nn.Module):
    """A model whose head is declared before the layers that it follows."""

    def __init__(self, depends_on_the_input=False):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.depends_on_the_input = depends_on_the_input

    def forward(self, x):
        if self.depends_on_the_input and x.sum() > 0:
            x = -x
        return self.head(self.body(x))


def test_torch_T10_the_linear_that_is_called_last_is_replaced():
    model = replace_head(HeadFirst())
    assert isinstance(model.head, Quadratic)
    assert isinstance(model.body[0], nn.Linear)
    untraceable = replace_head(HeadFirst(depends_on_the_input=True))  # the last in the order
    assert isinstance(untraceable.body[0], Quadratic)
