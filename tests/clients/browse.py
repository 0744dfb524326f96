"""Opens a page of `mdfs serve` in Chromium, zooms and moves the slider, and prints what it saw as JSON.

usage: browse.py CHROMIUM URL PICTURE.npy
PICTURE.npy gets the pixels of the canvas where one sample is one pixel, from the upper left of the image.
"""
# SPDX-License-Identifier: Apache-2.0
import base64
import io
import json
import sys

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

LOADED = """() => window.mdfsViewer && mdfsViewer.world.getItemCount() == 1 &&
  mdfsViewer.world.getItemAt(0).getFullyLoaded()"""
ONE_TO_ONE = """() => {
  const item = mdfsViewer.world.getItemAt(0), view = mdfsViewer.viewport, size = view.getContainerSize();
  const zoom = item.imageToViewportZoom(1);
  view.zoomTo(zoom, null, true);
  view.panTo(item.imageToViewportCoordinates(size.x / 2, size.y / 2), true);
  mdfsViewer.forceRedraw();
}"""
CANVAS = "() => mdfsViewer.drawer.canvas.toDataURL('image/png')"


def main():
    chromium, url, picture = sys.argv[1:]
    seen = {"console": [], "tiles": [], "failed": []}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 800, "height": 700})
        page.on("console", lambda message: seen["console"].append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen["console"].append(str(error)))
        page.on("response", lambda answer: (seen["tiles"] if "dz_files" in answer.url else []).append(answer.url))
        page.on("response", lambda answer: answer.status >= 400 and seen["failed"].append(answer.url))
        page.goto(url)
        page.wait_for_function(LOADED)
        seen["first"] = len(seen["tiles"])
        page.evaluate(ONE_TO_ONE)
        page.wait_for_timeout(500)
        page.wait_for_function(LOADED)
        page.wait_for_timeout(500)
        seen["path"] = page.input_value("#path")
        seen["python"] = page.input_value("#python")
        seen["length"] = page.inner_text("#length")
        data = base64.b64decode(page.evaluate(CANVAS).split(",")[1])
        np.save(picture, np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")))
        if page.is_visible("#slider"):
            before = len(seen["tiles"])
            page.evaluate("() => { const s = document.getElementById('slider'); s.value = s.max;"
                          " s.dispatchEvent(new Event('input')); }")
            page.wait_for_timeout(1000)
            page.wait_for_function(LOADED)
            seen["slider"] = seen["tiles"][before:]
        browser.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
