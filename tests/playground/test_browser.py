"""The playground in a browser: training, data, links, files and divergence."""

import csv
import re

import numpy as np
import pytest

import quadric

pytestmark = pytest.mark.slow

# waits for the results of another epoch, clicks, and returns the epoch and the outputs of the
# network that is shown at this moment
EXPORT_AND_PREDICT = """async ([points, last]) => {
    const { app } = await import('./main.js');
    const { outputs } = await import('./net.js');
    const { run } = app.stage.main;
    while ((run.state?.epoch ?? last) === last) await new Promise((go) => setTimeout(go, 10));
    const { net, scaler, state } = run;
    document.querySelector('#export-model').click();
    const scale = (x, j) => (x - scaler.mean[j]) / scaler.scale[j];
    return [state.epoch, points.map((x) => [...outputs(net, x.map(scale))])];
}"""
# of the field, at a place given as shares of the picture's width and height
COLOR = """([x, y]) => {
    const canvas = document.querySelector('#picture canvas');
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
    copy.drawImage(canvas, 0, 0);
    return [...copy.getImageData(x * canvas.width, y * canvas.height, 1, 1).data].slice(0, 3);
}"""
CLIPBOARD = ["clipboard-read", "clipboard-write"]
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
    assert page.page.input_value("#setting-speed") == "auto"


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


def copied_link(page):
    page.page.click("#link-button")
    page.wait_for_text("#link-button", "Copied")
    return "#" + page.page.evaluate("navigator.clipboard.readText()").split("#")[1]


def drag(page, *places):
    page.page.mouse.move(*page.place(*places[0]))
    page.page.mouse.down()
    for place in places[1:]:
        page.page.mouse.move(*page.place(*place), steps=5)


def count_points(page, count, least=True):
    """Wait until the address has that many points; it is not written at once."""
    split = "(location.hash.split('points=')[1] ?? '').split(';').filter(Boolean)"
    page.wait(f"{split}.length {'>=' if least else '==='} {count}")


def test_clouds_are_drawn_by_dragging_while_training_runs(open_page):
    page = open_page(permissions=CLIPBOARD)  # the first visit trains on XOR
    page.page.click("#draw-toggle")  # which removes the points of XOR
    page.wait_for_text("#legend", "A")
    drag(page, (0.2, 0.3), (0.3, 0.3), (0.3, 0.5), (0.2, 0.5))
    page.page.mouse.up()
    page.page.click("#draw-class-1")
    drag(page, (0.7, 0.3), (0.8, 0.6))
    page.wait_for_summary("gets .* right")  # before the button is released
    samples = page.count("sample")
    page.wait(f"document.querySelector('#sample-count').innerText.replace(/\\D/g, '') > {samples}")
    page.page.mouse.move(*page.place(0.7, 0.7), steps=5)
    page.page.mouse.up()
    assert page.text("#run-text") == "Pause"
    count_points(page, 30)
    page.wait_for_summary("gets (all|every)")
    samples = page.pause()
    other = open_page(copied_link(page))
    other.wait_for_samples(samples)
    assert other.pixels() == page.pixels()  # although the points changed while training ran


def test_strokes_are_undone_erased_and_cleared(open_page):
    page = open_page("#samples=0")
    page.page.click("#draw-toggle")
    count_points(page, 0, least=False)
    page.page.click("#draw-undo")  # points can be added to those of XOR
    count_points(page, 4, least=False)
    drag(page, (0.1, 0.1), (0.1, 0.6))
    page.page.mouse.up()
    count_points(page, 20)
    page.page.click("#draw-undo")  # the whole stroke
    count_points(page, 4, least=False)
    page.page.click("#draw-erase")
    page.page.mouse.click(*page.place_of(1, 1))
    count_points(page, 3, least=False)
    page.page.click("#draw-clear")
    count_points(page, 0, least=False)
    page.page.click("#draw-undo")
    count_points(page, 3, least=False)


def test_a_large_csv_file_fills_the_curves_at_once(open_page):
    page = open_page("#samples=0")
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    rows = [f"{a:.3f},{b:.3f},{int(a * b > 0)}" for a, b in X]
    page.drop("large.csv", "\n".join(["a,b,class", *rows]).encode())
    page.page.click("#csv-use")
    page.page.click("#run")
    page.wait("document.querySelector('#epoch-count').innerText >= 1")
    page.wait_for_summary(r"9\d\.\d% of the test points right")


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


def test_a_csv_file_with_a_number_to_predict_is_a_color_field(open_page, tmp_path):
    page = open_page("#samples=0", permissions=CLIPBOARD)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * [30, 2] + [100, 5]
    y = 1000 * (X[:, 0] / 30) ** 2 + 5000 * X[:, 1] + rng.normal(size=200)
    rows = [f"{a:.2f},{b:.3f},{c:.1f}" for (a, b), c in zip(X, y, strict=True)]
    page.drop("houses.csv", "\n".join(["sqft,age,price", *rows]).encode())
    assert page.page.locator("#csv-target option:checked").inner_text() == "price (a number)"
    page.page.click("#csv-use")
    page.page.click("#run")
    page.wait_for_summary(
        r"reaches an R² of 0\.99\d+ on the test points: the level curves are .*s\."
    )
    page.pause()
    assert re.search(r"price: \d+ to \d+", page.text("#legend"))
    assert page.text("#curves").split().count("R²") == 1
    page.page.click("#export-button")
    model = quadric.load(page.download("#export-model", tmp_path))
    assert type(model[-1]) is quadric.QuadraticRegressor
    assert "clone(model)" in page.text("#python-lines")
    page.page.keyboard.press("Escape")
    colors = []
    for x, y in [(0.1, 0.9), (0.9, 0.1)]:  # low and high
        probe = page.hover_picture(x, y)
        at = [float(found.replace("−", "-")) for found in re.findall(r" = ([−\d.]+)", probe)[:2]]
        shown = float(re.search(r"price\s+([−\d.]+)", probe).group(1).replace("−", "-"))
        assert abs(shown - model.predict([at])[0]) < 500  # `at` has three digits
        colors.append(page.page.evaluate(COLOR, [x, y]))
    (red, _, blue), (other_red, _, other_blue) = colors
    assert red > blue
    assert other_blue > other_red
    other = open_page(copied_link(page))
    other.wait_until_still()
    assert other.pixels() == page.pixels()


def test_a_data_set_of_numbers_has_level_curves_for_deep_networks_too(open_page):
    page = open_page("#data=hills&layers=q6&samples=3000&compare=true")
    page.wait_until_still()
    assert re.search(r"R² on the test points: linear [−\d.]+, quadratic 0\.\d+", page.summary)
    page.page.click("#compare")
    page.page.click("#epoch")
    page.wait_for_summary("^6 quadratic, then 1 quadratic neuron reach an R² of 0")
    page.wait_until_still()
    script = """async () => {
        const { app } = await import('./main.js');
        return app.stage.main.picture.painting.lines.map(({ label, arcs }) => [label, arcs.length]);
    }"""
    lines = page.page.evaluate(script)
    assert len(lines) >= 4
    assert sum(count > 0 for _, count in lines) >= 3
    assert page.page.is_disabled("#setting-output")
    assert page.page.is_disabled("#draw-toggle")


def test_a_broken_csv_file_is_reported_with_its_line(open_page):
    page = open_page("#samples=0")
    page.page.select_option("#setting-data", "csv")  # asks for a file
    page.page.wait_for_selector("#import-dialog[open]")
    assert page.page.input_value("#setting-data") == "xor"
    page.drop("broken.csv", b"a,b,c\n1,2,x\n3,4\n")
    page.wait_for_text("#import-error", "Line 3 has 2 values, but the first line has 3.")


@pytest.mark.parametrize("link", ["", "#data=clusters&output=softmax&size=120&layers=q3"])
def test_a_copied_link_opens_the_same_picture(open_page, link):
    page = open_page(link, permissions=CLIPBOARD)
    if link:
        page.page.click("#run")
    page.wait("document.querySelector('#epoch-count').innerText > 1")
    samples = page.pause()
    other = open_page(copied_link(page))
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


def test_models_that_are_exported_while_training_runs_are_those_of_the_page(open_page, tmp_path):
    page = open_page("#data=clusters&layers=q12&speed=0")
    page.page.click("#run")
    page.wait("document.querySelector('#epoch-count').innerText > 0")
    page.page.click("#export-button")
    points = np.random.default_rng(0).normal(-4, 8, (20, 2)).tolist()
    shown, epoch = [], 0
    for number in range(10):
        with page.page.expect_download() as waiting:
            epoch, outputs = page.page.evaluate(EXPORT_AND_PREDICT, [points, epoch])
        path = tmp_path / f"{number}.quadric"
        waiting.value.save_as(path)
        found = quadric.load(path)[-1].network_.forward(quadric.load(path)[0].transform(points))
        np.testing.assert_allclose(found, outputs, rtol=0, atol=1e-12)
        shown.append(str(outputs))
    assert page.text("#run-text") == "Pause"
    assert len(set(shown)) == 10  # it was training


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
