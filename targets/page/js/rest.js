// Waiting for the page.
const onMutation = (fn) => {
  const seen = new MutationObserver(fn);
  for (const root of roots()) seen.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
  return seen;
};

// settle waits for two frames and then until the DOM was quiet for a while, at most max.
const settle = async (quiet, max) => {
  const t0 = performance.now();
  let last = t0;
  const seen = onMutation(() => { last = performance.now(); });
  await frameTick();
  await frameTick();
  for (;;) {
    const now = performance.now();
    if (now - last >= quiet || now - t0 >= max) break;
    await new Promise((done) => { setTimeout(done, Math.max(1, Math.min(quiet - (now - last), max - (now - t0)))); });
  }
  seen.disconnect();
  return performance.now() - last >= quiet;
};

// change ends a little after the next change of the DOM, so that a page in motion
// is not looked at without pause, or after max.
const change = (max) => new Promise((done) => {
  let timer = 0;
  const end = () => { seen.disconnect(); clearTimeout(timer); done(true); };
  const seen = onMutation(() => {
    seen.disconnect();
    clearTimeout(timer);
    timer = setTimeout(end, Math.min(max, 20));
  });
  timer = setTimeout(end, max);
});

// Scrolling: what could move under a place, and whether it did.
let scrollers = [];
const scrollMark = (h, x, y) => {
  scrollers = [];
  for (let n = h ? held(h) : fromPoint(x, y); n && n.nodeType === 1; n = parentOf(n)) {
    if (n.scrollHeight > n.clientHeight || n.scrollWidth > n.clientWidth) scrollers.push([n, n.scrollLeft, n.scrollTop]);
  }
  scrollers.push([null, scrollX, scrollY]);
};
const scrollAt = ([n]) => (n ? [n.scrollLeft, n.scrollTop] : [scrollX, scrollY]);
const scrollMoved = async (max) => {
  const t0 = performance.now();
  let last = '';
  for (let still = 0; still < 3 && performance.now() - t0 < max;) {
    await frameTick();
    const now = scrollers.map(scrollAt).join();
    still = now === last ? still + 1 : 0;
    last = now;
  }
  return scrollers.some((s) => { const [x, y] = scrollAt(s); return x !== s[1] || y !== s[2]; });
};
const twoFrames = async () => { await frameTick(); await frameTick(); return true; };
