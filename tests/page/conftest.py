# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chromium for all tests of the report's page, driven through its own driver."""

import base64
import os
import shutil
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / "roles" / "flow_validation" / "files"), str(CHECKOUT)]

_NAMES = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """One Chromium; `show` a page as some reader would have it, then ask what is to be seen."""

    def __init__(self, driver, directory):
        self.driver, self.directory = driver, directory

    def show(self, page, width, height=800, scheme="light", media=""):
        """Open the page in a window of CSS pixels; `scheme`: light or dark, `media`: print or ""."""
        path = self.directory / "report.html"
        path.write_text(page, encoding="utf-8")
        self.command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700},
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.command("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})
        self.driver.get(path.as_uri())

    def command(self, name, arguments):
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def ask(self, script):
        """The value of a JavaScript expression, or of a function's body with `return`."""
        return self.driver.execute_script(script if "return" in script else f"return {script}")

    def pdf(self):
        """The page as it is printed on A4, without the backgrounds that printers leave out."""
        size = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": False}
        return base64.b64decode(self.command("Page.printToPDF", size)["data"])


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """The browser, or a skip that says what is missing."""
    chromium = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no chromium and chromedriver on PATH; scripts/browser.sh installs them")
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = chromium
    flags = ["--headless", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
    # containers and root have no namespaces for its sandbox; the pages are our own
    for flag in [*flags, "--no-sandbox"]:
        options.add_argument(flag)
    # a home of its own: profile and caches of whoever runs the tests are left alone
    home = tmp_path_factory.mktemp("chromium")
    service = Service(driver, env={**os.environ, "HOME": str(home)})
    started = selenium.Chrome(options=options, service=service)
    yield Browser(started, tmp_path_factory.mktemp("page"))
    started.quit()
