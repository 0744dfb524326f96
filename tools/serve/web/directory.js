// The page of a directory: for each image that scrolls into sight its shape, its type and a small picture.
// SPDX-License-Identifier: Apache-2.0
'use strict';

(function () {
  function size(bytes) {
    const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let unit = 0;
    for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
    return Number(bytes.toPrecision(3)) + ' ' + units[unit];
  }

  // The tile of Deep Zoom that shows all of a picture, or of the plane in the middle; null where there is none, or the
  // image has no level that is so coarse.
  async function thumbnail(views, info) {
    const rank = info.shape.length;
    if (rank < 2 || rank > 3) return null;
    const folder = views + (rank === 3 ? 'plane/' + info.axes[0] + '/' + (info.shape[0] >> 1) + '/' : '');
    const answer = await fetch(folder + 'dz.dzi');
    if (!answer.ok) return null;
    const image = new DOMParser().parseFromString(await answer.text(), 'text/xml').documentElement;
    const size = image.querySelector('Size');
    const longest = Math.max(size.getAttribute('Width'), size.getAttribute('Height'));
    const level = Math.ceil(Math.log2(Math.min(longest, image.getAttribute('TileSize'))));
    if (Math.ceil(Math.log2(longest)) - level > info.coarsest_level) return null;
    return folder + 'dz_files/' + level + '/0_0.' + image.getAttribute('Format');
  }

  async function fill(item) {
    const answer = await fetch(item.dataset.views + 'info.json');
    if (!answer.ok) return;
    const info = await answer.json();
    item.querySelector('small').textContent = info.shape.map((n, i) => info.axes[i] + ' ' + n).join(', ') +
        (info.channels > 1 ? ', ' + info.channels + ' channels' : '') + ', ' + info.type + ', ' + size(info.size_bytes);
    const url = await thumbnail(item.dataset.views, info);
    if (!url) return;
    const picture = new Image();
    picture.alt = '';
    picture.addEventListener('load', () => item.prepend(picture));
    picture.src = url;
  }

  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      fill(entry.target).catch(() => {});
    }
  });
  for (const item of document.querySelectorAll('li[data-views]')) observer.observe(item);
})();
