"""Packages that train, explain or share torch modules work with ours: one test for each."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402

from quadric.torch import Quadratic, Reduced, replace_head  # noqa: E402

pytestmark = pytest.mark.slow


def package(name):
    """Import an optional package, or skip the test; packages warn about each other."""
    with warnings.catch_warnings(action="ignore"):
        return pytest.importorskip(name, reason=f"needs {name}")


@pytest.fixture
def disks():
    """Return points inside and outside a circle, which no linear layer separates."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(200, 2, generator=generator)
    return X, (X.square().sum(1) < 1.4).long()


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(Quadratic(2, 4), nn.Tanh(), Reduced(4, 2))


def accuracy(model, X, y):
    with torch.no_grad():
        return (model.eval()(X).argmax(1) == y).double().mean().item()


def loss_of(model, batch):
    X, y = batch
    return nn.functional.cross_entropy(model(X), y)


def loader(X, y, size=50):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=size)


def test_skorch_fits_and_searches(disks):
    skorch = package("skorch")
    from sklearn.model_selection import GridSearchCV

    X, y = (tensor.numpy() for tensor in disks)
    torch.manual_seed(0)
    net = skorch.NeuralNetClassifier(
        Quadratic,
        module__in_features=2,
        module__out_features=2,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        max_epochs=15,
        verbose=0,
    )
    search = GridSearchCV(net, {"lr": [1e-6, 0.1], "module__bias": [True]}, cv=2).fit(X, y)
    assert search.best_params_["lr"] == 0.1
    assert search.score(X, y) > 0.95


def make_lightning_module(lightning, model):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, index):
            return loss_of(self.model, batch)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.05)

    return Module()


@pytest.mark.filterwarnings("ignore")  # lightning warns about loggers, workers and torch
def test_lightning_trains_prunes_and_saves(disks, model, tmp_path):
    lightning = package("lightning")
    from lightning.pytorch.callbacks import ModelPruning

    module = make_lightning_module(lightning, model)
    pairs = [(model[0], "packed"), (model[0], "W"), (model[2], "U")]
    pruning = ModelPruning(
        "l1_unstructured",
        parameters_to_prune=pairs,
        amount=6,
        apply_pruning=lambda epoch: epoch == 10,
    )
    trainer = lightning.Trainer(
        max_epochs=20,
        accelerator="cpu",
        callbacks=[pruning],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, loader(*disks))
    assert accuracy(model, *disks) > 0.9
    names = {"0.packed", "0.W", "0.b", "2.W", "2.b", "2.U", "2.c"}
    assert set(model.state_dict()) == names  # the pruning was made permanent
    entries = torch.cat([getattr(part, name).flatten() for part, name in pairs])
    assert (entries == 0).sum() == 6
    trainer.save_checkpoint(tmp_path / "model.ckpt")
    other = nn.Sequential(Quadratic(2, 4), nn.Tanh(), Reduced(4, 2))
    again = make_lightning_module(lightning, other)
    again.load_state_dict(torch.load(tmp_path / "model.ckpt", weights_only=True)["state_dict"])
    assert torch.equal(other(disks[0]), model(disks[0]))


@pytest.mark.filterwarnings("ignore")  # accelerate warns about the missing accelerator
def test_accelerate_prepares_saves_and_loads(disks, model, tmp_path):
    accelerate = package("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    prepared, optimizer, batches = accelerator.prepare(model, optimizer, loader(*disks))
    for _ in range(30):
        for batch in batches:
            optimizer.zero_grad()
            accelerator.backward(loss_of(prepared, batch))
            optimizer.step()
    assert accuracy(prepared, *disks) > 0.95
    wanted = prepared(disks[0]).detach()
    accelerator.save_state(tmp_path)
    with torch.no_grad():
        for parameter in prepared.parameters():
            parameter.zero_()
    accelerator.load_state(tmp_path)
    assert torch.equal(prepared(disks[0]), wanted)


def make_bert(transformers):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        num_labels=2,
    )
    return transformers.BertForSequenceClassification(config)


def sentences():
    """Return tokens whose label is the first of them."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(2, 20, (64, 6), generator=generator)
    labels = torch.arange(64) % 2
    tokens[:, 0] = labels
    return [{"input_ids": t, "labels": l} for t, l in zip(tokens, labels, strict=True)]


@pytest.mark.filterwarnings("ignore")  # transformers and its dependencies
def test_transformers_trains_a_quadratic_head(tmp_path):
    transformers = package("transformers")
    package("accelerate")
    model = make_bert(transformers)
    replace_head(model, name="classifier")
    assert isinstance(model.classifier, Quadratic)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        num_train_epochs=15,
        learning_rate=0.02,
        per_device_train_batch_size=32,
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=sentences())
    trainer.train()
    found = trainer.predict(sentences())
    assert (found.predictions.argmax(1) == found.label_ids).mean() > 0.95
    assert model.classifier.packed.abs().max() > 0
    trainer.save_model(tmp_path / "saved")
    again = make_bert(transformers)
    replace_head(again, name="classifier")
    from safetensors.torch import load_file

    again.load_state_dict(load_file(tmp_path / "saved" / "model.safetensors"))
    tokens = torch.stack([row["input_ids"] for row in sentences()])
    assert torch.equal(again.eval()(tokens).logits, model.eval()(tokens).logits)


@pytest.mark.filterwarnings("ignore")  # peft and its dependencies
def test_peft_trains_and_saves_a_quadratic_head(tmp_path):
    peft, transformers = package("peft"), package("transformers")
    base = make_bert(transformers)
    replace_head(base, name="classifier")
    config = peft.LoraConfig(r=2, target_modules=["query", "value"], modules_to_save=["classifier"])
    model = peft.get_peft_model(base, config)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert any(name.endswith("classifier.modules_to_save.default.packed") for name in trained)
    rows = sentences()
    tokens = torch.stack([row["input_ids"] for row in rows])
    labels = torch.stack([row["labels"] for row in rows])
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(input_ids=tokens).logits, labels)
        loss.backward()
        optimizer.step()
    model.save_pretrained(tmp_path)
    fresh = make_bert(transformers)
    replace_head(fresh, name="classifier")
    again = peft.PeftModel.from_pretrained(fresh, tmp_path)
    with torch.no_grad():
        wanted = model.eval()(input_ids=tokens).logits
        assert torch.equal(again.eval()(input_ids=tokens).logits, wanted)


@pytest.mark.filterwarnings("ignore")  # captum registers hooks
def test_captum_explains_a_quadratic_layer():
    attr = package("captum.attr")
    torch.manual_seed(0)
    layer = Quadratic(3, 1)
    model = nn.Sequential(layer)
    x, start = torch.randn(5, 3), torch.zeros(5, 3)
    gradients = attr.IntegratedGradients(model)
    found, error = gradients.attribute(x, start, return_convergence_delta=True, n_steps=50)
    # along a line from 0, the gradient is w + 2 t Q x; its mean over t is w + Q x
    wanted = x * (layer.W + (layer.Q[0] @ x.T).T)
    torch.testing.assert_close(found.float(), wanted, rtol=1e-4, atol=1e-4)
    assert error.abs().max() < 1e-4
    saliency = attr.Saliency(model).attribute(x, abs=False)
    torch.testing.assert_close(saliency, layer.W + 2 * (layer.Q[0] @ x.T).T)
    occluded = attr.FeatureAblation(model).attribute(x)
    without = x.clone()
    without[:, 0] = 0
    torch.testing.assert_close(occluded[:, 0], (model(x) - model(without))[:, 0])


@pytest.mark.filterwarnings("ignore")  # opacus warns about its random numbers
def test_opacus_computes_gradients_of_each_sample(disks):
    grad_sample = package("opacus.grad_sample")
    opacus = package("opacus")
    torch.manual_seed(0)
    model = nn.Sequential(Quadratic(2, 3), nn.Tanh(), Reduced(3, 2))
    X, y = disks[0][:8], disks[1][:8]
    plain = copy.deepcopy(model)
    wrapped = grad_sample.GradSampleModule(model, loss_reduction="sum")
    nn.functional.cross_entropy(wrapped(X), y, reduction="sum").backward()
    for i in range(len(X)):
        own = nn.functional.cross_entropy(plain(X[i : i + 1]), y[i : i + 1], reduction="sum")
        wanted = torch.autograd.grad(own, list(plain.parameters()))
        for parameter, gradient in zip(model.parameters(), wanted, strict=True):
            torch.testing.assert_close(parameter.grad_sample[i], gradient, rtol=1e-4, atol=1e-5)
    model = nn.Sequential(Quadratic(2, 2))
    private, optimizer, batches = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.05),
        data_loader=loader(*disks),
        noise_multiplier=0.5,
        max_grad_norm=1.0,
    )
    for _ in range(15):
        for batch in batches:
            optimizer.zero_grad()
            loss_of(private, batch).backward()
            optimizer.step()
    assert accuracy(private, *disks) > 0.85
