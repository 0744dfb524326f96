// The page of an image: deep zoom, a slider for the slow axis, a scale bar, and the window that is on the screen.
// SPDX-License-Identifier: Apache-2.0
'use strict';

(function () {
  const page = JSON.parse(document.getElementById('image').textContent);
  const info = page.info;
  const rank = info.shape.length;
  const width = info.shape[rank - 1], height = info.shape[rank - 2];
  const slow = rank === 3 ? {axis: info.axes[0], length: info.shape[0]} : null;
  const top = Math.ceil(Math.log2(Math.max(width, height)));
  const $ = (id) => document.getElementById(id);
  let plane = 0;

  // A 1-2-5 length of at most `most`.
  function roundLength(most) {
    const power = Math.pow(10, Math.floor(Math.log10(most)));
    return power * [5, 2, 1].find((digit) => digit * power <= most);
  }

  function source() { return (slow ? 'plane/' + slow.axis + '/' + plane + '/' : '') + 'dz.dzi'; }

  const viewer = OpenSeadragon({
    id: 'viewer', drawer: 'canvas', tileSources: source(), showNavigationControl: false, showNavigator: true, maxZoomPixelRatio: 16,
    imageSmoothingEnabled: false, crossOriginPolicy: 'Anonymous', animationTime: 0.4, timeout: 120000,
    gestureSettingsMouse: {clickToZoom: false}
  });

  // Tiles of coarser levels do not exist.
  viewer.world.addHandler('add-item', (event) => {
    event.item.source.minLevel = Math.max(0, top - info.coarsest_level);
  });

  // What is on the screen, in samples of the level that it is shown from.
  function shown() {
    const item = viewer.world.getItemAt(0);
    if (!item) return null;
    const rect = item.viewportToImageRectangle(viewer.viewport.getBounds(true));
    const samplesPerPixel = rect.width / viewer.viewport.getContainerSize().x;
    const level = Math.min(top, info.coarsest_level, Math.max(0, Math.floor(Math.log2(Math.max(1, samplesPerPixel)))));
    const scale = Math.pow(2, level);
    const cut = (from, length, whole) => {
      const size = Math.ceil(whole / scale);
      const first = Math.min(size - 1, Math.max(0, Math.floor(from / scale)));
      const last = Math.min(size, Math.max(first + 1, Math.ceil((from + length) / scale)));
      return {first: first, length: last - first};
    };
    return {level: level, samplesPerPixel: samplesPerPixel, x: cut(rect.x, rect.width, width),
            y: cut(rect.y, rect.height, height)};
  }

  function describe() {
    const view = shown();
    if (!view) return;
    const axes = [info.axes[rank - 2], info.axes[rank - 1]];
    const spec = (view.level > 0 ? 'l' + view.level + ',' : '') +
        (slow ? slow.axis + page.indexAtLevel(plane, view.level) + ',' : '') +
        axes[0] + view.y.first + '+' + view.y.length + ',' + axes[1] + view.x.first + '+' + view.x.length;
    const slice = (cut) => cut.first + ':' + (cut.first + cut.length);
    $('path').value = page.path + '@/win/' + spec + '.npy';
    const from = (cut) => (cut.first << view.level) + ':' + ((cut.first + cut.length) << view.level);
    $('python').value = 'mdfs.open(' + JSON.stringify(page.path) + ')[' + (slow ? plane + ', ' : '') +
        (view.level > 0 ? from(view.y) + ', ' + from(view.x) : slice(view.y) + ', ' + slice(view.x)) + ']';
    const spacing = info.spacing[rank - 1] > 0 ? info.spacing[rank - 1] : 1;
    const unit = info.spacing[rank - 1] > 0 ? info.unit[rank - 1] : 'samples';
    const length = roundLength(140 * view.samplesPerPixel * spacing);
    $('bar').style.width = length / spacing / view.samplesPerPixel + 'px';
    $('length').textContent = Number(length.toPrecision(6)) + ' ' + unit;
  }

  // The index of a plane in a level. Levels may halve the slow axis, as long as its spacing is not the coarser one.
  page.indexAtLevel = function (index, level) {
    let along = info.spacing[0], across = info.spacing[rank - 1];
    for (let n = 0; n < level; ++n) {
      if ('xyz'.includes(slow.axis) && along > 0 && across > 0 && info.unit[0] === info.unit[rank - 1] &&
          along <= across) {
        index = Math.floor(index / 2);
        along *= 2;
      }
      across *= 2;
    }
    return index;
  };

  function showPlane(index) {
    plane = index;
    $('index').textContent = slow.axis + ' ' + plane;
    viewer.addTiledImage({tileSource: source(), index: 0, replace: true, success: describe});
  }

  if (slow) {
    $('slider').max = slow.length - 1;
    $('planes').hidden = false;
    $('slider').addEventListener('input', () => showPlane(Number($('slider').value)));
    $('index').textContent = slow.axis + ' 0';
  }
  for (const id of ['brightness', 'contrast'])
    $(id).addEventListener('input', () => {
      viewer.drawer.canvas.style.filter =
          'brightness(' + Math.pow(2, $('brightness').value) + ') contrast(' + Math.pow(2, $('contrast').value) + ')';
    });
  for (const button of document.querySelectorAll('button[data-copy]'))
    button.addEventListener('click', () => {
      $(button.dataset.copy).select();
      if (navigator.clipboard) navigator.clipboard.writeText($(button.dataset.copy).value);
      else document.execCommand('copy');
    });
  const state = {layers: [{type: 'image', source: 'zarr3://' + new URL('ome.zarr', location.href).href, name: page.name}]};
  $('neuroglancer').href = 'https://neuroglancer-demo.appspot.com/#!' + encodeURIComponent(JSON.stringify(state));
  viewer.addHandler('animation', describe);
  viewer.addHandler('open', describe);
  viewer.addHandler('resize', describe);
  window.mdfsViewer = viewer;
})();
