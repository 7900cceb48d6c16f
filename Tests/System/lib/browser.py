"""Looks at the gateway's page in a browser, and prints what it saw as JSON. Run by 235-page.py with the Python that has playwright.

    browser.py URL FOLDER      commands, a line each, on standard input
"""

import json
import sys
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

url, folder = sys.argv[1:]
SIZES = {"phone": (390, 844), "desk": (1440, 900)}


def say(**what):
    print(json.dumps(what), flush=True)


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    page = context.new_page()
    messages, foreign = [], []
    page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: messages.append(f"error: {error}"))
    page.on("request", lambda request: foreign.append(request.url)
            if request.url.split(":")[0] in ("http", "https") and urlsplit(request.url).netloc != urlsplit(url).netloc else None)
    page.goto(url)

    def wait(selector, condition, milliseconds):
        # Not wait_for_function, which evaluates a text within the page: the page's policy forbids that.
        for _ in range(milliseconds // 50):
            if condition(page.inner_text(selector)):
                return
            page.wait_for_timeout(50)
        raise TimeoutError(page.inner_text(selector))

    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        try:
            if command == "price":
                wait("#price", lambda text: text == rest, 10_000)
                wait("#sources", lambda text: text, 10_000)
                say(ok=True, text=page.inner_text("main"))
            elif command == "state":
                wait("#about", lambda text: text.startswith(rest), 20_000)
                say(ok=True, banner=page.inner_text("#banner") if page.is_visible("#banner") else "", price=page.inner_text("#price"))
            elif command == "title":
                for _ in range(200):
                    if page.title().startswith(rest):
                        break
                    page.wait_for_timeout(50)
                say(ok=True, title=page.title(), icon=page.get_attribute("link[rel=icon]", "href"),
                    elsewhere=page.inner_text("#elsewhere") if page.is_visible("#elsewhere") else "")
            elif command == "sats":
                page.click("#sat")
                shown = page.inner_text("#price")
                page.click("#sat")
                say(ok=True, sats=shown, price=page.inner_text("#price"))
            elif command == "reload":
                page.reload()
                wait("#price", lambda text: text == "–", 10_000)
                page.wait_for_timeout(500)
                say(ok=True, banner=page.inner_text("#banner") if page.is_visible("#banner") else "")
            elif command == "keys":
                # By the keyboard alone: to the second currency.
                page.focus("#currencies button:nth-child(1)")
                page.keyboard.press("Tab")
                page.keyboard.press("Enter")
                say(ok=True, code=page.inner_text("#code"), price=page.inner_text("#price"), url=page.url,
                    pressed=page.get_attribute("#currencies button:nth-child(2)", "aria-pressed"))
            elif command == "chart":
                # A span, and then the form; what is below the chart, at rest and under the pointer.
                span, form = rest.rsplit(" ", 1)
                page.click(f'#spans button:text-is("{span}")')
                page.click(f'#spans button:text-is("{form}")')
                wait("#shown", lambda text: text.startswith(span), 10_000)
                drawn = {name: page.locator(f"#plot {name}").count() for name in ("path", "rect", ".mark")}
                resting = page.inner_text("#shown")
                box = page.locator("#plot").bounding_box()
                page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 50)
                pointed = page.inner_text("#shown")
                page.mouse.move(0, 0)
                page.focus("#plot")
                by_key = []
                for key in ("ArrowLeft", "ArrowLeft", "Home", "End", "Escape"):
                    page.keyboard.press(key)
                    # By its time: places move with each second that is drawn.
                    pointed_at = page.evaluate("pointed")
                    assert page.locator("#plot .cross").count() == (pointed_at is not None), by_key
                    by_key.append((pointed_at, page.inner_text("#shown")))
                page.keyboard.press("Tab")
                say(ok=True, drawn=drawn, resting=resting, pointed=pointed, byKey=by_key, day=page.inner_text("#day"),
                    label=page.get_attribute("#plot", "aria-label"))
            elif command == "money":
                say(ok=True, shown=page.evaluate("(prices) => prices.map(([price, code]) => money(price, code))", json.loads(rest)))
            elif command == "doubt":
                # What it shows of states, as if it were the moment in which they were made.
                say(ok=True, shown=page.evaluate("""([present, states_]) => states_.map((state) => {
                    states.clear(); lost = ""; chosen = wanted = state.currency; inSatoshis = false;
                    skew = Date.parse(present) - Date.now();
                    keep(state); show();
                    const text = (id) => document.getElementById(id).hidden ? "" : document.getElementById(id).innerText;
                    return [document.title, text("price"), text("about"), text("banner"), text("day")].map((x) => x.replace(/\\s+/g, " ").trim()).filter(Boolean).join(" | ");
                })""", json.loads(rest)))
            elif command == "axe":
                found = Axe().run(page)
                say(ok=True, violations=[v["id"] + ": " + v["help"] for v in found.response["violations"]])
            elif command == "pictures":
                for name, (width, height) in SIZES.items():
                    for scheme in ("light", "dark"):
                        page.emulate_media(color_scheme=scheme)
                        page.set_viewport_size({"width": width, "height": height})
                        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
                        violations = [v["id"] for v in Axe().run(page).response["violations"]]
                        # The chart is drawn for the new width.
                        page.wait_for_timeout(200)
                        page.screenshot(path=f"{folder}/page-{name}-{scheme}.png", full_page=True)
                        say(ok=True, name=name, scheme=scheme, isTooWide=wide, violations=violations)
            elif command == "log":
                say(ok=True, messages=messages, foreign=foreign)
        except Exception as error:
            say(ok=False, error=f"{command}: {error}", text=page.inner_text("main"))
    browser.close()
