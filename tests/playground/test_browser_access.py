"""The playground for everyone: keyboard, screen readers, small screens, dark mode, lessons."""

import pytest

pytestmark = pytest.mark.slow


def findings(page, part=None):
    """Return the serious findings of axe-core."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
    violations = axe.Axe().run(page.page, context=part).response["violations"]
    return [
        (violation["id"], violation["nodes"][0]["html"])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]


def test_axe_core_has_no_serious_findings(open_page):
    page = open_page("#data=clusters&layers=q12&lesson=1&samples=600")
    page.page.click("#draw-toggle")
    page.page.click("#draw-undo")  # the points are removed and come back
    page.page.click("#thumb-1-0")
    page.wait_until_still()
    assert findings(page) == []
    page.page.emulate_media(color_scheme="dark")
    assert findings(page) == []
    for name in ["help", "lessons", "export", "import"]:
        page.page.click(f"#{name}-button")
        assert findings(page, "dialog[open]") == []
        page.page.keyboard.press("Escape")


def test_everything_works_with_the_keyboard_alone(open_page):
    page = open_page("#samples=0")
    press = page.page.keyboard.press
    press("s")
    page.wait_for_samples(1)
    press("e")
    page.wait_for_samples(4)
    press("r")
    page.wait_for_samples(0)
    press("n")
    page.wait("document.querySelector('#setting-seed').value === '2'")
    press("Space")
    page.wait_for_summary("gets all 4 points right")
    press("Space")
    page.wait_until_still()
    assert "gets all 4 points right" in page.page.inner_text("#live")
    press("?")
    page.page.wait_for_selector("#help-dialog[open]")
    press("Escape")
    page.page.focus("#setting-seed")
    press("s")  # typed into a field, a letter is no shortcut
    assert page.count("sample") == page.wait_until_still()
    page.page.focus("#picture")
    press("ArrowRight")
    assert "x1 = " in page.text(".probe")
    assert "%" in page.page.inner_text("#live")
    page.page.focus("#draw-toggle")
    press("Space")
    page.page.focus("#picture")
    for key in ("ArrowRight", "Enter", "Shift+ArrowRight", "Enter"):
        press(key)
        assert "x1 = " in page.text(".probe")  # on the empty plane, too
    page.wait("document.querySelector('#setting-data').value === 'points'")
    page.wait("location.hash.split('points=')[1]?.split(';').length === 2")
    press("Delete")
    page.wait("location.hash.split('points=')[1]?.split(';').length === 1")


def test_every_control_is_reached_by_tab_and_has_a_name(open_page):
    page = open_page("#layers=q2&samples=0")
    names = []
    for _ in range(60):
        page.page.keyboard.press("Tab")
        name = page.page.evaluate(
            """() => {
                const element = document.activeElement;
                const label = element.labels?.[0]?.innerText;
                return element === document.body
                    ? null : element.getAttribute('aria-label') || label || element.innerText;
            }"""
        )
        if name is None:
            break
        names.append(name.strip())
    assert all(names)
    for expected in ["Run", "Rewind", "Data", "Learning rate", "Side by side", "Add hidden layer"]:
        assert expected in names
    assert any(name.startswith("Hidden layer 1, neuron 2") for name in names)


def test_no_width_needs_horizontal_scrolling(open_page):
    page = open_page("#data=clusters&layers=q12,r12&samples=600", width=375, height=720)
    for compare in (False, True):
        if compare:
            page.page.click("#compare")
        for width in (375, 800, 1280, 1920):
            page.page.set_viewport_size({"width": width, "height": 720})
            page.wait_until_still()
            assert page.page.evaluate("document.documentElement.scrollWidth") <= width
            box = page.page.locator("#run").bounding_box()
            assert 0 <= box["y"] <= 720 - box["height"]  # visible without scrolling


LINES = """() => {
    const canvas = document.querySelector('#diagram > canvas');
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    const counts = { positive: 0, negative: 0 };
    for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] > 200) counts[data[i] < data[i + 2] ? 'positive' : 'negative']++;
    }
    return counts;
}"""


def test_the_network_with_its_connections_is_in_view(open_page):
    page = open_page("#data=moons&layers=q4,l3&samples=2000")  # 1280 x 800
    page.wait_until_still()
    for selector in ("#diagram", "#picture"):
        box = page.page.locator(selector).bounding_box()
        assert box["y"] + box["height"] <= 800
    lines = page.page.evaluate(LINES)
    assert min(lines.values()) > 100
    page.page.click("#thumb-0-1")  # the lines of the others fade
    page.page.wait_for_selector("#details code:visible")
    assert sum(page.page.evaluate(LINES).values()) < sum(lines.values()) / 2


def test_a_narrow_screen_trains_and_draws(open_page):
    page = open_page("#samples=0", width=375, height=667, has_touch=True)
    page.page.tap("#run")
    page.wait_for_summary("gets all 4 points right")
    page.page.tap("#draw-toggle")
    page.page.locator("#picture").scroll_into_view_if_needed()
    page.page.tap("#picture", position={"x": 60, "y": 60})
    page.wait("document.querySelector('#setting-data').value === 'points'")


def test_reduced_motion_shows_the_result_without_moving(open_page):
    page = open_page(reduced_motion="reduce")
    assert page.wait_until_still() > 100
    assert "all 4 points right" in page.summary


def test_dark_and_light_differ_and_switch_without_reload(open_page):
    page = open_page("#samples=400", color_scheme="light")
    page.wait_until_still()
    light = page.pixels()
    page.page.emulate_media(color_scheme="dark")
    page.wait("getComputedStyle(document.body).backgroundColor === 'rgb(18, 21, 26)'")
    page.wait(f"document.querySelectorAll('.frame canvas')[2].toDataURL() !== '{light[2]}'")


def test_every_goal_of_the_lessons_can_be_reached(open_page):
    page = open_page("#samples=0")
    page.page.click("#first-lesson")
    titles = []
    while page.page.is_visible("#lesson"):
        titles.append(page.text("#lesson-title"))
        if "selected" in page.text("#lesson .goal"):
            page.page.click("#thumb-0-0")
        else:
            page.page.select_option("#setting-speed", "0")
            page.page.click("#run")
        page.page.wait_for_selector("#lesson .goal.reached")
        page.page.click("#lesson-next")
    assert [title.split(":")[0] for title in dict.fromkeys(titles)] == [
        f"Lesson {number}" for number in range(1, 6)
    ]
