"""The playground in a browser: training, data, links, files and divergence."""

import csv
import re

import numpy as np
import pytest

import quadric

pytestmark = pytest.mark.slow

CLUSTERS = "#data=clusters&size=600&speed=0"


def test_first_visit_solves_xor_and_names_the_curve(open_page):
    page = open_page()
    page.wait_for_summary(r"One quadratic neuron gets all 4 points right: .* (hyperbola|ellipse)")
    page.page.wait_for_selector("#first-lesson:visible")
    page.pause()
    assert page.text("#curves").count("100%") == 1  # the training accuracy


def test_the_first_visit_needs_less_than_three_seconds(open_page):
    page = open_page("#samples=200")  # of 100 per second
    page.wait_for_samples(200)
    assert "gets all 4 points right" in page.summary
    assert page.page.input_value("#setting-speed") == "100"


def test_six_clusters_are_learned_past_99_percent(open_page):
    page = open_page(CLUSTERS)
    page.page.click("#run")
    page.wait_for_summary(r"^Six quadratic neurons get (every point|99\.\d%)")
    page.pause()
    legend = page.text("#legend")
    assert len(re.findall(r"\d: (ellipse|hyperbola|parabola)", legend)) == 6


def test_one_sample_one_epoch_rewind_and_new_seed(open_page):
    page = open_page("#data=moons&samples=0")
    page.wait_until_still()
    start = page.pixels()
    page.page.click("#sample")
    page.wait_for_samples(1)
    page.page.click("#epoch")
    page.wait_for_samples(210)
    assert page.count("epoch") == 1
    assert page.pixels() != start
    page.page.click("#rewind")
    page.wait_for_samples(0)
    assert page.pixels() == start
    page.page.click("#new-seed")
    assert page.page.input_value("#setting-seed") == "2"
    page.wait_until_still()
    assert page.pixels() != start


def test_points_are_drawn_and_learned(open_page):
    page = open_page("#samples=0")
    page.page.select_option("#setting-data", "points")
    page.wait_for_summary("at least two classes")
    page.page.wait_for_selector("#run:disabled")
    for x, y in [(0.2, 0.3), (0.25, 0.4), (0.3, 0.25)]:
        page.click_picture(x, y)
    page.page.click("#draw-class-1")
    for x, y in [(0.7, 0.6), (0.75, 0.7), (0.8, 0.65), (0.5, 0.1)]:
        page.click_picture(x, y)
    page.click_picture(0.5, 0.1, modifiers=["Shift"])  # removes the last one
    page.page.select_option("#setting-rate", "0.1")
    page.page.click("#run")
    page.wait_for_summary("gets all 6 points right")
    assert "A" in page.text("#legend")
    assert "B" in page.text("#legend")


def test_a_dropped_csv_file_is_learned_in_its_own_units(open_page):
    page = open_page("#samples=0")
    rng = np.random.default_rng(0)
    rows = [
        (1000 + 300 * k + 50 * rng.normal(), 0.02 + 0.005 * rng.normal(), ["no", "yes"][k], i)
        for i in range(40)
        for k in (0, 1)
    ]
    text = "weight;share;sick;id\n" + "".join(
        f"{a:.1f};{b:.4f};{c};{i}\n".replace(".", ",") for a, b, c, i in rows
    )
    page.drop("patients.csv", text.encode())
    page.page.select_option("#csv-second", label="share")
    assert page.page.locator("#csv-target option:checked").inner_text() == "sick"
    page.page.click("#csv-use")
    assert "standardized" in page.text("#data-note")
    page.page.select_option("#setting-speed", "0")
    page.page.click("#run")
    page.wait_for_summary("get.*(every point|9\\d\\.\\d%)")
    page.pause()
    probe = page.hover_picture(0.9, 0.5)
    weight = float(re.search(r"weight = ([\d.]+)", probe).group(1))
    assert 1200 < weight < 2000
    assert "share = 0.0" in probe
    assert "standard deviations" in probe


def test_a_broken_csv_file_is_reported_with_its_line(open_page):
    page = open_page("#samples=0")
    page.page.select_option("#setting-data", "csv")  # asks for a file
    page.page.wait_for_selector("#import-dialog[open]")
    assert page.page.input_value("#setting-data") == "xor"
    page.drop("broken.csv", b"a,b,c\n1,2,x\n3,4\n")
    page.wait_for_text("#import-error", "Line 3 has 2 values, but the first line has 3.")


@pytest.mark.parametrize("link", ["", "#data=clusters&output=softmax&size=120&layers=q3"])
def test_a_copied_link_opens_the_same_picture(open_page, link):
    page = open_page(link, permissions=["clipboard-read", "clipboard-write"])
    if link:
        page.page.click("#run")
    page.wait("document.querySelector('#epoch-count').innerText > 1")
    samples = page.pause()
    page.page.click("#link-button")
    page.wait_for_text("#link-button", "Copied")
    copied = page.page.evaluate("navigator.clipboard.readText()")
    other = open_page("#" + copied.split("#")[1])
    other.wait_for_samples(samples)
    assert other.count("sample") == samples
    assert other.pixels() == page.pixels()
    assert other.summary == page.summary


def test_a_broken_link_gives_the_defaults_and_a_reason(open_page):
    page = open_page("#data=nowhere&layers=q99")
    assert 'Data cannot be "nowhere"' in page.text("#data-note")
    assert page.page.input_value("#setting-data") == "xor"


def test_exported_models_give_the_same_predictions_in_python(open_page, tmp_path):
    page = open_page("#data=moons&layers=q4&samples=2000")
    page.wait_until_still()
    page.page.click("#export-button")
    model = quadric.load(page.download("#export-model", tmp_path))
    initial = quadric.load(page.download("#export-start", tmp_path))
    with page.download("#export-data", tmp_path).open() as file:
        rows = list(csv.reader(file))[1:]
    X = np.array([[float(a), float(b)] for a, b, *_ in rows])
    on_the_page = page.page.evaluate(
        """async ([bytes, X]) => {
            const { readModel } = await import('./model_reader.js');
            const { outputs } = await import('./net.js');
            const { net, scaler } = await readModel(new Uint8Array(bytes));
            const scale = (x, j) => (x - scaler.mean[j]) / scaler.scale[j];
            return X.map((x) => outputs(net, x.map(scale))[0]);
        }""",
        [list((tmp_path / "model.quadric").read_bytes()), X.tolist()],
    )
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], on_the_page, rtol=0, atol=1e-9)
    assert np.abs(initial.predict_proba(X) - model.predict_proba(X)).max() > 0.1
    right = np.mean(model.predict(X).astype(str) == np.array([row[2] for row in rows]))
    assert right > 0.8  # what the page's curves say, too
    assert "from quadric import load" in page.text("#python-lines")


def test_an_exported_model_is_imported_with_the_same_picture(open_page, tmp_path):
    page = open_page("#data=bullseye&output=softmax&samples=4000")
    page.wait_until_still()
    page.page.click("#export-button")
    path = page.download("#export-model", tmp_path)
    other = open_page("#data=bullseye&samples=0")
    other.wait_until_still()
    assert other.pixels()[0] != page.pixels()[0]
    other.drop(path.name, path.read_bytes())
    other.wait_for_text("#data-note", "model.quadric")
    other.wait_until_still()
    assert other.pixels()[0] == page.pixels()[0]  # the regions
    assert other.page.input_value("#setting-output") == "softmax"


def test_a_model_of_python_with_its_scaler_is_imported(open_page, tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal([50.0, 3.0], [10.0, 0.5], (200, 2))
    y = np.where(((X - [50.0, 3.0]) / [10.0, 0.5]) @ [1.0, 1.0] > 0, "high", "low")
    model = make_pipeline(
        StandardScaler(),
        quadric.QuadraticClassifier(hidden_layer_sizes=(3,), max_iter=50, random_state=0),
    )
    model.fit(X, y)
    quadric.save(model, tmp_path / "trained.quadric")
    page = open_page("#samples=0")
    page.drop("trained.quadric", (tmp_path / "trained.quadric").read_bytes())
    page.wait_for_text("#data-note", "trained.quadric")
    page.wait_until_still()
    for x, y in [(0.2, 0.8), (0.5, 0.5), (0.8, 0.2)]:
        probe = page.hover_picture(x, y)
        numbers = re.search(r"= ([−\d.]+), .* = ([−\d.]+)", probe).groups()
        at = [float(number.replace("−", "-")) for number in numbers]
        shown = float(re.search(r"high\s+[<>]?([\d.]+)%", probe).group(1))
        expected = 100 * model.predict_proba([at])[0, 0]
        assert abs(shown - expected) < 1  # the coordinates are shown with three digits


def test_divergence_is_reported_and_a_smaller_rate_is_offered(open_page):
    page = open_page("#data=clusters&standardize=false&rate=10&speed=0")
    page.page.click("#run")
    page.page.wait_for_selector("#alert:visible")
    assert re.search(r"diverged after \d+ samples: the learning rate 10", page.text("#alert"))
    page.wait_until_still()
    assert "NaN" not in page.text("body")
    assert "Infinity" not in page.text("body")
    page.page.click("#smaller-rate")
    assert page.page.input_value("#setting-rate") == "3"
    assert page.page.is_hidden("#alert")


def test_three_networks_train_side_by_side(open_page):
    page = open_page("#data=circles&speed=0&noise=0.1")
    page.page.click("#compare")
    page.page.click("#run")
    page.wait_for_summary(r"linear \d\d\.\d%, quadratic 100%, reduced \d\d\.\d%")
    page.pause()
    captions = page.page.locator("figcaption").all_inner_texts()
    assert [caption.split(":")[0] for caption in captions] == ["Linear", "Quadratic", "Reduced"]
    assert [int(re.search(r"(\d+) parameters", text).group(1)) for text in captions] == [3, 6, 6]


def test_a_neuron_shows_its_weights_and_the_cursor_its_distance(open_page):
    page = open_page("#samples=800")
    page.wait_until_still()
    page.page.click("#thumb-0-0")
    page.wait_for_text("#details", "Half axis")
    details = page.text("#details")
    assert re.search(r"x1² .*x1·x2.* = 0", details)
    assert re.search(r"w\s+[−\d.]+\s+[−\d.]+", details)
    assert re.search(r"b\s+[−\d.]+", details)
    probe = page.hover_picture(0.5, 0.5)
    assert re.search(r"distance to the hyperbola: [\d.]+", probe)
