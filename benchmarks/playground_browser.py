"""How fast the playground's page is in Chromium: first paint, and main-thread work per frame.

Not a benchmark of its own: `python -m benchmarks.playground` prints these figures, too.
"""

import json
import shutil
import statistics
import threading
from contextlib import contextmanager

from quadric.apps.playground._server import PageServer

LOADS, SECONDS = 15, 10
CLUSTERS = "#data=clusters&size=600&layers=q12&speed=0"
VIEWPORT = {"width": 1280, "height": 800}
CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline"]
PAINT = """() => {
    const [{ startTime }] = performance.getEntriesByName('first-contentful-paint');
    return [startTime, performance.now()];
}"""


@contextmanager
def opened():
    """Yield the address of the page and a browser, or None if one cannot be started."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        yield None
        return
    with PageServer() as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield server.url, browser
        browser.close()
        server.shutdown()


def first_paint(url, browser):
    """Milliseconds until the first contentful paint and until the picture is drawn, per load.

    Every load is a first visit, with an empty cache.
    """
    times = []
    for _ in range(LOADS):
        context = browser.new_context(viewport=VIEWPORT)
        page = context.new_page()
        page.goto(f"{url}#samples=0")
        page.wait_for_selector(".picture[data-painted='0']")
        times.append(page.evaluate(PAINT))
        context.close()
    return [list(column) for column in zip(*times, strict=True)]


def frame_work(url, browser):
    """Milliseconds of all tasks of the page's main thread per animation frame while it trains.

    Returns the elapsed and the processor time of all frames, and the number of training samples
    per second.
    """
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.goto(url + CLUSTERS)
    page.wait_for_selector(".picture[data-painted='0']")
    page.click("#run")
    page.wait_for_timeout(1000)  # compile
    samples = count(page)
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.wait_for_timeout(1000 * SECONDS)
    samples = count(page) - samples
    trace = json.loads(browser.stop_tracing())["traceEvents"]
    context.close()
    return [work_between_frames(trace, field) for field in ("dur", "tdur")], samples / SECONDS


def count(page):
    """The number of training samples that the page shows."""
    return int("".join(filter(str.isdigit, page.inner_text("#sample-count"))))


def work_between_frames(trace, field):
    """Sum the main thread's tasks from each animation frame to the next one.

    The field 'dur' of a task is the elapsed time, and 'tdur' the processor time.
    """
    frames = [event for event in trace if event["name"] == "FireAnimationFrame"]
    threads = [(event["pid"], event["tid"]) for event in frames]
    main = statistics.mode(threads)  # other pages have no frames
    starts = sorted(
        event["ts"] for event, thread in zip(frames, threads, strict=True) if thread == main
    )
    tasks = sorted(
        (event["ts"], event.get("dur", 0), event.get(field, 0))
        for event in trace
        if event["name"] == "RunTask"
        and (event["pid"], event["tid"]) == main
        and event["ph"] == "X"
    )
    work = [0.0] * (len(starts) + 1)
    frame = 0
    for start, duration, value in tasks:
        # A frame belongs to the task in which it fires.
        while frame < len(starts) and start + duration > starts[frame]:
            frame += 1
        work[frame] += value / 1000
    return work[1:-1]  # the first and the last are not complete


def report():
    """Print the figures."""
    with opened() as running:
        if running is None:
            print("first paint and frames: not measured, they need Chromium and Playwright")
            return
        painted, drawn = first_paint(*running)
        print(f"\nfirst visit of the page from the local server, {LOADS} times, median and maximum")
        for label, times in (("first contentful paint", painted), ("picture drawn", drawn)):
            print(f"{label:24}{statistics.median(times):8.0f} ms{max(times):8.0f} ms")
        (work, processor), speed = frame_work(*running)
        high = statistics.quantiles(work, n=20)[-1]
        print(f"\nmain thread while the page trains as fast as possible, {SECONDS} s")
        print(f"{'work per frame, median':24}{statistics.median(work):8.2f} ms")
        print(f"{'the same, processor time':24}{statistics.median(processor):8.2f} ms")
        print(f"{'95 % of frames below':24}{high:8.2f} ms")
        print(f"{'frames per second':24}{len(work) / SECONDS:8.1f}")
        print(f"{'samples per second':24}{speed:8,.0f}")
